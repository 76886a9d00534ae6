//! Verification tags (RFC 9260 §8.5): which packets belong to an association though their tag is
//! not ours, and which do not although it is.

use super::state::State;
use super::{Arrival, Association};
use crate::counters::Counters;
use crate::identifier::VerificationTag;
use crate::wire::Chunk;

impl Association {
    /// Whether an ABORT or SHUTDOWN COMPLETE with this tag is the peer's (§8.5.1 B, C): the tag is
    /// ours without the T bit and the peer's with it.
    pub(crate) fn is_authentic(&self, tag: VerificationTag, reflected: bool) -> bool {
        if reflected {
            self.peer_tag != VerificationTag::ZERO && tag == self.peer_tag
        } else {
            tag == self.local_tag
        }
    }

    /// A packet from the peer's address whose tag is not ours. All but a reflected ABORT or
    /// SHUTDOWN COMPLETE, and a SHUTDOWN ACK for an association that is gone, is dropped.
    pub(crate) fn handle_foreign_tag(
        &mut self,
        arrival: &Arrival,
        tag: VerificationTag,
        first: Option<Chunk>,
        counters: &mut Counters,
    ) {
        match first {
            Some(Chunk::Abort(abort)) if abort.reflected && self.is_authentic(tag, true) => {
                self.handle_abort(&abort);
            }
            Some(Chunk::ShutdownComplete { reflected: true }) if self.is_authentic(tag, true) => {
                self.handle_shutdown_complete(counters);
            }
            Some(Chunk::ShutdownAck)
                if matches!(self.state, State::CookieWait(_) | State::CookieEchoed(_)) =>
            {
                let path = self.paths.by_remote(arrival.remote, arrival.local);
                let path = path.unwrap_or(self.paths.primary());
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.waiting.push_alone(path, tag, complete);
            }
            _ => counters.bad_tags += 1,
        }
    }
}
