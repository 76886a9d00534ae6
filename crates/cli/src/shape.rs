//! The JSON objects that `--json` prints, one type for each. `docs/reference/json.md` explains them and
//! `docs/reference/schema/` holds their schemas; the tests validate what is printed against those.
//!
//! Names of fields are a promise: fields are added, never renamed. Times are milliseconds since
//! the run or the race began, as numbers with at most three decimals.

#[cfg(target_os = "linux")]
pub(crate) mod sctp;
#[cfg(target_os = "linux")]
pub(crate) mod tunnel;

use std::net::SocketAddr;
use std::time::Duration;

use eyas::race::report::RaceJson;
use eyas::{ConnectionInfo, EchOutcome, NameSource, ServerEncryption};
use serde::Serialize;
use serde_json::Value;

/// One path of an SCTP association: part of the objects of `pipe` and `race`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PathShape {
    /// The peer's address.
    pub(crate) remote: String,
    /// Our address, once it is known.
    pub(crate) local: Option<String>,
    /// `unconfirmed`, `active`, `potentially-failed` or `inactive`.
    pub(crate) state: &'static str,
    /// The smoothed round trip, once measured.
    pub(crate) rtt_ms: Option<f64>,
    /// Congestion window, in bytes.
    pub(crate) window: usize,
    /// Bytes of the largest SCTP packet.
    pub(crate) mtu: usize,
}

/// Who answers for the name of a target, and why: part of the object of `plan`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NamesShape {
    /// `override`, `localhost`, `hosts-file`, `server`, `queries` or `host-resolver`.
    pub(crate) source: &'static str,
    /// The servers that are asked, with `queries` and `server`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<String>,
    /// The names that are asked for, one after the other, with `queries`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
    /// Whether the queries to these servers were encrypted, where it was not the user who chose the transport.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) encryption: Vec<EncryptionShape>,
    /// All of this, and the reason, as a sentence.
    pub(crate) text: String,
}

/// How queries to a name server are encrypted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EncryptionShape {
    /// The server.
    pub(crate) server: String,
    /// `off`, `unknown`, `absent` or `designated`.
    pub(crate) state: &'static str,
    /// `DoQ`, `DoH3`, `DoT` or `DoH`, with `designated`.
    pub(crate) protocol: Option<&'static str>,
    /// The name of the encrypted resolver, with `designated`.
    pub(crate) name: Option<String>,
    /// Its address and port.
    pub(crate) address: Option<String>,
    /// Whether it has proved to belong to the server.
    pub(crate) verified: Option<bool>,
    /// Whether an earlier process had found it.
    pub(crate) remembered: Option<bool>,
    /// All of this, and the reason, as a sentence.
    pub(crate) text: String,
}

impl EncryptionShape {
    pub(crate) fn new(server: SocketAddr, encryption: &ServerEncryption) -> Self {
        let (state, resolver) = match encryption {
            ServerEncryption::Off => ("off", None),
            ServerEncryption::Absent(_) => ("absent", None),
            ServerEncryption::Designated(resolver) => ("designated", Some(resolver)),
            _ => ("unknown", None),
        };
        Self {
            server: server.to_string(),
            state,
            protocol: resolver.map(|resolver| resolver.protocol.name()),
            name: resolver.map(|resolver| resolver.name.clone()),
            address: resolver.map(|resolver| resolver.address.to_string()),
            verified: resolver.map(|resolver| resolver.is_verified),
            remembered: resolver.map(|resolver| resolver.is_remembered),
            text: encryption.to_string(),
        }
    }
}

impl From<&NameSource> for NamesShape {
    fn from(source: &NameSource) -> Self {
        let (servers, names) = match source {
            NameSource::Queries { servers, names } => {
                (servers.iter().map(ToString::to_string).collect(), names.clone())
            }
            NameSource::Server { server } => (vec![server.clone()], Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        let encryption = Vec::new();
        Self { source: source.name(), servers, names, encryption, text: source.to_string() }
    }
}

/// The object of `eyas get`, in addition to the race's fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GetShape {
    /// The requested URL.
    pub(crate) url: String,
    /// The URL that answered, after redirects.
    pub(crate) final_url: String,
    /// The status.
    pub(crate) status: u16,
    /// `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
    pub(crate) version: &'static str,
    /// The response headers, as received.
    pub(crate) headers: Vec<HeaderShape>,
    /// Bytes of the body as written: after decompression.
    pub(crate) bytes: u64,
    /// The file that the body was written to.
    pub(crate) output: Option<String>,
    /// The timings.
    pub(crate) timings: TimingsShape,
    /// The connection of the last request.
    pub(crate) connection: ConnectionShape,
    /// The race of the last connection that was made.
    #[serde(flatten)]
    pub(crate) race: RaceJson,
}

/// One header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HeaderShape {
    /// Its name, in lower case.
    pub(crate) name: String,
    /// Its value; bytes that are not UTF-8 are replaced.
    pub(crate) value: String,
}

/// Timings since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TimingsShape {
    /// DNS returned the first address.
    pub(crate) dns_ms: Option<f64>,
    /// The transport of the winner was up.
    pub(crate) transport_ms: Option<f64>,
    /// The security layer of the winner was up.
    pub(crate) security_ms: Option<f64>,
    /// The response's headers were received.
    pub(crate) headers_ms: f64,
    /// The body was received and written.
    pub(crate) total_ms: f64,
}

/// The connection of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ConnectionShape {
    /// As in [`WinnerJson`](eyas::race::report::WinnerJson).
    pub(crate) transport: &'static str,
    /// As in [`WinnerJson`](eyas::race::report::WinnerJson).
    pub(crate) security: &'static str,
    /// The peer's address and port.
    pub(crate) address: String,
    /// The version of the security protocol, such as `TLSv1.3`.
    pub(crate) protocol: Option<String>,
    /// The group of TLS's key exchange, such as `X25519MLKEM768`.
    pub(crate) key_exchange: Option<&'static str>,
    /// What became of Encrypted ClientHello: `accepted`, `turned-off`, `grease`.
    pub(crate) ech: Option<&'static str>,
    /// The negotiated application protocol, such as `h2`.
    pub(crate) alpn: Option<String>,
    /// The round-trip time of the handshake.
    pub(crate) rtt_ms: Option<f64>,
    /// Why it was chosen.
    pub(crate) reasons: Vec<String>,
    /// How a connection that an earlier request had used fared, if the request was given one.
    pub(crate) reuse: Option<ReuseShape>,
}

impl From<&ConnectionInfo> for ConnectionShape {
    fn from(info: &ConnectionInfo) -> Self {
        Self {
            transport: info.transport.name(),
            security: info.security.name(),
            address: info.remote.to_string(),
            protocol: info.protocol.map(str::to_owned),
            key_exchange: info.key_exchange,
            ech: info.ech.as_ref().map(EchOutcome::name),
            alpn: info.alpn.clone(),
            rtt_ms: info.rtt.map(millis),
            reasons: info.reasons.clone(),
            reuse: None,
        }
    }
}

/// How a connection fared that an earlier request had used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ReuseShape {
    /// As in [`WinnerJson`](eyas::race::report::WinnerJson).
    pub(crate) transport: &'static str,
    /// The peer's address and port.
    pub(crate) address: String,
    /// How long ago it was established.
    pub(crate) age_ms: f64,
    /// How long it had been idle.
    pub(crate) idle_ms: f64,
    /// Its round-trip time.
    pub(crate) rtt_ms: Option<f64>,
    /// `alive`, `late` or `dead`.
    pub(crate) verdict: &'static str,
}

/// Returns a duration as represented in the shapes.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Converts a shape to a JSON value. Shapes contain only what JSON can represent, so the result is
/// an object.
pub(crate) fn value(shape: &impl Serialize) -> Value {
    serde_json::to_value(shape).unwrap_or_default()
}
