//! Notice that the machine has moved to another network.

use std::sync::Arc;

use eyas_race::io::NetworkView;
use tokio::sync::watch;

use super::Endpoint;

/// Moves of the machine to other networks, for callers that keep what belongs to one network.
#[derive(Debug)]
pub struct NetworkChanges(watch::Receiver<Option<Arc<NetworkView>>>);

impl NetworkChanges {
    /// Waits for the next change; changes in quick succession count as one. `None` once the
    /// endpoint is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<NetworkView> {
        loop {
            self.0.changed().await.ok()?;
            if let Some(view) = self.0.borrow_and_update().as_deref() {
                return Some(view.clone());
            }
        }
    }
}

impl Endpoint {
    /// Returns the changes from now on. They are noticed once the endpoint has
    /// begun to connect.
    pub fn network_changes(&self) -> NetworkChanges {
        NetworkChanges(self.network().changes())
    }
}
