//! Errors of associations.

use std::io;

use eyas_host::fault::HostFault;
use eyas_race::evidence::{Cause, Failure, Level};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::LossReason;
use eyas_sctp::io::Unreachable;

use crate::failure::failure;
use crate::printable::printable;

/// Why an operation on an association failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SctpError {
    /// The association was lost, or was never established.
    #[error("the association was lost: {}", loss_text(.0))]
    Lost(LossReason),
    /// It was closed, by this side or by the peer.
    #[error("the association is closed")]
    Closed,
    /// The call is not valid now or here.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The stream is already in use as a byte stream.
    #[error("stream {0} is in use as a byte stream")]
    StreamTaken(u16),
}

/// Returns the error of a call after the end of an association.
pub(super) fn lost(reason: &Option<LossReason>) -> SctpError {
    match reason {
        Some(reason) => SctpError::Lost(reason.clone()),
        None => SctpError::Closed,
    }
}

/// Describes the end of an association.
fn loss_text(reason: &LossReason) -> String {
    match reason {
        LossReason::NoAnswer => "the peer did not answer".into(),
        LossReason::PeerUnreachable => "the peer no longer answers on any path".into(),
        LossReason::Refused(Unreachable::Protocol) => {
            "the host reports that it does not support SCTP".into()
        }
        LossReason::Refused(Unreachable::Local) => HostFault::Forbidden.to_string(),
        LossReason::Refused(_) => "the network reports that there is no route".into(),
        LossReason::AbortedByPeer { causes, reason } => match (&causes[..], reason.is_empty()) {
            ([], true) => "the peer aborted it and gave no reason".into(),
            (causes, true) => format!("the peer aborted it: {}", cause_names(causes)),
            (_, false) => {
                let reason = String::from_utf8_lossy(reason);
                format!("the peer aborted it: {}", printable(&reason))
            }
        },
        LossReason::Stalled => "the peer accepted no more data".into(),
        LossReason::Aborted => "it was aborted by this side".into(),
        LossReason::ProtocolViolation { cause } => {
            format!("the peer violated the protocol (cause {cause})")
        }
        _ => "for an unknown reason".into(),
    }
}

/// Describes the causes of an ABORT (RFC 9260 §3.3.10).
fn cause_names(causes: &[u16]) -> String {
    let name = |cause: &u16| match cause {
        1 => "it has no such stream".into(),
        2 => "a parameter was missing".into(),
        3 => "its cookie was too old".into(),
        4 => "it is out of resources".into(),
        5 => "it cannot resolve an address".into(),
        6 | 8 => "it does not support a chunk or parameter".into(),
        7 => "a parameter was not valid".into(),
        9 => "there was no data".into(),
        10 => "it was shutting down".into(),
        11 => "it was restarted with new addresses".into(),
        12 => "its user requested it".into(),
        13 => "the protocol was violated".into(),
        other => format!("cause {other}"),
    };
    causes.iter().map(name).collect::<Vec<String>>().join(", ")
}

impl From<SctpError> for io::Error {
    fn from(error: SctpError) -> Self {
        let kind = match &error {
            SctpError::Lost(
                LossReason::NoAnswer | LossReason::PeerUnreachable | LossReason::Stalled,
            ) => io::ErrorKind::TimedOut,
            SctpError::Lost(LossReason::Refused(_)) => io::ErrorKind::ConnectionRefused,
            SctpError::Lost(LossReason::ProtocolViolation { .. }) => io::ErrorKind::InvalidData,
            SctpError::Lost(_) => io::ErrorKind::ConnectionReset,
            SctpError::Closed => io::ErrorKind::BrokenPipe,
            SctpError::Misuse(Misuse::NoAssociation | Misuse::WrongState) => {
                io::ErrorKind::NotConnected
            }
            SctpError::Misuse(_) | SctpError::StreamTaken(_) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Returns the failure of an attempt that had reached this level.
pub(crate) fn attempt_failure(error: &SctpError, reached: Level) -> Failure {
    let cause = match error {
        SctpError::Lost(LossReason::NoAnswer | LossReason::PeerUnreachable) => Cause::Silent,
        SctpError::Lost(LossReason::Refused(Unreachable::Protocol)) => Cause::Refused,
        SctpError::Lost(LossReason::Refused(Unreachable::Local)) => Cause::Local,
        SctpError::Lost(LossReason::Refused(_)) => Cause::Unreachable,
        SctpError::Lost(LossReason::AbortedByPeer { .. }) if reached == Level::Started => {
            Cause::Refused
        }
        SctpError::Lost(LossReason::AbortedByPeer { .. }) | SctpError::Closed => Cause::Reset,
        SctpError::Lost(LossReason::ProtocolViolation { .. }) => Cause::Protocol,
        _ => Cause::Local,
    };
    let is_without_reason = matches!(
        error,
        SctpError::Lost(LossReason::AbortedByPeer { causes, reason })
            if causes.is_empty() && reason.is_empty()
    );
    // A host answers like this for an unused port (RFC 9260 §8.4, rule 8).
    let detail = match is_without_reason && reached == Level::Started {
        true => "the host supports SCTP, but nothing is listening on this SCTP port".to_owned(),
        false => error.to_string(),
    };
    failure(cause, reached, detail)
}
