//! Where a server listens for its clients.

use std::sync::Arc;

use eyas::KeyFingerprint;
use tokio::net::TcpListener;

use super::ends::{self, ListenError};
use super::forward::Place;
use super::leases::{Lease, Leases};
use super::link::Link;

/// All ports at which a server listens for its clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    ports: Leases<u16>,
}

/// A socket that listens. Whoever accepts on it owns it whole: the place is free once the last socket is
/// closed, in whichever task that happens, and not before.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    // Dropped after the socket, as the later field.
    _lease: Arc<Lease<u16>>,
}

impl Places {
    /// Listens at a place for the client with this key, which may hold it by a session that is dead.
    pub(super) async fn listen(
        &self,
        at: &Place,
        key: KeyFingerprint,
        link: &Link,
    ) -> Result<(Vec<Listening>, u16), ListenError> {
        let bound = match ends::listen(at) {
            Err(why) if why.is_taken && self.ports.take_over(&at.port, key, link).await => {
                ends::listen(at)
            }
            bound => bound,
        };
        let (listeners, port) = bound?;
        let lease = Arc::new(self.ports.hold(port, key, link));
        let hold = |listener| Listening { listener, _lease: lease.clone() };
        Ok((listeners.into_iter().map(hold).collect(), port))
    }
}
