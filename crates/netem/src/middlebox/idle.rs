//! A stateful firewall that forgets idle flows.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::flow::{Flow, opens};
use super::{Middlebox, MiddleboxCounters, Outgoing, Side};
use crate::packet::Packet;
use crate::time::{Nanos, nanos};

/// The maximum number of flows; when it is reached, expired ones make room, or a new one fails.
pub const MAX_FLOWS: usize = 65_536;

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
    timeout: Nanos,
    refresh: RefreshBehavior,
    /// When the inside last sent something on each flow.
    flows: BTreeMap<Flow, Nanos>,
    outgoing: Outgoing,
}

impl IdleTimeout {
    /// Creates a box that forgets a flow after this time without packets.
    #[must_use]
    pub fn new(timeout: Duration, refresh: RefreshBehavior) -> Self {
        let (timeout, outgoing) = (nanos(timeout), Outgoing::default());
        Self { timeout, refresh, flows: BTreeMap::new(), outgoing }
    }

    fn admits(&mut self, now: Nanos, from: Side, packet: &Packet) -> bool {
        let flow = Flow::of(from, packet);
        let timeout = self.timeout;
        let is_alive = |last: Nanos| now.saturating_sub(last) <= timeout;
        match self.flows.get_mut(&flow) {
            Some(last) if is_alive(*last) => {
                *last = now;
                return true;
            }
            Some(_) => {
                self.flows.remove(&flow);
            }
            None => {}
        }
        if from == Side::Outside || (self.refresh == RefreshBehavior::Opening && !opens(packet)) {
            return false;
        }
        if self.flows.len() >= MAX_FLOWS {
            self.flows.retain(|_, last| is_alive(*last));
            if self.flows.len() >= MAX_FLOWS {
                return false;
            }
        }
        self.flows.insert(flow, now);
        true
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
