//! The facts that an examination finds. What they mean is decided by `diagnosis`, from these alone.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use eyas::CertificateFault;
use eyas::ServerEncryption;
use eyas::race::candidate::{AddressFamily, Security, Transport};
use eyas::race::dns::DnsFailure;
use eyas::race::evidence::{EvidenceLevel, FailureCause};

/// Everything that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DoctorFindings {
    /// What this machine has.
    pub(super) machine: MachineFindings,
    /// The name servers, each by itself; none where names are not asked of such servers.
    pub(super) name_servers: Vec<NameServerFinding>,
    /// The host, if the user has named one.
    pub(super) host: Option<HostFindings>,
    /// The test for a captive portal, if there is a URL to test with.
    pub(super) portal: Option<PortalFinding>,
    /// What earlier races learnt.
    pub(super) memory: MemoryFinding,
}

/// What this machine has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MachineFindings {
    /// A readable name of the network.
    pub(super) network: String,
    /// The addresses that packets may be sent from.
    pub(super) addresses: Vec<OwnAddressFinding>,
    /// The NAT64 prefixes that races use here.
    pub(super) nat64: Vec<(Ipv6Addr, u8)>,
    /// Why the kernel has no MPTCP, if so.
    pub(super) no_mptcp: Option<String>,
    /// Why SCTP cannot be used directly over IP, if so.
    pub(super) no_sctp: Option<String>,
}

/// An address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnAddressFinding {
    /// The address.
    pub(super) address: IpAddr,
    /// Whether packets from it leave through a gateway.
    pub(super) routed: bool,
}

/// What one name server does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NameServerFinding {
    /// The server.
    pub(super) server: SocketAddr,
    /// Its answers about `ipv4only.arpa`, which exists everywhere.
    pub(super) common: AnswerFindings,
    /// Its answers about the host.
    pub(super) host: Option<AnswerFindings>,
    /// Whether it gave the addresses that `ipv4only.arpa` has (RFC 7050 §2.2), if it gave any.
    pub(super) is_truthful: Option<bool>,
    /// The NAT64 prefixes of its DNS64.
    pub(super) nat64: Vec<(Ipv6Addr, u8)>,
    /// The encrypted resolver that it designates, if that could be found out.
    pub(super) encryption: Option<ServerEncryption>,
}

/// The answers of a name server about a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnswerFindings {
    /// To a question for IPv4 addresses, in a datagram.
    pub(super) datagram: AnswerFinding,
    /// To the same question over TCP.
    pub(super) stream: AnswerFinding,
    /// To a question for HTTPS records.
    pub(super) https: AnswerFinding,
}

/// An answer of a name server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnswerFinding {
    /// How many records there were, or why none.
    pub(super) records: Result<usize, DnsFailure>,
    /// How long it took.
    pub(super) took: Duration,
}

/// What was found about the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostFindings {
    /// The host, as the user has named it.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
    /// How its name is resolved; `None` for an address.
    pub(super) name: Option<NameFinding>,
    /// The transports that the user has named.
    pub(super) named_transports: Vec<Transport>,
    /// Whether the host has announced HTTP/3 over TCP (Alt-Svc, RFC 7838).
    pub(super) announces_http3: bool,
    /// The outcome of every candidate; `None` if there was no time for them.
    pub(super) attempts: Option<Vec<AttemptFinding>>,
    /// The largest packets that got through.
    pub(super) packets: Option<PacketFinding>,
    /// How far the host's clock is ahead of this one, in seconds.
    pub(super) clock_ahead: Option<i64>,
}

/// How the name of the host is resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NameFinding {
    /// Who answers, as a phrase.
    pub(super) source: String,
    /// Whether that is a server that could have HTTPS records.
    pub(super) is_from_dns: bool,
    /// The addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// Why there is no address.
    pub(super) failure: Option<DnsFailure>,
    /// The HTTPS records.
    pub(super) https: Vec<HttpsFinding>,
}

/// An HTTPS record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpsFinding {
    /// The application protocols.
    pub(super) alpn: Vec<String>,
    /// Whether it has a configuration for ECH.
    pub(super) has_ech: bool,
}

/// The outcome of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptFinding {
    /// The transport that was tried.
    pub(super) transport: Transport,
    /// The security layer.
    pub(super) security: Security,
    /// Where.
    pub(super) address: SocketAddr,
    /// The outcome.
    pub(super) outcome: AttemptResult,
    /// Whether its ClientHello took one packet, because one of two did not get through.
    pub(super) short_hello: bool,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// It was ready after this time.
    Ready(Duration),
    /// It was MPTCP and became TCP.
    FellBack,
    /// It failed.
    Failed {
        /// The kind of failure.
        cause: FailureCause,
        /// How far it had got.
        reached: EvidenceLevel,
        /// What is wrong with the host's certificate, if that is why.
        certificate: Option<CertificateFault>,
    },
}

/// The largest packets that got through to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketFinding {
    /// The largest payload of a UDP datagram that was acknowledged, in bytes: QUIC searches for it (RFC 8899).
    pub(super) datagram: Option<u16>,
    /// How many larger ones were lost.
    pub(super) lost_probes: u64,
    /// The payload of a TCP segment, in bytes.
    pub(super) segment: Option<u32>,
    /// The family that they were sent over.
    pub(super) family: AddressFamily,
}

/// The test for a captive portal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortalFinding {
    /// The host of the URL that was requested, without TLS.
    pub(super) host: String,
    /// Whether it was to answer with 204, as the user said; else it is the examined host.
    pub(super) is_named: bool,
    /// The answer.
    pub(super) answer: PortalAnswer,
}

/// What answered a plain request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PortalAnswer {
    /// Nothing.
    Nothing,
    /// A response.
    Response {
        /// Its status.
        status: u16,
        /// The host that it redirects to.
        redirects_to: Option<String>,
    },
}

/// What earlier races learnt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MemoryFinding {
    /// There is none, as the user wanted.
    Disabled,
    /// It cannot be used, for this reason.
    Unusable(String),
    /// What it knew before the examination.
    Known(MemoryRows),
}

/// What the memory knew about this network before the examination.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MemoryRows {
    /// The number of rows about this network, whatever the host.
    pub(super) on_network: usize,
    /// The rows about the host.
    pub(super) of_host: Vec<RememberedFinding>,
    /// The transports that the network is remembered to swallow, with their family and port.
    pub(super) swallowed: Vec<String>,
}

/// What is remembered about one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedFinding {
    /// The transport.
    pub(super) transport: Transport,
    /// The security layer.
    pub(super) security: Security,
    /// Where.
    pub(super) address: SocketAddr,
    /// Whether it worked.
    pub(super) worked: bool,
}

impl AnswerFinding {
    /// Returns whether the server answered the question, if only that there is nothing.
    pub(super) fn is_answered(&self) -> bool {
        matches!(self.records, Ok(_) | Err(DnsFailure::NoData | DnsFailure::NoSuchName))
    }
}

impl NameServerFinding {
    /// Returns its answers about both names.
    pub(super) fn all(&self) -> impl Iterator<Item = &AnswerFindings> {
        std::iter::once(&self.common).chain(&self.host)
    }

    /// Returns the first of its answers in datagrams that is one.
    pub(super) fn answer(&self) -> Option<&AnswerFinding> {
        self.all().map(|answers| &answers.datagram).find(|answer| answer.is_answered())
    }
}

impl MachineFindings {
    /// Returns the addresses of this family that packets may leave the link from.
    pub(super) fn routed(&self, family: AddressFamily) -> impl Iterator<Item = IpAddr> {
        let addresses = self.addresses.iter().filter(|own| own.routed).map(|own| own.address);
        addresses.filter(move |address| {
            AddressFamily::from_ip(*address) == family
                && !address.is_loopback()
                && !is_link_local(*address)
        })
    }
}

/// Returns whether an address is valid on one link only.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

impl HostFindings {
    /// Returns the attempts that satisfy a condition.
    pub(super) fn attempts_of(
        &self,
        is_wanted: impl Fn(&AttemptFinding) -> bool,
    ) -> Vec<&AttemptFinding> {
        self.attempts.iter().flatten().filter(|attempt| is_wanted(attempt)).collect()
    }

    /// Returns the host and its port.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl AttemptFinding {
    /// Returns whether a packet of the peer, or its refusal, has arrived.
    pub(super) fn is_answered(&self) -> bool {
        match self.outcome {
            AttemptResult::Ready(_) | AttemptResult::FellBack => true,
            AttemptResult::Failed { cause, reached, .. } => {
                reached > EvidenceLevel::Started || cause == FailureCause::Refused
            }
        }
    }

    /// Returns how long it took, if it was ready.
    pub(super) fn ready(&self) -> Option<Duration> {
        match self.outcome {
            AttemptResult::Ready(took) => Some(took),
            _ => None,
        }
    }

    /// Returns the family of its address.
    pub(super) fn family(&self) -> AddressFamily {
        AddressFamily::from_ip(self.address.ip())
    }
}
