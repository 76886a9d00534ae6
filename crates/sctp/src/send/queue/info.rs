//! What is queued, by stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo).

use alloc::vec::Vec;

use super::{SendQueue, Stream};
use crate::identifier::StreamId;

/// What one stream has in the send buffer, in bytes of user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueInfo {
    /// Not yet sent.
    pub unsent: usize,
    /// Sent, and not yet acknowledged for good.
    pub unacknowledged: usize,
}

impl QueueInfo {
    /// Both together.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.unsent + self.unacknowledged
    }
}

/// What the send buffer of an association holds, in bytes of user data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationQueueInfo {
    /// The most that it may hold (`SO_SNDBUF`).
    pub limit: usize,
    /// What it holds: not yet sent, or sent and not yet acknowledged for good.
    pub queued: usize,
    /// Streams that may be sent on.
    pub streams: u16,
    /// Those of them that something was ever sent on, in the order of their numbers.
    pub by_stream: Vec<(StreamId, QueueInfo)>,
}

impl AssociationQueueInfo {
    /// What one stream holds.
    #[must_use]
    pub fn of(&self, stream: StreamId) -> QueueInfo {
        let at = self.by_stream.binary_search_by_key(&stream, |(id, _)| *id);
        at.map_or_else(|_| QueueInfo::default(), |at| self.by_stream[at].1)
    }
}

impl SendQueue {
    /// What the send buffer holds, by stream, of which there are so many.
    pub(in crate::send) fn info(&self, streams: u16) -> AssociationQueueInfo {
        let of = |stream: &Stream| (stream.id, stream.info());
        let mut by_stream: Vec<(StreamId, QueueInfo)> = self.streams.iter().map(of).collect();
        by_stream.sort_unstable_by_key(|(id, _)| *id);
        AssociationQueueInfo {
            limit: self.buffer.limit(),
            queued: self.buffer.queued(),
            streams,
            by_stream,
        }
    }

    /// What a stream has in the send buffer.
    pub(in crate::send) fn info_of(&self, stream: StreamId) -> QueueInfo {
        let slot = self.streams.find(stream);
        slot.and_then(|slot| self.streams.get(slot)).map_or_else(QueueInfo::default, Stream::info)
    }
}

impl Stream {
    fn info(&self) -> QueueInfo {
        QueueInfo { unsent: self.unsent(), unacknowledged: self.unacknowledged() }
    }
}
