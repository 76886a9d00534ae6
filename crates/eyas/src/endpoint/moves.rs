//! Notice that the machine has moved to another network.

use std::sync::Arc;

use eyas_race::io::NetworkView;
use tokio::sync::watch;

use super::Endpoint;

/// Tells every move to another network, for who keeps things that belong to a network.
#[derive(Debug)]
pub struct Moves(watch::Receiver<Option<Arc<NetworkView>>>);

impl Moves {
    /// Waits for the next move; moves in quick succession are told as one. `None` once the
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
    /// Tells the moves to another network from now on. They are noticed once the endpoint has
    /// begun to connect.
    pub fn moves(&self) -> Moves {
        Moves(self.network().changes())
    }
}
