//! Streams that were accepted elsewhere.

use std::{fmt, net::SocketAddr, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Transport, shared::Shared, stats::Counters, stream, stream::Protocol};

/// Serves streams that were accepted elsewhere, after any TLS handshake, for ports that carry other
/// protocols as well. Clones share the same server.
#[derive(Clone)]
pub struct StreamServer {
    shared: Arc<Shared>,
    protocol: Protocol,
}

impl StreamServer {
    pub(super) fn new(shared: &Arc<Shared>, protocol: Protocol) -> Self {
        Self { shared: Arc::clone(shared), protocol: protocol.encrypted_below() }
    }

    /// Serves a stream that arrived over TCP until it ends, with HTTP/1 or HTTP/2, whichever the
    /// client begins with. It counts like any other connection of the server, and is dropped at
    /// once if a limit is reached.
    pub async fn serve<S>(&self, stream: S, remote: SocketAddr, local: Option<SocketAddr>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = &self.shared;
        Counters::count(&shared.counters.tcp_connections);
        let Some(_permit) = shared.admission.admit(remote.ip(), Transport::Tcp) else {
            return Counters::count(&shared.counters.connections_refused);
        };
        let info = stream::StreamInfo { remote, local, transport: Transport::Tcp };
        stream::serve_stream(Arc::clone(shared), self.protocol.clone(), stream, info, None).await;
    }
}

impl fmt::Debug for StreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamServer").finish_non_exhaustive()
    }
}
