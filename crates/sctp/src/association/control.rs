//! Control chunks that wait to be sent, and packets that carry one chunk alone.

use alloc::collections::VecDeque;

use crate::counters::Counters;
use crate::identifier::{PathId, VerificationTag};
use crate::wire::Chunk;

/// The most control chunks that wait. What a peer provokes beyond that (HEARTBEAT ACK, ERROR) is
/// left out and counted.
const MAX_WAITING: usize = 64;

/// A control chunk on its way out.
#[derive(Debug)]
pub(crate) struct Control {
    /// The path it has to take; any if none is given.
    pub(crate) path: Option<PathId>,
    pub(crate) chunk: Chunk,
}

/// A chunk that has its packet for itself: INIT, ABORT, SHUTDOWN COMPLETE (RFC 9260 §6.10).
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) path: PathId,
    pub(crate) tag: VerificationTag,
    pub(crate) chunk: Chunk,
}

/// What waits to be sent besides data and acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) alone: VecDeque<Alone>,
    pub(crate) control: VecDeque<Control>,
}

impl Waiting {
    /// Gives back memory that an association does without as a rule.
    pub(crate) fn shrink(&mut self) {
        if self.alone.is_empty() && self.alone.capacity() > 0 {
            self.alone = VecDeque::new();
        }
        if self.control.is_empty() && self.control.capacity() > 0 {
            self.control = VecDeque::new();
        }
    }

    /// Puts a chunk behind those that wait, if the bound allows.
    pub(crate) fn push(&mut self, path: Option<PathId>, chunk: Chunk, counters: &mut Counters) {
        if self.control.len() < MAX_WAITING {
            self.control.push_back(Control { path, chunk });
        } else {
            counters.answers_withheld += 1;
        }
    }

    /// The same for a chunk that has its packet for itself.
    pub(crate) fn push_alone(&mut self, path: PathId, tag: VerificationTag, chunk: Chunk) {
        if self.alone.len() < MAX_WAITING {
            self.alone.push_back(Alone { path, tag, chunk });
        }
    }
}
