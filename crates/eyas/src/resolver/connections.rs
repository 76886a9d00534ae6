//! How questions leave and answers come in: over UDP, TCP, TLS and HTTPS.
//!
//! Whichever way an answer comes, [`mend`] has it before the library reads it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use hickory_resolver::config::{ConnectionConfig, ProtocolConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::{DnsUdpSocket, RuntimeProvider, Spawn, TokioRuntimeProvider};
use hickory_resolver::net::tcp::TcpClientStream;
use hickory_resolver::net::xfer::{
    BufDnsStreamHandle, DnsClientStream, DnsExchange, DnsMultiplexer, DnsRequestSender,
};
use hickory_resolver::proto::op::SerialMessage;
use hickory_resolver::{ConnectionProvider, PoolContext};

use super::service_parameters::mend;

/// Connects to DNS servers.
#[derive(Clone, Default)]
pub(super) struct Connections(Runtime);

type Later<T> = Pin<Box<dyn Send + Future<Output = T>>>;

impl ConnectionProvider for Connections {
    type Conn = DnsExchange<Runtime>;
    type FutureConn = Later<Result<Self::Conn, NetError>>;
    type RuntimeProvider = Runtime;

    fn new_connection(
        &self,
        ip: IpAddr,
        config: &ConnectionConfig,
        pool: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        let (server, local) = (SocketAddr::new(ip, config.port), config.bind_addr);
        let (limits, runtime) = (Limits::of(pool), self.0.clone());
        Ok(match &config.protocol {
            // The socket mends.
            ProtocolConfig::Udp => return self.0.new_connection(ip, config, pool),
            ProtocolConfig::Tcp => {
                let limit = Some(limits.time);
                let (tcp, sender) = TcpClientStream::new(server, local, limit, runtime.clone());
                Box::pin(multiplex(tcp, sender, limits, runtime))
            }
            #[cfg(feature = "encrypted-dns")]
            ProtocolConfig::Tls { server_name } => {
                let (tls, sender) =
                    super::encrypted::over_tls(server, local, server_name, pool, &runtime)?;
                Box::pin(multiplex(tls, sender, limits, runtime))
            }
            #[cfg(feature = "encrypted-dns")]
            ProtocolConfig::Https { server_name, path } => {
                let tcp = runtime.connect_tcp(server, local, Some(limits.time));
                let name = (&**server_name, config.port);
                let https = super::https::connect(tcp, name, path, pool, &runtime)?;
                Box::pin(async move { Ok(exchange(https.await?, &runtime)) })
            }
        })
    }

    fn runtime_provider(&self) -> &Runtime {
        &self.0
    }
}

/// What a connection keeps to.
struct Limits {
    /// For connecting, and for each answer.
    time: Duration,
    /// Questions that wait for their answers.
    questions: usize,
}

impl Limits {
    fn of(pool: &PoolContext) -> Self {
        Self { time: pool.options.timeout, questions: pool.options.max_active_requests }
    }
}

/// Many questions over one stream of messages, once it is connected.
async fn multiplex<S: DnsClientStream>(
    connecting: impl Future<Output = Result<S, NetError>>,
    sender: BufDnsStreamHandle,
    limits: Limits,
    runtime: Runtime,
) -> Result<DnsExchange<Runtime>, NetError> {
    let stream = tokio::time::timeout(limits.time, connecting).await;
    let stream = Mended(stream.map_err(|_| NetError::Timeout)??);
    let multiplexer = DnsMultiplexer::new(stream, sender).with_timeout(limits.time);
    Ok(exchange(multiplexer.with_max_active_requests(limits.questions), &runtime))
}

fn exchange(sender: impl DnsRequestSender, runtime: &Runtime) -> DnsExchange<Runtime> {
    let (exchange, background) = DnsExchange::from_stream(sender);
    runtime.create_handle().spawn_bg(background);
    exchange
}

/// A stream whose messages are mended.
struct Mended<S>(S);

impl<S: DnsClientStream> Stream for Mended<S> {
    type Item = Result<SerialMessage, NetError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx).map_ok(|message| {
            let (mut message, from) = message.into_parts();
            mend(&mut message);
            SerialMessage::new(message, from)
        })
    }
}

impl<S: DnsClientStream> DnsClientStream for Mended<S> {
    type Time = S::Time;

    fn name_server_addr(&self) -> SocketAddr {
        self.0.name_server_addr()
    }
}

/// tokio, with UDP sockets that mend what they receive.
#[derive(Clone, Default)]
pub(super) struct Runtime(TokioRuntimeProvider);

impl RuntimeProvider for Runtime {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = MendedSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Later<io::Result<Self::Tcp>> {
        self.0.connect_tcp(server, local, limit)
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Later<io::Result<Self::Udp>> {
        let socket = self.0.bind_udp(local, server);
        Box::pin(async { socket.await.map(MendedSocket) })
    }
}

/// A socket whose datagrams are mended.
pub(super) struct MendedSocket(<TokioRuntimeProvider as RuntimeProvider>::Udp);

impl DnsUdpSocket for MendedSocket {
    type Time = <TokioRuntimeProvider as RuntimeProvider>::Timer;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let (len, from) = ready!(DnsUdpSocket::poll_recv_from(&self.0, cx, buffer))?;
        if let Some(message) = buffer.get_mut(..len) {
            mend(message);
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
