//! Two endpoints and the network between them, in virtual time.
//!
//! The vocabulary of the tests: a [`World`] has hosts [`A`] and [`B`]; `run_for` and `run_until` let
//! time pass; `lose` takes the next packet with such a chunk away; [`World::ladder`] is what went
//! over the network, one line for each packet, as one would draw it:
//!
//! ```text
//! A -> B  INIT
//! A <- B  INIT-ACK
//! ```
//!
//! Host `A` has the addresses 10.0.P.1 and `B` 10.0.P.2, where P numbers the networks that join
//! them; a packet goes over the network of its destination.

mod chunks;
mod network;
mod stranger;
mod wiretap;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{AssociationMut, AssociationState, Endpoint, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit};
use eyas_sctp::message::{Message, SendInfo};

pub(crate) use chunks::names;
pub(crate) use network::Network;
pub(crate) use stranger::{STRANGER, init, packet};
pub(crate) use wiretap::Wiretap;

/// The host that connects, as a rule.
pub(crate) const A: usize = 0;
/// The host that listens, as a rule.
pub(crate) const B: usize = 1;
/// The SCTP port that both hosts listen on.
pub(crate) const PORT: u16 = 7;
/// The port of the UDP encapsulation on both hosts.
pub(crate) const UDP: u16 = 9899;

/// One host: an endpoint and what it gave out.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    /// What happened to each association, in order.
    pub(crate) events: Vec<(AssociationId, Event)>,
    /// What was received, in order.
    pub(crate) received: BTreeMap<AssociationId, Vec<Message>>,
    /// Whether messages are taken as soon as they are there.
    pub(crate) reads: bool,
    /// Whether an association is forgotten as soon as it says that it has ended.
    pub(crate) forgets: bool,
    readable: BTreeSet<AssociationId>,
    /// The UDP port that the other side sees, where an address translator sits in front.
    pub(crate) translated: Option<u16>,
    timeout: Option<Duration>,
}

/// Two hosts and what is between them.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) hosts: [Host; 2],
    pub(crate) network: Network,
    /// One line for each packet that was sent.
    pub(crate) ladder: Vec<String>,
    /// The last packet with such a chunk in its line is kept.
    pub(crate) keep: Option<&'static str>,
    /// See [`Self::keep`].
    pub(crate) kept: Option<Bytes>,
    /// Stands for every byte that was sent, and when.
    pub(crate) digest: u64,
    /// Who knows the tags of both sides, if somebody listens.
    pub(crate) wiretap: Option<Wiretap>,
    /// How often an endpoint was called because it had asked for that.
    pub(crate) calls: u64,
    in_flight: BTreeMap<(Duration, u64), InFlight>,
    sent: u64,
    lose: VecDeque<&'static str>,
}

struct InFlight {
    to: usize,
    received: Received,
}

/// Milliseconds.
pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The address of `host` on network `network`.
pub(crate) fn address(host: usize, network: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, network, u8::try_from(host).unwrap() + 1).into()
}

/// The same with the port of the encapsulation.
pub(crate) fn socket(host: usize, network: u8) -> SocketAddr {
    SocketAddr::new(address(host, network), UDP)
}

/// Associations that send nothing of their own accord, so that ladders show what a test is about.
pub(crate) fn quiet() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.hb_interval = None;
    config.path_mtu_discovery = false;
    config
}

/// An endpoint that listens, on one network.
pub(crate) fn listening() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.listen_port = Some(PORT);
    config.association = quiet();
    config
}

/// `host` has an address on each of `networks` networks and tells the other side.
pub(crate) fn multihomed(host: usize, networks: u8) -> EndpointConfig {
    let mut config = listening();
    config.addresses = (0..networks).map(|network| address(host, network)).collect();
    config
}

impl Host {
    fn new(config: EndpointConfig, seed: u8) -> Self {
        Self {
            endpoint: Endpoint::new(config, [seed; 32], Duration::ZERO),
            events: Vec::new(),
            received: BTreeMap::new(),
            reads: true,
            forgets: false,
            readable: BTreeSet::new(),
            translated: None,
            timeout: None,
        }
    }

    /// Its associations, for who looks for a mistake.
    fn described(&self) -> String {
        let all = self.endpoint.associations();
        let statuses = all.iter().map(|id| format!("{:#?}", self.endpoint.status(*id)));
        statuses.collect()
    }

    /// The only association there is.
    pub(crate) fn only(&self) -> AssociationId {
        let all = self.endpoint.associations();
        assert_eq!(all.len(), 1, "one association is expected: {all:?}");
        all[0]
    }

    pub(crate) fn status(&self, id: AssociationId) -> Status {
        self.endpoint.status(id).expect("the association is there")
    }

    /// The state of the only association, `Closed` if there is none.
    pub(crate) fn state(&self) -> AssociationState {
        match self.endpoint.associations()[..] {
            [] => AssociationState::Closed,
            [id] => self.status(id).state,
            ref more => panic!("one association is expected: {more:?}"),
        }
    }

    /// The events without the numbers of their associations.
    pub(crate) fn said(&self) -> Vec<Event> {
        self.events.iter().map(|(_, event)| event.clone()).collect()
    }

    /// How many bytes came in.
    pub(crate) fn received_bytes(&self) -> usize {
        self.received.values().flatten().map(Message::len).sum()
    }

    /// How many messages came in whole.
    pub(crate) fn received_messages(&self) -> usize {
        self.received.values().flatten().filter(|message| message.ends).count()
    }

    /// Takes what there is to receive.
    pub(crate) fn read(&mut self, now: Duration) {
        for id in std::mem::take(&mut self.readable) {
            while let Some(message) = self.endpoint.receive(now, id) {
                self.received.entry(id).or_default().push(message);
            }
        }
    }
}

impl World {
    /// Two hosts with one network between them, 10 ms each way.
    pub(crate) fn new() -> Self {
        Self::with(listening(), listening())
    }

    /// Two hosts whose associations are configured alike.
    pub(crate) fn with_associations(set: impl Fn(&mut AssociationConfig)) -> Self {
        let config = || {
            let mut config = listening();
            set(&mut config.association);
            config
        };
        Self::with(config(), config())
    }

    pub(crate) fn with(a: EndpointConfig, b: EndpointConfig) -> Self {
        Self {
            now: Duration::ZERO,
            hosts: [Host::new(a, 1), Host::new(b, 2)],
            network: Network::new(),
            ladder: Vec::new(),
            keep: None,
            kept: None,
            digest: 0xcbf2_9ce4_8422_2325,
            wiretap: None,
            calls: 0,
            in_flight: BTreeMap::new(),
            sent: 0,
            lose: VecDeque::new(),
        }
    }

    /// Begins to connect `A` to `B`.
    pub(crate) fn connect(&mut self) -> AssociationId {
        self.connect_with(|_| {})
    }

    /// The same with options of the test's own.
    pub(crate) fn connect_with(&mut self, set: impl FnOnce(&mut ConnectOptions)) -> AssociationId {
        let mut options = ConnectOptions::new(socket(B, 0), PORT);
        options.association = self.hosts[A].endpoint.config().association.clone();
        set(&mut options);
        self.hosts[A].endpoint.connect(self.now, &options).expect("the options are good")
    }

    /// `A` connected to `B`: the numbers of the association on both sides.
    pub(crate) fn connected(&mut self) -> (AssociationId, AssociationId) {
        let a = self.connect();
        self.finish_handshake(a)
    }

    /// Lets a handshake come to its end.
    pub(crate) fn finish_handshake(&mut self, a: AssociationId) -> (AssociationId, AssociationId) {
        self.finish_handshake_within(a, Duration::from_secs(60))
    }

    /// The same for one that takes long.
    pub(crate) fn finish_handshake_within(
        &mut self,
        a: AssociationId,
        limit: Duration,
    ) -> (AssociationId, AssociationId) {
        self.run_until(limit, |world| {
            world.hosts.iter().all(|host| host.state() == AssociationState::Established)
        });
        (a, self.hosts[B].only())
    }

    /// An association of this host, to be changed.
    pub(crate) fn association(&mut self, host: usize, id: AssociationId) -> AssociationMut<'_> {
        self.hosts[host].endpoint.association_mut(self.now, id).expect("it is there")
    }

    /// A message from `host` on `stream`.
    pub(crate) fn send(
        &mut self,
        host: usize,
        id: AssociationId,
        stream: u16,
        data: impl Into<Bytes>,
    ) {
        let info = SendInfo { stream: StreamId(stream), ..SendInfo::default() };
        self.hosts[host].endpoint.send(self.now, id, &info, data.into()).expect("it is taken");
    }

    /// Takes away the next packet whose line in the ladder has `what` in it.
    pub(crate) fn lose(&mut self, what: &'static str) {
        self.lose.push_back(what);
    }

    /// Whether everything that was to be taken away was.
    pub(crate) fn lost_all(&self) -> bool {
        self.lose.is_empty()
    }

    /// Forgets the ladder so far.
    pub(crate) fn clear_ladder(&mut self) {
        self.ladder.clear();
    }

    /// Hands `host` a packet that nobody sent.
    pub(crate) fn inject(&mut self, host: usize, remote: SocketAddr, packet: Bytes) {
        let received = Received {
            local: None,
            remote,
            ecn: Ecn::NotCapable,
            segment_size: packet.len().max(1),
            contents: packet,
        };
        self.hosts[host].endpoint.handle_input(self.now, Input::Packets(received));
    }

    /// Lets `time` pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Lets time pass until `done`; panics if it takes longer than `limit`.
    pub(crate) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        loop {
            self.drain();
            if done(self) {
                return;
            }
            assert!(self.step(end), "not within {limit:?}:\n{}", self.last_lines());
        }
    }

    fn last_lines(&self) -> String {
        let from = self.ladder.len().saturating_sub(40);
        let statuses: Vec<_> = self.hosts.iter().map(Host::described).collect();
        format!("{}\n{}", self.ladder[from..].join("\n"), statuses.join("\n"))
    }

    /// Goes to the next thing that happens until `end`; false if nothing does.
    fn step(&mut self, end: Duration) -> bool {
        self.drain();
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let timeouts = self.hosts.iter().filter_map(|host| host.timeout);
        let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            if host.timeout.is_some_and(|at| at <= self.now) {
                host.timeout = None;
                self.calls += 1;
                host.endpoint.handle_input(self.now, Input::Tick);
            }
        }
        while let Some(first) = self.in_flight.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let packet = first.remove();
            let endpoint = &mut self.hosts[packet.to].endpoint;
            endpoint.handle_input(self.now, Input::Packets(packet.received));
            self.drain_host(packet.to);
        }
        true
    }

    /// Takes all outputs of both hosts and puts packets on their way.
    pub(crate) fn drain(&mut self) {
        self.drain_host(A);
        self.drain_host(B);
    }

    fn drain_host(&mut self, host: usize) {
        loop {
            match self.hosts[host].endpoint.poll_output(self.now) {
                Output::Transmit(transmit) => self.transmit(host, &transmit),
                Output::Event(id, event) => {
                    if event == Event::Readable {
                        self.hosts[host].readable.insert(id);
                    }
                    let has_ended = matches!(event, Event::Closed | Event::Lost(_));
                    self.hosts[host].events.push((id, event));
                    if has_ended && self.hosts[host].forgets {
                        self.hosts[host].endpoint.forget(self.now, id);
                    }
                }
                Output::Timeout(at) => {
                    assert!(at.is_none_or(|at| at > self.now), "a timeout that is due");
                    self.hosts[host].timeout = at;
                    break;
                }
                other => panic!("an output that the test does not know: {other:?}"),
            }
        }
        if self.hosts[host].reads {
            let now = self.now;
            self.hosts[host].read(now);
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) {
        assert!(!transmit.contents.is_empty() && transmit.segment_size > 0);
        let size = transmit.segment_size;
        for start in (0..transmit.contents.len()).step_by(size) {
            let end = transmit.contents.len().min(start + size);
            self.send_packet(from, transmit, transmit.contents.slice(start..end));
        }
    }

    fn send_packet(&mut self, from: usize, transmit: &Transmit, packet: Bytes) {
        let time = self.now.as_nanos().to_be_bytes();
        for byte in time.iter().chain(&packet) {
            // FNV-1a.
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(wiretap) = &mut self.wiretap {
            wiretap.hear(from, &packet);
        }
        let arrow = if from == A { "->" } else { "<-" };
        let mut line = format!("A {arrow} B  {}", names(&packet));
        if self.keep.is_some_and(|what| line.contains(what)) {
            self.kept = Some(packet.clone());
        }
        let Some(over) = network_of(transmit.remote.ip()) else {
            self.ladder.push(format!("{line} (nowhere)"));
            return;
        };
        if over > 0 {
            line.push_str(&format!(" (network {over})"));
        }
        let to = 1 - from;
        let wanted_port = self.hosts[to].translated.unwrap_or(UDP);
        let named = self.lose.iter().position(|what| line.contains(what));
        let lost = named.is_some()
            || transmit.remote != SocketAddr::new(address(to, over), wanted_port)
            || self.network.loses(over, packet.len());
        if let Some(at) = named {
            self.lose.remove(at);
        }
        if lost {
            line.push_str(" (lost)");
        }
        self.ladder.push(line);
        if lost {
            return;
        }
        let source = transmit.local.unwrap_or_else(|| address(from, over));
        let port = self.hosts[from].translated.unwrap_or(UDP);
        for delay in self.network.delays(over, self.now, packet.len()) {
            let received = Received {
                local: Some(transmit.remote.ip()),
                remote: SocketAddr::new(source, port),
                ecn: self.network.mark(transmit.ecn),
                contents: packet.clone(),
                segment_size: packet.len(),
            };
            self.sent += 1;
            self.in_flight.insert((self.now + delay, self.sent), InFlight { to, received });
        }
    }
}

/// The network that an address is on.
fn network_of(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(v4) if v4.octets()[..2] == [10, 0] => Some(v4.octets()[2]),
        _ => None,
    }
}
