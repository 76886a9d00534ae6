//! Two endpoints and the networks between them, in virtual time.
//!
//! The vocabulary of the tests: a [`World`] has hosts [`A`] and [`B`]; `run_for` and `run_until`
//! let time pass; `lose` drops the next packet with such a chunk; [`Ladder::ladder`] holds the
//! packets sent, one line each, as in a ladder diagram:
//!
//! ```text
//! A -> B  INIT
//! A <- B  INIT-ACK
//! ```

mod chunks;
mod ladder;
mod raw_packets;
mod wiretap;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{AssociationMut, AssociationState, Endpoint, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Ecn, Input, Output, Received};
use eyas_sctp::message::{Message, SendInfo};

use crate::network;

pub(crate) use crate::network::{A, B, PORT, UDP, address, ms};
pub(crate) use chunks::names;
pub(crate) use ladder::Ladder;
pub(crate) use raw_packets::{FOREIGN_PORT, init, packet};
pub(crate) use wiretap::Wiretap;

/// Two hosts and the networks between them.
pub(crate) type World = network::World<Host, Ladder>;

/// The number of networks.
const NETWORKS: usize = 4;

/// One host: an endpoint and its outputs.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    /// The events of all associations, in order.
    pub(crate) events: Vec<(AssociationId, Event)>,
    /// The received messages, in order.
    pub(crate) received: BTreeMap<AssociationId, Vec<Message>>,
    /// Whether messages are read as soon as they are available.
    pub(crate) reads: bool,
    /// Whether an association is forgotten as soon as it has ended.
    pub(crate) forgets: bool,
    readable: BTreeSet<AssociationId>,
    /// The UDP port that the peer sees, behind a NAT.
    pub(crate) translated: Option<u16>,
}

/// The same with the encapsulation port.
pub(crate) fn socket(host: usize, network: u8) -> SocketAddr {
    SocketAddr::new(address(host, network), UDP)
}

/// Associations that send nothing on their own, so that ladders show only the traffic under test.
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

/// `host` has an address on each of `networks` networks and lists them to its peer.
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
        }
    }

    /// Its associations, for failure messages.
    fn described(&self) -> String {
        let all = self.endpoint.associations();
        let statuses = all.iter().map(|id| format!("{:#?}", self.endpoint.status(*id)));
        statuses.collect()
    }

    /// The only association.
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

    /// The events without their association IDs.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.iter().map(|(_, event)| event.clone()).collect()
    }

    /// The number of bytes received.
    pub(crate) fn received_bytes(&self) -> usize {
        self.received.values().flatten().map(Message::len).sum()
    }

    /// The number of messages received completely.
    pub(crate) fn received_messages(&self) -> usize {
        self.received.values().flatten().filter(|message| message.ends).count()
    }

    /// Reads all available messages.
    pub(crate) fn read(&mut self, now: Duration) {
        for id in std::mem::take(&mut self.readable) {
            while let Some(message) = self.endpoint.receive(now, id) {
                self.received.entry(id).or_default().push(message);
            }
        }
    }
}

impl network::Host for Host {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn port(&self) -> u16 {
        self.translated.unwrap_or(UDP)
    }

    /// Reads once the endpoint has no more outputs. A window update that this causes is sent at the
    /// next event.
    fn poll_output(&mut self, now: Duration) -> Output {
        let output = self.endpoint.poll_output(now);
        if self.reads && matches!(output, Output::Timeout(_)) {
            self.read(now);
        }
        output
    }

    fn on_event(&mut self, now: Duration, id: AssociationId, event: Event) {
        if event == Event::Readable {
            self.readable.insert(id);
        }
        let has_ended = matches!(event, Event::Closed | Event::Lost(_));
        self.events.push((id, event));
        if has_ended && self.forgets {
            self.endpoint.forget(now, id);
        }
    }
}

impl World {
    /// Two hosts with one network between them, 10 ms each way.
    pub(crate) fn new() -> Self {
        Self::with(listening(), listening())
    }

    /// Two hosts with the same association configuration.
    pub(crate) fn with_associations(set: impl Fn(&mut AssociationConfig)) -> Self {
        let config = || {
            let mut config = listening();
            set(&mut config.association);
            config
        };
        Self::with(config(), config())
    }

    pub(crate) fn with(a: EndpointConfig, b: EndpointConfig) -> Self {
        let hosts = vec![Host::new(a, 1), Host::new(b, 2)];
        let link = LinkConfig { delay: ms(10), ..LinkConfig::default() };
        let network = network::Network::of_two(&vec![link; NETWORKS]);
        Self::between(hosts, network, Ladder::default())
    }

    /// Starts connecting `A` to `B`.
    pub(crate) fn connect(&mut self) -> AssociationId {
        self.connect_with(|_| {})
    }

    /// The same with custom options.
    pub(crate) fn connect_with(&mut self, set: impl FnOnce(&mut ConnectOptions)) -> AssociationId {
        let mut options = ConnectOptions::new(socket(B, 0), PORT);
        options.association = self.hosts[A].endpoint.config().association.clone();
        set(&mut options);
        self.hosts[A].endpoint.connect(self.now, &options).expect("the options are good")
    }

    /// `A` connected to `B`: the association's ID on both sides.
    pub(crate) fn connected(&mut self) -> (AssociationId, AssociationId) {
        let a = self.connect();
        self.finish_handshake(a)
    }

    /// Runs until the handshake is complete.
    pub(crate) fn finish_handshake(&mut self, a: AssociationId) -> (AssociationId, AssociationId) {
        self.finish_handshake_within(a, Duration::from_secs(60))
    }

    /// The same with a time limit.
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

    /// An association of this host, for changes.
    pub(crate) fn association(&mut self, host: usize, id: AssociationId) -> AssociationMut<'_> {
        self.hosts[host].endpoint.association_mut(self.now, id).expect("it exists")
    }

    /// Sends a message from `host` on `stream`.
    pub(crate) fn send(
        &mut self,
        host: usize,
        id: AssociationId,
        stream: u16,
        data: impl Into<Bytes>,
    ) {
        let info = SendInfo { stream: StreamId(stream), ..SendInfo::default() };
        self.hosts[host].endpoint.send(self.now, id, &info, data.into()).expect("it is accepted");
    }

    /// Drops the next packet whose line in the ladder contains `what`.
    pub(crate) fn lose(&mut self, what: &'static str) {
        self.tap.lose.push(what);
    }

    /// Returns whether everything to be dropped was dropped.
    pub(crate) fn lost_all(&self) -> bool {
        self.tap.lose.is_empty()
    }

    /// Clears the ladder.
    pub(crate) fn clear_ladder(&mut self) {
        self.tap.ladder.clear();
    }

    /// Delivers a forged packet to `host`.
    pub(crate) fn inject(&mut self, host: usize, remote: SocketAddr, packet: Bytes) {
        let received = Received {
            local: None,
            remote,
            ecn: Ecn::NotCapable,
            peer: None,
            segment_size: packet.len().max(1),
            contents: packet,
        };
        self.hosts[host].endpoint.handle_input(self.now, Input::Packets(received));
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
        let ladder = &self.tap.ladder;
        let from = ladder.len().saturating_sub(40);
        let statuses: Vec<_> = self.hosts.iter().map(Host::described).collect();
        format!("{}\n{}", ladder[from..].join("\n"), statuses.join("\n"))
    }
}
