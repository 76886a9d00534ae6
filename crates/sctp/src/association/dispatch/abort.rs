//! Immediate termination: ABORT, sent and received (RFC 9260 §9.1).

use alloc::vec::Vec;
use bytes::Bytes;

use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding};
use crate::event::{Event, LossReason};
use crate::wire::{AbortChunk, Causes, Chunk, ErrorCause};

/// The maximum length in bytes of the user's reason, so that the ABORT fits a packet on any path.
const MAX_REASON: usize = 512;

/// The maximum number of cause codes of an ABORT that are reported to the user.
const MAX_CAUSES: usize = 16;

impl Association {
    /// Aborts the association at the user's request. Sends nothing while the peer has no state.
    pub(crate) fn abort(&mut self, mut reason: Bytes) {
        if matches!(self.state, AssociationPhase::Closed) {
            return;
        }
        reason.truncate(MAX_REASON);
        // Sent even without a reason: the cause tells the peer that its user aborted.
        self.abort_with(ErrorCause::UserInitiatedAbort { reason }.into(), LossReason::Aborted);
    }

    /// Aborts the association because the peer violated the protocol.
    pub(super) fn abort_for_violation(&mut self, cause: ErrorCause) {
        let code = cause.code();
        self.abort_with(cause.into(), LossReason::ProtocolViolation { cause: code.0 });
    }

    /// Ends the association for `reason`, and tells the peer these causes.
    pub(super) fn abort_with(&mut self, causes: Causes, reason: LossReason) {
        // Before the COOKIE ECHO the peer has no state that an ABORT could end.
        if self.state.peer_has_state() {
            let path = self.paths.default_path();
            let abort = AbortChunk { reflected: false, causes };
            let tag = self.identity.peer_tag();
            self.queues.push_standalone(path, tag, Chunk::Abort(abort));
        }
        self.end(AssociationEnding::SendQueued, Event::Lost(reason));
    }

    /// Handles an ABORT whose tag has been verified.
    pub(super) fn handle_abort(&mut self, abort: &AbortChunk) {
        if abort.reflected && matches!(self.state, AssociationPhase::ShutdownAckSent(_)) {
            // The peer closed as intended: only its SHUTDOWN COMPLETE was late or lost.
            return self.end(AssociationEnding::DiscardQueued, Event::Closed);
        }
        let mut causes = Vec::new();
        let mut reason = Bytes::new();
        for cause in abort.causes.iter().take(MAX_CAUSES) {
            causes.push(cause.code().0);
            if let ErrorCause::UserInitiatedAbort { reason: text } = cause {
                reason = Bytes::copy_from_slice(&text);
            }
        }
        self.end(
            AssociationEnding::DiscardQueued,
            Event::Lost(LossReason::AbortedByPeer { causes, reason }),
        );
    }
}
