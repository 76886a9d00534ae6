//! How far an attempt came, and how it failed: what the memory is made of.

use alloc::string::String;
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{Candidate, Security};
use crate::target::Host;

/// How far an attempt came. The order is that of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Packets went out; nothing came back.
    Started,
    /// The peer answered: SYN ACK, INIT ACK, first QUIC packet.
    Answered,
    /// The transport is up.
    Transport,
    /// The security layer is up, the peer is who it says it is.
    Security,
    /// A byte of the application came back.
    FirstByte,
    /// A full-sized packet passed.
    FullPacket,
}

/// The kind of a failure, as far as the memory and an exit code tell failures apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// The peer refused (RST, ICMP port or protocol unreachable, CONNECTION_REFUSED).
    Refused,
    /// No route, or ICMP host or network unreachable.
    Unreachable,
    /// Nothing came back.
    Silent,
    /// The connection was reset or closed after it had been answered.
    Reset,
    /// The TLS or DTLS handshake failed (alerts, versions, no common ALPN).
    Tls,
    /// The certificate was not accepted.
    Certificate,
    /// The peer broke the protocol.
    Protocol,
    /// The deadline came first.
    Deadline,
    /// This machine cannot speak the transport (no privilege, no support in the kernel).
    Unsupported,
    /// A local limit was hit (descriptors, ports, memory).
    Local,
}

impl Cause {
    /// The name used in JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Reset => "reset",
            Self::Tls => "tls",
            Self::Certificate => "certificate",
            Self::Protocol => "protocol",
            Self::Deadline => "deadline",
            Self::Unsupported => "unsupported",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub cause: Cause,
    /// How far the attempt had come.
    pub reached: Level,
    /// What the lower layer said, for people.
    pub detail: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match self.reached {
            Level::Started => "",
            Level::Answered => " after an answer",
            Level::Transport => " after the transport was up",
            Level::Security => " after the security layer was up",
            Level::FirstByte | Level::FullPacket => " after the first byte",
        };
        write!(f, "{}{after}", self.cause)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl core::error::Error for Failure {}

/// The network that a race runs on: a keyed hash over default route and gateway (a PvD of RFC 7556).
/// Evidence never crosses networks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetworkId(pub String);

/// Whom an attempt trusts. Evidence from the security level up never crosses it: what fails under
/// one trust may work under another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trust {
    /// A short name of the security parameters (roots, verification, own certificate, versions of
    /// TLS), the same for the same parameters. The driver makes it; nothing else is read from it.
    pub parameters: String,
    /// The host that the certificate must be good for, if it is another than the one connected to:
    /// an alternative service proves itself with the certificate of its origin (RFC 7838 §2.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_host: Option<Host>,
}

/// Why a failure says less than it seems to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Doubt {
    /// The caller was done before a lost packet could have been sent again and answered: it may be
    /// silence, or one packet lost.
    CutShort,
    /// The host refused another transport meanwhile, so more likely nobody listens than that the
    /// network swallows what was sent; or it showed a certificate that was not accepted, and nobody
    /// waited any longer. So it says nothing about the network.
    HostRefused,
}

/// The outcome of one attempt, to be remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When it was seen, on the driver's epoch (the UNIX epoch where it is stored).
    pub at: Duration,
    /// Where it was seen.
    pub network: NetworkId,
    /// The peer's name as the caller gave it.
    pub host: Host,
    /// What was tried.
    pub candidate: Candidate,
    /// How far it came.
    pub level: Level,
    /// How it failed, if it did. A cancelled loser is no evidence at all.
    pub failure: Option<Failure>,
    /// Why the failure says less than it seems to, if it does.
    #[serde(default)]
    pub doubt: Option<Doubt>,
    /// The handshake's round trip, if one was measured.
    pub rtt: Option<Duration>,
    /// Whether first packets were sent again before the answer to them came, where a handshake tells
    /// it. Each handshake tells it once.
    #[serde(default)]
    pub sent_again: Option<bool>,
}

impl Evidence {
    /// Whether this speaks for the candidate.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
            && self.level
                >= match self.candidate.security {
                    Security::None => Level::Transport,
                    Security::Tls | Security::Dtls => Level::Security,
                }
    }
}
