//! The runtime of the DNS library: tokio, with UDP sockets that repair what they receive.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hickory_resolver::net::runtime::{DnsUdpSocket, RuntimeProvider, TokioRuntimeProvider};

use super::service_parameters::repair;

pub(super) type BoxFuture<T> = Pin<Box<dyn Send + Future<Output = T>>>;

/// tokio, with UDP sockets that repair what they receive.
#[derive(Clone, Default)]
pub(super) struct Runtime(TokioRuntimeProvider);

impl RuntimeProvider for Runtime {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = RepairingSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> BoxFuture<io::Result<Self::Tcp>> {
        self.0.connect_tcp(server, local, limit)
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> BoxFuture<io::Result<Self::Udp>> {
        let socket = self.0.bind_udp(local, server);
        Box::pin(async { socket.await.map(RepairingSocket) })
    }
}

/// A socket that repairs the datagrams that it receives.
pub(super) struct RepairingSocket(<TokioRuntimeProvider as RuntimeProvider>::Udp);

impl DnsUdpSocket for RepairingSocket {
    type Time = <TokioRuntimeProvider as RuntimeProvider>::Timer;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let (len, from) = ready!(DnsUdpSocket::poll_recv_from(&self.0, cx, buffer))?;
        if let Some(message) = buffer.get_mut(..len) {
            repair(message);
        }
        Poll::Ready(Ok((len, from)))
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        message: &[u8],
        server: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        DnsUdpSocket::poll_send_to(&self.0, cx, message, server)
    }
}
