//! Clients for every version of HTTP, each on its own connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use eyas_http::serve::{Running, ServerBuilder};
use http::{Method, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quinn::crypto::rustls::QuicClientConfig;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// A generous bound for anything that must happen at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The version of HTTP, with or without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speak {
    PlainHttp1,
    PlainHttp2,
    Http1,
    Http2,
    Http3,
}

impl Speak {
    pub(crate) const SECURE: [Self; 3] = [Self::Http1, Self::Http2, Self::Http3];
    pub(crate) const PLAIN: [Self; 2] = [Self::PlainHttp1, Self::PlainHttp2];

    pub(crate) fn version(self) -> Version {
        match self {
            Self::PlainHttp1 | Self::Http1 => Version::HTTP_11,
            Self::PlainHttp2 | Self::Http2 => Version::HTTP_2,
            Self::Http3 => Version::HTTP_3,
        }
    }

    fn alpn(self) -> &'static [u8] {
        match self.version() {
            Version::HTTP_2 => b"h2",
            Version::HTTP_3 => b"h3",
            _ => b"http/1.1",
        }
    }
}

pub(crate) async fn start(builder: ServerBuilder) -> Running {
    builder.start().await.expect("the server starts")
}

pub(crate) fn get(path: &str) -> Request<Bytes> {
    request(Method::GET, path, "")
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let uri = format!("https://localhost{path}");
    Request::builder().method(method).uri(uri).body(body.into()).expect("a valid request")
}

/// Sends one request on a new connection, and returns the complete response.
pub(crate) async fn fetch(
    running: &Running,
    speak: Speak,
    request: Request<Bytes>,
) -> Response<Bytes> {
    let exchange = async {
        let address = running.local_addr();
        match speak {
            Speak::PlainHttp1 => http1(tcp(address).await, request).await,
            Speak::PlainHttp2 => http2(tcp(address).await, request).await,
            Speak::Http1 => http1(tls(running, speak.alpn()).await, request).await,
            Speak::Http2 => http2(tls(running, speak.alpn()).await, request).await,
            Speak::Http3 => http3(running, request).await,
        }
    };
    let response = tokio::time::timeout(SOON, exchange).await.expect("an answer in time");
    let response = response.expect("a whole response");
    assert_eq!(response.version(), speak.version());
    response
}

pub(crate) async fn tcp(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

pub(crate) async fn tls(running: &Running, alpn: &[u8]) -> TlsStream<TcpStream> {
    let root = running.identity().expect("a server with TLS").certificate();
    tls_to(running.local_addr(), root, alpn).await.expect("a TLS handshake")
}

/// Connects over TLS to `localhost`, trusting only `root`.
pub(crate) async fn tls_to(
    address: SocketAddr,
    root: &CertificateDer<'static>,
    alpn: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let connector = tokio_rustls::TlsConnector::from(Arc::new(trust(root, alpn)));
    let name = ServerName::try_from("localhost").expect("a name");
    connector.connect(name, TcpStream::connect(address).await?).await
}

/// Returns a client configuration of TLS that trusts only `root`.
pub(crate) fn trust(root: &CertificateDer<'static>, alpn: &[u8]) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

pub(crate) async fn http1<T>(io: T, request: Request<Bytes>) -> Fetched
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut send, conn) =
        hyper::client::conn::http1::handshake(TokioIo::new(io)).await.expect("a connection");
    tokio::spawn(conn);
    let (mut parts, body) = request.into_parts();
    parts.headers.insert("host", "localhost".parse().expect("a value"));
    let path = parts.uri.path_and_query().expect("a path").as_str().to_owned();
    parts.uri = path.parse().expect("a path");
    let request = Request::from_parts(parts, Full::new(body));
    gather(send.send_request(request).await?).await
}

pub(crate) async fn http2<T>(io: T, request: Request<Bytes>) -> Fetched
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let executor = TokioExecutor::new();
    let (mut send, conn) = hyper::client::conn::http2::handshake(executor, TokioIo::new(io))
        .await
        .expect("a connection");
    tokio::spawn(conn);
    gather(send.send_request(request.map(Full::new)).await?).await
}

/// A complete response, or an error.
pub(crate) type Fetched = Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>>;

async fn gather(response: Response<hyper::body::Incoming>) -> Fetched {
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(parts, body))
}

pub(crate) type H3Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
pub(crate) type H3Driver = h3::client::Connection<h3_quinn::Connection, Bytes>;

/// Opens an HTTP/3 connection, to be driven by the caller.
pub(crate) async fn quic(running: &Running) -> (quinn::Connection, H3Driver, H3Sender) {
    let root = running.identity().expect("a server with TLS").certificate();
    let conn = quic_to(running.local_addr(), root).await.expect("a QUIC handshake");
    let (driver, send) = h3_over(conn.clone()).await;
    (conn, driver, send)
}

/// Connects over QUIC to `localhost`, trusting only `root`.
pub(crate) async fn quic_to(
    address: SocketAddr,
    root: &CertificateDer<'static>,
) -> Result<quinn::Connection, quinn::ConnectionError> {
    let crypto = QuicClientConfig::try_from(trust(root, b"h3")).expect("a QUIC configuration");
    let local = match address {
        SocketAddr::V4(_) => SocketAddr::from(([127, 0, 0, 1], 0)),
        SocketAddr::V6(_) => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0)),
    };
    let mut endpoint = quinn::Endpoint::client(local).expect("an endpoint");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    endpoint.connect(address, "localhost").expect("a valid target").await
}

pub(crate) async fn h3_over(conn: quinn::Connection) -> (H3Driver, H3Sender) {
    h3::client::builder()
        .send_grease(false)
        .build(h3_quinn::Connection::new(conn))
        .await
        .expect("an HTTP/3 connection")
}

async fn http3(running: &Running, request: Request<Bytes>) -> Fetched {
    let (_conn, mut driver, mut send) = quic(running).await;
    let exchange = async { h3_exchange(&mut send, request).await };
    let driving = std::future::poll_fn(|cx| driver.poll_close(cx));
    tokio::select! {
        response = exchange => response,
        error = driving => panic!("the connection ended: {error}"),
    }
}

pub(crate) async fn h3_exchange(send: &mut H3Sender, request: Request<Bytes>) -> Fetched {
    let (parts, body) = request.into_parts();
    let mut stream = send.send_request(Request::from_parts(parts, ())).await?;
    if !body.is_empty() {
        stream.send_data(body).await?;
    }
    stream.finish().await?;
    let response = stream.recv_response().await?;
    let mut body = BytesMut::new();
    while let Some(mut data) = stream.recv_data().await? {
        let length = data.remaining();
        body.extend_from_slice(&data.copy_to_bytes(length));
    }
    let (mut parts, ()) = response.into_parts();
    // h3 leaves the version of responses at its default.
    parts.version = Version::HTTP_3;
    Ok(Response::from_parts(parts, body.freeze()))
}

/// Sends raw bytes and reads to the end of the connection.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = tcp(address).await;
    let exchange = async {
        // The server may close while this is still being written.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::time::timeout(SOON, exchange).await.expect("an answer in time")
}
