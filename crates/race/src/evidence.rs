//! How far an attempt got, and how it failed: the input of the memory.

use alloc::{string::String, sync::Arc};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{Candidate, Security};
use crate::target::TargetHost;

/// How far an attempt got, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceLevel {
    /// Packets were sent; nothing came back.
    Started,
    /// The peer answered: SYN ACK, INIT ACK, first QUIC packet.
    Answered,
    /// The transport was established.
    Transport,
    /// The security layer was established and the peer authenticated.
    Security,
    /// The first byte from the application arrived.
    FirstByte,
    /// A full-sized packet was delivered.
    FullPacket,
}

/// The kind of a failure, as the memory and exit codes distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureCause {
    /// The peer refused (RST, ICMP port or protocol unreachable, CONNECTION_REFUSED).
    Refused,
    /// No route, or ICMP host or network unreachable.
    Unreachable,
    /// Nothing came back.
    Silent,
    /// The connection was reset or closed after the peer had answered.
    Reset,
    /// The TLS or DTLS handshake failed (alerts, versions, no common ALPN).
    Tls,
    /// The certificate was not accepted.
    Certificate,
    /// The name of the server must be encrypted (RFC 9849), and the server has no configuration for that, or did not
    /// accept it.
    Ech,
    /// What answered an encrypted ClientHello was neither the server nor proved to be its public name (RFC 9849 §6.1.7):
    /// a device on the path, or a server that is set up wrongly.
    EchBroken,
    /// A ClientHello of two packets, as one with a share of X25519MLKEM768 is, did not get through, and one of one packet
    /// was answered: a device on the path drops the second packet, or the server does not put the two together. The
    /// attempt went on.
    LongClientHello,
    /// The peer violated the protocol.
    Protocol,
    /// The deadline expired.
    Deadline,
    /// The peer, or a device on the path, removed MPTCP, and the connection continued as TCP. It is
    /// usable as that, and evidence in favour of TCP.
    FellBack,
    /// This host cannot use the transport (missing privilege or kernel support). Says nothing about
    /// the peer.
    Unsupported,
    /// This host could not make the attempt: a limit was reached (ports, descriptors, memory), its
    /// firewall forbids the packets, or it lacks an address or an interface. Says nothing about the
    /// peer.
    Local,
}

impl FailureCause {
    /// Returns the name used in JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Reset => "reset",
            Self::Tls => "tls",
            Self::Certificate => "certificate",
            Self::Ech => "ech",
            Self::EchBroken => "ech-broken",
            Self::LongClientHello => "long-client-hello",
            Self::Protocol => "protocol",
            Self::Deadline => "deadline",
            Self::FellBack => "fell-back",
            Self::Unsupported => "unsupported",
            Self::Local => "local",
        }
    }

    /// Returns whether the failure is one of the security layer, whose peer was therefore reached.
    pub const fn is_of_security(self) -> bool {
        matches!(
            self,
            Self::Tls | Self::Certificate | Self::Ech | Self::EchBroken | Self::LongClientHello
        )
    }

    /// Returns whether the failure is one of this host, which says nothing about the peer or the
    /// path and is not remembered.
    pub const fn is_of_this_host(self) -> bool {
        matches!(self, Self::Unsupported | Self::Local)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is wrong with a certificate, to the side that it was presented to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CertificateFault {
    /// The certificate, or one in its chain, has expired.
    Expired,
    /// The certificate, or one in its chain, is not valid yet.
    NotYetValid,
    /// The certificate is for other names than the requested one.
    WrongName,
    /// The certificate was not issued by a trusted authority.
    UnknownIssuer,
    /// The certificate was revoked.
    Revoked,
    /// No certificate was presented, and one is required.
    Missing,
    /// Another fault, or one that a later version has a name for.
    #[serde(other)]
    Other,
}

/// Whose certificate an attempt failed for, and what was wrong with it. The [`FailureCause`] alone does not
/// tell: [`FailureCause::Certificate`] covers both sides, and names that no certificate can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateFailure {
    /// The peer's certificate was not accepted here.
    PeerCertificate(CertificateFault),
    /// Our certificate, or the lack of one, was not accepted by the peer.
    OwnCertificate(CertificateFault),
}

/// How an attempt failed.
///
/// What a program decides by is in `cause`, `reached` and `fault`; `detail` is made from the same
/// error for people, and its wording may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFailure {
    /// The kind of failure.
    pub cause: FailureCause,
    /// How far the attempt had got.
    pub reached: EvidenceLevel,
    /// Whose certificate is at fault, if one is. Traces from before this field lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<CertificateFailure>,
    /// The error from the lower layer, as text for people.
    pub detail: String,
}

impl AttemptFailure {
    /// Creates a failure for which no certificate is to blame.
    pub fn new(cause: FailureCause, reached: EvidenceLevel, detail: impl Into<String>) -> Self {
        Self { cause, reached, fault: None, detail: detail.into() }
    }

    /// Sets whose certificate is at fault.
    #[must_use]
    pub fn with_fault(self, fault: CertificateFailure) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// Returns whether the failure says something about the peer or the path: it is none of this host, and something was
    /// sent. Nothing is where the name of the server would have to be encrypted and cannot be.
    pub(crate) fn concerns_peer(&self) -> bool {
        let is_unsent = self.cause == FailureCause::Ech && self.reached == EvidenceLevel::Started;
        !is_unsent && !self.cause.is_of_this_host()
    }

    /// Returns what was wrong with the peer's certificate, if that is why the attempt failed.
    pub const fn peer_certificate(&self) -> Option<CertificateFault> {
        match self.fault {
            Some(CertificateFailure::PeerCertificate(fault)) => Some(fault),
            _ => None,
        }
    }

    /// Returns what the peer has against our certificate, if that is why the attempt failed;
    /// [`CertificateFault::Missing`] if it requires one and was presented none.
    pub const fn own_certificate(&self) -> Option<CertificateFault> {
        match self.fault {
            Some(CertificateFailure::OwnCertificate(fault)) => Some(fault),
            _ => None,
        }
    }
}

impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match self.reached {
            EvidenceLevel::Started => "",
            EvidenceLevel::Answered => " after an answer",
            EvidenceLevel::Transport => " after the transport was up",
            EvidenceLevel::Security => " after the security layer was up",
            EvidenceLevel::FirstByte | EvidenceLevel::FullPacket => " after the first byte",
        };
        write!(f, "{}{after}", self.cause)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl core::error::Error for AttemptFailure {}

/// The network that a race runs on: a keyed hash over default route and gateway (a PvD of RFC
/// 7556). Evidence never crosses networks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetworkId(pub Arc<str>);

/// The trust of an attempt. Evidence from the security level up is kept separate for each trust:
/// what fails under one may work under another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrustContext {
    /// A short name for the security parameters (roots, verification, own certificate, TLS
    /// versions); equal parameters have equal names. The driver chooses the name, which is only
    /// compared.
    pub parameters: String,
    /// The host for which the certificate must be valid, if it is not the one connected to: an
    /// alternative service presents a certificate for its origin (RFC 7838 §2.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_host: Option<TargetHost>,
}

/// Why a failure is less significant than it seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureDoubt {
    /// The caller finished before a lost packet could have been retransmitted and answered: the
    /// peer may be silent, or a packet was lost.
    CutShort,
    /// Meanwhile the host refused another transport, so it is more likely that the service is not
    /// running than that the network drops the packets; or the host presented a certificate that
    /// was not accepted, and the attempt was given up. The failure says nothing about the network.
    HostRefused,
}

/// The outcome of one attempt, for the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When it was observed, on the driver's epoch (the UNIX epoch if it is stored).
    pub at: Duration,
    /// The network on which it was observed.
    pub network: NetworkId,
    /// The peer's name as given by the caller.
    pub host: TargetHost,
    /// The candidate that was tried.
    pub candidate: Candidate,
    /// How far it got.
    pub level: EvidenceLevel,
    /// How it failed, if it did. Cancelled losers produce no evidence.
    pub failure: Option<AttemptFailure>,
    /// Why the failure is less significant than it seems, if it is.
    #[serde(default)]
    pub doubt: Option<FailureDoubt>,
    /// The round-trip time of the handshake, if it was measured.
    pub rtt: Option<Duration>,
    /// Whether the first packets were retransmitted before they were answered, for handshakes that
    /// reveal it. Reported once per handshake.
    #[serde(default)]
    pub sent_again: Option<bool>,
}

impl Evidence {
    /// Returns whether this evidence is in favour of the candidate.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
            && self.level
                >= match self.candidate.security {
                    Security::None => EvidenceLevel::Transport,
                    Security::Tls | Security::Dtls => EvidenceLevel::Security,
                }
    }
}
