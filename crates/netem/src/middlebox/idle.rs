//! A stateful firewall that forgets idle flows.

use core::time::Duration;

pub use super::flow::MAX_FLOWS;
use super::flow::{FlowTable, PacketFlow, opens};
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::Packet;
use crate::time::{EpochNanos, nanos};

/// Which packets from the inside create or refresh a flow (the outbound refresh behaviour of RFC
/// 4787 §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefreshBehavior {
    /// All packets.
    #[default]
    Any,
    /// Only packets that open a connection: a TCP SYN, an SCTP INIT, or any UDP packet. An
    /// established connection that has been forgotten stays cut.
    Opening,
}

/// A box that passes packets from the outside only if the inside has sent some recently.
#[derive(Clone, Debug)]
pub struct IdleTimeout {
    refresh: RefreshBehavior,
    flows: FlowTable<()>,
    outgoing: OutgoingPackets,
}

impl IdleTimeout {
    /// Creates a box that forgets a flow after this time without packets.
    #[must_use]
    pub fn new(timeout: Duration, refresh: RefreshBehavior) -> Self {
        Self {
            refresh,
            flows: FlowTable::new(nanos(timeout)),
            outgoing: OutgoingPackets::default(),
        }
    }

    fn admits(&mut self, now: EpochNanos, from: MiddleboxSide, packet: &Packet) -> bool {
        let may_open = from == MiddleboxSide::Inside
            && (self.refresh == RefreshBehavior::Any || opens(packet));
        self.flows.refresh(now, PacketFlow::from_packet(from, packet), may_open).is_some()
    }
}

impl Middlebox for IdleTimeout {
    fn handle_packet(&mut self, now: Duration, from: MiddleboxSide, packet: Packet) {
        let passes = self.admits(nanos(now), from, &packet);
        self.outgoing.pass_or_drop(from, packet, passes);
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }

    fn entries(&self) -> usize {
        self.flows.len()
    }
}
