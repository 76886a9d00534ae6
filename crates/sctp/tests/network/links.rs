//! The links of a world.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::{DropCause, Link, LinkConfig, LossConfig, QueueConfig, ReorderingMode};
use eyas_netem::packet::{IPV4_HEADER, IPV6_HEADER, LinkPacket};
use eyas_netem::random::derive;
use eyas_sctp::io::{Ecn, Received};

/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// A link of `rate` bit/s and `delay`, with a queueing delay of at most `queue`, for packets of up
/// to 1,500 bytes.
pub(crate) fn link(rate: u64, delay: Duration, queue: Duration) -> LinkConfig {
    let bytes = u128::from(rate) * queue.as_nanos() / 8_000_000_000;
    LinkConfig {
        queue: QueueConfig::Bytes(bytes as usize),
        mtu: Some(1500),
        ..LinkConfig::new(rate, delay)
    }
}

/// Loses this many packets per thousand.
pub(crate) fn lost(per_thousand: u32) -> LossConfig {
    LossConfig::Probability(f64::from(per_thousand) / 1000.0)
}

/// Delays this many packets per thousand, while others overtake them.
pub(crate) fn late(per_thousand: u32, by: Duration) -> ReorderingMode {
    ReorderingMode::Late { probability: f64::from(per_thousand) / 1000.0, by }
}

/// An SCTP packet in flight.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) may_be_cut: bool,
    pub(crate) contents: Bytes,
    /// Its destination.
    pub(crate) host: usize,
    /// The network that it takes.
    pub(crate) network: u8,
}

impl Datagram {
    pub(crate) fn into_received(self) -> Received {
        Received {
            local: Some(self.destination.ip()),
            remote: self.source,
            ecn: self.ecn,
            peer: None,
            segment_size: self.contents.len(),
            contents: self.contents,
        }
    }
}

/// A packet with its sequence number: packets that arrive at the same time are delivered in the
/// order in which they were sent.
#[derive(Clone, Debug)]
struct SequencedDatagram(u64, Datagram);

impl LinkPacket for SequencedDatagram {
    fn len(&self) -> usize {
        let udp = if self.1.destination.port() == 0 { 0 } else { UDP_HEADER };
        self.header_len() + udp + self.1.contents.len()
    }

    fn header_len(&self) -> usize {
        if self.1.destination.is_ipv6() { IPV6_HEADER } else { IPV4_HEADER }
    }

    fn is_whole(&self) -> bool {
        !self.1.may_be_cut
    }

    fn is_ecn_capable(&self) -> bool {
        self.1.ecn != Ecn::NotCapable
    }

    fn mark(&mut self) {
        self.1.ecn = Ecn::CongestionExperienced;
    }

    fn corrupt(&mut self, bits: &[u64]) {
        unreachable!("no link here corrupts bits: {bits:?}");
    }
}

struct Wire {
    config: LinkConfig,
    link: Link<SequencedDatagram>,
}

/// All links, one per direction.
pub(crate) struct Network {
    /// Networks that accept no packets; those in flight still arrive.
    pub(crate) cut: Vec<u8>,
    wires: Vec<Wire>,
    /// The wire from each host into each network.
    routes: Vec<Vec<usize>>,
    carried: u64,
    /// Packets that have arrived and are to be delivered.
    arrived: VecDeque<SequencedDatagram>,
}

impl Network {
    /// A network between two hosts, with a link like this for each network.
    pub(crate) fn of_two(links: &[LinkConfig]) -> Self {
        Self::of_two_asymmetric(links, links)
    }

    /// The same with other links for the way back.
    pub(crate) fn of_two_asymmetric(links: &[LinkConfig], back: &[LinkConfig]) -> Self {
        let both = links.iter().zip(back).flat_map(|(there, back)| [there.clone(), back.clone()]);
        let routes = [0, 1]
            .map(|host| (0..links.len()).map(|network| network * 2 + host).collect::<Vec<_>>());
        Self::new(both.collect(), routes.into(), 0)
    }

    /// A network with these wires from each host into each network.
    pub(crate) fn new(wires: Vec<LinkConfig>, routes: Vec<Vec<usize>>, seed: u64) -> Self {
        let wire = |config: LinkConfig| Wire { link: Link::new(config.clone(), 0), config };
        let wires = wires.into_iter().map(wire).collect();
        let (cut, arrived) = (Vec::new(), VecDeque::new());
        let mut network = Self { cut, wires, routes, carried: 0, arrived };
        network.seed(seed);
        network
    }

    /// Seeds all randomness. No packet may be in flight yet.
    pub(crate) fn seed(&mut self, seed: u64) {
        for (number, wire) in (0..).zip(&mut self.wires) {
            assert_eq!(wire.link.in_flight().packets, 0);
            wire.link = Link::new(wire.config.clone(), derive(seed, 0, number));
        }
    }

    /// Changes both directions of each network, if two hosts have it to themselves.
    pub(super) fn change(&mut self, now: Duration, change: impl Fn(u8, &mut LinkConfig)) {
        for route in &self.routes {
            for (network, wire) in (0..).zip(route) {
                let Wire { config, link } = &mut self.wires[*wire];
                change(network, config);
                link.reconfigure(now, config.clone());
            }
        }
    }

    /// Returns whether the packet may yet arrive.
    pub(super) fn offer(&mut self, now: Duration, from: usize, network: u8, it: Datagram) -> bool {
        let Some(wire) = self.routes[from].get(usize::from(network)) else { return false };
        if self.cut.contains(&network) {
            return false;
        }
        self.carried += 1;
        let link = &mut self.wires[*wire].link;
        let lost = link.counters().dropped(DropCause::Loss);
        let taken = link.offer(now, SequencedDatagram(self.carried, it)).is_ok();
        taken && link.counters().dropped(DropCause::Loss) == lost
    }

    /// The time of the next possible arrival: zero if a packet has arrived.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        if !self.arrived.is_empty() {
            return Some(Duration::ZERO);
        }
        self.wires.iter().filter_map(|wire| wire.link.next_timeout()).min()
    }

    /// The next packet that has arrived by `now`; of several, the one that was sent first.
    pub(super) fn arrival(&mut self, now: Duration) -> Option<Datagram> {
        if self.arrived.is_empty() {
            for wire in &mut self.wires {
                self.arrived.extend(std::iter::from_fn(|| wire.link.poll(now)));
            }
            self.arrived.make_contiguous().sort_by_key(|carried| carried.0);
        }
        self.arrived.pop_front().map(|carried| carried.1)
    }

    /// The number of packets that a link dropped because of its queue or its MTU.
    pub(crate) fn dropped(&self) -> u64 {
        let causes = [DropCause::QueueFull, DropCause::QueueEarly, DropCause::TooBig];
        let of = |wire: &Wire| causes.map(|cause| wire.link.counters().dropped(cause).packets);
        self.wires.iter().flat_map(of).sum()
    }
}
