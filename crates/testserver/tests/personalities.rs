//! Tests of each personality.

use std::{io, net::IpAddr, time::Duration};

use bytes::Bytes;
use eyas_testserver::{ServerFaces, ServerPersonality, TestAuthority, TestServer, TransportSide};
use http::{Request, Version, header};
use tokio::{
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout},
};

/// The clients of the server's own tests.
#[expect(dead_code, reason = "not all clients are needed here")]
#[path = "../../http/tests/serve/clients.rs"]
mod clients;

use clients::{Fetched, SOON, get, h3_exchange, h3_over, http1, http2, quic_to, tls_to};

/// Long enough for anything on this machine that is not delayed on purpose.
const PATIENCE: Duration = Duration::from_millis(400);

struct Stage {
    authority: TestAuthority,
    server: TestServer,
}

async fn stage(personality: ServerPersonality) -> Stage {
    let authority = TestAuthority::new(["peer.test"]).unwrap();
    let server = personality.start(&authority).await.unwrap();
    Stage { authority, server }
}

impl Stage {
    async fn over_tcp(&self, version: Version, request: Request<Bytes>) -> Fetched {
        let alpn: &[u8] = if version == Version::HTTP_2 { b"h2" } else { b"http/1.1" };
        let exchange = async {
            let io = tls_to(self.server.local_addr(), self.authority.root(), alpn).await?;
            if version == Version::HTTP_2 {
                http2(io, request).await
            } else {
                http1(io, request).await
            }
        };
        timeout(SOON, exchange).await.expect("an end")
    }

    async fn over_quic(&self, request: Request<Bytes>) -> Fetched {
        let exchange = async {
            let conn = quic_to(self.server.local_addr(), self.authority.root()).await?;
            let (mut driver, mut send) = h3_over(conn).await;
            let driving =
                tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
            let response = h3_exchange(&mut send, request).await;
            drop(send);
            driving.abort();
            response
        };
        timeout(SOON, exchange).await.expect("an end")
    }

    async fn tcp_works(&self) {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let response = self.over_tcp(version, get("/bytes/1000")).await.expect("a response");
            assert_eq!(response.body().len(), 1000);
        }
    }

    async fn quic_works(&self) {
        let response = self.over_quic(get("/bytes/1000")).await.expect("a response");
        assert_eq!(response.body().len(), 1000);
    }
}

/// Formats an error and all its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(|cause| format!("{cause} / {cause:?}")).collect::<Vec<_>>().join(": ")
}

fn failure(outcome: Fetched) -> String {
    match outcome {
        Ok(response) => panic!("a whole response: {response:?}"),
        Err(error) => chain(&*error),
    }
}

#[tokio::test]
async fn a_healthy_server_answers_over_every_version() {
    let stage = stage(ServerPersonality::Healthy).await;
    stage.tcp_works().await;
    stage.quic_works().await;
    assert_eq!(stage.server.stats().requests(), 3);
    stage.server.shutdown(SOON).await;
}

#[tokio::test]
async fn a_server_behind_dropped_udp_announces_http3_but_never_answers_quic() {
    let stage = stage(ServerPersonality::UdpSwallowed).await;
    stage.tcp_works().await;
    let response = stage.over_tcp(Version::HTTP_2, get("/")).await.unwrap();
    let port = stage.server.local_addr().port();
    assert_eq!(response.headers()[header::ALT_SVC], format!("h3=\":{port}\"; ma=86400"));
    let quic = quic_to(stage.server.local_addr(), stage.authority.root());
    assert!(timeout(PATIENCE, quic).await.is_err(), "no answer at all");
}

#[tokio::test]
async fn a_tcp_only_server_refuses_udp_and_sends_no_alt_svc() {
    let stage = stage(ServerPersonality::TcpOnly).await;
    stage.tcp_works().await;
    let response = stage.over_tcp(Version::HTTP_2, get("/")).await.unwrap();
    assert!(!response.headers().contains_key(header::ALT_SVC));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(stage.server.local_addr()).await.unwrap();
    socket.send(b"hello").await.unwrap();
    let error = timeout(SOON, socket.recv(&mut [0; 8])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn an_http3_only_server_refuses_tcp() {
    let stage = stage(ServerPersonality::Http3Only).await;
    stage.quic_works().await;
    let error = TcpStream::connect(stage.server.local_addr()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropped_syns_leave_quic_working() {
    let stage = stage(ServerPersonality::TcpSwallowed).await;
    let tcp = TcpStream::connect(stage.server.local_addr());
    assert!(timeout(PATIENCE, tcp).await.is_err(), "no answer at all");
    stage.quic_works().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_answers_if_everything_is_dropped() {
    let stage = stage(ServerPersonality::AllSwallowed).await;
    let tcp = TcpStream::connect(stage.server.local_addr());
    assert!(timeout(PATIENCE, tcp).await.is_err(), "no answer at all");
    let quic = quic_to(stage.server.local_addr(), stage.authority.root());
    assert!(timeout(PATIENCE, quic).await.is_err(), "no answer at all");
}

#[tokio::test]
async fn slow_tcp_delays_the_handshake_but_completes() {
    let by = Duration::from_millis(200);
    let stage = stage(ServerPersonality::TcpSlow { by }).await;
    let start = Instant::now();
    let tcp = tls_to(stage.server.local_addr(), stage.authority.root(), b"h2").await;
    assert!(tcp.is_ok() && start.elapsed() >= by);
    stage.tcp_works().await;
    stage.quic_works().await;
}

#[tokio::test]
async fn slow_quic_delays_the_handshake_but_completes() {
    let by = Duration::from_millis(200);
    let stage = stage(ServerPersonality::QuicSlow { by }).await;
    let start = Instant::now();
    let quic = quic_to(stage.server.local_addr(), stage.authority.root()).await;
    assert!(quic.is_ok() && start.elapsed() >= by);
    stage.tcp_works().await;
    stage.quic_works().await;
}

#[tokio::test]
async fn silent_tcp_accepts_and_sends_nothing() {
    let stage = stage(ServerPersonality::TcpSilent).await;
    assert!(TcpStream::connect(stage.server.local_addr()).await.is_ok());
    let tls = tls_to(stage.server.local_addr(), stage.authority.root(), b"h2");
    assert!(timeout(PATIENCE, tls).await.is_err(), "accepted and silent");
    stage.quic_works().await;
}

/// Checks that the personality fails on its side with this word in the error, and works on the
/// other.
async fn assert_fails_on_each_side(
    personality: impl Fn(TransportSide) -> ServerPersonality,
    word: &str,
) {
    let on_tcp = stage(personality(TransportSide::Tcp)).await;
    let error = failure(on_tcp.over_tcp(Version::HTTP_2, get("/")).await);
    assert!(error.contains(word), "{error}");
    on_tcp.quic_works().await;
    let on_quic = stage(personality(TransportSide::Quic)).await;
    let error = failure(on_quic.over_quic(get("/")).await);
    assert!(error.contains(word), "{error}");
    on_quic.tcp_works().await;
    let on_both = stage(personality(TransportSide::Both)).await;
    for error in [
        failure(on_both.over_tcp(Version::HTTP_11, get("/")).await),
        failure(on_both.over_quic(get("/")).await),
    ] {
        assert!(error.contains(word), "{error}");
    }
}

#[tokio::test]
async fn an_untrusted_issuer_is_rejected_on_its_side_only() {
    assert_fails_on_each_side(ServerPersonality::WrongCertificate, "UnknownIssuer").await;
}

#[tokio::test]
async fn an_expired_certificate_is_rejected_on_its_side_only() {
    assert_fails_on_each_side(ServerPersonality::ExpiredCertificate, "expired").await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_rejected_on_its_side_only() {
    assert_fails_on_each_side(ServerPersonality::WrongName, "not valid for name").await;
}

#[tokio::test]
async fn a_server_without_a_common_protocol_sends_the_alert() {
    // 120 is the alert's number (RFC 7301); QUIC adds 0x100.
    let both = stage(ServerPersonality::NoCommonAlpn(TransportSide::Both)).await;
    let error = failure(both.over_tcp(Version::HTTP_2, get("/")).await);
    assert!(error.contains("NoApplicationProtocol"), "{error}");
    let error = failure(both.over_quic(get("/")).await);
    assert!(error.contains("120"), "{error}");
}

#[tokio::test]
async fn a_reset_body_ends_with_an_error_in_every_version() {
    let stage = stage(ServerPersonality::ResetInBody { after: 5000 }).await;
    stage.tcp_works().await;
    stage.quic_works().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let error = failure(stage.over_tcp(version, get("/bytes/100000")).await);
        assert!(error.contains("ConnectionReset"), "{version:?}: {error}");
    }
    let error = failure(stage.over_quic(get("/bytes/100000")).await);
    assert!(error.contains("H3_INTERNAL_ERROR"), "{error}");
}

#[tokio::test]
async fn a_truncated_body_ends_early_in_every_version() {
    let stage = stage(ServerPersonality::TruncatedBody { after: 5000 }).await;
    stage.tcp_works().await;
    stage.quic_works().await;
    let error = failure(stage.over_tcp(Version::HTTP_11, get("/bytes/100000")).await);
    assert!(
        error.contains("before message completed") || error.contains("UnexpectedEof"),
        "{error}"
    );
    let error = failure(stage.over_tcp(Version::HTTP_2, get("/bytes/100000")).await);
    assert!(error.contains("PROTOCOL_ERROR"), "{error}");
    // h3 leaves the comparison with the announced length to its user.
    let response = stage.over_quic(get("/bytes/100000")).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_LENGTH], "100000");
    assert_eq!(response.body().len(), 5000);
}

#[tokio::test]
async fn each_address_has_its_own_faces() {
    let authority = TestAuthority::new(["peer.test"]).unwrap();
    let stages: [(IpAddr, ServerFaces); 2] = [
        ("::1".parse().unwrap(), ServerPersonality::TcpSilent.faces()),
        ("127.0.0.1".parse().unwrap(), ServerPersonality::Http3Only.faces()),
    ];
    let server = TestServer::start(&authority, &stages).await.unwrap();
    let [v6, v4] = *server.local_addrs() else { panic!("two addresses") };
    assert_eq!(v6.port(), v4.port());
    assert!(TcpStream::connect(v6).await.is_ok());
    assert!(TcpStream::connect(v4).await.is_err());
    for address in [v6, v4] {
        let quic = timeout(SOON, quic_to(address, authority.root())).await.expect("an end");
        assert!(quic.is_ok(), "{address}: {quic:?}");
    }
}
