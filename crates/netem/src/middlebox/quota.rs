//! A box that counts: it passes so many packets or bytes of a flow, and then no more.

use alloc::vec::Vec;
use core::time::Duration;

pub use super::flow::MAX_FLOWS;
use super::flow::{FlowTable, PacketFlow};
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::Packet;
use crate::time::{EpochNanos, nanos};

/// How much of a flow passes, in both directions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAllowance {
    /// This number of packets.
    Packets(u64),
    /// This number of bytes of IP packets. The packet that would exceed it is dropped, and so are
    /// all that follow, even those that would fit.
    Bytes(u64),
}

/// The configuration of a [`FlowQuota`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaConfig {
    /// The protocols that are counted; all of them if there are none. Others pass.
    pub protocols: Vec<u8>,
    /// What passes of each flow.
    pub allowance: FlowAllowance,
    /// After this time without a packet a flow is forgotten; its next packet begins a new one.
    pub idle: Duration,
}

impl QuotaConfig {
    /// Creates a configuration with the idle time that RFC 4787 §4.3 recommends for UDP.
    #[must_use]
    pub fn new(protocols: impl Into<Vec<u8>>, allowance: FlowAllowance) -> Self {
        Self { protocols: protocols.into(), allowance, idle: Duration::from_secs(300) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowUsage {
    used: u64,
    is_over: bool,
}

/// A box that drops what exceeds the allowance of a flow.
#[derive(Clone, Debug)]
pub struct FlowQuota {
    config: QuotaConfig,
    flows: FlowTable<FlowUsage>,
    outgoing: OutgoingPackets,
}

impl FlowQuota {
    /// Creates a box that has seen no flow.
    #[must_use]
    pub fn new(config: QuotaConfig) -> Self {
        let flows = FlowTable::new(nanos(config.idle));
        Self { config, flows, outgoing: OutgoingPackets::default() }
    }

    fn admits(&mut self, now: EpochNanos, from: MiddleboxSide, packet: &Packet) -> bool {
        let protocols = &self.config.protocols;
        if !protocols.is_empty() && !protocols.contains(&packet.protocol) {
            return true;
        }
        let Some(usage) = self.flows.refresh(now, PacketFlow::from_packet(from, packet), true)
        else {
            return false;
        };
        let (size, allowance) = match self.config.allowance {
            FlowAllowance::Packets(packets) => (1, packets),
            FlowAllowance::Bytes(bytes) => (packet.len() as u64, bytes),
        };
        usage.is_over |= usage.used.saturating_add(size) > allowance;
        if !usage.is_over {
            usage.used += size;
        }
        !usage.is_over
    }
}

impl Middlebox for FlowQuota {
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
