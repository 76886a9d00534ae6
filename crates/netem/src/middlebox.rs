//! Middleboxes: what stands in the way of packets and knows better.
//!
//! | box | what it does | source |
//! | --- | --- | --- |
//! | [`nat`] | one address for many, with ports that are forgotten | RFC 4787, RFC 5382 |
//! | [`firewall`] | lets protocols or ports through, or not | |
//! | [`idle`] | forgets flows that say nothing for a while | RFC 6146 §3.5, RFC 5382 |
//! | [`mtu`] | swallows packets that are too big, or answers them | RFC 2923 §2.1, RFC 1191 |
//! | [`reset`] | ends TCP connections of others | RFC 3360 |
//!
//! A box has an inside and an outside. Like a link it has no clock of its own, so that the same box
//! stands in a simulation, as a [`MiddleboxNode`], and in an emulator.

mod checksum;
pub mod firewall;
mod flow;
pub mod idle;
pub mod mtu;
pub mod nat;
pub mod reset;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::time::Duration;

pub(crate) use checksum::Sum;

use crate::node::{Node, NodeInput, NodeOutput};
use crate::packet::{Packet, Payload, protocol};

/// One of the two sides of a middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The hosts that it serves or guards.
    Inside,
    /// The rest of the world.
    Outside,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Inside => Self::Outside,
            Self::Outside => Self::Inside,
        }
    }
}

/// Packets by what they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByProtocol {
    /// TCP.
    pub tcp: u64,
    /// UDP, whatever is inside it.
    pub udp: u64,
    /// SCTP directly over IP.
    pub sctp: u64,
    /// ICMP of either family.
    pub icmp: u64,
    /// Anything else.
    pub other: u64,
}

impl ByProtocol {
    fn count(&mut self, number: u8) {
        *match number {
            protocol::TCP => &mut self.tcp,
            protocol::UDP => &mut self.udp,
            protocol::SCTP => &mut self.sctp,
            protocol::ICMP | protocol::ICMPV6 => &mut self.icmp,
            _ => &mut self.other,
        } += 1;
    }

    /// Each protocol by its name, and how many packets.
    #[must_use]
    pub const fn each(&self) -> [(&'static str, u64); 5] {
        [
            ("tcp", self.tcp),
            ("udp", self.udp),
            ("sctp", self.sctp),
            ("icmp", self.icmp),
            ("other", self.other),
        ]
    }

    /// All of them.
    #[must_use]
    pub const fn in_all(&self) -> u64 {
        self.tcp + self.udp + self.sctp + self.icmp + self.other
    }

    /// These and those.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            tcp: self.tcp + more.tcp,
            udp: self.udp + more.udp,
            sctp: self.sctp + more.sctp,
            icmp: self.icmp + more.icmp,
            other: self.other + more.other,
        }
    }
}

/// What became of the packets of a middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxCounters {
    /// Came in, by either side.
    pub received: u64,
    /// Went on to the other side, changed or not.
    pub passed: u64,
    /// Did not.
    pub dropped: ByProtocol,
    /// Made by the box itself.
    pub made: u64,
}

impl MiddleboxCounters {
    /// Those of two boxes.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            received: self.received + more.received,
            passed: self.passed + more.passed,
            dropped: self.dropped.plus(more.dropped),
            made: self.made + more.made,
        }
    }
}

/// Something between an inside and an outside that may pass, change, drop and make packets.
pub trait Middlebox {
    /// A packet comes in. Then [`Self::poll`] until nothing is left.
    fn handle(&mut self, now: Duration, from: Side, packet: Packet);

    /// Returns the next outgoing packet and its side.
    fn poll(&mut self, now: Duration) -> Option<(Side, Packet)>;

    /// Returns when to call [`Self::poll`] next if no packet arrives.
    fn next_timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns the counters.
    fn counters(&self) -> MiddleboxCounters;
}

impl<M: Middlebox + ?Sized> Middlebox for Box<M> {
    fn handle(&mut self, now: Duration, from: Side, packet: Packet) {
        (**self).handle(now, from, packet);
    }

    fn poll(&mut self, now: Duration) -> Option<(Side, Packet)> {
        (**self).poll(now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        (**self).next_timeout()
    }

    fn counters(&self) -> MiddleboxCounters {
        (**self).counters()
    }
}

/// A middlebox as a node of a world: interface 0 is its inside, interface 1 its outside. It looks
/// into packets, so whatever a world's packets carry, they leave it as bytes.
#[derive(Clone, Debug)]
pub struct MiddleboxNode<M>(pub M);

impl<M> MiddleboxNode<M> {
    /// The interface on the inside.
    pub const INSIDE: u32 = 0;
    /// The interface on the outside.
    pub const OUTSIDE: u32 = 1;
}

impl<M: Middlebox, B: Payload> Node<B> for MiddleboxNode<M> {
    fn handle_input(&mut self, now: Duration, input: NodeInput<B>) {
        if let NodeInput::Arrived { interface, packet } = input {
            let from = if interface == Self::INSIDE { Side::Inside } else { Side::Outside };
            self.0.handle(now, from, packet.to_bytes());
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput<B> {
        let back = |packet: Packet| packet.with_payload(B::from(packet.payload.clone()));
        match self.0.poll(now) {
            Some((Side::Inside, packet)) => {
                NodeOutput::Transmit { interface: Self::INSIDE, packet: back(packet) }
            }
            Some((Side::Outside, packet)) => {
                NodeOutput::Transmit { interface: Self::OUTSIDE, packet: back(packet) }
            }
            None => NodeOutput::Timeout(self.0.next_timeout()),
        }
    }
}

/// What leaves a box: first in, first out, and counted.
#[derive(Clone, Debug, Default)]
struct Leaving {
    packets: alloc::collections::VecDeque<(Side, Packet)>,
    counters: MiddleboxCounters,
}

impl Leaving {
    /// A packet has come: it goes on, or is dropped.
    fn judge(&mut self, from: Side, packet: Packet, goes_on: bool) {
        self.counters.received += 1;
        if goes_on {
            self.pass(from, packet);
        } else {
            self.drop(&packet);
        }
    }

    fn drop(&mut self, packet: &Packet) {
        self.counters.dropped.count(packet.protocol);
    }

    fn pass(&mut self, from: Side, packet: Packet) {
        self.counters.passed += 1;
        self.packets.push_back((from.opposite(), packet));
    }

    fn make(&mut self, to: Side, packet: Packet) {
        self.counters.made += 1;
        self.packets.push_back((to, packet));
    }

    fn next(&mut self) -> Option<(Side, Packet)> {
        self.packets.pop_front()
    }
}
