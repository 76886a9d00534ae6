//! What the name server says of the trial's name.

use serde::{Deserialize, Serialize};

/// What the name server says, for each type of record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ZoneSetup {
    /// To queries for IPv4 addresses.
    pub a: Answering,
    /// To queries for IPv6 addresses.
    pub aaaa: Answering,
    /// To queries for HTTPS records.
    pub https: Answering,
    /// The HTTPS record of the name; without it the answer is that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<HttpsSetup>,
}

/// How a query is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answering {
    /// With the records that there are.
    #[default]
    Records,
    /// Not at all.
    Never,
    /// By SERVFAIL.
    ServerFailure,
    /// By REFUSED.
    Refused,
    /// The name has no record of this type.
    NoData,
}

/// An HTTPS record (RFC 9460).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpsSetup {
    /// `alpn`; the parameter is left out if there is none.
    pub alpn: Vec<String>,
    /// `no-default-alpn`.
    pub no_default_alpn: bool,
    /// Whether the addresses are in the record as well (`ipv4hint`, `ipv6hint`).
    pub hints: bool,
    /// Whether the name is an alias (AliasMode) of another one, which has the record.
    pub alias: bool,
}
