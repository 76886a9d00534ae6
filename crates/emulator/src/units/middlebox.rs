//! A middlebox, as a table in topologies and plans.

use eyas_netem::packet::protocol;
use serde::{Deserialize, Serialize};

use super::{ByteSize, TimeSpan};

/// A middlebox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MiddleboxSpec {
    /// Translates IPv4 addresses and ports.
    Nat {
        /// Whether it translates the address of protocol 132, instead of dropping it.
        #[serde(default)]
        passes_sctp: bool,
        /// How long a UDP mapping is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle: Option<TimeSpan>,
        /// The same for TCP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_tcp: Option<TimeSpan>,
    },
    /// Passes or drops packets by protocol or port.
    Firewall {
        /// The protocols that it drops.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        drops: Vec<ProtocolName>,
        /// The only ports of TCP and UDP that it passes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only_ports: Option<Vec<u16>>,
        /// The only ports of TCP that it passes, and nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only_tcp_ports: Option<Vec<u16>>,
    },
    /// Drops what follows the first packet of a ClientHello, until it is answered.
    LongHello {},
    /// Drops packets larger than this.
    MtuLimit {
        /// The largest packet.
        mtu: ByteSize,
        /// Whether it reports this by ICMP.
        #[serde(default)]
        answers: bool,
    },
    /// Forgets idle flows.
    IdleTimeout {
        /// The idle time.
        after: TimeSpan,
        /// Whether an established connection that it has forgotten stays cut.
        #[serde(default)]
        stays_cut: bool,
    },
    /// Drops what exceeds so many packets or bytes of a flow.
    Quota {
        /// The protocols that it counts; all if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        drops: Vec<ProtocolName>,
        /// The number of packets that pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packets: Option<u64>,
        /// The number of bytes that pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<ByteSize>,
        /// After how long without a packet a flow is forgotten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle: Option<TimeSpan>,
    },
    /// Resets TCP connections.
    Reset {
        /// Those with this port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Those that contain this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contains: Option<String>,
        /// Whether the segment itself is dropped.
        #[serde(default)]
        drops: bool,
    },
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    /// ICMP of either family.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP directly over IP.
    Sctp,
}

impl ProtocolName {
    /// Returns the protocol numbers.
    #[must_use]
    pub const fn numbers(self) -> &'static [u8] {
        match self {
            Self::Icmp => &[protocol::ICMP, protocol::ICMPV6],
            Self::Tcp => &[protocol::TCP],
            Self::Udp => &[protocol::UDP],
            Self::Sctp => &[protocol::SCTP],
        }
    }
}

/// A middlebox of which exactly one of several keys must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("middlebox {kind}: give one of {keys}")]
pub struct MiddleboxSpecError {
    /// The kind, as in a scenario file.
    pub kind: &'static str,
    /// The keys, separated by commas.
    pub keys: &'static str,
}

impl MiddleboxSpec {
    /// Checks what the keys do not say by themselves.
    ///
    /// # Errors
    /// If none or several of the keys are given that exclude each other.
    pub fn check(&self) -> Result<(), MiddleboxSpecError> {
        let (kind, keys, given) = match self {
            Self::Firewall { drops, only_ports, only_tcp_ports } => {
                let restricts = [only_ports.is_some(), only_tcp_ports.is_some()];
                let given = restricts.map(usize::from).iter().sum::<usize>();
                // A firewall that drops nothing only counts.
                let given = given + usize::from(!drops.is_empty() || given == 0);
                ("firewall", "drops, only_ports, only_tcp_ports", given)
            }
            Self::Quota { packets, bytes, .. } => {
                let given = usize::from(packets.is_some()) + usize::from(bytes.is_some());
                ("quota", "packets, bytes", given)
            }
            Self::Reset { port, contains, .. } => {
                let given = usize::from(port.is_some()) + usize::from(contains.is_some());
                ("reset", "port, contains", given)
            }
            Self::Nat { .. }
            | Self::LongHello {}
            | Self::MtuLimit { .. }
            | Self::IdleTimeout { .. } => return Ok(()),
        };
        match given {
            1 => Ok(()),
            _ => Err(MiddleboxSpecError { kind, keys }),
        }
    }
}
