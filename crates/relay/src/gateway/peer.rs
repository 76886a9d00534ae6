//! The sender of a request, as far as a gateway knows it.

use std::net::{IpAddr, SocketAddr};

use eyas_http::serve::PeerInfo;
use http::Extensions;

/// Who sent a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) remote: Option<SocketAddr>,
    pub(super) local: Option<SocketAddr>,
    pub(super) secure: bool,
    pub(super) early: bool,
}

impl Peer {
    /// The client that the server in front tells of; nobody where there is no such server.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let Some(info) = extensions.get::<PeerInfo>() else { return Self::default() };
        Self {
            remote: Some(canonical(info.remote)),
            local: info.local.map(canonical),
            secure: info.secure,
            early: info.early,
        }
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.remote.map(|remote| remote.ip())
    }
}

/// A socket of IPv6 shows IPv4 addresses mapped.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
