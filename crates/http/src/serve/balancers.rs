//! Connections from load balancers, which begin with the PROXY protocol.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{io::AsyncReadExt, net::TcpStream, sync::Semaphore, time::timeout};

use super::{Limits, Transport, link::StreamInfo};
use crate::proxy_protocol::{self, Addresses, Header};

/// The sources whose TCP connections begin with the PROXY protocol.
pub(super) struct Balancers {
    includes: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Bounds the connections whose client is not known yet, which count against no other limit.
    unnamed: Semaphore,
}

impl Balancers {
    pub(super) fn new(
        includes: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
        limits: &Limits,
    ) -> Self {
        let unnamed = Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS));
        Self { includes, unnamed }
    }

    /// Returns whether a connection from this address begins with the PROXY protocol.
    pub(super) fn include(&self, remote: SocketAddr) -> bool {
        (self.includes)(remote.ip().to_canonical())
    }

    /// Reads the header of a connection, and nothing beyond it. Returns the client that it names, or
    /// the connection itself if it names none.
    pub(super) async fn client(
        &self,
        tcp: &mut TcpStream,
        balancer: (SocketAddr, Transport),
        limit: Duration,
    ) -> io::Result<StreamInfo> {
        let _unnamed = self.unnamed.try_acquire().map_err(io::Error::other)?;
        let (addresses, is_encrypted) = timeout(limit, read(tcp)).await??;
        let (remote, transport) = balancer;
        let (remote, local) = match addresses {
            Some(Addresses { source, destination }) => (source, Some(destination)),
            None => (remote, tcp.local_addr().ok()),
        };
        let activity = Arc::default();
        Ok(StreamInfo { remote, local, transport, is_encrypted, activity })
    }
}

impl fmt::Debug for Balancers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Balancers")
    }
}

/// Reads the header. Returns the addresses that it names, and whether the client uses TLS.
async fn read(tcp: &mut TcpStream) -> io::Result<(Option<Addresses>, bool)> {
    let mut bytes = Vec::new();
    loop {
        match proxy_protocol::parse(&bytes) {
            Ok(Header::Complete { addresses, is_encrypted, .. }) => {
                return Ok((addresses, is_encrypted));
            }
            Ok(Header::Incomplete(missing)) => {
                let length = bytes.len();
                bytes.resize(length + missing, 0);
                tcp.read_exact(&mut bytes[length..]).await?;
            }
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}
