//! Priorities of requests that have not arrived yet: a server keeps the latest of each, and applies it
//! once the stream is opened (RFC 9218 §7.2).

use alloc::collections::BTreeMap;

use crate::priority::Priority;
use crate::stream::StreamId;

/// The number of requests that have not arrived and whose priorities are kept (RFC 9218 §7 asks for a
/// bound). Of further ones, the priority of the latest request is dropped.
pub const MAX_PENDING_PRIORITIES: usize = 64;

/// The priorities.
#[derive(Debug, Default)]
pub(super) struct PendingPriorities(BTreeMap<StreamId, Priority>);

impl PendingPriorities {
    /// Keeps the priority of a request.
    pub(super) fn insert(&mut self, stream: StreamId, priority: Priority) {
        self.0.insert(stream, priority);
        if self.0.len() > MAX_PENDING_PRIORITIES {
            self.0.pop_last();
        }
    }

    /// Returns the priority of a request that has arrived.
    pub(super) fn remove(&mut self, stream: StreamId) -> Option<Priority> {
        self.0.remove(&stream)
    }
}
