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
        self.send_abort(ErrorCause::UserInitiatedAbort { reason }.into());
        self.end(AssociationEnding::SendQueued, Event::Lost(LossReason::Aborted));
    }

    /// Aborts the association because the peer violated the protocol.
    pub(crate) fn abort_for_violation(&mut self, cause: ErrorCause) {
        let code = cause.code();
        self.send_abort(cause.into());
        self.end(
            AssociationEnding::SendQueued,
            Event::Lost(LossReason::ProtocolViolation { cause: code.0 }),
        );
    }

    /// Aborts the association for a reason of this side's.
    pub(crate) fn abort_for(&mut self, reason: LossReason) {
        self.send_abort(Causes::default());
        self.end(AssociationEnding::SendQueued, Event::Lost(reason));
    }

    fn send_abort(&mut self, causes: Causes) {
        // Before the COOKIE ECHO the peer has no state that an ABORT could end.
        if !self.state.peer_has_state() {
            return;
        }
        let path = self.paths.default_path();
        let abort = AbortChunk { reflected: false, causes };
        self.queues.push_standalone(path, self.identity.peer_tag(), Chunk::Abort(abort));
    }

    /// Handles an ABORT whose tag has been verified.
    pub(crate) fn handle_abort(&mut self, abort: &AbortChunk) {
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
