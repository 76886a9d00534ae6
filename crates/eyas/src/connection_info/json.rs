//! Details of a connection as JSON, as the Python and C packages return them, with the names and
//! units of `docs/reference/json.md`. Times are in milliseconds, with at most three decimals.

use eyas_race::{candidate::AlpnName, report::milliseconds};
use serde::Serialize;

use super::{ConnectionInfo, ConnectionTimings};
use crate::ech::EchOutcome;

/// A connection: what it is, when each stage was reached, and why it was chosen.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionInfoJson {
    /// The transport on the wire: `tcp`, `mptcp`, `sctp`, `sctp-udp`, `quic`.
    transport: &'static str,
    /// Whether MPTCP was requested but the connection fell back to TCP.
    fell_back: bool,
    /// The security layer: `none`, `tls`, `dtls`.
    security: &'static str,
    /// The version of the security protocol.
    protocol: Option<&'static str>,
    /// The negotiated cipher suite.
    cipher_suite: Option<String>,
    /// The group of TLS's key exchange.
    key_exchange: Option<&'static str>,
    /// What became of Encrypted ClientHello: `accepted`, `turned-off`, `grease`.
    ech: Option<&'static str>,
    /// The local address and port.
    local: Option<String>,
    /// The peer's address and port.
    remote: String,
    /// The negotiated application protocol.
    alpn: Option<AlpnName>,
    /// The round-trip time of the handshake, if it was measured.
    rtt_ms: Option<f64>,
    /// Whether the memory determined this choice.
    from_memory: bool,
    /// Why this candidate was ranked where it was, as text for people.
    reasons: Vec<String>,
    /// When each stage was reached.
    timings: TimingsJson,
}

/// When each stage was reached: see [`ConnectionTimings`].
#[derive(Clone, Copy, Debug, Serialize)]
struct TimingsJson {
    /// DNS returned the first address.
    dns_ms: Option<f64>,
    /// The winning attempt started.
    started_ms: f64,
    /// The peer answered.
    answered_ms: Option<f64>,
    /// The transport was established.
    transport_ms: Option<f64>,
    /// The security layer was established.
    security_ms: Option<f64>,
}

impl From<&ConnectionInfo> for ConnectionInfoJson {
    fn from(info: &ConnectionInfo) -> Self {
        Self {
            transport: info.transport.name(),
            fell_back: info.fell_back,
            security: info.security.name(),
            protocol: info.protocol,
            cipher_suite: info.cipher_suite.clone(),
            key_exchange: info.key_exchange,
            ech: info.ech.as_ref().map(EchOutcome::name),
            local: info.local.map(|local| local.to_string()),
            remote: info.remote.to_string(),
            alpn: info.alpn.clone(),
            rtt_ms: info.rtt.map(milliseconds),
            from_memory: info.from_memory,
            reasons: info.reasons.clone(),
            timings: TimingsJson::from(&info.timings),
        }
    }
}

impl From<&ConnectionTimings> for TimingsJson {
    fn from(timings: &ConnectionTimings) -> Self {
        Self {
            dns_ms: timings.dns.map(milliseconds),
            started_ms: milliseconds(timings.started),
            answered_ms: timings.answered.map(milliseconds),
            transport_ms: timings.transport.map(milliseconds),
            security_ms: timings.security.map(milliseconds),
        }
    }
}
