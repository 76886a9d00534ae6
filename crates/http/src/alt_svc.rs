//! Alternative services (RFC 7838): the header field, the cache, and what was found broken.
//!
//! The parser and the cache are pure: no clock, no I/O, time comes as an argument. HTTP/2 ALTSVC
//! frames (RFC 7838 §4) are not seen: the HTTP/2 library reads and ignores them, so only the
//! header field counts here. The field is honoured for `https` origins only, for an alternative
//! must prove itself with the origin's certificate (§2.1).

mod broken;
mod cache;
mod parse;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use broken::{BROKEN_FIRST, BROKEN_MAX, BrokenAlternatives, MAX_BROKEN};
pub use cache::{Cache, MAX_ORIGINS, Origin, is_port_allowed};
pub use parse::{MAX_ALTERNATIVES, MAX_FIELD_BYTES, Malformed, parse};

/// How long an alternative is fresh when the field does not say (RFC 7838 §3.1): 24 hours.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The protocol that names the UDP port at which an origin awaits SCTP inside UDP (RFC 6951), where
/// that is another than the usual one: `x-eyas-sctp-udp=":PORT"`. It is eyas's own and no application
/// protocol; others pass over what they do not speak (§2.4). What is spoken there, and the SCTP port,
/// are those of the origin.
pub const SCTP_UDP: &str = "x-eyas-sctp-udp";

/// What an `Alt-Svc` field says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AltSvc {
    /// `clear`: every alternative of the origin is to be forgotten.
    Clear,
    /// The alternatives, most wanted first. They replace all earlier ones of the origin.
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
    /// For how long it is fresh, counted from the response's arrival (`ma`).
    pub max_age: Duration,
    /// Whether it outlives a change of network (`persist=1`).
    pub persist: bool,
}

impl Alternative {
    /// The service that this names, without its lifetime.
    pub fn service(&self) -> Service {
        Service { protocol: self.protocol.clone(), host: self.host.clone(), port: self.port }
    }
}

/// Where and how an alternative is reached: what can be broken, and what `Alt-Used` names.
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
    /// The UDP port at which an origin of this host awaits SCTP, if it is that what this names.
    pub fn sctp_udp_port(&self, origin_host: &str) -> Option<u16> {
        let is_own = self.host.as_deref().is_none_or(|host| host == origin_host);
        (self.protocol == SCTP_UDP.as_bytes() && is_own).then_some(self.port)
    }

    /// The value of the `Alt-Used` field (RFC 7838 §5) for an origin of this host.
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
