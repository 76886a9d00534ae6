//! Middleboxes between the client and the links: their configuration, and the boxes built from it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use eyas_netem::middlebox::Middlebox;
use eyas_netem::middlebox::firewall::{Firewall, FirewallPolicy};
use eyas_netem::middlebox::idle::{IdleTimeout, RefreshBehavior};
use eyas_netem::middlebox::long_hello::LongHelloFirewall;
use eyas_netem::middlebox::mtu::{MtuAnswer, MtuLimit};
use eyas_netem::middlebox::nat::{Nat, NatConfig, SctpTranslation};
use eyas_netem::middlebox::quota::{FlowAllowance, FlowQuota, QuotaConfig};
use eyas_netem::middlebox::reset::{ResetInjector, ResetTrigger};
use eyas_netem::packet::protocol;

use crate::units::{ByteSize, MiddleboxSpec, MiddleboxSpecError, ProtocolName};

/// The maximum number of bytes of a search pattern that its rule shows.
const LONGEST_TEXT: usize = 24;

/// A middlebox between the client and the link of a path. It never sees fragments: those are
/// dropped before it, as by a box that does not reassemble.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MiddleboxConfig {
    /// Passes or drops packets by protocol or port.
    Firewall(FirewallPolicy),
    /// Translates IPv4 addresses and ports to an address of its own, on its path; passes IPv6, as
    /// such boxes do.
    Nat {
        /// The treatment of protocol 132.
        sctp: SctpTranslation,
        /// How long a UDP mapping is kept without a packet from the inside.
        idle: Duration,
        /// The same for TCP.
        idle_tcp: Duration,
    },
    /// Drops what follows the first packet of a ClientHello, until it is answered.
    LongHello,
    /// Drops packets larger than this.
    MtuLimit {
        /// The largest packet, in bytes.
        mtu: usize,
        /// Whether it sends ICMP errors, from the address of the server.
        answers: bool,
    },
    /// Forgets idle flows.
    IdleTimeout {
        /// The idle time.
        after: Duration,
        /// The packets that refresh a flow.
        refresh: RefreshBehavior,
    },
    /// Drops what exceeds so many packets or bytes of a flow.
    Quota(QuotaConfig),
    /// Resets other hosts' TCP connections.
    Reset {
        /// Which connections.
        trigger: ResetTrigger,
        /// Whether it also drops the segment that triggered it.
        drops: bool,
    },
}

impl MiddleboxConfig {
    /// Returns a NAT as recommended by the RFCs; see [`NatConfig::new`].
    #[must_use]
    pub fn nat() -> Self {
        let NatConfig { sctp, idle, idle_tcp, .. } = NatConfig::new(Ipv4Addr::UNSPECIFIED.into());
        Self::Nat { sctp, idle, idle_tcp }
    }

    /// Returns the middlebox that a table describes.
    ///
    /// # Errors
    /// As for [`MiddleboxSpec::check`].
    pub fn from_spec(spec: &MiddleboxSpec) -> Result<Self, MiddleboxSpecError> {
        spec.check()?;
        Ok(match spec.clone() {
            MiddleboxSpec::Nat { passes_sctp, idle, idle_tcp } => {
                let usual = NatConfig::new(Ipv4Addr::UNSPECIFIED.into());
                let translation = [SctpTranslation::Drop, SctpTranslation::AddressOnly];
                Self::Nat {
                    sctp: translation[usize::from(passes_sctp)],
                    idle: idle.map_or(usual.idle, |time| time.0),
                    idle_tcp: idle_tcp.map_or(usual.idle_tcp, |time| time.0),
                }
            }
            MiddleboxSpec::Firewall { drops, only_ports, only_tcp_ports } => {
                Self::Firewall(match (only_ports, only_tcp_ports) {
                    (Some(ports), _) => FirewallPolicy::OnlyPorts(ports),
                    (None, Some(ports)) => FirewallPolicy::OnlyTcpPorts(ports),
                    (None, None) => FirewallPolicy::AllBut(numbers(&drops)),
                })
            }
            MiddleboxSpec::LongHello {} => Self::LongHello,
            MiddleboxSpec::MtuLimit { mtu, answers } => Self::MtuLimit { mtu: mtu.0, answers },
            MiddleboxSpec::IdleTimeout { after, stays_cut } => Self::IdleTimeout {
                after: after.0,
                refresh: if stays_cut { RefreshBehavior::Opening } else { RefreshBehavior::Any },
            },
            MiddleboxSpec::Quota { drops, packets, bytes, idle } => {
                let allowance = match (packets, bytes) {
                    (None, Some(bytes)) => FlowAllowance::Bytes(bytes.0 as u64),
                    (packets, _) => FlowAllowance::Packets(packets.unwrap_or_default()),
                };
                let usual = QuotaConfig::new(numbers(&drops), allowance);
                let idle = idle.map_or(usual.idle, |time| time.0);
                Self::Quota(QuotaConfig { idle, ..usual })
            }
            MiddleboxSpec::Reset { port, contains, drops } => {
                let by_text = || ResetTrigger::Contains(contains.unwrap_or_default().into_bytes());
                Self::Reset { trigger: port.map_or_else(by_text, ResetTrigger::Port), drops }
            }
        })
    }

    /// Returns the middleboxes that several tables describe.
    ///
    /// # Errors
    /// As for [`MiddleboxSpec::check`], of the first that is wrong.
    pub fn from_specs(specs: &[MiddleboxSpec]) -> Result<Vec<Self>, MiddleboxSpecError> {
        specs.iter().map(Self::from_spec).collect()
    }

    /// Returns its kind, as in a scenario file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Firewall(_) => "firewall",
            Self::Nat { .. } => "nat",
            Self::LongHello => "long-hello",
            Self::MtuLimit { .. } => "mtu-limit",
            Self::IdleTimeout { .. } => "idle-timeout",
            Self::Quota(_) => "quota",
            Self::Reset { .. } => "reset",
        }
    }

    /// Returns a short description of its rule, or nothing if the kind is sufficient.
    #[must_use]
    pub fn rule(&self) -> String {
        let ports = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Firewall(FirewallPolicy::AllBut(protocols)) => {
                format!("drops {}", names(protocols, "nothing"))
            }
            Self::Firewall(FirewallPolicy::OnlyPorts(wanted)) => {
                format!("only ports {}", ports(wanted))
            }
            Self::Firewall(FirewallPolicy::OnlyTcpPorts(wanted)) => {
                format!("only TCP ports {}", ports(wanted))
            }
            Self::Nat { sctp: SctpTranslation::Drop, .. } | Self::LongHello => String::new(),
            Self::Nat { .. } => "passes sctp".to_owned(),
            Self::MtuLimit { mtu, answers } => {
                format!("{mtu} bytes{}", if *answers { ", answers" } else { "" })
            }
            Self::IdleTimeout { after, refresh } => {
                let cut = if *refresh == RefreshBehavior::Opening { ", stays cut" } else { "" };
                format!("{after:?}{cut}")
            }
            Self::Quota(QuotaConfig { protocols, allowance, .. }) => {
                let allowance = match allowance {
                    FlowAllowance::Packets(1) => "1 packet".to_owned(),
                    FlowAllowance::Packets(packets) => format!("{packets} packets"),
                    FlowAllowance::Bytes(bytes) => ByteSize(*bytes as usize).to_string(),
                };
                format!("drops {} after {allowance}", names(protocols, "everything"))
            }
            Self::Reset { trigger, drops } => {
                let swallows = if *drops { ", drops" } else { "" };
                match trigger {
                    ResetTrigger::Port(port) => format!("port {port}{swallows}"),
                    ResetTrigger::Contains(text) => {
                        let text = &text[..text.len().min(LONGEST_TEXT)];
                        format!("contains \"{}\"{swallows}", text.escape_ascii())
                    }
                }
            }
        }
    }

    /// Builds the middleboxes, each with the address family that it handles. A NAT needs its
    /// outside address, and a box that sends ICMP needs the addresses of the server.
    #[must_use]
    pub fn build(
        &self,
        nat_address: Option<Ipv4Addr>,
        server: &[IpAddr],
    ) -> Vec<(FamilyFilter, BoxedMiddlebox)> {
        match self {
            Self::Firewall(policy) => {
                vec![(FamilyFilter::Any, Box::new(Firewall::new(policy.clone())))]
            }
            Self::Nat { sctp, idle, idle_tcp } => {
                let Some(address) = nat_address else { return Vec::new() };
                let (sctp, idle, idle_tcp) = (*sctp, *idle, *idle_tcp);
                let config = NatConfig { sctp, idle, idle_tcp, ..NatConfig::new(address.into()) };
                vec![(FamilyFilter::V4, Box::new(Nat::new(config)))]
            }
            Self::LongHello => vec![(FamilyFilter::Any, Box::new(LongHelloFirewall::new()))],
            Self::MtuLimit { mtu, answers } => {
                let limit = |address: IpAddr| -> (FamilyFilter, BoxedMiddlebox) {
                    let answer =
                        if *answers { MtuAnswer::TooBig(address) } else { MtuAnswer::Nothing };
                    (FamilyFilter::from_ip(address), Box::new(MtuLimit::new(*mtu, answer)))
                };
                server.iter().copied().map(limit).collect()
            }
            Self::IdleTimeout { after, refresh } => {
                vec![(FamilyFilter::Any, Box::new(IdleTimeout::new(*after, *refresh)))]
            }
            Self::Quota(config) => {
                vec![(FamilyFilter::Any, Box::new(FlowQuota::new(config.clone())))]
            }
            Self::Reset { trigger, drops } => {
                vec![(FamilyFilter::Any, Box::new(ResetInjector::new(trigger.clone(), *drops)))]
            }
        }
    }
}

/// A middlebox that can go to the emulator's thread.
pub type BoxedMiddlebox = Box<dyn Middlebox + Send>;

/// The address family that a middlebox handles; packets of others bypass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyFilter {
    /// Both.
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl FamilyFilter {
    const fn from_ip(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Returns whether packets with this address go through the middlebox.
    #[must_use]
    pub fn includes(self, address: IpAddr) -> bool {
        self == Self::Any || self == Self::from_ip(address)
    }
}

fn numbers(protocols: &[ProtocolName]) -> Vec<u8> {
    protocols.iter().flat_map(|protocol| protocol.numbers()).copied().collect()
}

/// Returns the names of protocols as in scenario files, or what their absence means.
fn names(protocols: &[u8], none: &str) -> String {
    let mut names: Vec<String> = protocols.iter().map(|number| name(*number)).collect();
    names.dedup();
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

/// Returns the name of a protocol as in scenario files.
fn name(number: u8) -> String {
    match number {
        protocol::TCP => "tcp".to_owned(),
        protocol::UDP => "udp".to_owned(),
        protocol::SCTP => "sctp".to_owned(),
        protocol::ICMP | protocol::ICMPV6 => "icmp".to_owned(),
        other => format!("protocol {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_displayed_as_in_files() {
        let boxes = "kind = 'nat'
            kind = 'firewall'\ndrops = ['icmp', 'udp']
            kind = 'firewall'\nonly_ports = [53, 443]
            kind = 'long-hello'
            kind = 'mtu-limit'\nmtu = '1300 bytes'\nanswers = true
            kind = 'idle-timeout'\nafter = '30 s'\nstays_cut = true
            kind = 'quota'\ndrops = ['udp']\npackets = 100
            kind = 'quota'\nbytes = '1 MB'
            kind = 'reset'\ncontains = 'host: a'\ndrops = true";
        let file: toml::Table = toml::from_str(&boxes.replace("kind", "[[box]]\nkind")).unwrap();
        let specs: Vec<MiddleboxSpec> = file["box"].clone().try_into().unwrap();
        let configs = specs.iter().map(|spec| MiddleboxConfig::from_spec(spec).unwrap());
        let reported: Vec<_> = configs.map(|config| (config.kind(), config.rule())).collect();
        let wanted = [
            ("nat", ""),
            ("firewall", "drops icmp, udp"),
            ("firewall", "only ports 53, 443"),
            ("long-hello", ""),
            ("mtu-limit", "1300 bytes, answers"),
            ("idle-timeout", "30s, stays cut"),
            ("quota", "drops udp after 100 packets"),
            ("quota", "drops everything after 1 MB"),
            ("reset", "contains \"host: a\", drops"),
        ];
        assert_eq!(reported, wanted.map(|(kind, rule)| (kind, rule.to_owned())));
    }
}
