//! Queries over QUIC (RFC 9250): each has a stream of its own.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt as _};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::ServerTrouble;
use super::exchange::{framed, read_message};
use super::message::{DnsQuestion, DnsResponse};
use super::shared_connection::{ConnectedServer, QueryConnection};

/// The protocol's name (RFC 9250 §4.1.1).
const ALPN: &[u8] = b"doq";

/// A server that is asked over QUIC.
#[derive(Debug)]
pub(in super::super) struct QuicServer {
    address: SocketAddr,
    name: String,
    config: quinn::ClientConfig,
}

impl QuicServer {
    /// Returns the DoQ server at this address with this name, or `None` if this configuration cannot be used for QUIC.
    pub(in super::super) fn new(
        address: SocketAddr,
        name: &ServerName<'_>,
        config: ClientConfig,
    ) -> Option<Self> {
        // Only the client opens streams (RFC 9250 §4.2).
        Self::with_alpn(address, name, ALPN, 0, config)
    }

    /// Returns a server that speaks this protocol, and may open so many unidirectional streams.
    pub(super) fn with_alpn(
        address: SocketAddr,
        name: &ServerName<'_>,
        alpn: &[u8],
        streams: u32,
        mut config: ClientConfig,
    ) -> Option<Self> {
        config.alpn_protocols = vec![alpn.to_vec()];
        let tls = QuicClientConfig::try_from(config).ok()?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        let mut transport = quinn::TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(0_u8.into())
            .max_concurrent_uni_streams(streams.into());
        config.transport_config(Arc::new(transport));
        Some(Self { address, name: name.to_str().into_owned(), config })
    }

    /// Connects to it.
    pub(super) fn connected(
        &self,
    ) -> impl Future<Output = Result<quinn::Connection, ServerTrouble>> + use<> {
        let (address, name, config) = (self.address, self.name.clone(), self.config.clone());
        async move {
            let any: SocketAddr = match address {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            let endpoint = quinn::Endpoint::client(any)?;
            let connecting = endpoint.connect_with(config, address, &name);
            let connecting = connecting.map_err(|_| ServerTrouble::Unreachable)?;
            let connection = connecting.await.inspect_err(|error| {
                tracing::debug!(%address, %error, "no QUIC connection to the DNS server");
            })?;
            Ok(connection)
        }
    }
}

impl ConnectedServer for QuicServer {
    type Connection = QuicConnection;

    fn connect(&self) -> BoxFuture<'static, Result<QuicConnection, ServerTrouble>> {
        let connected = self.connected();
        async move {
            Ok(QuicConnection { connection: connected.await?, has_answered: Arc::default() })
        }
        .boxed()
    }
}

/// A connection. It ends when nobody has it.
#[derive(Clone, Debug)]
pub(super) struct QuicConnection {
    connection: quinn::Connection,
    has_answered: Arc<AtomicBool>,
}

impl QueryConnection for QuicConnection {
    async fn ask(&self, question: &DnsQuestion, edns: bool) -> Result<DnsResponse, ServerTrouble> {
        let (_, mut query) = question.padded_query(edns).ok_or(ServerTrouble::Malformed)?;
        // "When sending queries over a QUIC connection, the DNS Message ID MUST be set to 0" (§4.2.1).
        query.splice(..2, [0, 0]);
        let (mut send, mut receive) = self.connection.open_bi().await?;
        let query = framed(&query).ok_or(ServerTrouble::Malformed)?;
        send.write_all(&query).await.map_err(|_| ServerTrouble::Unreachable)?;
        // "The client MUST indicate through the STREAM FIN mechanism that no further data will be sent" (§4.2).
        send.finish().map_err(|_| ServerTrouble::Unreachable)?;
        let message = read_message(&mut receive).await?;
        self.has_answered.store(true, Ordering::Relaxed);
        DnsResponse::read(message, 0, question).ok_or(ServerTrouble::Malformed)
    }

    fn is_open(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }
}

impl From<quinn::ConnectionError> for ServerTrouble {
    fn from(error: quinn::ConnectionError) -> Self {
        match error {
            quinn::ConnectionError::TimedOut => Self::Silent,
            _ => Self::Unreachable,
        }
    }
}
