//! A stateless firewall: it passes or silently drops packets by protocol and port.

use alloc::vec::Vec;
use core::time::Duration;

use super::flow::ports;
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::{Packet, protocol};

/// What a firewall passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirewallPolicy {
    /// All protocols except these.
    AllBut(Vec<u8>),
    /// Only TCP and UDP with one of these ports at either end.
    OnlyPorts(Vec<u16>),
    /// Only TCP with one of these ports at either end: "the web", as some networks understand it.
    OnlyTcpPorts(Vec<u16>),
}

/// A firewall.
#[derive(Clone, Debug)]
pub struct Firewall {
    policy: FirewallPolicy,
    outgoing: OutgoingPackets,
}

impl Firewall {
    /// Creates a firewall with this policy, in both directions.
    #[must_use]
    pub fn new(policy: FirewallPolicy) -> Self {
        Self { policy, outgoing: OutgoingPackets::default() }
    }

    /// Creates a firewall without support for SCTP: protocol 132 is dropped.
    #[must_use]
    pub fn without_sctp() -> Self {
        Self::new(FirewallPolicy::AllBut(Vec::from([protocol::SCTP])))
    }

    /// Creates a firewall that drops UDP.
    #[must_use]
    pub fn without_udp() -> Self {
        Self::new(FirewallPolicy::AllBut(Vec::from([protocol::UDP])))
    }

    /// Creates a firewall that passes only TCP and UDP with port 443.
    #[must_use]
    pub fn only_443() -> Self {
        Self::new(FirewallPolicy::OnlyPorts(Vec::from([443])))
    }

    fn admits(&self, packet: &Packet) -> bool {
        let either = |wanted: &[u16]| {
            ports(packet).is_some_and(|(from, to)| wanted.contains(&from) || wanted.contains(&to))
        };
        match &self.policy {
            FirewallPolicy::AllBut(protocols) => !protocols.contains(&packet.protocol),
            FirewallPolicy::OnlyPorts(wanted) => {
                packet.protocol != protocol::SCTP && either(wanted)
            }
            FirewallPolicy::OnlyTcpPorts(wanted) => {
                packet.protocol == protocol::TCP && either(wanted)
            }
        }
    }
}

impl Middlebox for Firewall {
    fn handle_packet(&mut self, _now: Duration, from: MiddleboxSide, packet: Packet) {
        let passes = self.admits(&packet);
        self.outgoing.pass_or_drop(from, packet, passes);
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }
}
