//! DNS queries and answers, independent of the wire format.

use alloc::{format, string::String, vec::Vec};
use core::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::candidate::{AddressFamily, AlpnName};

/// The port whose HTTPS records are owned by the host's own name (RFC 9460 §9.1).
const DEFAULT_PORT: u16 = 443;

/// Returns the owner name of the HTTPS records of this host and port: Port Prefix Naming (RFC 9460
/// §9.1).
#[must_use]
pub fn https_owner(host: &str, port: u16) -> String {
    if port == DEFAULT_PORT { host.into() } else { format!("_{port}._https.{host}") }
}

/// The record types that a race queries, each separately (HEv3 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RecordType {
    /// HTTPS service bindings (RFC 9460).
    Https,
    /// IPv6 addresses.
    Aaaa,
    /// IPv4 addresses.
    A,
}

impl RecordType {
    /// Returns the type of records with addresses of this family.
    pub(crate) const fn from_family(family: AddressFamily) -> Self {
        match family {
            AddressFamily::V6 => Self::Aaaa,
            AddressFamily::V4 => Self::A,
        }
    }

    /// Returns its name in zone files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Https => "HTTPS",
            Self::Aaaa => "AAAA",
            Self::A => "A",
        }
    }
}

/// Identifies one query of one race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(pub u32);

/// A DNS query for the driver to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsQuery {
    /// The identifier to return in the [`DnsAnswer`].
    pub id: QueryId,
    /// The owner name, normalised, without a trailing dot (`_8443._https.example.com` included).
    pub name: String,
    /// The record type.
    pub record_type: RecordType,
}

/// The answer to a [`DnsQuery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsAnswer {
    /// The query that this answers.
    pub id: QueryId,
    /// The records, or why there are none.
    pub records: Result<DnsRecords, DnsFailure>,
    /// Whether the answer arrived over a protected channel (DoT, DoH) or was validated.
    pub protected: bool,
    /// Whether it has expired: its time to live is over, and the answer to the same query that
    /// replaces it is still to come (optimistic DNS, HEv3 §4.4). It is used only if it has records,
    /// and only for targets that prove who they are ([`Target::authenticates_peer`]).
    ///
    /// [`Target::authenticates_peer`]: crate::target::Target::authenticates_peer
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub expired: bool,
}

/// Records of one type. The resolver has followed CNAME chains, but not SVCB aliases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DnsRecords {
    /// HTTPS records; unknown keys are kept by number so that `mandatory` can be checked.
    Https(Vec<HttpsRecord>),
    /// IPv6 addresses.
    Aaaa(Vec<Ipv6Addr>),
    /// IPv4 addresses.
    A(Vec<Ipv4Addr>),
}

/// One HTTPS record (RFC 9460 §2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpsRecord {
    /// `SvcPriority`; 0 is AliasMode.
    pub priority: u16,
    /// `TargetName`, without a trailing dot; empty stands for the root ("." in the record).
    pub target: String,
    /// The keys listed by the `mandatory` parameter.
    pub mandatory: Vec<u16>,
    /// The `alpn` parameter.
    pub alpn: Vec<AlpnName>,
    /// Whether `no-default-alpn` is present.
    pub no_default_alpn: bool,
    /// The `port` parameter.
    pub port: Option<u16>,
    /// The `ipv4hint` parameter.
    pub ipv4_hint: Vec<Ipv4Addr>,
    /// The `ipv6hint` parameter.
    pub ipv6_hint: Vec<Ipv6Addr>,
    /// The `ech` parameter, as an `ECHConfigList`.
    pub ech: Option<Vec<u8>>,
    /// The keys that are present but have no field here.
    pub unknown_keys: Vec<u16>,
}

/// Why a query returned no records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DnsFailure {
    /// The name exists but has no record of this type.
    NoData,
    /// The name does not exist (NXDOMAIN).
    NoSuchName,
    /// The server could not or would not answer (SERVFAIL, REFUSED).
    ServerFailure,
    /// No answer arrived in time.
    Timeout,
    /// The answer was malformed.
    Malformed,
    /// No server could be reached or none is configured.
    Unreachable,
    /// This host could not send the query, for this reason: its limits, its addresses, its firewall.
    /// That says nothing of the server or the name.
    Local(String),
}

impl DnsFailure {
    /// Returns the name used in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoData => "no-data",
            Self::NoSuchName => "no-such-name",
            Self::ServerFailure => "server-failure",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::Unreachable => "unreachable",
            Self::Local(_) => "local",
        }
    }
}
