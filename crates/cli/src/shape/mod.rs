//! The JSON objects that `--json` prints, one type for each. `docs/json.md` explains them and
//! `docs/schema/` holds their schemas; the tests validate what is printed against those.
//!
//! Names of fields are a promise: fields are added, never renamed. Times are milliseconds since
//! the run or the race began, as numbers with at most three decimals.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// One race: part of the objects of `race`, `get`, `replay` and `demo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RaceShape {
    /// What won, if anything did.
    pub(crate) winner: Option<WinnerShape>,
    /// Every attempt, in the order of starting.
    pub(crate) attempts: Vec<AttemptShape>,
    /// Whether the memory led to the winner.
    pub(crate) from_memory: bool,
    /// The transport that was ready later and took over.
    pub(crate) upgraded_to: Option<&'static str>,
    /// What was asked of DNS.
    pub(crate) dns: Vec<DnsShape>,
}

/// The attempt that won.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WinnerShape {
    /// `tcp`, `mptcp`, `quic`, `sctp` or `sctp-udp`.
    pub(crate) transport: &'static str,
    /// `none`, `tls` or `dtls`.
    pub(crate) security: &'static str,
    /// Address and port.
    pub(crate) address: String,
    /// When it could carry the application.
    pub(crate) ready_ms: f64,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AttemptShape {
    /// As in [`WinnerShape`].
    pub(crate) transport: &'static str,
    /// As in [`WinnerShape`].
    pub(crate) security: &'static str,
    /// Address and port.
    pub(crate) address: String,
    /// When it was started.
    pub(crate) started_ms: f64,
    /// When it was ready, failed or was closed; `null` while it is under way.
    pub(crate) ended_ms: Option<f64>,
    /// How far it came.
    pub(crate) level: Value,
    /// `won`, `upgraded`, `lost`, `failed`, `closed` or `under-way`.
    pub(crate) outcome: &'static str,
    /// Why it failed or was closed, in words.
    pub(crate) reason: Option<String>,
}

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

/// One question to DNS.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DnsShape {
    /// The name asked for.
    pub(crate) name: String,
    /// `HTTPS`, `AAAA` or `A`.
    #[serde(rename = "type")]
    pub(crate) record_type: String,
    /// When it was asked.
    pub(crate) asked_ms: f64,
    /// When it was answered.
    pub(crate) answered_ms: Option<f64>,
    /// How many records came.
    pub(crate) records: usize,
    /// Why none came.
    pub(crate) failure: Option<String>,
}

/// What would be tried: the object of `eyas plan`, and `plan` where `--explain` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct PlanShape {
    /// What would be tried, in this order.
    pub(crate) entries: Vec<EntryShape>,
    /// What would not be tried.
    pub(crate) dropped: Vec<DroppedShape>,
    /// What did not come to be a candidate at all, and why.
    pub(crate) notes: Vec<String>,
}

/// A candidate that would be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EntryShape {
    /// As in [`WinnerShape`].
    pub(crate) transport: &'static str,
    /// As in [`WinnerShape`].
    pub(crate) security: &'static str,
    /// Address and port.
    pub(crate) address: String,
    /// Application protocols offered, best first.
    pub(crate) alpn: Vec<String>,
    /// How long after the first it starts, if none before it is ready or fails.
    pub(crate) starts_ms: f64,
    /// The round trip that the memory expects.
    pub(crate) initial_rtt_ms: Option<f64>,
    /// Whether the memory put it where it is.
    pub(crate) from_memory: bool,
    /// Whether it is tried beside a working connection only, to see whether it works again.
    pub(crate) retest: bool,
    /// Why it stands where it does.
    pub(crate) reasons: Vec<String>,
}

/// A candidate that would not be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DroppedShape {
    /// As in [`WinnerShape`].
    pub(crate) transport: &'static str,
    /// As in [`WinnerShape`].
    pub(crate) security: &'static str,
    /// Address and port.
    pub(crate) address: String,
    /// Why not.
    pub(crate) reasons: Vec<String>,
}

/// The object of `eyas get`, beside the race's fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GetShape {
    /// The URL that was asked for.
    pub(crate) url: String,
    /// The URL that answered, after redirects.
    pub(crate) final_url: String,
    /// The status.
    pub(crate) status: u16,
    /// `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
    pub(crate) version: &'static str,
    /// The response headers, as they came.
    pub(crate) headers: Vec<HeaderShape>,
    /// Bytes of the body as written: after decompression.
    pub(crate) bytes: u64,
    /// The file that the body was written to.
    pub(crate) output: Option<String>,
    /// When what had happened.
    pub(crate) timings: TimingsShape,
    /// What carried the last request.
    pub(crate) connection: ConnectionShape,
    /// The race of the last connection that was made.
    #[serde(flatten)]
    pub(crate) race: RaceShape,
}

/// One header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HeaderShape {
    /// Its name, in lower case.
    pub(crate) name: String,
    /// Its value; bytes that are no UTF-8 are replaced.
    pub(crate) value: String,
}

/// When what had happened, since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TimingsShape {
    /// DNS had given the first address.
    pub(crate) dns_ms: Option<f64>,
    /// The transport of the winner was up.
    pub(crate) transport_ms: Option<f64>,
    /// The security layer of the winner was up.
    pub(crate) security_ms: Option<f64>,
    /// The response's headers were there.
    pub(crate) headers_ms: f64,
    /// The body was there and written.
    pub(crate) total_ms: f64,
}

/// What carried a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ConnectionShape {
    /// As in [`WinnerShape`].
    pub(crate) transport: &'static str,
    /// As in [`WinnerShape`].
    pub(crate) security: &'static str,
    /// The peer's address and port.
    pub(crate) address: String,
    /// The version of the security protocol, such as `TLSv1.3`.
    pub(crate) protocol: Option<String>,
    /// The application protocol agreed on, such as `h2`.
    pub(crate) alpn: Option<String>,
    /// The round trip of the handshake.
    pub(crate) rtt_ms: Option<f64>,
    /// Why it was chosen.
    pub(crate) reasons: Vec<String>,
}

/// One row of `eyas memory list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MemoryRowShape {
    /// The network that it belongs to.
    pub(crate) network: String,
    /// What people call the network: its interface and gateway.
    pub(crate) network_name: Option<String>,
    /// The host; `null` where the row is about the network itself.
    pub(crate) host: Option<String>,
    /// As in [`WinnerShape`].
    pub(crate) transport: &'static str,
    /// As in [`WinnerShape`]; `null` where the row is about the network itself.
    pub(crate) security: Option<&'static str>,
    /// Address and port; family and port where the row is about the network itself.
    pub(crate) address: String,
    /// The application protocols that were offered; `null` where the row holds whatever is offered.
    pub(crate) alpn: Option<Vec<String>>,
    /// What the security parameters are called under which it holds; `null` where it holds under all.
    pub(crate) trust: Option<String>,
    /// The host that the certificate had to be good for, if it was another.
    pub(crate) certificate_host: Option<String>,
    /// `good`, `bad`, `retest-due`, `network-bad` or `unknown`.
    pub(crate) verdict: &'static str,
    /// Why it is bad.
    pub(crate) cause: Option<String>,
    /// Failures in a row.
    pub(crate) strikes: u32,
    /// How old the last evidence is.
    pub(crate) age_ms: f64,
    /// How long the verdict still holds.
    pub(crate) holds_for_ms: Option<f64>,
    /// The smoothed round trip.
    pub(crate) rtt_ms: Option<f64>,
    /// How many of the last handshakes with anybody are known, where the row is about the network.
    pub(crate) handshakes: u32,
    /// How many of them had to send packets again.
    pub(crate) sent_again: u32,
}

/// A duration as the shapes have it.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// A shape as a JSON value. The shapes hold nothing that JSON cannot, so that this gives an object.
pub(crate) fn value(shape: &impl Serialize) -> Value {
    serde_json::to_value(shape).unwrap_or_default()
}
