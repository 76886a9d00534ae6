//! What can be said about a network: topics, and the verdict about each.

/// What is examined, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// IPv4: addresses, routes, and whether TCP passes.
    Ipv4,
    /// The same for IPv6.
    Ipv6,
    /// The name servers.
    NameServers,
    /// Answers that do not fit into a datagram (RFC 7766).
    DnsOverTcp,
    /// The encrypted resolvers of the name servers (RFC 9462).
    EncryptedDns,
    /// The records of type 65 (RFC 9460).
    HttpsRecords,
    /// Encrypted Client Hello (RFC 9848).
    Ech,
    /// The host's name.
    Name,
    /// TCP to the host, and TLS over it.
    Tcp,
    /// QUIC to the host, over UDP.
    Quic,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// SCTP directly over IP (RFC 9260).
    Sctp,
    /// SCTP inside UDP (RFC 6951).
    SctpUdp,
    /// NAT64 (RFC 6146).
    Nat64,
    /// NAT of IPv4.
    Nat,
    /// The largest packets that pass.
    PathMtu,
    /// A captive portal.
    CaptivePortal,
    /// The clock.
    Clock,
    /// What earlier races learnt.
    Memory,
}

impl Topic {
    /// All topics, in their order.
    pub(super) const ALL: [Self; 19] = [
        Self::Ipv4,
        Self::Ipv6,
        Self::NameServers,
        Self::DnsOverTcp,
        Self::EncryptedDns,
        Self::HttpsRecords,
        Self::Ech,
        Self::Name,
        Self::Tcp,
        Self::Quic,
        Self::Mptcp,
        Self::Sctp,
        Self::SctpUdp,
        Self::Nat64,
        Self::Nat,
        Self::PathMtu,
        Self::CaptivePortal,
        Self::Clock,
        Self::Memory,
    ];

    /// Returns the name used in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::NameServers => "name-servers",
            Self::DnsOverTcp => "dns-over-tcp",
            Self::EncryptedDns => "encrypted-dns",
            Self::HttpsRecords => "https-records",
            Self::Ech => "ech",
            Self::Name => "name",
            Self::Tcp => "tcp",
            Self::Quic => "quic",
            Self::Mptcp => "mptcp",
            Self::Sctp => "sctp",
            Self::SctpUdp => "sctp-udp",
            Self::Nat64 => "nat64",
            Self::Nat => "nat",
            Self::PathMtu => "path-mtu",
            Self::CaptivePortal => "captive-portal",
            Self::Clock => "clock",
            Self::Memory => "memory",
        }
    }

    /// Returns the name for people.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::NameServers => "name servers",
            Self::DnsOverTcp => "DNS over TCP",
            Self::EncryptedDns => "encrypted DNS",
            Self::HttpsRecords => "HTTPS records",
            Self::Ech => "ECH",
            Self::Name => "name",
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
            Self::Mptcp => "MPTCP",
            Self::Sctp => "SCTP",
            Self::SctpUdp => "SCTP in UDP",
            Self::Nat64 => "NAT64",
            Self::Nat => "NAT",
            Self::PathMtu => "path MTU",
            Self::CaptivePortal => "captive portal",
            Self::Clock => "clock",
            Self::Memory => "memory",
        }
    }
}

/// What is said about a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictKind {
    /// Nothing is wrong.
    Good,
    /// It is not there, and need not be.
    Absent,
    /// Something is wrong.
    Broken,
    /// It was not examined, or cannot be told from here.
    Unknown,
}

impl VerdictKind {
    /// Returns the name used in JSON and in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Absent => "absent",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

/// The verdict about a topic, and what to do if something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicVerdict {
    pub(super) kind: VerdictKind,
    /// What was found, as a clause.
    pub(super) finding: String,
    /// What to do about it: exactly where something is wrong.
    pub(super) advice: Option<String>,
}

impl TopicVerdict {
    pub(super) fn good(finding: impl Into<String>) -> Self {
        Self { kind: VerdictKind::Good, finding: finding.into(), advice: None }
    }

    pub(super) fn absent(finding: impl Into<String>) -> Self {
        Self { kind: VerdictKind::Absent, finding: finding.into(), advice: None }
    }

    pub(super) fn unknown(finding: impl Into<String>) -> Self {
        Self { kind: VerdictKind::Unknown, finding: finding.into(), advice: None }
    }

    pub(super) fn broken(finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { kind: VerdictKind::Broken, finding: finding.into(), advice: Some(advice.into()) }
    }
}
