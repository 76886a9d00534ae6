//! Maps the errors of SCTP to the kinds of failure that the race, the memory and exit codes distinguish.

use std::net::SocketAddr;

use eyas_host::fault::SocketCall;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_sctp_tokio::protocol::event::LossReason;
use eyas_sctp_tokio::protocol::io::Unreachable;
use eyas_sctp_tokio::{DtlsEndReason, SctpConnectError, SctpError};

use crate::failure::{failure, open_failure, send_failure, tls_failure};

/// Returns the failure of an attempt that had reached this level.
pub(crate) fn attempt_failure(error: &SctpError, reached: EvidenceLevel) -> AttemptFailure {
    let cause = match error {
        SctpError::Lost(
            LossReason::NoAnswer | LossReason::PeerUnreachable | LossReason::Stalled,
        ) => FailureCause::Silent,
        SctpError::Lost(LossReason::Refused(Unreachable::Protocol)) => FailureCause::Refused,
        SctpError::Lost(LossReason::Refused(Unreachable::Local)) => FailureCause::Local,
        SctpError::Lost(LossReason::Refused(_)) => FailureCause::Unreachable,
        SctpError::Lost(LossReason::AbortedByPeer { .. }) if reached == EvidenceLevel::Started => {
            FailureCause::Refused
        }
        SctpError::Lost(LossReason::AbortedByPeer { .. }) | SctpError::Closed => {
            FailureCause::Reset
        }
        SctpError::Lost(LossReason::ProtocolViolation { .. }) => FailureCause::Protocol,
        SctpError::NoPartialReliability => FailureCause::Unsupported,
        _ => FailureCause::Local,
    };
    let is_without_reason = matches!(
        error,
        SctpError::Lost(LossReason::AbortedByPeer { causes, reason })
            if causes.is_empty() && reason.is_empty()
    );
    // A host answers like this for an unused port (RFC 9260 §8.4, rule 8).
    let detail = match is_without_reason && reached == EvidenceLevel::Started {
        true => "the host supports SCTP, but nothing is listening on this SCTP port".to_owned(),
        false => error.to_string(),
    };
    failure(cause, reached, detail)
}

/// Returns the failure of an attempt whose association with this peer could not be opened.
pub(crate) fn association_failure(error: &SctpConnectError, peer: SocketAddr) -> AttemptFailure {
    match error {
        SctpConnectError::Socket(error) => open_failure(error, SocketCall::Bind),
        SctpConnectError::Kernel(error) => send_failure(error, SocketCall::Pending, peer),
        SctpConnectError::Unsupported(why) => {
            failure(FailureCause::Unsupported, EvidenceLevel::Started, why.to_string())
        }
        SctpConnectError::Dtls(ending) => session_failure(ending),
        SctpConnectError::Association(error) => attempt_failure(error, EvidenceLevel::Started),
        error => failure(FailureCause::Local, EvidenceLevel::Started, error.to_string()),
    }
}

fn session_failure(ending: &DtlsEndReason) -> AttemptFailure {
    let (cause, reached) = match ending {
        DtlsEndReason::TimedOut => (FailureCause::Silent, EvidenceLevel::Started),
        DtlsEndReason::Refused => (FailureCause::Refused, EvidenceLevel::Started),
        DtlsEndReason::NotSent => (FailureCause::Local, EvidenceLevel::Started),
        DtlsEndReason::Closed => (FailureCause::Reset, EvidenceLevel::Answered),
        DtlsEndReason::Failed(error) => return tls_failure(error, EvidenceLevel::Answered),
    };
    failure(cause, reached, ending.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printable::is_printable;

    /// `printable.rs` here and `error.rs` of eyas-sctp-tokio repeat the same list.
    #[test]
    fn the_reason_of_a_peer_is_printable_where_this_crate_says_so() {
        for letter in
            ('\0'..=char::MAX).filter(|letter| letter.len_utf8() < 4 || *letter > '\u{dffff}')
        {
            let reason = letter.to_string().into();
            let lost = SctpError::Lost(LossReason::AbortedByPeer { causes: vec![12], reason });
            let text = lost.to_string();
            assert_eq!(text.ends_with(letter), is_printable(letter), "{text}");
        }
    }

    #[test]
    fn the_end_of_a_dtls_session_is_classified() {
        let of = |ending| {
            let AttemptFailure { cause, reached, .. } =
                association_failure(&SctpConnectError::Dtls(ending), ([192, 0, 2, 1], 5000).into());
            (cause, reached)
        };
        assert_eq!(of(DtlsEndReason::TimedOut), (FailureCause::Silent, EvidenceLevel::Started));
        assert_eq!(of(DtlsEndReason::Refused), (FailureCause::Refused, EvidenceLevel::Started));
        assert_eq!(of(DtlsEndReason::NotSent), (FailureCause::Local, EvidenceLevel::Started));
        assert_eq!(of(DtlsEndReason::Closed), (FailureCause::Reset, EvidenceLevel::Answered));
        let rejected = rustls::CertificateError::UnknownIssuer.into();
        assert_eq!(
            of(DtlsEndReason::Failed(rejected)),
            (FailureCause::Certificate, EvidenceLevel::Answered)
        );
    }
}
