//! The end at once: ABORT, sent and received (RFC 9260 §9.1).

use alloc::vec::Vec;
use bytes::Bytes;

use super::state::State;
use super::{Association, Ending};
use crate::event::{Event, LossReason};
use crate::wire::{AbortChunk, Cause, Causes, Chunk};

/// The most bytes of the user's reason that fit an ABORT on any path.
const MAX_REASON: usize = 512;

/// The most cause codes of an ABORT that the user is told of.
const MAX_CAUSES: usize = 16;

impl Association {
    /// The user ends it. While the peer holds nothing, it is told nothing.
    pub(crate) fn abort(&mut self, mut reason: Bytes) {
        if matches!(self.state, State::Closed) {
            return;
        }
        reason.truncate(MAX_REASON);
        // Without words, too: the peer's user learns from the cause that it was the user.
        self.send_abort(Cause::UserInitiatedAbort { reason }.into());
        self.end(Ending::Last, Event::Lost(LossReason::Aborted));
    }

    /// The peer broke the protocol.
    pub(crate) fn abort_for_violation(&mut self, cause: Cause) {
        let code = cause.code();
        self.send_abort(cause.into());
        self.end(Ending::Last, Event::Lost(LossReason::ProtocolViolation { cause: code.0 }));
    }

    /// It makes no sense to go on.
    pub(crate) fn abort_for(&mut self, reason: LossReason) {
        self.send_abort(Causes::default());
        self.end(Ending::Last, Event::Lost(reason));
    }

    fn send_abort(&mut self, causes: Causes) {
        // Before the COOKIE ECHO there is nothing at the peer that an ABORT could end.
        if matches!(self.state, State::CookieWait(_) | State::Held(_) | State::Closed) {
            return;
        }
        let path = self.paths.for_data(None).unwrap_or(self.paths.primary());
        let abort = AbortChunk { reflected: false, causes };
        self.waiting.push_alone(path, self.peer_tag, Chunk::Abort(abort));
    }

    /// ABORT, whose tag was found to be right.
    pub(crate) fn handle_abort(&mut self, abort: &AbortChunk) {
        if abort.reflected && matches!(self.state, State::ShutdownAckSent(_)) {
            // The peer has ended, as it was to: only its SHUTDOWN COMPLETE was late or lost.
            return self.end(Ending::Quiet, Event::Closed);
        }
        let mut causes = Vec::new();
        let mut reason = Bytes::new();
        for cause in abort.causes.iter().take(MAX_CAUSES) {
            causes.push(cause.code().0);
            if let Cause::UserInitiatedAbort { reason: words } = cause {
                reason = Bytes::copy_from_slice(&words);
            }
        }
        self.end(Ending::Quiet, Event::Lost(LossReason::AbortedByPeer { causes, reason }));
    }
}
