//! The ports and Unix sockets at which a server listens for its clients.

use std::sync::Arc;

use eyas::KeyFingerprint;

use crate::forward::ListenAt;
use crate::frame::UnixPath;
use crate::leases::{ResourceLease, ResourceLeases};
use crate::link::SessionLink;
use crate::local::LocalListener;
use crate::sockets::{self, ListenError};

/// All ports and Unix sockets at which a server listens for its clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListeningPorts {
    leases: ResourceLeases<ListeningResource>,
}

/// What only one session can have.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListeningResource {
    Port(u16),
    Socket(UnixPath),
}

impl ListeningResource {
    fn new(at: &ListenAt, port: u16) -> Self {
        match at {
            ListenAt::Tcp(_) => Self::Port(port),
            ListenAt::Unix(path) => Self::Socket(path.clone()),
        }
    }
}

/// A listener with its share of the lease. The port is released once the last listener is closed, in whichever
/// task.
#[derive(Debug)]
pub(crate) struct LeasedListener {
    pub(crate) listener: LocalListener,
    // Dropped after the socket, as the later field.
    _lease: Arc<ResourceLease<ListeningResource>>,
}

impl ListeningPorts {
    /// Listens for the client with this key. If a dead session of the same key has the port, it is taken over.
    pub(crate) async fn listen(
        &self,
        at: &ListenAt,
        key: KeyFingerprint,
        link: &SessionLink,
    ) -> Result<(Vec<LeasedListener>, u16), ListenError> {
        let wanted = match at {
            ListenAt::Tcp(place) => ListeningResource::new(at, place.port),
            ListenAt::Unix(_) => ListeningResource::new(at, 0),
        };
        let bound = match sockets::listen(at) {
            Err(why) if why.is_in_use && self.leases.take_over(&wanted, key, link).await => {
                sockets::listen(at)
            }
            bound => bound,
        };
        let (listeners, port) = bound?;
        let lease = Arc::new(self.leases.add(ListeningResource::new(at, port), key, link));
        let leased = |listener| LeasedListener { listener, _lease: lease.clone() };
        Ok((listeners.into_iter().map(leased).collect(), port))
    }
}
