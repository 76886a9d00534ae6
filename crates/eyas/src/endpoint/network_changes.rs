//! Notices when the machine moves to another network.

use std::sync::Arc;

use eyas_race::io::NetworkView;
use tokio::sync::watch;

use super::Endpoint;

/// A stream of moves to other networks, for callers that keep state per network.
#[derive(Debug)]
pub struct NetworkChanges(watch::Receiver<Option<Arc<NetworkView>>>);

impl NetworkChanges {
    /// Waits for the next change; changes in quick succession are reported as one. Returns `None`
    /// once the endpoint has been dropped. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<NetworkView>> {
        loop {
            self.0.changed().await.ok()?;
            if let Some(view) = self.0.borrow_and_update().as_ref() {
                return Some(Arc::clone(view));
            }
        }
    }
}

impl Endpoint {
    /// Returns the changes from now on. Changes are noticed from the endpoint's first connection
    /// on.
    pub fn network_changes(&self) -> NetworkChanges {
        NetworkChanges(self.network().changes())
    }
}
