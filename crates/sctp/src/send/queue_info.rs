//! What is queued, by stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo).

use alloc::vec::Vec;

use super::Sender;
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

impl Sender {
    /// What the send buffer holds, by stream.
    #[must_use]
    pub fn queue_info(&self) -> AssociationQueueInfo {
        let mut by_stream: Vec<(StreamId, QueueInfo)> = self
            .streams
            .iter()
            .map(|stream| {
                let (unsent, unacknowledged) = (stream.unsent, stream.unacknowledged);
                (stream.id, QueueInfo { unsent, unacknowledged })
            })
            .collect();
        by_stream.sort_unstable_by_key(|(id, _)| *id);
        AssociationQueueInfo {
            limit: self.send_buffer,
            queued: self.queued,
            streams: self.terms.outbound,
            by_stream,
        }
    }

    /// What a stream has in the send buffer.
    #[must_use]
    pub fn stream_queue(&self, stream: StreamId) -> QueueInfo {
        let slot = self.streams.find(stream);
        slot.and_then(|slot| self.streams.get(slot)).map_or_else(QueueInfo::default, |stream| {
            QueueInfo { unsent: stream.unsent, unacknowledged: stream.unacknowledged }
        })
    }
}
