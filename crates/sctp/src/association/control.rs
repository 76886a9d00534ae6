//! Queued control chunks, and packets that carry a single chunk.

use alloc::collections::VecDeque;

use crate::counters::EndpointCounters;
use crate::identifier::{PathId, VerificationTag};
use crate::wire::{Chunk, ErrorCause, ErrorChunk};

/// The most control chunks that wait. What a peer provokes beyond that (HEARTBEAT ACK, ERROR) is
/// left out and counted.
const MAX_QUEUED: usize = 64;

/// A queued control chunk.
#[derive(Debug)]
pub(crate) struct ControlChunk {
    /// The path that it must take, or `None` for any.
    pub(crate) path: Option<PathId>,
    pub(crate) chunk: Chunk,
}

/// A chunk that is sent in a packet of its own: INIT, ABORT, SHUTDOWN COMPLETE (RFC 9260 §6.10).
#[derive(Debug)]
pub(crate) struct StandaloneChunk {
    pub(crate) path: PathId,
    pub(crate) tag: VerificationTag,
    pub(crate) chunk: Chunk,
}

/// Chunks queued for sending, apart from data and acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct ChunkQueues {
    pub(crate) standalone: VecDeque<StandaloneChunk>,
    pub(crate) control: VecDeque<ControlChunk>,
}

impl ChunkQueues {
    /// Frees the memory of empty queues, which an association rarely needs.
    pub(crate) fn shrink(&mut self) {
        if self.standalone.is_empty() && self.standalone.capacity() > 0 {
            self.standalone = VecDeque::new();
        }
        if self.control.is_empty() && self.control.capacity() > 0 {
            self.control = VecDeque::new();
        }
    }

    /// Queues a chunk, unless the queue is full.
    pub(crate) fn push(
        &mut self,
        path: Option<PathId>,
        chunk: Chunk,
        counters: &mut EndpointCounters,
    ) {
        if self.control.len() < MAX_QUEUED {
            self.control.push_back(ControlChunk { path, chunk });
        } else {
            counters.answers_withheld += 1;
        }
    }

    /// Queues an ERROR with one cause, unless the queue is full.
    pub(crate) fn push_error(
        &mut self,
        path: Option<PathId>,
        cause: ErrorCause,
        counters: &mut EndpointCounters,
    ) {
        self.push(path, Chunk::Error(ErrorChunk { causes: cause.into() }), counters);
    }

    /// Queues a chunk to be sent in a packet of its own, unless the queue is full.
    pub(crate) fn push_standalone(&mut self, path: PathId, tag: VerificationTag, chunk: Chunk) {
        if self.standalone.len() < MAX_QUEUED {
            self.standalone.push_back(StandaloneChunk { path, tag, chunk });
        }
    }
}
