//! A box that counts: it passes so many packets or bytes of a flow, and then no more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::flow::Flow;
use super::{Middlebox, MiddleboxCounters, Outgoing, Side};
use crate::packet::Packet;
use crate::time::{Nanos, nanos};

/// The maximum number of flows; when it is reached, idle ones make room, or a new one fails.
pub const MAX_FLOWS: usize = 65_536;

/// How much of a flow passes, in both directions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// This number of packets.
    Packets(u64),
    /// This number of bytes of IP packets. The packet that would exceed it is dropped, and so are
    /// all that follow, even those that would fit.
    Bytes(u64),
}

/// The configuration of a [`Quota`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaConfig {
    /// The protocols that are counted; all of them if there are none. Others pass.
    pub protocols: Vec<u8>,
    /// What passes of each flow.
    pub allowance: Allowance,
    /// After this time without a packet a flow is forgotten; its next packet begins a new one.
    pub idle: Duration,
}

impl QuotaConfig {
    /// Creates a configuration with the idle time that RFC 4787 §4.3 recommends for UDP.
    #[must_use]
    pub fn new(protocols: impl Into<Vec<u8>>, allowance: Allowance) -> Self {
        Self { protocols: protocols.into(), allowance, idle: Duration::from_secs(300) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Usage {
    used: u64,
    is_over: bool,
    last: Nanos,
}

/// A box that drops what exceeds the allowance of a flow.
#[derive(Clone, Debug)]
pub struct Quota {
    config: QuotaConfig,
    flows: BTreeMap<Flow, Usage>,
    outgoing: Outgoing,
}

impl Quota {
    /// Creates a box that has seen no flow.
    #[must_use]
    pub fn new(config: QuotaConfig) -> Self {
        Self { config, flows: BTreeMap::new(), outgoing: Outgoing::default() }
    }

    fn admits(&mut self, now: Nanos, from: Side, packet: &Packet) -> bool {
        let protocols = &self.config.protocols;
        if !protocols.is_empty() && !protocols.contains(&packet.protocol) {
            return true;
        }
        let flow = Flow::of(from, packet);
        let idle = nanos(self.config.idle);
        let is_alive = |usage: &Usage| now.saturating_sub(usage.last) <= idle;
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.retain(|_, usage| is_alive(usage));
            if self.flows.len() >= MAX_FLOWS {
                return false;
            }
        }
        let fresh = Usage { used: 0, is_over: false, last: now };
        let usage = self.flows.entry(flow).or_insert(fresh);
        if !is_alive(usage) {
            *usage = fresh;
        }
        usage.last = now;
        let (size, allowance) = match self.config.allowance {
            Allowance::Packets(packets) => (1, packets),
            Allowance::Bytes(bytes) => (packet.len() as u64, bytes),
        };
        usage.is_over |= usage.used.saturating_add(size) > allowance;
        if !usage.is_over {
            usage.used += size;
        }
        !usage.is_over
    }
}

impl Middlebox for Quota {
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
