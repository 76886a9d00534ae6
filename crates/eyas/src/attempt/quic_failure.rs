//! Classifies QUIC errors (RFC 9000 §20).

use eyas_race::evidence::{
    AttemptFailure, CertificateFailure, CertificateFault, EvidenceLevel, FailureCause,
};
use quinn::{ConnectError, ConnectionError, TransportErrorCode};

use super::client_hello::HelloFault;
use super::tls::is_of_parser;
use crate::failure::{alert_cause, alert_fault, alert_name, failure};
use crate::quic_tls::QuicObservation;
use crate::security::CertificateRejection;

/// CRYPTO_ERROR codes are 0x0100 plus a TLS alert (RFC 9001 §4.8).
const CRYPTO_ERRORS: std::ops::RangeInclusive<u64> = 0x0100..=0x01ff;

/// Returns the failure of an attempt that could not be started.
pub(super) fn start_failure(error: &ConnectError, observation: &QuicObservation) -> AttemptFailure {
    if let Some(error) = observation.error() {
        return failure(FailureCause::Tls, EvidenceLevel::Started, error.to_string());
    }
    let cause = match error {
        ConnectError::InvalidServerName(_) => FailureCause::Certificate,
        ConnectError::InvalidRemoteAddress(_) => FailureCause::Unreachable,
        ConnectError::UnsupportedVersion => FailureCause::Unsupported,
        _ => FailureCause::Local,
    };
    failure(cause, EvidenceLevel::Started, error.to_string())
}

/// Returns the failure of a connection whose handshake is not complete, and which may have rejected
/// the peer's certificate.
pub(super) fn handshake_failure(
    error: &ConnectionError,
    reached: EvidenceLevel,
    observation: &QuicObservation,
) -> AttemptFailure {
    let failure = connection_failure(error, reached);
    match (error, observation.rejection()) {
        (ConnectionError::TransportError(_), Some(rejection)) => rejection
            .clone()
            .explain(AttemptFailure { cause: FailureCause::Certificate, ..failure }),
        _ => failure,
    }
}

/// Returns the failure of a connection after the first packet was sent.
pub(crate) fn connection_failure(
    error: &ConnectionError,
    reached: EvidenceLevel,
) -> AttemptFailure {
    let mut fault = None;
    let (cause, detail) = match error {
        ConnectionError::VersionMismatch => {
            (FailureCause::Protocol, "the peer supports no common version of QUIC".to_owned())
        }
        ConnectionError::TransportError(error) => {
            let code = u64::from(error.code);
            let detail = match (alert_in(code), error.reason.is_empty()) {
                (Some(alert), true) => alert_name(alert),
                (_, true) => error.to_string(),
                (_, false) => error.reason.clone(),
            };
            (code_cause(code), detail)
        }
        ConnectionError::ConnectionClosed(close) => {
            let code = u64::from(close.error_code);
            fault = alert_in(code).and_then(alert_fault).map(CertificateFailure::OwnCertificate);
            let reason = match alert_in(code) {
                Some(alert) => alert_name(alert),
                None => close.to_string(),
            };
            (code_cause(code), format!("the peer ended the handshake: {reason}"))
        }
        ConnectionError::ApplicationClosed(close) => {
            (FailureCause::Reset, format!("the peer's application closed the connection: {close}"))
        }
        ConnectionError::Reset => {
            (FailureCause::Reset, "the peer has lost the connection".to_owned())
        }
        ConnectionError::TimedOut => (FailureCause::Silent, "nothing came back".to_owned()),
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
            (FailureCause::Local, error.to_string())
        }
    };
    let reached = if is_answer(error) { reached.max(EvidenceLevel::Answered) } else { reached };
    let failure = AttemptFailure { fault, ..failure(cause, reached, detail) };
    match error {
        // With a configuration of the caller's, only the alert is known that this side has sent.
        ConnectionError::TransportError(_) if cause == FailureCause::Certificate => {
            CertificateRejection::undescribed(CertificateFault::Other).explain(failure)
        }
        _ => failure,
    }
}

/// Returns whether a server that takes the first packet of a ClientHello for all of it may have ended the connection like
/// this.
pub(super) fn length_fault(error: &ConnectionError) -> HelloFault {
    let ConnectionError::ConnectionClosed(close) = error else { return HelloFault::Other };
    let code = u64::from(close.error_code);
    let of_transport = [
        TransportErrorCode::INTERNAL_ERROR,
        TransportErrorCode::PROTOCOL_VIOLATION,
        TransportErrorCode::CRYPTO_BUFFER_EXCEEDED,
    ];
    let is_explained = match alert_in(code) {
        Some(alert) => is_of_parser(alert.into()),
        None => of_transport.into_iter().any(|known| u64::from(known) == code),
    };
    if is_explained { HelloFault::MaybeLength } else { HelloFault::Other }
}

/// Returns whether the failure itself is the peer's first answer.
fn is_answer(error: &ConnectionError) -> bool {
    !matches!(
        error,
        ConnectionError::TimedOut | ConnectionError::LocallyClosed | ConnectionError::CidsExhausted
    )
}

fn alert_in(code: u64) -> Option<u8> {
    CRYPTO_ERRORS.contains(&code).then(|| code.to_le_bytes()[0])
}

fn code_cause(code: u64) -> FailureCause {
    match alert_in(code) {
        Some(alert) => alert_cause(alert),
        None if code == u64::from(TransportErrorCode::CONNECTION_REFUSED) => FailureCause::Refused,
        None => FailureCause::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::TransportError;

    use super::*;

    fn alert_sent(alert: u8, reason: &str) -> ConnectionError {
        TransportError {
            code: TransportErrorCode::crypto(alert),
            frame: None,
            reason: reason.to_owned(),
        }
        .into()
    }

    #[test]
    fn no_decision_depends_on_the_reason_phrase() {
        let reasons = ["invalid peer certificate: Expired", "deripxE :etacifitrec reep dilavni"];
        for alert in 0..=u8::MAX {
            let decided = |reason| {
                let failure =
                    connection_failure(&alert_sent(alert, reason), EvidenceLevel::Transport);
                (failure.cause, failure.reached, failure.fault)
            };
            let expected = decided("");
            let is_of_certificate = expected.0 == FailureCause::Certificate;
            let fault = CertificateFailure::PeerCertificate(CertificateFault::Other);
            assert_eq!(expected.2, is_of_certificate.then_some(fault), "alert {alert}");
            for reason in reasons {
                assert_eq!(decided(reason), expected, "alert {alert}");
            }
        }
    }

    #[test]
    fn a_rejection_here_decides_whatever_the_alert() {
        let rejection = QuicObservation::from_rejection(CertificateRejection::undescribed(
            CertificateFault::Expired,
        ));
        // `decrypt_error` is sent for an invalid signature of a certificate, too.
        for alert in [45, 46, 51] {
            let error = alert_sent(alert, "");
            let failure = handshake_failure(&error, EvidenceLevel::Started, &rejection);
            assert_eq!(failure.cause, FailureCause::Certificate);
            assert_eq!(failure.reached, EvidenceLevel::Answered);
            assert_eq!(failure.peer_certificate(), Some(CertificateFault::Expired));
            assert_eq!(failure.detail, "the certificate is not accepted");
        }
        let silent =
            handshake_failure(&ConnectionError::TimedOut, EvidenceLevel::Started, &rejection);
        assert_eq!((silent.cause, silent.fault), (FailureCause::Silent, None));
    }
}
