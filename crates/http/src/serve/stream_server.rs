//! Streams that somebody else has accepted.

use std::{fmt, net::SocketAddr, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Transport, shared::Shared, stats::Counters, stream, stream::Protocol};

/// Serves streams that somebody else has accepted, and has spoken TLS on if anybody has: where one port
/// carries other protocols as well. Clones are the same.
#[derive(Clone)]
pub struct StreamServer {
    shared: Arc<Shared>,
    protocol: Protocol,
}

impl StreamServer {
    pub(super) fn new(shared: &Arc<Shared>, protocol: Protocol) -> Self {
        Self { shared: Arc::clone(shared), protocol: protocol.protected_below() }
    }

    /// Serves one that came over TCP to its end, in HTTP/1 or HTTP/2, whichever it begins with. It counts
    /// as any other connection of the server, and is dropped at once where there is no room for it.
    pub async fn serve<S>(&self, stream: S, remote: SocketAddr, local: Option<SocketAddr>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = &self.shared;
        Counters::count(&shared.counters.tcp_connections);
        let Some(_permit) = shared.admission.admit(remote.ip(), Transport::Tcp) else {
            return Counters::count(&shared.counters.connections_refused);
        };
        let ends = stream::Ends { remote, local, transport: Transport::Tcp };
        stream::speak(Arc::clone(shared), self.protocol.clone(), stream, ends, None).await;
    }
}

impl fmt::Debug for StreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamServer").finish_non_exhaustive()
    }
}
