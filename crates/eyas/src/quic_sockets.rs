//! The UDP sockets that all QUIC attempts and connections of an endpoint share.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

mod receive;
mod socket;
pub(crate) mod unanswered;

use socket::QuicSocket;
use unanswered::UnansweredAttempts;

/// How long cancelled attempts have to send their CONNECTION_CLOSE.
const CLOSE_TIME: Duration = Duration::from_millis(20);

/// The UDP sockets of an endpoint, one per address family, opened when first needed and shared
/// by all its attempts and connections.
#[derive(Debug, Default)]
pub(crate) struct QuicSockets {
    v4: OnceCell<SharedSocket>,
    v6: OnceCell<SharedSocket>,
}

/// The socket of one family.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    pub(crate) endpoint: quinn::Endpoint,
    pub(crate) unanswered: Arc<UnansweredAttempts>,
    /// Whether a connection was ever established, which may outlive the endpoint.
    has_connected: AtomicBool,
    runtime: Handle,
}

impl QuicSockets {
    /// Returns the socket for `peer`; if `local` is given, always the same one bound to it.
    pub(crate) async fn for_peer(
        &self,
        peer: SocketAddr,
        local: Option<IpAddr>,
    ) -> io::Result<&SharedSocket> {
        let cell = if peer.is_ipv4() { &self.v4 } else { &self.v6 };
        cell.get_or_try_init(|| async { SharedSocket::open(peer, local) }).await
    }

    /// Waits until no connection is left.
    pub(crate) async fn idle(&self) {
        for shared in [&self.v4, &self.v6].into_iter().filter_map(OnceCell::get) {
            shared.endpoint.wait_idle().await;
        }
    }
}

impl SharedSocket {
    fn open(peer: SocketAddr, local: Option<IpAddr>) -> io::Result<Self> {
        use socket2::{Domain, Protocol, Socket, Type};
        let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
        let any: IpAddr = if peer.is_ipv6() {
            socket.set_only_v6(true)?;
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        socket.bind(&SocketAddr::new(local.unwrap_or(any), 0).into())?;
        let unanswered = Arc::new(UnansweredAttempts::default());
        let endpoint = quinn::Endpoint::new_with_abstract_socket(
            quinn::EndpointConfig::default(),
            None,
            Arc::new(QuicSocket::new(socket, Arc::clone(&unanswered))?),
            Arc::new(quinn::TokioRuntime),
        )?;
        let has_connected = AtomicBool::new(false);
        Ok(Self { endpoint, unanswered, has_connected, runtime: Handle::current() })
    }

    /// Records that a connection was established: from now on it determines how long the socket
    /// stays open.
    pub(crate) fn mark_connected(&self) {
        self.has_connected.store(true, Ordering::Relaxed);
    }
}

impl Drop for SharedSocket {
    /// Closes the socket if no connection was ever established: it need not stay open for the
    /// closing period of cancelled attempts (RFC 9000 §10.2: three probe timeouts, 3 s for a peer
    /// that never answered). Otherwise quinn closes it after the last connection.
    fn drop(&mut self) {
        if *self.has_connected.get_mut() || self.endpoint.open_connections() == 0 {
            return;
        }
        let endpoint = self.endpoint.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(CLOSE_TIME).await;
            // The endpoint keeps its previous socket, so the second call releases the original one.
            for _ in 0..2 {
                if let Err(error) = endpoint.rebind_abstract(Arc::new(NullSocket)) {
                    tracing::debug!(%error, "the UDP socket stays open until the attempts have ended");
                }
            }
        });
    }
}

/// Creates a QUIC endpoint that serves on this socket. Must be called inside a tokio runtime.
///
/// # Errors
/// If the system refuses the socket an option that QUIC cannot do without.
pub fn serve_quic(
    socket: std::net::UdpSocket,
    endpoint: quinn::EndpointConfig,
    server: quinn::ServerConfig,
) -> io::Result<quinn::Endpoint> {
    let runtime = Arc::new(quinn::TokioRuntime);
    // quinn's own sockets do not work where Windows lacks an option (`eyas_host::udp_offload`).
    #[cfg(windows)]
    {
        let socket = Arc::new(QuicSocket::new(socket.into(), Arc::default())?);
        quinn::Endpoint::new_with_abstract_socket(endpoint, Some(server), socket, runtime)
    }
    #[cfg(not(windows))]
    quinn::Endpoint::new(endpoint, Some(server), socket, runtime)
}

/// Replaces a socket: discards what is sent, and never receives anything.
#[derive(Debug)]
struct NullSocket;

impl AsyncUdpSocket for NullSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Self)
    }

    fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
        Ok(())
    }

    fn poll_recv(
        &self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok((Ipv6Addr::UNSPECIFIED, 0).into())
    }
}

impl UdpPoller for NullSocket {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
