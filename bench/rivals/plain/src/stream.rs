//! HTTP/1.1 and HTTP/2 over TCP and TLS, with hyper.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Failure;

pub type Http1 = conn::http1::SendRequest<Empty<Bytes>>;
pub type Http2 = conn::http2::SendRequest<Empty<Bytes>>;

/// An empty request body.
pub const EMPTY: Empty<Bytes> = Empty::new();

async fn connect_tls(
    config: &Arc<ClientConfig>,
    address: SocketAddr,
    host: String,
) -> Result<TokioIo<TlsStream<TcpStream>>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host)?;
    Ok(TokioIo::new(TlsConnector::from(config.clone()).connect(name, stream).await?))
}

pub async fn http1(
    config: &Arc<ClientConfig>,
    address: SocketAddr,
    host: String,
) -> Result<Http1, Failure> {
    let stream = connect_tls(config, address, host).await?;
    let (sender, driver) = conn::http1::handshake(stream).await?;
    tokio::spawn(driver);
    Ok(sender)
}

pub async fn http2(
    config: &Arc<ClientConfig>,
    address: SocketAddr,
    host: String,
) -> Result<Http2, Failure> {
    let stream = connect_tls(config, address, host).await?;
    let (sender, driver) = conn::http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(driver);
    Ok(sender)
}

/// Reads the whole response.
pub async fn read(response: http::Response<Incoming>) -> Result<(), Failure> {
    if response.status() != http::StatusCode::OK {
        return Err(format!("the status is {}", response.status()).into());
    }
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}
