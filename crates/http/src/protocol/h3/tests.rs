//! Tests of what the end of a connection implies, over real QUIC on loopback.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use eyas::{ServerIdentity, race::evidence::FailureCause};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};

use super::*;

const LIMIT: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(3);

/// SETTINGS on the control stream.
const CONTROL: [u8; 3] = [0x00, 0x04, 0];

/// HEADERS of a 200, and half of the announced DATA.
const HALF_A_RESPONSE: [u8; 9] = [0x01, 3, 0, 0, 0xd9, 0x00, 2, b'h', 0x21];

fn localhost() -> std::net::UdpSocket {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

/// Returns a server and both ends of a connection whose client sends keep-alives if `keep_alive` is
/// true.
async fn pair(keep_alive: bool) -> (quinn::Endpoint, quinn::Connection, quinn::Connection) {
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
        .keep_alive_interval(keep_alive.then_some(IDLE / 5));
    config.transport_config(Arc::new(transport));
    let client = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a client");
    let address = server.local_addr().expect("an address");
    let connecting = client.connect_with(config, address, "localhost").expect("a target");
    let accepting = async { server.accept().await.expect("a connection").await };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    (server, ours.expect("a handshake"), theirs.expect("a handshake"))
}

/// A response that has begun, and what it needs in order to go on.
struct Answered {
    server: quinn::Endpoint,
    theirs: quinn::Connection,
    _control: quinn::SendStream,
    send: quinn::SendStream,
    _recv: quinn::RecvStream,
    _http: Http3,
    body: Body,
}

/// Sends a request over a new [`pair`], which is answered with these bytes.
async fn answered(keep_alive: bool, response: &[u8]) -> Answered {
    let (server, ours, theirs) = pair(keep_alive).await;
    let mut http = Http3::start(ours, false).expect("HTTP/3");
    let mut control = theirs.open_uni().await.expect("a stream");
    control.write_all(&CONTROL).await.expect("written");
    let request = Request::get("https://localhost/").body(Body::empty()).expect("a request");
    let answering = async {
        let (mut send, recv) = theirs.accept_bi().await.expect("a request");
        send.write_all(response).await.expect("written");
        (send, recv)
    };
    let (response, (send, recv)) = tokio::join!(http.send(request), answering);
    let body = response.map_err(|failure| failure.error).expect("a head").into_body();
    Answered { server, theirs, _control: control, send, _recv: recv, _http: http, body }
}

/// Reads half a body, calls `end`, and returns the error of the rest of the body.
async fn interrupted(
    keep_alive: bool,
    end: impl FnOnce(&quinn::Endpoint, &quinn::Connection),
) -> Error {
    let Answered { server, theirs, body, .. } =
        &mut answered(keep_alive, &HALF_A_RESPONSE[..8]).await;
    let half = body.chunk().await.expect("a chunk");
    assert_eq!(half.as_deref(), Some(&b"h"[..]));
    end(server, theirs);
    let rest = tokio::time::timeout(LIMIT, body.chunk()).await.expect("an end");
    rest.expect_err("cut short")
}

#[tokio::test]
async fn a_peer_that_leaves_pings_unanswered_is_silent() {
    let unreachable =
        interrupted(true, |server, _| server.rebind(localhost()).expect("another port")).await;
    assert_eq!(
        (unreachable.kind(), unreachable.path_failure()),
        (Kind::BodyReset, Some(FailureCause::Silent)),
        "{unreachable}"
    );
}

#[tokio::test]
async fn silence_without_an_unanswered_ping_is_not_evidence() {
    let idle = interrupted(false, |_, _| ()).await;
    assert_eq!((idle.kind(), idle.path_failure()), (Kind::BodyReset, None), "{idle}");
}

#[tokio::test]
async fn a_close_by_the_peer_is_not_evidence_about_the_path() {
    let closed = interrupted(true, |_, conn| conn.close(0x100_u32.into(), b"enough")).await;
    assert_eq!((closed.kind(), closed.path_failure()), (Kind::BodyReset, None), "{closed}");
}

/// Of what has arrived, each packet would otherwise cost a turn of everything above.
#[tokio::test]
async fn packets_that_have_arrived_are_read_together() {
    const BODY: usize = 40_000;
    /// The head of a DATA frame of this length.
    const DATA: [u8; 5] = [0x00, 0x80, 0x00, 0x9c, 0x40];
    let Answered { body, send, .. } = &mut answered(false, &HALF_A_RESPONSE[..5]).await;
    send.write_all(&DATA).await.expect("written");
    send.write_all(&[7; BODY]).await.expect("written");
    send.finish().expect("open");
    // All of it is acknowledged, so it has arrived.
    let stopped = tokio::time::timeout(LIMIT, send.stopped()).await.expect("acknowledged");
    assert_eq!(stopped, Ok(None));
    let (mut chunks, mut bytes) = (0, 0);
    while let Some(chunk) = body.chunk().await.expect("complete") {
        (chunks, bytes) = (chunks + 1, bytes + chunk.len());
    }
    assert_eq!(bytes, BODY);
    assert!(chunks <= 8, "{chunks} chunks of {} packets", BODY / 1452);
}
