//! Classifies QUIC errors (RFC 9000 §20).

use eyas_race::evidence::{Cause, Failure, Level};
use quinn::{ConnectError, ConnectionError, TransportErrorCode};

use crate::failure::{alert_cause, alert_name, failure};
use crate::security::INVALID_CERTIFICATE;

/// CRYPTO_ERROR codes are 0x0100 plus a TLS alert (RFC 9001 §4.8).
const CRYPTO_ERRORS: std::ops::RangeInclusive<u64> = 0x0100..=0x01ff;

/// Returns the failure of an attempt that could not be started.
pub(super) fn start_failure(error: &ConnectError) -> Failure {
    let cause = match error {
        ConnectError::InvalidServerName(_) => Cause::Certificate,
        ConnectError::InvalidRemoteAddress(_) => Cause::Unreachable,
        ConnectError::UnsupportedVersion => Cause::Unsupported,
        _ => Cause::Local,
    };
    failure(cause, Level::Started, error.to_string())
}

/// Returns the failure of a connection after the first packet was sent.
pub(crate) fn connection_failure(error: &ConnectionError, reached: Level) -> Failure {
    let (cause, detail) = match error {
        ConnectionError::VersionMismatch => {
            (Cause::Protocol, "the peer supports no common version of QUIC".to_owned())
        }
        ConnectionError::TransportError(error) => {
            let code = u64::from(error.code);
            let detail = match (alert_in(code), error.reason.is_empty()) {
                (Some(alert), true) => alert_name(alert),
                (_, true) => error.to_string(),
                (_, false) => error.reason.clone(),
            };
            // Some certificate errors share their alert with other failures.
            let is_invalid_certificate = error.reason.starts_with(INVALID_CERTIFICATE);
            (if is_invalid_certificate { Cause::Certificate } else { code_cause(code) }, detail)
        }
        ConnectionError::ConnectionClosed(close) => {
            let code = u64::from(close.error_code);
            let reason = match alert_in(code) {
                Some(alert) => alert_name(alert),
                None => close.to_string(),
            };
            (code_cause(code), format!("the peer ended the handshake: {reason}"))
        }
        ConnectionError::ApplicationClosed(close) => {
            (Cause::Reset, format!("the peer's application closed the connection: {close}"))
        }
        ConnectionError::Reset => (Cause::Reset, "the peer has lost the connection".to_owned()),
        ConnectionError::TimedOut => (Cause::Silent, "nothing came back".to_owned()),
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
            (Cause::Local, error.to_string())
        }
    };
    let reached = if is_answer(error) { reached.max(Level::Answered) } else { reached };
    failure(cause, reached, detail)
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

fn code_cause(code: u64) -> Cause {
    match alert_in(code) {
        Some(alert) => alert_cause(alert),
        None if code == u64::from(TransportErrorCode::CONNECTION_REFUSED) => Cause::Refused,
        None => Cause::Protocol,
    }
}
