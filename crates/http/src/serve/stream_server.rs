//! Streams that were accepted elsewhere.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

use super::{
    Transport, cleartext, lingering, link::StreamInfo, pace::Rate, shared::Shared, stats::Counters,
    stream, stream::Protocol,
};

/// Serves streams that were accepted elsewhere, for ports that carry other protocols as well. Clones share the same server.
#[derive(Clone)]
pub struct StreamServer {
    shared: Arc<Shared>,
    protocol: Protocol,
}

impl StreamServer {
    pub(super) fn new(shared: &Arc<Shared>, protocol: Protocol) -> Self {
        Self { shared: Arc::clone(shared), protocol }
    }

    /// Performs the TLS handshake with a client as the server does with its own: with its present
    /// certificates, asking clients for [those](super::ServerBuilder::client_certificates) that it asks
    /// for, and offering its application protocols. A client that begins with an HTTP request in the
    /// clear is told so in the response. There is no time limit.
    ///
    /// # Errors
    /// Those of the handshake, [`InvalidData`](io::ErrorKind::InvalidData) for a request in the clear,
    /// and [`Unsupported`](io::ErrorKind::Unsupported) if the server has no TLS.
    pub async fn handshake(&self, mut tcp: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let tls = self.protocol.acceptor().ok_or(io::ErrorKind::Unsupported)?;
        let mut first = [0];
        if tcp.peek(&mut first).await? == 1 && cleartext::begins_request(first[0]) {
            cleartext::refuse(&mut tcp).await?;
            lingering::close(Rate::minimum(&self.shared.limits), &tcp, true).await;
            let what = "it sent an HTTP request in the clear, and was told so";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        tls.accept(tcp).await
    }

    /// Serves a stream that arrived over TCP until it ends, after any TLS handshake, with HTTP/1 or HTTP/2, whichever the
    /// client begins with. It counts like any other connection of the server, and is dropped at
    /// once if a limit is reached.
    pub async fn serve<S>(&self, stream: S, remote: SocketAddr, local: Option<SocketAddr>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = &self.shared;
        Counters::count(&shared.counters.tcp_connections);
        let Some(permit) = shared.admission.admit(remote.ip(), Transport::Tcp) else {
            return Counters::count(&shared.counters.connections_refused);
        };
        let transport = Transport::Tcp;
        let activity = permit.activity();
        let connection = Arc::clone(&activity);
        let info = StreamInfo { remote, local, transport, is_encrypted: false, activity };
        let protocol = self.protocol.clone().encrypted_below();
        tokio::select! {
            biased;
            _ = stream::serve_stream(Arc::clone(shared), protocol, stream, info, None) => {}
            () = connection.eviction_ends() => {}
        }
    }
}

impl fmt::Debug for StreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamServer").finish_non_exhaustive()
    }
}
