//! Reads the requests of programs that use SOCKS or HTTP CONNECT.

use std::time::Duration;

use bytes::BytesMut;
use eyas_relay::destination::{Destination, RequestRefusal};
use eyas_relay::handshake::{HandshakeRequest, HandshakeStep, ProxyHandshake};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::local::LocalStream;

/// The time for a program to name its destination.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Bytes read at once.
const READ: usize = 4 * 1024;

/// The request of a program, and the handshake with which it is answered.
#[derive(Debug)]
pub(crate) struct ProxyRequest {
    pub(crate) to: Destination,
    pub(crate) handshake: ProxyHandshake,
}

/// Exchanges messages with a program until its request is complete.
pub(crate) async fn read_request(client: &mut LocalStream) -> Option<ProxyRequest> {
    let mut handshake = ProxyHandshake::new(false);
    match timeout(HANDSHAKE_TIME, run(client, &mut handshake)).await {
        Ok(Some(HandshakeRequest::Connect(to))) => Some(ProxyRequest { to, handshake }),
        Ok(Some(request)) => {
            let text = match request {
                HandshakeRequest::Associate { .. } | HandshakeRequest::ConnectUdp(_) => {
                    "the tunnel carries streams, but no UDP"
                }
                HandshakeRequest::Connect(_) | HandshakeRequest::Forward { .. } => {
                    "the tunnel supports SOCKS and CONNECT, but no URLs: use socks5h://"
                }
            };
            let refusal = RequestRefusal::Unsupported(text.to_owned());
            let _ = client.write_all(&handshake.refused(&refusal)).await;
            let _ = client.shutdown().await;
            None
        }
        Ok(None) | Err(_) => None,
    }
}

async fn run(client: &mut LocalStream, handshake: &mut ProxyHandshake) -> Option<HandshakeRequest> {
    let mut read = BytesMut::with_capacity(READ);
    loop {
        match handshake.step() {
            HandshakeStep::More => {
                read.clear();
                if client.read_buf(&mut read).await.ok()? == 0 {
                    return None;
                }
                handshake.receive(&read);
            }
            HandshakeStep::Send(bytes) => client.write_all(&bytes).await.ok()?,
            // There are no users.
            HandshakeStep::Authenticate(_) => return None,
            HandshakeStep::Request(request) => return Some(request),
            HandshakeStep::Close(bytes, _) => {
                client.write_all(&bytes).await.ok()?;
                let _ = client.shutdown().await;
                return None;
            }
        }
    }
}
