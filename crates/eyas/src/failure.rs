//! Maps the errors of the lower layers to the kinds of failure that the race, the memory and exit
//! codes distinguish.

use std::io;
use std::net::SocketAddr;

use eyas_host::errno;
use eyas_host::fault::{HostFault, SocketCall};
use eyas_host::icmp::{IcmpCause, IcmpReport};
use eyas_race::evidence::{
    AttemptFailure, CertificateFailure, CertificateFault, EvidenceLevel, FailureCause,
};
use rustls::{AlertDescription, InvalidMessage};

use crate::security::certificate_fault;

pub(crate) fn failure(
    cause: FailureCause,
    reached: EvidenceLevel,
    detail: impl Into<String>,
) -> AttemptFailure {
    AttemptFailure::new(cause, reached, detail)
}

/// Classifies an error of a connection, or of the security layer that reads from one.
pub(crate) fn io_failure(error: &io::Error, reached: EvidenceLevel) -> AttemptFailure {
    call_failure(error, reached, SocketCall::Pending, None)
}

/// Classifies an error of a call that opens a socket or binds it.
pub(crate) fn open_failure(error: &io::Error, call: SocketCall) -> AttemptFailure {
    call_failure(error, EvidenceLevel::Started, call, None)
}

/// Classifies an error of a call that sends the first packet to this peer.
pub(crate) fn send_failure(
    error: &io::Error,
    call: SocketCall,
    peer: SocketAddr,
) -> AttemptFailure {
    call_failure(error, EvidenceLevel::Started, call, Some(peer))
}

fn call_failure(
    error: &io::Error,
    reached: EvidenceLevel,
    call: SocketCall,
    peer: Option<SocketAddr>,
) -> AttemptFailure {
    if let Some(fault) = HostFault::from_error(error, call, peer) {
        return host_failure(fault, error, reached);
    }
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls_failure(tls, reached);
    }
    let cause = match error.raw_os_error() {
        Some(code) => errno_cause(code, reached),
        None => error_kind_cause(error.kind(), reached),
    };
    let detail = match (cause, error.kind()) {
        // The same text as for an ICMP error.
        (FailureCause::Refused, io::ErrorKind::ConnectionRefused)
            if error.raw_os_error().is_some() =>
        {
            "nothing is listening on this port".into()
        }
        (FailureCause::Reset, io::ErrorKind::UnexpectedEof) => {
            "the peer closed the connection during the handshake".into()
        }
        (FailureCause::Local, _) => format!("{error}: {}", HostFault::Other),
        (FailureCause::Unsupported, _) => format!("{error}: {}", HostFault::NoPrivilege),
        _ => error.to_string(),
    };
    failure(cause, reached, detail)
}

/// Returns the failure of an attempt by a fault of this host. It says nothing about the peer or the path,
/// so it is never remembered.
fn host_failure(fault: HostFault, error: &io::Error, reached: EvidenceLevel) -> AttemptFailure {
    let cause = match fault {
        HostFault::Unsupported | HostFault::NoPrivilege => FailureCause::Unsupported,
        _ => FailureCause::Local,
    };
    failure(cause, reached, format!("{error}: {fault}"))
}

/// Classifies a pending error of a connect, where the system reports an ICMP error only as an errno
/// value.
pub(crate) fn connect_failure(error: &io::Error) -> AttemptFailure {
    let cause = match error.raw_os_error() {
        Some(errno::EACCES | errno::ENONET | errno::EOPNOTSUPP) => FailureCause::Unreachable,
        Some(errno::ENOPROTOOPT | errno::EPROTO) => FailureCause::Refused,
        _ => return io_failure(error, EvidenceLevel::Started),
    };
    failure(cause, EvidenceLevel::Started, error.to_string())
}

/// Classifies an ICMP report about an unanswered attempt.
pub(crate) fn icmp_failure(report: &IcmpReport) -> AttemptFailure {
    if report.is_by_own_firewall() {
        let detail = format!("{report}: {}", HostFault::Forbidden);
        return failure(FailureCause::Local, EvidenceLevel::Started, detail);
    }
    let cause = match report.cause {
        IcmpCause::PortUnreachable | IcmpCause::ProtocolUnreachable => FailureCause::Refused,
        IcmpCause::NoRoute
        | IcmpCause::Prohibited
        | IcmpCause::AddressUnreachable
        | IcmpCause::TooBig(_) => FailureCause::Unreachable,
    };
    failure(cause, EvidenceLevel::Started, report.to_string())
}

fn errno_cause(code: i32, reached: EvidenceLevel) -> FailureCause {
    match code {
        errno::ECONNREFUSED => FailureCause::Refused,
        errno::ENETUNREACH | errno::EHOSTUNREACH | errno::EHOSTDOWN | errno::ENONET => {
            FailureCause::Unreachable
        }
        errno::ETIMEDOUT => FailureCause::Silent,
        errno::ECONNRESET | errno::ECONNABORTED | errno::EPIPE | errno::ENOTCONN => {
            if reached == EvidenceLevel::Started {
                FailureCause::Refused
            } else {
                FailureCause::Reset
            }
        }
        errno::EACCES | errno::ENOPROTOOPT | errno::EOPNOTSUPP => FailureCause::Unsupported,
        errno::EPROTO | errno::EMSGSIZE => FailureCause::Protocol,
        _ => FailureCause::Local,
    }
}

fn error_kind_cause(kind: io::ErrorKind, reached: EvidenceLevel) -> FailureCause {
    match kind {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => {
            if reached == EvidenceLevel::Started {
                FailureCause::Refused
            } else {
                FailureCause::Reset
            }
        }
        io::ErrorKind::ConnectionRefused => FailureCause::Refused,
        io::ErrorKind::TimedOut => FailureCause::Silent,
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => FailureCause::Unsupported,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => FailureCause::Protocol,
        _ => FailureCause::Local,
    }
}

/// Classifies an error of TLS over a byte stream. Those of certificates are described by
/// [`explained`](crate::security::explained).
pub(crate) fn tls_failure(error: &rustls::Error, reached: EvidenceLevel) -> AttemptFailure {
    use rustls::Error as Tls;
    let fault = match error {
        Tls::InvalidCertificate(why) => {
            Some(CertificateFailure::PeerCertificate(certificate_fault(why)))
        }
        Tls::AlertReceived(alert) => {
            alert_fault(u8::from(*alert)).map(CertificateFailure::OwnCertificate)
        }
        _ => None,
    };
    let (cause, detail) = match error {
        Tls::InvalidCertificate(_) => (FailureCause::Certificate, error.to_string()),
        Tls::NoCertificatesPresented => {
            (FailureCause::Certificate, "the server presented no certificate".into())
        }
        Tls::AlertReceived(alert) => {
            let code = u8::from(*alert);
            (alert_cause(code), format!("the peer ended the handshake: {}", alert_name(code)))
        }
        Tls::NoApplicationProtocol => (
            FailureCause::Tls,
            "the peer supports none of the offered application protocols".into(),
        ),
        Tls::InvalidMessage(InvalidMessage::InvalidContentType) => {
            (FailureCause::Protocol, "the peer does not speak TLS".into())
        }
        Tls::InvalidMessage(_)
        | Tls::InappropriateMessage { .. }
        | Tls::InappropriateHandshakeMessage { .. }
        | Tls::PeerMisbehaved(_)
        | Tls::PeerSentOversizedRecord
        | Tls::DecryptError => (FailureCause::Protocol, error.to_string()),
        _ => (FailureCause::Tls, error.to_string()),
    };
    AttemptFailure { fault, ..failure(cause, reached, detail) }
}

/// Returns the kind of failure that a TLS alert (RFC 8446 §6.2) represents, from either side.
pub(crate) fn alert_cause(code: u8) -> FailureCause {
    match alert_fault(code) {
        Some(_) => FailureCause::Certificate,
        None => FailureCause::Tls,
    }
}

/// Returns what the sender of a TLS alert (RFC 8446 §6.2) has against the certificate of the other
/// side, if that is what the alert is about.
pub(crate) fn alert_fault(code: u8) -> Option<CertificateFault> {
    match AlertDescription::from(code) {
        AlertDescription::CertificateRevoked => Some(CertificateFault::Revoked),
        // The certificate "has expired or is not currently valid".
        AlertDescription::CertificateExpired => Some(CertificateFault::Expired),
        AlertDescription::UnknownCA => Some(CertificateFault::UnknownIssuer),
        AlertDescription::CertificateRequired => Some(CertificateFault::Missing),
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::BadCertificateStatusResponse => Some(CertificateFault::Other),
        _ => None,
    }
}

/// What the alerts say that mean only that the peer rejected our certificate.
pub(crate) const CERTIFICATE_REJECTED: &str = "it does not accept our certificate";

/// Returns the readable name of a TLS alert.
pub(crate) fn alert_name(code: u8) -> String {
    match AlertDescription::from(code) {
        AlertDescription::NoApplicationProtocol => {
            "it supports none of the offered application protocols".into()
        }
        AlertDescription::CertificateRequired => "it requires a client certificate".into(),
        AlertDescription::UnknownCA => "it does not trust the issuer of our certificate".into(),
        AlertDescription::CertificateExpired => "it says that our certificate expired".into(),
        AlertDescription::CertificateRevoked => "it says that our certificate was revoked".into(),
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown => CERTIFICATE_REJECTED.into(),
        AlertDescription::UnrecognisedName => "it does not serve this name".into(),
        // What servers send whose certificate has a key that no client here can check.
        AlertDescription::HandshakeFailure => "TLS alert 40 (handshake failure): it shares no algorithm \
             with this side; does its certificate have a P-521 or Ed448 key, which is not supported?"
            .into(),
        alert => match alert.as_str() {
            Some(name) => format!("TLS alert {code} ({})", in_words(name)),
            None => format!("TLS alert {code}"),
        },
    }
}

/// Returns the words of a name in camel case.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests;
