//! The addresses by which a session is found.

use std::net::{IpAddr, SocketAddr};

/// The addresses of a session. The local one is `None` where there is one session for each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionPath {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
}

impl From<SocketAddr> for SessionPath {
    fn from(remote: SocketAddr) -> Self {
        Self { remote, local: None }
    }
}
