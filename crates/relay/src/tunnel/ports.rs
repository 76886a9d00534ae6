//! The ports at which a server listens for its clients.

use std::sync::Arc;

use eyas::KeyFingerprint;
use tokio::net::TcpListener;

use super::forward::Place;
use super::leases::{Lease, Leases};
use super::link::Link;
use super::sockets::{self, ListenError};

/// All ports at which a server listens for its clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    leases: Leases<u16>,
}

/// A listener with its share of the lease. The port is released once the last listener is closed, in whichever
/// task.
#[derive(Debug)]
pub(super) struct LeasedListener {
    pub(super) listener: TcpListener,
    // Dropped after the socket, as the later field.
    _lease: Arc<Lease<u16>>,
}

impl Ports {
    /// Listens for the client with this key. If a dead session of the same key has the port, it is taken over.
    pub(super) async fn listen(
        &self,
        at: &Place,
        key: KeyFingerprint,
        link: &Link,
    ) -> Result<(Vec<LeasedListener>, u16), ListenError> {
        let bound = match sockets::listen(at) {
            Err(why) if why.is_in_use && self.leases.take_over(&at.port, key, link).await => {
                sockets::listen(at)
            }
            bound => bound,
        };
        let (listeners, port) = bound?;
        let lease = Arc::new(self.leases.add(port, key, link));
        let leased = |listener| LeasedListener { listener, _lease: lease.clone() };
        Ok((listeners.into_iter().map(leased).collect(), port))
    }
}
