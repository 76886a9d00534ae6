//! Attempts to connect to encrypted resolvers: when the next one begins, and what a failed one says.

use std::time::Duration;

use eyas_race::evidence::{EvidenceLevel, FailureCause};

use super::super::encryption::EndpointOutcome;
use super::ServerTrouble;

/// The time between two attempts, if the first has not ended (RFC 8305 §5).
pub(super) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// In this time a first packet that was lost is repeated, and answered (RFC 6298 §2.1, RFC 9002 §6.2.2).
const REPEATED: Duration = Duration::from_millis(1500);

/// Returns what the trouble with a connection says about a resolver, after this time.
pub(super) fn outcome(
    trouble: ServerTrouble,
    after: Duration,
    is_unproved: bool,
) -> Option<EndpointOutcome> {
    let failed = EndpointOutcome::Failed;
    match trouble {
        ServerTrouble::OfThisHost(_) => None,
        _ if is_unproved => Some(failed(FailureCause::Certificate, EvidenceLevel::Transport)),
        ServerTrouble::Silent if after < REPEATED => Some(EndpointOutcome::CutShort),
        ServerTrouble::Silent => Some(failed(FailureCause::Silent, EvidenceLevel::Started)),
        // Ports that are closed, and connections that end during the handshake.
        _ => Some(failed(FailureCause::Refused, EvidenceLevel::Started)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_once_a_lost_packet_has_been_repeated() {
        let silent = |after| outcome(ServerTrouble::Silent, after, false);
        assert_eq!(silent(Duration::from_secs(1)), Some(EndpointOutcome::CutShort));
        let failed = |cause, reached| Some(EndpointOutcome::Failed(cause, reached));
        let (started, transport) = (EvidenceLevel::Started, EvidenceLevel::Transport);
        assert_eq!(silent(Duration::from_secs(2)), failed(FailureCause::Silent, started));
        let refused =
            |is_unproved| outcome(ServerTrouble::Unreachable, Duration::ZERO, is_unproved);
        assert_eq!(refused(false), failed(FailureCause::Refused, started));
        assert_eq!(refused(true), failed(FailureCause::Certificate, transport));
    }
}
