//! The open connections to the metrics page.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// The maximum number of open connections.
const MAX_CONNECTIONS: usize = 16;

/// The open connections. A new one is always accepted: at the limit, the oldest connection of the
/// address with the most connections is closed.
#[derive(Debug, Default)]
pub(super) struct OpenConnections {
    state: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Oldest first.
    connections: Vec<Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    peer: IpAddr,
    evicted: CancellationToken,
}

/// Keeps a connection registered until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connections: Arc<OpenConnections>,
    number: u64,
    /// Cancelled when this connection has to make room for another.
    pub(super) evicted: CancellationToken,
}

impl OpenConnections {
    /// Registers one more connection from this peer.
    pub(super) fn register(self: &Arc<Self>, peer: IpAddr) -> ConnectionGuard {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.connections.len() >= MAX_CONNECTIONS {
            state.evict_one();
        }
        let (number, evicted) = (state.next, CancellationToken::new());
        state.next += 1;
        state.connections.push(Connection { number, peer, evicted: evicted.clone() });
        ConnectionGuard { connections: Arc::clone(self), number, evicted }
    }
}

impl Open {
    fn evict_one(&mut self) {
        let mut of_peer = HashMap::<IpAddr, usize>::new();
        for connection in &self.connections {
            *of_peer.entry(connection.peer).or_default() += 1;
        }
        let most = of_peer.values().copied().max().unwrap_or_default();
        let oldest = self
            .connections
            .iter()
            .position(|connection| of_peer.get(&connection.peer) == Some(&most));
        if let Some(oldest) = oldest {
            self.connections.remove(oldest).evicted.cancel();
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut state = self.connections.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.connections.retain(|connection| connection.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_busiest_peer_is_closed() {
        let connections = Arc::<OpenConnections>::default();
        let honest = connections.register(IpAddr::from([192, 0, 2, 1]));
        let greedy: Vec<ConnectionGuard> =
            (0..100).map(|_| connections.register(IpAddr::from([192, 0, 2, 2]))).collect();
        assert!(!honest.evicted.is_cancelled());
        let kept_open = greedy.iter().filter(|guard| !guard.evicted.is_cancelled()).count();
        assert_eq!(kept_open, MAX_CONNECTIONS - 1);
        assert!(greedy[0].evicted.is_cancelled() && !greedy[99].evicted.is_cancelled());
        drop(greedy);
        assert_eq!(connections.state.lock().unwrap().connections.len(), 1);
    }
}
