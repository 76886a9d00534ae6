//! Servers that break off a response in the middle of its body, each in its own way.

use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use eyas::ServerIdentity;
use h2::Reason;
use http::Response;
use quinn::VarInt;
use quinn::crypto::rustls::QuicServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Eyas;

const NAME: &str = "breaking.test";

/// How a response that announces 100 bytes ends after ten.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Breaking {
    /// HTTP/1.1, in this way.
    Http1(TcpEnd),
    /// HTTP/2, in this way.
    Http2(TcpEnd),
    /// RST_STREAM (RFC 9113 §6.4).
    Http2StreamReset(Reason),
    /// GOAWAY (RFC 9113 §6.8), and the end of the connection.
    Http2GoAway(Reason),
    /// RESET_STREAM (RFC 9000 §19.4) with this code.
    Http3StreamReset(u32),
    /// CONNECTION_CLOSE (RFC 9000 §19.19) with this code.
    Http3Close(u32),
    /// The server vanishes, and the connection times out after a second.
    Http3Vanish,
    /// Nothing more is sent.
    Http3Silence,
}

/// How a TCP connection ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TcpEnd {
    /// With close_notify of TLS.
    Closed,
    /// Without it.
    Cut,
    Reset,
    /// Not at all.
    Silence,
}

/// How long everything before the end takes to arrive.
const PAUSE: Duration = Duration::from_millis(100);

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789";

impl Breaking {
    /// Starts the server, and returns a command line that gets its response.
    pub(crate) fn get(self, files: &tempfile::TempDir) -> Eyas {
        let identity = ServerIdentity::self_signed([NAME]).expect("a certificate");
        let root = BASE64_STANDARD.encode(identity.certificate());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{root}\n-----END CERTIFICATE-----\n");
        std::fs::write(files.path().join("root.pem"), pem).expect("writes");
        let (tell, port) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                match self {
                    Self::Http3StreamReset(_)
                    | Self::Http3Close(_)
                    | Self::Http3Vanish
                    | Self::Http3Silence => self.over_quic(&identity, &tell).await,
                    _ => self.over_tcp(&identity, &tell).await,
                }
            });
            // Nothing runs it any more, and its sockets stay open: it has vanished.
            std::mem::forget(runtime);
        });
        let (version, port) = (self.version(), port.recv().expect("it listens"));
        Eyas::new(&format!("get {version} https://{NAME}:{port}/ --cacert root.pem"))
            .within(files.path())
            .arg("--resolve")
            .arg(format!("{NAME}:{port}:127.0.0.1"))
    }

    fn version(self) -> &'static str {
        match self {
            Self::Http1(_) => "--http1.1",
            Self::Http2(_) | Self::Http2StreamReset(_) | Self::Http2GoAway(_) => "--http2",
            _ => "--http3-only",
        }
    }

    async fn over_tcp(self, identity: &ServerIdentity, tell: &std::sync::mpsc::Sender<u16>) {
        let mut tls = identity.server_config().expect("a configuration");
        let is_http1 = matches!(self, Self::Http1(_));
        tls.alpn_protocols = vec![if is_http1 { b"http/1.1".to_vec() } else { b"h2".to_vec() }];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        tell.send(listener.local_addr().expect("bound").port()).expect("a test");
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(tls) = acceptor.accept(tcp).await else { continue };
            match self {
                Self::Http1(end) => http1(tls, end).await,
                _ => self.http2(tls).await,
            }
        }
    }

    async fn http2(self, tls: TlsStream<TcpStream>) {
        let socket = SockRef::from(tls.get_ref().0).try_clone().expect("a descriptor");
        let mut connection = h2::server::handshake(tls).await.expect("HTTP/2");
        let Some(Ok((_request, mut respond))) = connection.accept().await else { return };
        let head = Response::builder().header("content-length", "100").body(());
        let sent = respond.send_response(head.expect("a response"), false);
        let mut send = sent.expect("an open stream");
        send.send_data(Bytes::from("0123456789"), false).expect("an open stream");
        tokio::select! {
            _ = connection.accept() => return,
            () = sleep(PAUSE) => {}
        }
        match self {
            Self::Http2StreamReset(reason) => send.send_reset(reason),
            Self::Http2GoAway(reason) => connection.abrupt_shutdown(reason),
            Self::Http2(TcpEnd::Reset) => {
                return socket.set_linger(Some(Duration::ZERO)).expect("an open socket");
            }
            Self::Http2(TcpEnd::Silence) => {}
            _ => return,
        }
        while connection.accept().await.is_some() {}
    }

    async fn over_quic(self, identity: &ServerIdentity, tell: &std::sync::mpsc::Sender<u16>) {
        let mut tls = identity.server_config().expect("a configuration");
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicServerConfig::try_from(tls).expect("a cipher suite");
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        if let Self::Http3Vanish = self {
            let mut transport = quinn::TransportConfig::default();
            transport.max_idle_timeout(Some(VarInt::from_u32(1000).into()));
            config.transport_config(Arc::new(transport));
        }
        let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into());
        let endpoint = endpoint.expect("a free port");
        tell.send(endpoint.local_addr().expect("bound").port()).expect("a test");
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else { continue };
            let Ok((mut send, mut receive)) = connection.accept_bi().await else { continue };
            let _ = receive.read(&mut [0; 2048]).await;
            // HEADERS with `:status: 200` of the static table (RFC 9204 appendix A), and DATA that
            // announces 100 bytes.
            let begun = [&[0x01, 3, 0, 0, 0xc0 | 25, 0x00, 0x40, 100], &b"0123456789"[..]].concat();
            send.write_all(&begun).await.expect("an open stream");
            sleep(PAUSE).await;
            match self {
                Self::Http3StreamReset(code) => drop(send.reset(VarInt::from_u32(code))),
                Self::Http3Close(code) => connection.close(VarInt::from_u32(code), b"enough"),
                Self::Http3Vanish => {
                    std::mem::forget((send, receive, connection, endpoint));
                    return;
                }
                _ => pending().await,
            }
            connection.closed().await;
        }
    }
}

async fn http1(mut tls: TlsStream<TcpStream>, end: TcpEnd) {
    let _ = tls.read(&mut [0; 4096]).await;
    tls.write_all(HEAD).await.expect("an open connection");
    tls.flush().await.expect("an open connection");
    sleep(PAUSE).await;
    match end {
        TcpEnd::Closed => drop(tls.shutdown().await),
        TcpEnd::Cut => {}
        TcpEnd::Reset => tls.get_ref().0.set_zero_linger().expect("an open socket"),
        TcpEnd::Silence => pending().await,
    }
}
