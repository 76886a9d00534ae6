//! Errors of associations.

use std::io;

use eyas_host::fault::HostFault;
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::LossReason;
use eyas_sctp::io::Unreachable;

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
    /// The peer does not support partial reliability (RFC 3758).
    #[error("the peer does not support messages with a lifetime (RFC 3758)")]
    NoPartialReliability,
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
            SctpError::NoPartialReliability => io::ErrorKind::Unsupported,
        };
        Self::new(kind, error)
    }
}

/// Returns a text of the peer with an escape such as `\u{202e}` for each character that a terminal obeys
/// or does not show, or that changes the order of the text around it (Unicode Technical Report 36,
/// §2.5).
fn printable(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_printable(letter) {
            true => escaped.push(letter),
            false => escaped.extend(letter.escape_unicode()),
        }
    }
    escaped
}

fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && !matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_peer_is_shown_and_not_obeyed() {
        let reason = "no \u{1b}[31m\u{202e}more, 日本語".as_bytes().to_vec().into();
        let lost = SctpError::Lost(LossReason::AbortedByPeer { causes: vec![12], reason });
        let expected =
            r"the association was lost: the peer aborted it: no \u{1b}[31m\u{202e}more, 日本語";
        assert_eq!(lost.to_string(), expected);
    }
}
