//! Changes of an association's settings by its user (RFC 6458 §8.1).

use alloc::sync::Arc;

use super::Association;
use crate::config::AssociationConfig;

impl Association {
    /// Returns the association's settings.
    pub(crate) fn config(&self) -> &AssociationConfig {
        &self.config
    }

    /// Applies the settings that can change while the association exists.
    pub(crate) fn configure(&mut self, config: Arc<AssociationConfig>) {
        self.sender.configure(&config);
        self.receiver.configure(&config);
        for path in self.paths.iter_mut() {
            path.rto.configure(&config);
        }
        self.config = config;
        self.collect_events();
    }

    /// Returns the bytes that are waiting to be sent or acknowledged.
    pub(crate) fn queued(&self) -> usize {
        self.sender.queued_bytes()
    }

    /// Requests a notification once the send buffer has `length` bytes of room.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.sender.wait_for_room(length);
        self.collect_events();
    }

    /// Returns the number of messages, or parts of them, that the user can receive.
    pub(crate) fn receivable(&self) -> usize {
        self.receiver.receivable()
    }
}
