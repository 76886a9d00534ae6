//! The contents of the send buffer, by stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo).

use alloc::vec::Vec;

use super::{OutboundStream, SendQueue};
use crate::identifier::StreamId;

/// The contents of the send buffer that belong to one stream, in bytes of user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueInfo {
    /// Not yet sent.
    pub unsent: usize,
    /// Sent, and not yet non-renegably acknowledged.
    pub unacknowledged: usize,
}

impl QueueInfo {
    /// Returns the sum of both.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.unsent + self.unacknowledged
    }
}

/// The contents of an association's send buffer, in bytes of user data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationQueueInfo {
    /// The size of the send buffer (`SO_SNDBUF`).
    pub limit: usize,
    /// The bytes in it: not yet sent, or sent and not yet non-renegably acknowledged.
    pub queued: usize,
    /// The number of streams that may be sent on.
    pub streams: u16,
    /// The streams that have been sent on, in the order of their numbers.
    pub by_stream: Vec<(StreamId, QueueInfo)>,
}

impl AssociationQueueInfo {
    /// Returns the contents that belong to one stream.
    #[must_use]
    pub fn stream(&self, stream: StreamId) -> QueueInfo {
        let at = self.by_stream.binary_search_by_key(&stream, |(id, _)| *id);
        at.map_or_else(|_| QueueInfo::default(), |at| self.by_stream[at].1)
    }
}

impl SendQueue {
    /// Returns the contents of the send buffer; `streams` is the number of streams.
    pub(in crate::send) fn info(&self, streams: u16) -> AssociationQueueInfo {
        let of = |stream: &OutboundStream| (stream.id, stream.info());
        let mut by_stream: Vec<(StreamId, QueueInfo)> = self.streams.iter().map(of).collect();
        by_stream.sort_unstable_by_key(|(id, _)| *id);
        AssociationQueueInfo {
            limit: self.buffer.limit(),
            queued: self.buffer.queued(),
            streams,
            by_stream,
        }
    }

    /// Returns the contents that belong to one stream.
    pub(in crate::send) fn info_of(&self, stream: StreamId) -> QueueInfo {
        let slot = self.streams.find(stream);
        slot.and_then(|slot| self.streams.get(slot))
            .map_or_else(QueueInfo::default, OutboundStream::info)
    }
}

impl OutboundStream {
    fn info(&self) -> QueueInfo {
        QueueInfo { unsent: self.unsent(), unacknowledged: self.unacknowledged() }
    }
}
