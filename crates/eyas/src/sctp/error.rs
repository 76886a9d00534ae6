//! What can go wrong with an association.

use std::io;

use eyas_race::evidence::{Cause, Failure, Level};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::LossReason;
use eyas_sctp::io::Unreachable;

use crate::failure::failure;

/// Why an operation on an association failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SctpError {
    /// The association was lost, or never came up.
    #[error("the association was lost: {}", told(.0))]
    Lost(LossReason),
    /// It was closed, by this side or by the peer.
    #[error("the association is closed")]
    Closed,
    /// The call makes no sense now or here.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The stream is already in use as a stream of bytes.
    #[error("stream {0} is in use as a stream of bytes")]
    StreamTaken(u16),
}

/// The end of an association in words.
fn told(reason: &LossReason) -> String {
    match reason {
        LossReason::NoAnswer => "the peer did not answer".into(),
        LossReason::PeerUnreachable => "the peer answers no more on any path".into(),
        LossReason::Refused(Unreachable::Protocol) => {
            "the host says that nobody speaks SCTP there".into()
        }
        LossReason::Refused(_) => "the network says that there is no way there".into(),
        LossReason::AbortedByPeer { causes, reason } => match reason.is_empty() {
            true => format!("the peer aborted it (causes {causes:?})"),
            false => format!("the peer aborted it: {}", String::from_utf8_lossy(reason)),
        },
        LossReason::Aborted => "it was aborted here".into(),
        LossReason::ProtocolViolation { cause } => {
            format!("the peer broke the protocol (cause {cause})")
        }
        _ => "for a reason that this version cannot name".into(),
    }
}

impl From<SctpError> for io::Error {
    fn from(error: SctpError) -> Self {
        let kind = match &error {
            SctpError::Lost(LossReason::NoAnswer | LossReason::PeerUnreachable) => {
                io::ErrorKind::TimedOut
            }
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

/// How an attempt failed that had come this far.
pub(crate) fn of_attempt(error: &SctpError, reached: Level) -> Failure {
    let cause = match error {
        SctpError::Lost(LossReason::NoAnswer | LossReason::PeerUnreachable) => Cause::Silent,
        SctpError::Lost(LossReason::Refused(Unreachable::Protocol)) => Cause::Refused,
        SctpError::Lost(LossReason::Refused(_)) => Cause::Unreachable,
        SctpError::Lost(LossReason::AbortedByPeer { .. }) if reached == Level::Started => {
            Cause::Refused
        }
        SctpError::Lost(LossReason::AbortedByPeer { .. }) | SctpError::Closed => Cause::Reset,
        SctpError::Lost(LossReason::ProtocolViolation { .. }) => Cause::Protocol,
        _ => Cause::Local,
    };
    failure(cause, reached, error.to_string())
}
