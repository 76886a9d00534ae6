//! What the end of a connection tells, over real QUIC on loopback.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use eyas::{ServerIdentity, race::evidence::Cause};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};

use super::*;

const SOON: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(3);

/// SETTINGS on the control stream.
const CONTROL: [u8; 3] = [0x00, 0x04, 0];

/// HEADERS of a 200, and half of what is announced as DATA.
const HALF: [u8; 9] = [0x01, 3, 0, 0, 0xd9, 0x00, 2, b'h', 0x21];

fn localhost() -> std::net::UdpSocket {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

/// A server and a connection of a client that is `asking` or not when it hears nothing.
async fn pair(asking: bool) -> (quinn::Endpoint, quinn::Connection, quinn::Connection) {
    let identity = ServerIdentity::self_signed(["localhost"]).expect("an identity");
    let mut tls = identity.server_config().expect("a configuration");
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicServerConfig::try_from(tls).expect("a cipher suite");
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let server = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into());
    let server = server.expect("a server");

    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicClientConfig::try_from(tls).expect("a cipher suite");
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_idle_timeout(Some(IDLE.try_into().expect("a limit")))
        .keep_alive_interval(asking.then_some(IDLE / 5));
    config.transport_config(Arc::new(transport));
    let client = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a client");
    let address = server.local_addr().expect("an address");
    let connecting = client.connect_with(config, address, "localhost").expect("a target");
    let accepting = async { server.accept().await.expect("one").await };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    (server, ours.expect("a handshake"), theirs.expect("a handshake"))
}

/// Reads half a body, lets `end` happen, and gives what the rest of the body says.
async fn cut(asking: bool, end: impl FnOnce(&quinn::Endpoint, &quinn::Connection)) -> Error {
    let (server, ours, theirs) = pair(asking).await;
    let mut http = Http3::start(ours, false).await.expect("HTTP/3");
    let mut control = theirs.open_uni().await.expect("a stream");
    control.write_all(&CONTROL).await.expect("a stream that takes it");
    let request = Request::get("https://localhost/").body(Body::empty()).expect("a request");
    let answering = async {
        let (mut send, recv) = theirs.accept_bi().await.expect("a request");
        send.write_all(&HALF[..8]).await.expect("a stream that takes it");
        (send, recv)
    };
    let (response, _streams) = tokio::join!(http.send(request), answering);
    let mut body = response.map_err(|failure| failure.error).expect("a head").into_body();
    let half = body.chunk().await.expect("a chunk");
    assert_eq!(half.as_deref(), Some(&b"h"[..]));
    end(&server, &theirs);
    let rest = tokio::time::timeout(SOON, body.chunk()).await.expect("an end");
    rest.expect_err("cut short")
}

#[tokio::test]
async fn a_peer_that_leaves_requests_unanswered_is_broken() {
    let gone = cut(true, |server, _| server.rebind(localhost()).expect("another port")).await;
    assert_eq!((gone.kind(), gone.broke()), (Kind::BodyReset, Some(Cause::Silent)), "{gone}");
}

#[tokio::test]
async fn silence_without_a_request_is_no_evidence() {
    let quiet = cut(false, |_, _| ()).await;
    assert_eq!((quiet.kind(), quiet.broke()), (Kind::BodyReset, None), "{quiet}");
}

#[tokio::test]
async fn a_peer_that_closes_is_no_evidence_about_the_path() {
    let closed = cut(true, |_, conn| conn.close(0x100_u32.into(), b"enough")).await;
    assert_eq!((closed.kind(), closed.broke()), (Kind::BodyReset, None), "{closed}");
}
