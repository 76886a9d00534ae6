//! Alternative services (RFC 7838): the header field, the cache, and the alternatives found broken.
//!
//! The parser and the cache are pure: no clock, no I/O, time comes as an argument. HTTP/2 ALTSVC
//! frames (RFC 7838 §4) are not supported: the HTTP/2 library reads and ignores them, so only the
//! header field is used. The field is honoured only for `https` origins, since an alternative must
//! present a certificate for the origin (§2.1).

mod broken;
mod cache;
mod parse;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use broken::{BROKEN_FIRST, BROKEN_MAX, BrokenAlternatives, MAX_BROKEN};
pub use cache::{Cache, MAX_ORIGINS, Origin, is_port_allowed};
pub use parse::{MAX_ALTERNATIVES, MAX_FIELD_BYTES, Malformed, parse};

/// The default lifetime of an alternative, for fields without `ma` (RFC 7838 §3.1): 24 hours.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The protocol name that announces the UDP port of an origin's SCTP over UDP (RFC 6951) if it is
/// not the default one: `x-eyas-sctp-udp=":PORT"`. It is specific to eyas and not an application
/// protocol; other clients ignore protocols that they do not support (§2.4). The application
/// protocol and the SCTP port are those of the origin.
pub const SCTP_UDP: &str = "x-eyas-sctp-udp";

/// The contents of an `Alt-Svc` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AltSvc {
    /// `clear`: all alternatives of the origin are invalidated.
    Clear,
    /// The alternatives, most preferred first. They replace all earlier ones of the origin.
    Alternatives(Vec<Alternative>),
}

/// One alternative service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The ALPN protocol name, percent-decoded; any octets (GREASE values are not UTF-8).
    pub protocol: Vec<u8>,
    /// The host, or `None` for the origin's own.
    pub host: Option<String>,
    /// The port.
    pub port: u16,
    /// How long it is fresh, from the arrival of the response (`ma`).
    pub max_age: Duration,
    /// Whether it remains valid when the network changes (`persist=1`).
    pub persist: bool,
}

impl Alternative {
    /// Returns the service without its lifetime.
    pub fn service(&self) -> Service {
        Service { protocol: self.protocol.clone(), host: self.host.clone(), port: self.port }
    }
}

/// The location and protocol of an alternative: the key for broken alternatives, and the value of
/// `Alt-Used`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// The ALPN protocol name.
    pub protocol: Vec<u8>,
    /// The host, or `None` for the origin's own.
    pub host: Option<String>,
    /// The port.
    pub port: u16,
}

impl Service {
    /// Returns the UDP port for SCTP that this announces for an origin with this host, if it
    /// announces one.
    pub fn sctp_udp_port(&self, origin_host: &str) -> Option<u16> {
        let is_own = self.host.as_deref().is_none_or(|host| host == origin_host);
        (self.protocol == SCTP_UDP.as_bytes() && is_own).then_some(self.port)
    }

    /// Returns the value of the `Alt-Used` field (RFC 7838 §5) for an origin with this host.
    pub fn alt_used(&self, origin_host: &str) -> String {
        let host = self.host.as_deref().unwrap_or(origin_host);
        match self.port {
            443 => host.to_owned(),
            port => format!("{host}:{port}"),
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let protocol = String::from_utf8_lossy(&self.protocol);
        write!(f, "{protocol}={}:{}", self.host.as_deref().unwrap_or(""), self.port)
    }
}
