//! An association whose user changes how it behaves (RFC 6458 §8.1).

use alloc::sync::Arc;

use super::Association;
use crate::config::AssociationConfig;

impl Association {
    /// How it behaves.
    pub(crate) fn config(&self) -> &AssociationConfig {
        &self.config
    }

    /// Takes over what can be changed while it runs.
    pub(crate) fn configure(&mut self, config: Arc<AssociationConfig>) {
        self.sender.configure(&config);
        self.receiver.configure(&config);
        for path in self.paths.iter_mut() {
            path.rto.configure(&config);
        }
        self.config = config;
        self.collect_events();
    }

    /// Bytes that wait to be sent or acknowledged.
    pub(crate) fn queued(&self) -> usize {
        self.sender.queued_bytes()
    }

    /// The user wants to hear of room.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.sender.wait_for_room(length);
        self.collect_events();
    }

    /// Messages, or parts of one, that wait for the user.
    pub(crate) fn receivable(&self) -> usize {
        self.receiver.receivable()
    }
}
