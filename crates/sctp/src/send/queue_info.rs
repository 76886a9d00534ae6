//! What is queued, by stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo).

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

impl Sender {
    /// What a stream has in the send buffer.
    #[must_use]
    pub fn stream_queue(&self, stream: StreamId) -> QueueInfo {
        let slot = self.streams.find(stream);
        slot.and_then(|slot| self.streams.get(slot)).map_or_else(QueueInfo::default, |stream| {
            QueueInfo { unsent: stream.unsent, unacknowledged: stream.unacknowledged }
        })
    }
}
