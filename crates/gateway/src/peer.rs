//! The client that sent a request.

use std::net::{IpAddr, SocketAddr};

use eyas_http::serve::PeerInfo;
use http::Extensions;

/// The client that sent a request, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestPeer {
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) secure: bool,
    pub(crate) early: bool,
}

impl RequestPeer {
    /// Returns the client that the server in front reports. Without such a server nothing is known.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Self {
        let Some(info) = extensions.get::<PeerInfo>() else { return Self::default() };
        Self {
            remote: Some(canonical(info.remote)),
            local: info.local.map(canonical),
            secure: info.secure,
            early: info.early,
        }
    }

    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.remote.map(|remote| remote.ip())
    }
}

/// Returns the IPv4 address that an IPv6 socket reports as a mapped one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
