//! Whom to reach: a host, a port and the service spoken there.

use alloc::{string::String, vec::Vec};
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::candidate::{Alpn, Security, Transport};

/// A host as the caller named it, after normalisation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// A DNS name in A-label form, lower case, without a trailing dot.
    Name(String),
    /// An address, with the IPv6 scope identifier if one was given (0: none).
    Literal(IpAddr, u32),
}

/// Whom to reach, and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The peer.
    pub host: Host,
    /// The port, unless a ServiceMode record says otherwise.
    pub port: u16,
    /// What the caller will speak, which decides the DNS records asked and the ALPN offered.
    pub service: Service,
    /// The security the caller demands; never weakened by an answer or a memory.
    pub security: Security,
}

/// What is spoken at the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Service {
    /// HTTP: HTTPS records are asked (RFC 9460 §9), `h3` implies QUIC.
    Http {
        /// Versions the caller accepts over TCP-like transports, best first: `h2`, `http/1.1`.
        stream_alpn: Vec<Alpn>,
        /// Versions the caller accepts over QUIC, best first: `h3`.
        quic_alpn: Vec<Alpn>,
    },
    /// Anything else at `host:port`: no HTTPS records are asked.
    Plain {
        /// Transports the caller can speak there.
        transports: Vec<Transport>,
        /// Application protocols to offer, best first.
        alpn: Vec<Alpn>,
    },
}
