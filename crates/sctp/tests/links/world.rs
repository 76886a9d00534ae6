//! Host `A` sends as much as it can to host `B`, over one link for each network that joins them.
//!
//! `A` has the addresses 10.0.N.1 and `B` 10.0.N.2 on network N, or 2001:db8:N::1 and
//! 2001:db8:N::2; a packet goes over the network of its destination.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{Endpoint, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Ecn, Fragmentation, Input, Output, Received, Transmit};
use eyas_sctp::message::SendInfo;

const A: usize = 0;
const B: usize = 1;
const PORT: u16 = 7;
const UDP: u16 = 9899;
/// Bytes of a message.
const MESSAGE: usize = 10_000;
/// One direction of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Bits a second.
    pub(crate) rate: u64,
    /// One way.
    pub(crate) delay: Duration,
    /// The most time that a packet waits for others; what would wait longer is dropped.
    pub(crate) queue: Duration,
    /// Packets of a million that are lost.
    pub(crate) loss: u64,
    /// Whether nothing arrives.
    pub(crate) cut: bool,
    /// Bytes of the largest IP packet that passes.
    pub(crate) largest: usize,
    /// How long a packet waits for others before it is marked, if it can be.
    pub(crate) marks: Option<Duration>,
    /// Whether packets that could be marked are dropped.
    pub(crate) drops_markable: bool,
    /// Whether the addresses on it are of IPv6. Of the first link, for all.
    pub(crate) ipv6: bool,
}

impl Link {
    /// A link that loses nothing and passes packets of 1,500 bytes.
    pub(crate) const fn new(rate: u64, delay: Duration, queue: Duration) -> Self {
        Self {
            rate,
            delay,
            queue,
            loss: 0,
            cut: false,
            largest: 1500,
            marks: None,
            drops_markable: false,
            ipv6: false,
        }
    }
}

struct Direction {
    link: Link,
    free_at: Duration,
    under_way: VecDeque<(Duration, Received)>,
}

/// Two hosts and the networks between them.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) sender: Endpoint,
    pub(crate) receiver: Endpoint,
    /// What happened at the sender, and when.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Bytes of user data that came to the receiving user, and when, in the order of coming.
    pub(crate) deliveries: Vec<(Duration, usize)>,
    /// For each network, when packets with data arrived over it at the receiver.
    pub(crate) arrivals: Vec<Vec<Duration>>,
    /// For each network, when heartbeats left the sender.
    pub(crate) heartbeats: Vec<Vec<Duration>>,
    /// Packets that a link did not take.
    pub(crate) dropped: usize,
    /// Whether the user has more to send.
    pub(crate) busy: bool,
    directions: Vec<[Direction; 2]>,
    timeouts: [Option<Duration>; 2],
    random: u64,
    association: Option<AssociationId>,
    ipv6: bool,
}

fn address(host: usize, network: usize, ipv6: bool) -> IpAddr {
    let [network, host] = [network, host + 1].map(|part| u8::try_from(part).unwrap());
    if ipv6 {
        Ipv6Addr::new(0x2001, 0xdb8, network.into(), 0, 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, 0, network, host).into()
    }
}

/// The network that an address is on.
fn network_of(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(v4) => v4.octets()[2].into(),
        IpAddr::V6(v6) => v6.segments()[2].into(),
    }
}

impl World {
    /// The sender tells of its addresses on all networks, the receiver on the first `told`.
    fn new(config: &AssociationConfig, links: &[Link], told: usize) -> Self {
        let ipv6 = links[0].ipv6;
        let endpoint = |host: usize| {
            let mut endpoint = EndpointConfig::default();
            endpoint.listen_port = Some(PORT);
            endpoint.association = config.clone();
            let told = if host == A { links.len() } else { told };
            endpoint.addresses = (0..told).map(|network| address(host, network, ipv6)).collect();
            Endpoint::new(endpoint, [u8::try_from(host).unwrap() + 1; 32], Duration::ZERO)
        };
        let direction = |link: &Link| Direction {
            link: *link,
            free_at: Duration::ZERO,
            under_way: VecDeque::new(),
        };
        Self {
            now: Duration::ZERO,
            sender: endpoint(A),
            receiver: endpoint(B),
            events: Vec::new(),
            deliveries: Vec::new(),
            arrivals: vec![Vec::new(); links.len()],
            heartbeats: vec![Vec::new(); links.len()],
            dropped: 0,
            busy: true,
            directions: links.iter().map(|link| [direction(link), direction(link)]).collect(),
            timeouts: [None; 2],
            random: 0x9e37_79b9_7f4a_7c15,
            association: None,
            ipv6,
        }
    }

    /// Bytes of the headers of IP and UDP on every link.
    pub(crate) fn headers(&self) -> usize {
        if self.ipv6 { 48 } else { 28 }
    }

    /// Connects over the first network; the hosts tell each other of all.
    pub(crate) fn connected(config: &AssociationConfig, links: &[Link]) -> Self {
        Self::connected_knowing(config, links, links.len())
    }

    /// The same, but the receiver tells only of its addresses on the first `told` networks.
    pub(crate) fn connected_knowing(
        config: &AssociationConfig,
        links: &[Link],
        told: usize,
    ) -> Self {
        let mut world = Self::new(config, links, told);
        let mut options =
            ConnectOptions::new(SocketAddr::new(address(B, 0, links[0].ipv6), UDP), PORT);
        options.association = config.clone();
        world.association = Some(world.sender.connect(world.now, &options).unwrap());
        world
    }

    /// The association at the sender.
    pub(crate) fn id(&self) -> AssociationId {
        self.association.unwrap()
    }

    /// What the sender knows of it.
    pub(crate) fn status(&self) -> Status {
        self.sender.status(self.id()).unwrap()
    }

    /// Changes both directions of a network.
    pub(crate) fn cut(&mut self, network: usize, cut: bool) {
        for direction in &mut self.directions[network] {
            direction.link.cut = cut;
        }
    }

    /// The receiver tells of its address on another network.
    pub(crate) fn add_address_of_receiver(&mut self, network: usize) {
        let id = self.receiver.associations()[0];
        self.receiver
            .association_mut(self.now, id)
            .unwrap()
            .add_address(address(B, network, self.ipv6))
            .unwrap();
    }

    /// Adds to the delay of a network, in both directions.
    pub(crate) fn slow_down(&mut self, network: usize, delay: Duration) {
        for direction in &mut self.directions[network] {
            direction.link.delay += delay;
        }
    }

    /// From now on a network passes IP packets of up to so many bytes.
    pub(crate) fn pass_up_to(&mut self, network: usize, largest: usize) {
        for direction in &mut self.directions[network] {
            direction.link.largest = largest;
        }
    }

    /// Bytes of user data delivered from one time to another.
    pub(crate) fn delivered(&self, from: Duration, to: Duration) -> usize {
        let within = |(at, _): &&(Duration, usize)| *at >= from && *at < to;
        self.deliveries.iter().filter(within).map(|(_, bytes)| bytes).sum()
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(&mut self, end: Duration) {
        loop {
            self.drain();
            let arrivals = self.directions.iter().flatten();
            let arrival =
                arrivals.filter_map(|direction| direction.under_way.front()).map(|it| it.0);
            let timeouts = self.timeouts.into_iter().flatten();
            let Some(next) = arrival.chain(timeouts).min().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn step(&mut self) {
        for host in [A, B] {
            if self.timeouts[host].is_some_and(|at| at <= self.now) {
                self.timeouts[host] = None;
                let now = self.now;
                self.endpoint(host).handle_input(now, Input::Tick);
            }
        }
        for network in 0..self.directions.len() {
            for to in [A, B] {
                let direction = &mut self.directions[network][to];
                let due = |first: &&(Duration, Received)| first.0 <= self.now;
                if direction.under_way.front().as_ref().is_some_and(due)
                    && let Some((_, received)) = direction.under_way.pop_front()
                {
                    if to == B && is_data(&received.contents) {
                        self.arrivals[network].push(self.now);
                    }
                    let now = self.now;
                    self.endpoint(to).handle_input(now, Input::Packets(received));
                }
            }
        }
    }

    fn endpoint(&mut self, host: usize) -> &mut Endpoint {
        if host == A { &mut self.sender } else { &mut self.receiver }
    }

    fn drain(&mut self) {
        let now = self.now;
        if let Some(id) = self.association.filter(|_| self.busy) {
            let data = Bytes::from_static(&[0x5a; MESSAGE]);
            while self.sender.send(now, id, &SendInfo::default(), data.clone()).is_ok() {}
        }
        for host in [A, B] {
            loop {
                match self.endpoint(host).poll_output(now) {
                    Output::Transmit(transmit) => self.transmit(host, &transmit),
                    Output::Event(_, event) if host == A => self.events.push((now, event)),
                    Output::Event(..) => {}
                    Output::Timeout(at) => {
                        assert!(at.is_none_or(|at| at > now), "a timeout that is due");
                        self.timeouts[host] = at;
                        break;
                    }
                    other => panic!("an output that the test does not know: {other:?}"),
                }
            }
        }
        for id in self.receiver.associations() {
            while let Some(message) = self.receiver.receive(now, id) {
                self.deliveries.push((now, message.len()));
            }
        }
        // Reading may have opened the window.
        while let Output::Transmit(transmit) = self.receiver.poll_output(now) {
            self.transmit(B, &transmit);
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) {
        let network = network_of(transmit.remote.ip());
        let source = transmit.local.unwrap_or_else(|| address(from, network, self.ipv6));
        for start in (0..transmit.contents.len()).step_by(transmit.segment_size) {
            let end = transmit.contents.len().min(start + transmit.segment_size);
            let packet = transmit.contents.slice(start..end);
            if from == A && packet.get(12) == Some(&4) {
                self.heartbeats[network].push(self.now);
            }
            let may_be_cut = transmit.fragmentation == Fragmentation::Allowed;
            self.send_packet(1 - from, network, source, transmit.ecn, may_be_cut, packet);
        }
    }

    fn send_packet(
        &mut self,
        to: usize,
        network: usize,
        source: IpAddr,
        mut ecn: Ecn,
        may_be_cut: bool,
        packet: Bytes,
    ) {
        let lost = self.draw() % 1_000_000;
        let size = packet.len() + self.headers();
        let direction = &mut self.directions[network][to];
        let link = direction.link;
        let waits = direction.free_at.saturating_sub(self.now);
        let is_too_large = size > link.largest && !may_be_cut;
        let is_unwanted = link.drops_markable && ecn != Ecn::NotCapable;
        if link.cut || waits > link.queue || is_too_large || is_unwanted {
            self.dropped += 1;
            return;
        }
        if ecn != Ecn::NotCapable && link.marks.is_some_and(|marks| waits > marks) {
            ecn = Ecn::CongestionExperienced;
        }
        let bits = size as u64 * 8;
        let service = Duration::from_nanos(bits * 1_000_000_000 / link.rate);
        direction.free_at = direction.free_at.max(self.now) + service;
        if lost < link.loss {
            return;
        }
        let received = Received {
            local: Some(address(to, network, self.ipv6)),
            remote: SocketAddr::new(source, UDP),
            ecn,
            segment_size: packet.len(),
            contents: packet,
        };
        direction.under_way.push_back((direction.free_at + link.delay, received));
    }

    /// Marsaglia's xorshift, from bit 16.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}

/// Whether the first chunk of a packet is DATA or I-DATA.
fn is_data(packet: &Bytes) -> bool {
    matches!(packet.get(12), Some(0 | 64))
}
