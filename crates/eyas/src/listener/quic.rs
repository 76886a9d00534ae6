//! Accepts connections over QUIC.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_race::candidate::{Security, Transport};
use quinn::crypto::rustls::QuicServerConfig;

use super::handshakes::ListenerHandshakes;
use super::{AcceptContext, HANDSHAKE_TIMEOUT, ListenParameters, since};
use crate::attempt::quic::describe;
use crate::byte_stream::ByteTransport;
use crate::connection_info::{ConnectionInfo, ConnectionTimings};
use crate::quic_sockets::serve_quic;
use crate::quic_stream::{QuicStream, StreamRole};
use crate::{Connection, ConnectionFeedback, Error};

pub(super) fn endpoint(
    socket: std::net::UdpSocket,
    parameters: &ListenParameters,
) -> Result<quinn::Endpoint, Error> {
    let Some(identity) = &parameters.security else {
        return Err(Error::Parameters("QUIC needs an identity".into()));
    };
    let mut tls = parameters.server_config(identity)?;
    tls.alpn_protocols = parameters.quic_alpn();
    let tls = QuicServerConfig::try_from(tls)
        .map_err(|error| Error::Identity(format!("not usable for QUIC: {error}")))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    if let Some(transport) = &parameters.quic_transport {
        config.transport_config(Arc::clone(transport));
    }
    let endpoint = identity.quic_endpoint_config(socket.local_addr()?);
    Ok(serve_quic(socket, endpoint, config)?)
}

pub(super) async fn accept_all(endpoint: quinn::Endpoint, context: AcceptContext) {
    let mut handshakes = ListenerHandshakes::new();
    let port = endpoint.local_addr().map_or(0, |address| address.port());
    while let Some(incoming) = endpoint.accept().await {
        if context.ready.capacity() == 0 {
            // Unlike with TCP, a QUIC peer that had to wait would assume that the path drops UDP.
            incoming.refuse();
            continue;
        }
        // A peer with forged addresses must not occupy the slots of others (RFC 9000 §8.1.2).
        if handshakes.is_busy() && !incoming.remote_address_validated() {
            // It fails only if the address has been validated.
            let _ = incoming.retry();
            continue;
        }
        let ready = context.ready.clone();
        let remote = incoming.remote_address();
        handshakes.begin(remote.ip(), async move {
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(incoming, port)).await {
                Ok(Ok(connection)) => drop(ready.send(connection).await),
                Ok(Err(error)) => tracing::debug!(%remote, %error, "QUIC handshake failed"),
                Err(_) => tracing::debug!(%remote, "QUIC handshake took too long"),
            }
        });
    }
}

async fn handshake(
    incoming: quinn::Incoming,
    port: u16,
) -> Result<Connection, quinn::ConnectionError> {
    let start = Instant::now();
    let local_ip = incoming.local_ip();
    let remote = incoming.remote_address();
    let connection = incoming.await?;
    let mut info = ConnectionInfo {
        security: Security::Tls,
        protocol: Some("TLSv1.3"),
        local: local_ip.map(|ip| (ip, port).into()),
        timings: ConnectionTimings {
            answered: Some(Duration::ZERO),
            transport: since(start),
            security: since(start),
            ..ConnectionTimings::default()
        },
        rtt: Some(connection.rtt()),
        ..ConnectionInfo::new(Transport::Quic, remote)
    };
    describe(&mut info, &connection);
    let transport = ByteTransport::Quic(Box::new(QuicStream::new(connection, StreamRole::Server)));
    Ok(Connection::new(transport, info, ConnectionFeedback::none(), Bytes::new()))
}
