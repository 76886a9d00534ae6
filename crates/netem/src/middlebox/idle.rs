//! A stateful firewall that forgets idle flows.

use core::time::Duration;

pub use super::flow::MAX_FLOWS;
use super::flow::{Flow, FlowTable, opens};
use super::{Middlebox, MiddleboxCounters, Outgoing, Side};
use crate::packet::Packet;
use crate::time::{Nanos, nanos};

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
    outgoing: Outgoing,
}

impl IdleTimeout {
    /// Creates a box that forgets a flow after this time without packets.
    #[must_use]
    pub fn new(timeout: Duration, refresh: RefreshBehavior) -> Self {
        Self { refresh, flows: FlowTable::new(nanos(timeout)), outgoing: Outgoing::default() }
    }

    fn admits(&mut self, now: Nanos, from: Side, packet: &Packet) -> bool {
        let may_open =
            from == Side::Inside && (self.refresh == RefreshBehavior::Any || opens(packet));
        self.flows.refresh(now, Flow::of(from, packet), may_open).is_some()
    }
}

impl Middlebox for IdleTimeout {
    fn handle(&mut self, now: Duration, from: Side, packet: Packet) {
        let passes = self.admits(nanos(now), from, &packet);
        self.outgoing.pass_or_drop(from, packet, passes);
    }

    fn poll(&mut self, _now: Duration) -> Option<(Side, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }

    fn entries(&self) -> usize {
        self.flows.len()
    }
}
