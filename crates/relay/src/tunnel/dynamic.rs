//! Programs that say themselves where they want to go: SOCKS and HTTP CONNECT.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::handshake::{Destination, Handshake, Refusal, Request, Step};

/// For a program to say where it wants to go.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Bytes read at once until then.
const READ: usize = 4 * 1024;

/// A program that has said where it wants to go, and is to be answered in its own protocol.
#[derive(Debug)]
pub(crate) struct Speaker {
    pub(crate) to: Destination,
    pub(crate) handshake: Handshake,
}

/// Talks with a program until it has said where it wants to go.
pub(crate) async fn introduce(client: &mut TcpStream) -> Option<Speaker> {
    let mut handshake = Handshake::new(None);
    let asked = timeout(HANDSHAKE_TIME, ask(client, &mut handshake)).await;
    match asked {
        Ok(Some(Request::Connect(to))) => Some(Speaker { to, handshake }),
        Ok(Some(request)) => {
            let text = match request {
                Request::Associate { .. } | Request::ConnectUdp(_) => {
                    "the tunnel carries streams, but no UDP"
                }
                Request::Connect(_) | Request::Forward { .. } => {
                    "the tunnel supports SOCKS and CONNECT, but no URLs: use socks5h://"
                }
            };
            let refusal = Refusal::Unsupported(text.to_owned());
            let _ = client.write_all(&handshake.refused(&refusal)).await;
            let _ = client.shutdown().await;
            None
        }
        Ok(None) | Err(_) => None,
    }
}

async fn ask(client: &mut TcpStream, handshake: &mut Handshake) -> Option<Request> {
    let mut read = BytesMut::with_capacity(READ);
    loop {
        match handshake.step() {
            Step::More => {
                read.clear();
                if client.read_buf(&mut read).await.ok()? == 0 {
                    return None;
                }
                handshake.put(&read);
            }
            Step::Say(bytes) => client.write_all(&bytes).await.ok()?,
            Step::Ask(request) => return Some(request),
            Step::Leave(bytes, _) => {
                client.write_all(&bytes).await.ok()?;
                let _ = client.shutdown().await;
                return None;
            }
        }
    }
}
