//! From facts to verdicts: a pure function, so that each rule can be tested without a network.
//!
//! | file | topics |
//! | --- | --- |
//! | `families` | IPv4, IPv6, NAT64, NAT |
//! | `names` | name servers, DNS over TCP, encrypted DNS, HTTPS records, ECH, the host's name |
//! | `transports` | TCP, QUIC, MPTCP, SCTP |
//! | `path` | path MTU, captive portal, clock, memory |

mod families;
mod names;
mod path;
mod transports;

use super::findings::DoctorFindings;
use super::topic::{Topic, TopicVerdict};

/// What is missing without a host.
const NO_HOST: &str = "needs a HOST";

/// Returns the verdict about each topic, in the order of the topics.
pub(super) fn diagnose(findings: &DoctorFindings) -> Vec<(Topic, TopicVerdict)> {
    Topic::ALL.into_iter().map(|topic| (topic, verdict(topic, findings))).collect()
}

fn verdict(topic: Topic, findings: &DoctorFindings) -> TopicVerdict {
    use eyas::race::candidate::AddressFamily::{V4, V6};
    use eyas::race::candidate::Transport::{Sctp, SctpUdp};
    match topic {
        Topic::Ipv4 => families::family(findings, V4),
        Topic::Ipv6 => families::family(findings, V6),
        Topic::Nat64 => families::nat64(findings),
        Topic::Nat => families::nat(findings),
        Topic::NameServers => names::servers(findings),
        Topic::DnsOverTcp => names::over_tcp(findings),
        Topic::EncryptedDns => names::encrypted(findings),
        Topic::HttpsRecords => names::https_records(findings),
        Topic::Ech => names::ech(findings),
        Topic::Name => names::name(findings),
        Topic::Tcp => transports::tcp(findings),
        Topic::Quic => transports::quic(findings),
        Topic::Mptcp => transports::mptcp(findings),
        Topic::Sctp => transports::sctp(findings, Sctp),
        Topic::SctpUdp => transports::sctp(findings, SctpUdp),
        Topic::PathMtu => path::mtu(findings),
        Topic::CaptivePortal => path::portal(findings),
        Topic::Clock => path::clock(findings),
        Topic::Memory => path::memory(findings),
    }
}
