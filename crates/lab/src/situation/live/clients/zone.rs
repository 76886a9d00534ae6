//! The answers of the name server for the trial's name.

use serde::{Deserialize, Serialize};

/// The answers of the name server, for each record type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ZoneSetup {
    /// The answer to queries for IPv4 addresses.
    pub a: DnsAnswer,
    /// The answer to queries for IPv6 addresses.
    pub aaaa: DnsAnswer,
    /// The answer to queries for HTTPS records.
    pub https: DnsAnswer,
    /// The HTTPS record of the name; without it the answer is that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<HttpsSetup>,
}

/// The kind of answer to a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DnsAnswer {
    /// The existing records.
    #[default]
    Records,
    /// No answer.
    Never,
    /// SERVFAIL.
    ServerFailure,
    /// REFUSED.
    Refused,
    /// The name has no record of this type.
    NoData,
}

/// An HTTPS record (RFC 9460).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpsSetup {
    /// `alpn`; the parameter is omitted if the list is empty.
    pub alpn: Vec<String>,
    /// `no-default-alpn`.
    pub no_default_alpn: bool,
    /// Whether the record also contains the addresses (`ipv4hint`, `ipv6hint`).
    pub hints: bool,
    /// Whether the name is an alias (AliasMode) of another one that has the record.
    pub alias: bool,
}
