//! Sends queries and receives answers over UDP, TCP, TLS and HTTPS.
//!
//! Answers over every protocol pass through [`repair`] before the library parses them.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use hickory_resolver::config::{ConnectionConfig, ProtocolConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::{RuntimeProvider, Spawn};
use hickory_resolver::net::tcp::TcpClientStream;
use hickory_resolver::net::xfer::{
    BufDnsStreamHandle, DnsClientStream, DnsExchange, DnsMultiplexer, DnsRequestSender,
};
use hickory_resolver::proto::op::SerialMessage;
use hickory_resolver::{ConnectionProvider, PoolContext};

use super::runtime::{BoxFuture, Runtime};
use super::service_parameters::repair;

/// Connects to DNS servers.
#[derive(Clone, Default)]
pub(super) struct Connections(Runtime);

impl ConnectionProvider for Connections {
    type Conn = DnsExchange<Runtime>;
    type FutureConn = BoxFuture<Result<Self::Conn, NetError>>;
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
            // The socket repairs what it receives.
            ProtocolConfig::Udp => return self.0.new_connection(ip, config, pool),
            ProtocolConfig::Tcp => {
                let limit = Some(limits.timeout);
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
                let tcp = runtime.connect_tcp(server, local, Some(limits.timeout));
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

/// The limits of a connection.
struct Limits {
    /// The timeout for connecting, and for each answer.
    timeout: Duration,
    /// The maximum number of queries that wait for answers.
    queries: usize,
}

impl Limits {
    fn of(pool: &PoolContext) -> Self {
        Self { timeout: pool.options.timeout, queries: pool.options.max_active_requests }
    }
}

/// Multiplexes queries over one message stream, once it is connected.
async fn multiplex<S: DnsClientStream>(
    connecting: impl Future<Output = Result<S, NetError>>,
    sender: BufDnsStreamHandle,
    limits: Limits,
    runtime: Runtime,
) -> Result<DnsExchange<Runtime>, NetError> {
    let stream = tokio::time::timeout(limits.timeout, connecting).await;
    let stream = RepairingStream(stream.map_err(|_| NetError::Timeout)??);
    let multiplexer = DnsMultiplexer::new(stream, sender).with_timeout(limits.timeout);
    Ok(exchange(multiplexer.with_max_active_requests(limits.queries), &runtime))
}

fn exchange(sender: impl DnsRequestSender, runtime: &Runtime) -> DnsExchange<Runtime> {
    let (exchange, background) = DnsExchange::from_stream(sender);
    runtime.create_handle().spawn_bg(background);
    exchange
}

/// A stream that repairs the messages that it receives.
struct RepairingStream<S>(S);

impl<S: DnsClientStream> Stream for RepairingStream<S> {
    type Item = Result<SerialMessage, NetError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx).map_ok(|message| {
            let (mut message, from) = message.into_parts();
            repair(&mut message);
            SerialMessage::new(message, from)
        })
    }
}

impl<S: DnsClientStream> DnsClientStream for RepairingStream<S> {
    type Time = S::Time;

    fn name_server_addr(&self) -> SocketAddr {
        self.0.name_server_addr()
    }
}
