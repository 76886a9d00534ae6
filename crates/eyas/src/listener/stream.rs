//! Accepts connections over TCP and MPTCP, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_race::candidate::Transport;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::handshakes::ListenerHandshakes;
use super::{AcceptContext, HANDSHAKE_TIMEOUT, since};
use crate::attempt::tls;
use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::kernel_tcp;
use crate::sockets::ReportThrottle;
use crate::{Connection, ConnectionFeedback};

/// The pause after the operating system ran out of descriptors or memory.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn accept_all(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    context: AcceptContext,
) {
    let mut handshakes = ListenerHandshakes::new();
    let throttle = ReportThrottle::default();
    while context.has_space().await {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let (tls, ready) = (tls.clone(), context.ready.clone());
                handshakes.begin(remote.ip(), async move {
                    let outcome =
                        tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(stream, remote, tls));
                    match outcome.await {
                        Ok(Ok(connection)) => drop(ready.send(connection).await),
                        Ok(Err(error)) => tracing::debug!(%remote, %error, "handshake failed"),
                        Err(_) => tracing::debug!(%remote, "handshake took too long"),
                    }
                });
            }
            Err(error) if concerns_only_peer(&error) => {
                tracing::debug!(%error, "a peer left before it was accepted");
            }
            Err(error) => {
                if throttle.permits() {
                    context.notify(&error);
                }
                // Free the descriptor of an unfinished handshake.
                handshakes.evict_one();
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

/// Returns whether an error concerns one peer, not this machine.
fn concerns_only_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

async fn handshake(
    stream: TcpStream,
    remote: SocketAddr,
    tls: Option<TlsAcceptor>,
) -> io::Result<Connection> {
    let start = Instant::now();
    stream.set_nodelay(true)?;
    let transport = if kernel_tcp::is_mptcp(&stream) { Transport::Mptcp } else { Transport::Tcp };
    let mut info = ConnectionInfo::accepted(transport, stream.local_addr().ok(), remote);
    let Some(acceptor) = tls else {
        return Ok(Connection::new(
            ByteTransport::Tcp(stream),
            info,
            ConnectionFeedback::none(),
            Bytes::new(),
        ));
    };
    let stream = acceptor.accept(stream).await?;
    // A device may have removed the options from packets after the handshake of the transport.
    if info.transport == Transport::Mptcp && !kernel_tcp::is_mptcp(stream.get_ref().0) {
        info.transport = Transport::Tcp;
    }
    info.timings.security = since(start);
    tls::describe(&mut info, stream.get_ref().1);
    let transport = ByteTransport::Tls(Box::new(stream.into()));
    Ok(Connection::new(transport, info, ConnectionFeedback::none(), Bytes::new()))
}
