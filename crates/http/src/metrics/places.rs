//! The open connections for metrics.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// The maximum number of open connections.
const MOST: usize = 16;

/// The open connections. There is always room for one more: the oldest connection of the address
/// with the most of them is closed for it.
#[derive(Debug, Default)]
pub(super) struct Places {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The oldest one first.
    connections: Vec<Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    peer: IpAddr,
    leave: CancellationToken,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    /// Cancelled when the place is needed for another connection.
    pub(super) leave: CancellationToken,
}

impl Places {
    /// Takes a place for one more connection from this peer.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Place {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.connections.len() >= MOST {
            open.send_one_away();
        }
        let (number, leave) = (open.next, CancellationToken::new());
        open.next += 1;
        open.connections.push(Connection { number, peer, leave: leave.clone() });
        Place { places: Arc::clone(self), number, leave }
    }
}

impl Open {
    fn send_one_away(&mut self) {
        let mut of_peer = HashMap::<IpAddr, usize>::new();
        for connection in &self.connections {
            *of_peer.entry(connection.peer).or_default() += 1;
        }
        let most = of_peer.values().copied().max().unwrap_or_default();
        let oldest = self.connections.iter().position(|one| of_peer.get(&one.peer) == Some(&most));
        if let Some(oldest) = oldest {
            self.connections.remove(oldest).leave.cancel();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.connections.retain(|connection| connection.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_busiest_peer_is_closed() {
        let places = Arc::<Places>::default();
        let honest = places.take(IpAddr::from([192, 0, 2, 1]));
        let greedy: Vec<Place> =
            (0..100).map(|_| places.take(IpAddr::from([192, 0, 2, 2]))).collect();
        assert!(!honest.leave.is_cancelled());
        let stayed = greedy.iter().filter(|place| !place.leave.is_cancelled()).count();
        assert_eq!(stayed, MOST - 1);
        assert!(greedy[0].leave.is_cancelled() && !greedy[99].leave.is_cancelled());
        drop(greedy);
        assert_eq!(places.open.lock().unwrap().connections.len(), 1);
    }
}
