//! UDP through another proxy by CONNECT-UDP, on loopback.

mod stage;

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use eyas::race::policy::Policy;
use eyas::{Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::serve::SctpService;
use eyas_http::{Client, Connected, Versions};
use eyas_proxy::internals::capsule::{self, CapsuleReader};
use eyas_proxy::internals::datagram;
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{ClientEnding, DatagramReport, DropReason, ProxyBuilder, ProxyLimits};
use eyas_relay::destination::RequestRefusal;
use eyas_relay::handshake::HandshakeProtocol;
use eyas_relay::rules::DestinationRules;
use eyas_relay::via::UpstreamProxy;
use eyas_sctp_tokio::SctpListener;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;

use stage::{Stage, TIMEOUT};

/// Starts a server that returns each datagram.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut received = vec![0; 65_535];
        while let Ok((length, from)) = socket.recv_from(&mut received).await {
            let _ = socket.send_to(&received[..length], from).await;
        }
    });
    address
}

impl Stage {
    /// Returns a SOCKS5 client with an association.
    async fn associate(&self) -> SocksClient {
        let mut tcp = TcpStream::connect(self.running.local_addr()).await.expect("it listens");
        tcp.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.expect("writes");
        let mut reply = [0; 12];
        tcp.read_exact(&mut reply).await.expect("a reply");
        assert_eq!(reply[..4], [5, 0, 5, 0]);
        let ip: [u8; 4] = reply[6..10].try_into().expect("four");
        let at = SocketAddr::new(ip.into(), u16::from_be_bytes([reply[10], reply[11]]));
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
        SocksClient { tcp, socket, at }
    }
}

struct SocksClient {
    tcp: TcpStream,
    socket: UdpSocket,
    at: SocketAddr,
}

impl SocksClient {
    async fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.at).await.expect("sends");
    }

    async fn receive(&self) -> Vec<u8> {
        let mut received = vec![0; 65_535];
        let receiving = timeout(TIMEOUT, self.socket.recv(&mut received)).await;
        received.truncate(receiving.expect("in time").expect("reads"));
        received
    }
}

fn to_name(name: &str, port: u16, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    [&[0, 0, 0, 3, length], name.as_bytes(), &port.to_be_bytes(), data].concat()
}

/// Starts a proxy that uses another one at this port, and trusts its certificate.
fn near(trusted: &CertificateDer<'static>, port: u16, user: &str, versions: Versions) -> Stage {
    // Nothing listens at the first address: connections to a proxy are raced as well.
    let both = vec![IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding("proxy.test", port, both))
        .security(SecurityParameters::platform().with_roots([trusted.clone()]))
        .build()
        .expect("an endpoint");
    let via = UpstreamProxy::parse(&format!("https://{user}@proxy.test:{port}")).expect("a proxy");
    Stage::new(endpoint, |proxy| proxy.via(via.versions(versions)))
}

/// Starts a proxy that uses another one only over SCTP inside UDP.
fn near_over_sctp(far: &FarProxy, user: &str) -> Stage {
    let proxy = &far.stage.running;
    let port = proxy.local_addr().port();
    let sctp = proxy.sctp().and_then(SctpListener::encapsulation_port).expect("SCTP inside UDP");
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding(
            "proxy.test",
            port,
            vec![Ipv4Addr::LOCALHOST.into()],
        ))
        .security(SecurityParameters::platform().with_roots([far.trusted.clone()]))
        .sctp_encapsulation_port(sctp)
        .build()
        .expect("an endpoint");
    let via = UpstreamProxy::parse(&format!("https://{user}@proxy.test:{port}")).expect("a proxy");
    let via = via.versions(Versions::HTTP_1).sctp(true);
    // `sctp` adds its transports to these, which would otherwise be TCP.
    let policy = Policy { transports: Vec::new(), ..Policy::default() };
    Stage::new(endpoint, |proxy| proxy.policy(policy).via(via))
}

/// The other proxy, with the user `ada`. Only it resolves `name.test`, and it denies port 1.
struct FarProxy {
    stage: Stage,
    trusted: CertificateDer<'static>,
}

impl FarProxy {
    fn new(name_port: u16) -> Self {
        let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
        let trusted = identity.certificate().clone();
        let users = ProxyUsers::parse("ada:love\n").expect("users");
        let sctp = SctpService::with_free_port();
        let stage = with_name(name_port, |proxy| proxy.users(users).security(identity).sctp(sctp));
        Self { stage, trusted }
    }

    fn near(&self, user: &str, versions: Versions) -> Stage {
        near(&self.trusted, self.stage.running.local_addr().port(), user, versions)
    }
}

/// Starts a proxy that resolves `name.test` at this port and at port 1, which it denies.
fn with_name(port: u16, set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Stage {
    let here = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    let resolver = Resolver::system().overriding("name.test", port, here.clone()).overriding(
        "name.test",
        1,
        here,
    );
    let endpoint = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
    let rules = DestinationRules {
        deny: vec!["*:1".parse().expect("a pattern")],
        ..DestinationRules::default()
    };
    Stage::new(endpoint, |proxy| set(proxy.rules(rules)))
}

/// ```text
/// client ── UDP ASSOCIATE ──▶ near ── CONNECT-UDP ──▶ far ── UDP ──▶ destination
/// ```
async fn exchange_datagrams(near: &Stage, far: &Stage, server: SocketAddr, what: &str) {
    let client = near.associate().await;
    let mut bytes = 0;
    for data in [&b"hello"[..], b"", &[7; 1400], &[8; 9000]] {
        client.send(&datagram::write(server, data)).await;
        assert_eq!(client.receive().await, datagram::write(server, data), "{what}");
        // Answers from a name have that name.
        let sent = to_name("name.test", server.port(), data);
        client.send(&sent).await;
        assert_eq!(client.receive().await, sent, "{what}");
        bytes += data.len() as u64;
    }
    drop(client.tcp);
    let report = near.report().await;
    assert_eq!(
        (report.sent, report.received, &report.end),
        (2 * bytes, 2 * bytes, &ClientEnding::Done)
    );
    let datagrams = report.datagrams.expect("it requested UDP");
    assert_eq!((datagrams.sent, datagrams.received, datagrams.refusal), (8, 8, None), "{what}");
    assert_eq!(datagrams.dropped.iter().sum::<u64>(), 0, "{what}");
    for _ in 0..2 {
        let report = far.report().await;
        assert_eq!((report.sent, report.received), (bytes, bytes), "{what}");
        assert_eq!(
            (report.protocol, &report.end),
            (Some(HandshakeProtocol::ConnectUdp), &ClientEnding::Done)
        );
        let datagrams = report.datagrams.expect("it requested UDP");
        assert_eq!((datagrams.sent, datagrams.received), (4, 4), "{what}");
        assert_eq!(report.destination.expect("one").port, server.port());
    }
}

//= rfc9297 §2.2
//# over HTTP/1.1 and HTTP/2 datagrams are capsules
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_through_another_proxy_over_each_version() {
    for (versions, what) in
        [(Versions::HTTP_3, "HTTP/3"), (Versions::HTTP_2, "HTTP/2"), (Versions::HTTP_1, "HTTP/1.1")]
    {
        let server = echo().await;
        let far = FarProxy::new(server.port());
        exchange_datagrams(&far.near("ada:love", versions), &far.stage, server, what).await;
        assert_eq!(far.stage.running.stats().protocols[HandshakeProtocol::ConnectUdp as usize], 2);
    }
}

/// ```text
/// client ── UDP ASSOCIATE ──▶ near ── CONNECT-UDP over SCTP ──▶ far ── UDP ──▶ destination
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_an_association_go_through_another_proxy_over_sctp() {
    let server = echo().await;
    let far = FarProxy::new(server.port());
    let near = near_over_sctp(&far, "ada:love");
    exchange_datagrams(&near, &far.stage, server, "SCTP").await;
    let datagrams =
        refused(&near_over_sctp(&far, "ada:hate"), &datagram::write(server, b"x")).await;
    assert!(datagrams.refusal.expect("it was refused").to_string().contains("407"));
}

/// ```text
/// client ── CONNECT-UDP ──▶ near ── CONNECT-UDP over SCTP ──▶ far ── UDP ──▶ destination
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_a_tunnel_go_through_another_proxy_over_sctp() {
    let server = echo().await;
    let far = FarProxy::new(server.port());
    let near = near_over_sctp(&far, "ada:love");
    let path = format!("/.well-known/masque/udp/name.test/{}/", server.port());
    let (mut tcp, head) = request(&near, &path, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let mut capsules = CapsuleReader::default();
    for data in [&b"hello"[..], b"", &[7; 9000]] {
        let mut sent = BytesMut::new();
        capsule::write(&mut sent, data);
        tcp.write_all(&sent).await.expect("writes");
        assert_eq!(next(&mut tcp, &mut capsules).await, data);
    }
    tcp.shutdown().await.expect("ends");
    assert_eq!(timeout(TIMEOUT, tcp.read(&mut [0; 9])).await.expect("ends").expect("well"), 0);
    for report in [near.report().await, far.stage.report().await] {
        assert_eq!((report.sent, report.received, report.end), (9005, 9005, ClientEnding::Done));
        assert_eq!(report.protocol, Some(HandshakeProtocol::ConnectUdp));
    }
    let (_tcp, head) = request(&near, "/.well-known/masque/udp/name.test/1/", UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    assert!(head.contains("proxy-status: eyas; error=http_request_denied;"), "{head}");
}

//= rfc9298 §7
//# amplification is limited per client
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_and_associations_share_a_limit() {
    let server = echo().await;
    let limits = ProxyLimits { associations: 1, ..ProxyLimits::default() };
    let stage = with_name(server.port(), |proxy| proxy.limits(limits));
    let path = format!("/.well-known/masque/udp/name.test/{}/", server.port());
    let (tcp, head) = request(&stage, &path, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(stage.running.stats().associations, 1);

    let (_second, head) = request(&stage, &path, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
    let status = "proxy-status: eyas; error=connection_limit_reached; details=\"the proxy serves";
    assert!(head.contains(status), "{head}");
    let mut socks = TcpStream::connect(stage.running.local_addr()).await.expect("it listens");
    socks.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.expect("writes");
    let mut reply = [0; 12];
    socks.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(reply[..4], [5, 0, 5, 1], "a general failure, as SOCKS has no better code");

    drop(tcp);
    while stage.running.stats().associations > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let association = stage.associate().await;
    assert_eq!(stage.running.stats().associations, 1);
    let (_third, head) = request(&stage, &path, UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    drop(association);
}

//= rfc9297 §3.5
//# a datagram too long for a packet is sent as a capsule
//= rfc9298 §5, §6.1
//# a datagram that does not fit a frame is a capsule; none waits for others
/// A client that sends only QUIC DATAGRAM frames also receives them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http3_quic_datagrams_are_used_too() {
    let server = echo().await;
    let far = FarProxy::new(server.port());
    let port = far.stage.running.local_addr().port();
    let here = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding("proxy.test", port, here))
        .security(SecurityParameters::platform().with_roots([far.trusted.clone()]))
        .build()
        .expect("an endpoint");
    let client = Client::builder().endpoint(endpoint).proxy(eyas_http::Proxy::none()).tunnels(true);
    let client = client.versions(Versions::HTTP_3).build().expect("a client");
    let url = format!("https://proxy.test:{port}");
    let target = format!("{url}/.well-known/masque/udp/127.0.0.1/{}/", server.port());
    // `ada:love`, encoded as RFC 7617 requires.
    let request = http::Request::get(target).header("proxy-authorization", "Basic YWRhOmxvdmU=");
    let request = request.body(()).expect("a request");
    let upgraded = client.upgrade(&url, "connect-udp", request, TIMEOUT).await.expect("an answer");
    let Connected::Tunnel(mut tunnel) = upgraded else { panic!("{upgraded:?}") };
    let mut datagrams = tunnel.datagrams().expect("they are on offer");
    // A datagram with an unknown context is dropped.
    assert!(datagrams.send(&[b"\x02no"]));
    for data in [&b"hello"[..], b"", &[7; 1000]] {
        assert!(datagrams.send(&[b"\0", data]));
        let received = timeout(TIMEOUT, poll_fn(|cx| datagrams.poll_next(cx))).await;
        assert_eq!(received.expect("in time"), [b"\0", data].concat());
    }
    assert!(!datagrams.send(&[&[7; 9000]]), "it is too long for a packet");
    tunnel.shutdown().await.expect("ends");
    let report = far.stage.report().await;
    assert_eq!((report.sent, report.received, report.end), (1005, 1005, ClientEnding::Done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_through_another_proxy_unencrypted_and_through_two() {
    let server = echo().await;
    let far = with_name(server.port(), |proxy| proxy);
    let behind = |stage: &Stage| {
        let via = UpstreamProxy::parse(&format!("http://{}", stage.running.local_addr()))
            .expect("a proxy");
        let endpoint = Endpoint::builder().build().expect("an endpoint");
        Stage::new(endpoint, |proxy| proxy.via(via))
    };
    let middle = behind(&far);
    exchange_datagrams(&middle, &far, server, "one").await;
    exchange_datagrams(&behind(&middle), &far, server, "two").await;
}

/// Returns the report of an association through which this was sent, and which lasted until the other proxy had
/// refused it.
async fn refused(near: &Stage, sent: &[u8]) -> DatagramReport {
    // The refusal is reported only when the association is over.
    let mut waited = Duration::from_millis(50);
    loop {
        let client = near.associate().await;
        client.send(sent).await;
        tokio::time::sleep(waited).await;
        drop(client.tcp);
        let datagrams = near.report().await.datagrams.expect("it requested UDP");
        if datagrams.refusal.is_some() {
            return datagrams;
        }
        waited *= 2;
        assert!(waited < TIMEOUT, "it is never refused");
    }
}

//= rfc9298 §3.1, §3.5
//# a refusal is reported with Proxy-Status, and its datagrams are dropped
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_by_the_other_proxy_is_reported_and_its_datagrams_dropped() {
    let server = echo().await;
    let denied = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    for (versions, user, to, status, why) in [
        (Versions::HTTP_3, "ada:love", denied, "403", DropReason::NotAllowed),
        (Versions::HTTP_2, "ada:love", denied, "403", DropReason::NotAllowed),
        (Versions::HTTP_1, "ada:love", denied, "403", DropReason::NotAllowed),
        (Versions::HTTP_3, "ada:hate", server, "407", DropReason::Unreachable),
        (Versions::HTTP_2, "ada:hate", server, "407", DropReason::Unreachable),
        (Versions::HTTP_1, "ada:hate", server, "407", DropReason::Unreachable),
    ] {
        let far = FarProxy::new(server.port());
        let near = far.near(user, versions);
        let datagrams = refused(&near, &datagram::write(to, b"hello")).await;
        // Associations that were over too early have other reports.
        loop {
            let end = far.stage.report().await.end;
            if matches!(
                end,
                ClientEnding::Refused(RequestRefusal::NotAllowed(_) | RequestRefusal::NoUser)
            ) {
                break;
            }
        }
        let refusal = datagrams.refusal.expect("it was refused").to_string();
        assert!(refusal.contains(status) && refusal.contains("CONNECT-UDP"), "{refusal}");
        assert!(!refusal.contains("hate"), "{refusal}");
        assert!(datagrams.dropped[why as usize] > 0, "{refusal}");
        assert_eq!((datagrams.sent, datagrams.received), (0, 0), "{refusal}");
    }
}

//= rfc9298 §3.4
//# a proxy without extended CONNECT is named
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_without_extended_connect_is_named() {
    let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
    let mut config = identity.server_config().expect("a key");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(tls) = acceptor.accept(stream).await else { continue };
            let mut connection = h2::server::handshake(tls).await.expect("HTTP/2");
            tokio::spawn(async move { while let Some(Ok(_)) = connection.accept().await {} });
        }
    });
    let near = near(identity.certificate(), port, "ada:love", Versions::HTTP_2);
    let datagrams = refused(&near, &to_name("name.test", 53, b"hello")).await;
    let refusal = datagrams.refusal.expect("it was refused").to_string();
    assert!(refusal.contains("extended CONNECT") && refusal.contains("name.test:53"), "{refusal}");
}

/// Requests datagrams from an unencrypted proxy, and returns the connection and the head of the response.
async fn request(stage: &Stage, target: &str, fields: &str) -> (TcpStream, String) {
    let mut tcp = TcpStream::connect(stage.running.local_addr()).await.expect("it listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: proxy.test\r\n{fields}\r\n");
    tcp.write_all(request.as_bytes()).await.expect("writes");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(TIMEOUT, tcp.read_u8()).await.expect("it answers").expect("reads"));
    }
    (tcp, String::from_utf8(head).expect("text"))
}

//= rfc9298 §7
//# a target that does not answer QUIC is refused for a while
/// Unanswered HTTP/3 is refused the next time, but not protocols that expect no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_does_not_answer_quic_is_refused_for_a_while() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let port = silent.local_addr().expect("bound").port();
    let stage = with_name(port, |proxy| proxy);
    let path = format!("/.well-known/masque/udp/name.test/{port}/");
    let long_header = [0xc3; 1200];
    for (data, then) in [(&b"syslog"[..], "101 "), (&long_header, "504 ")] {
        let (mut tcp, head) = request(&stage, &path, UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let mut sent = BytesMut::new();
        capsule::write(&mut sent, data);
        tcp.write_all(&sent).await.expect("writes");
        let mut received = [0; 2000];
        timeout(TIMEOUT, silent.recv(&mut received)).await.expect("in time").expect("reads");
        // Longer than a tunnel must last to count.
        tokio::time::sleep(Duration::from_millis(150)).await;
        drop(tcp);
        let report = stage.report().await;
        assert_eq!(report.received, 0);
        let (tcp, head) = request(&stage, &path, UPGRADE).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {then}")), "{head}");
        drop(tcp);
        stage.report().await;
    }
    let (_tcp, head) = request(&stage, &path.replace("name.test", "127.0.0.1"), UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "another destination: {head}");
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: connect-udp\r\nCapsule-Protocol: ?1\r\n";

async fn next(tcp: &mut TcpStream, capsules: &mut CapsuleReader) -> Vec<u8> {
    loop {
        if let Some(payload) = capsules.datagram().expect("capsules") {
            return payload.to_vec();
        }
        let mut read = [0; 1000];
        let length = timeout(TIMEOUT, tcp.read(&mut read)).await.expect("in time").expect("reads");
        assert!(length > 0, "it ended");
        capsules.receive(&read[..length]);
    }
}

//= rfc9298 §3.2, §3.3
//# HTTP/1.1: GET with Upgrade, 101
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http1_connection_carries_capsules_until_the_client_disconnects() {
    let server = echo().await;
    let stage = with_name(server.port(), |proxy| proxy);
    let path = format!("/.well-known/masque/udp/name.test/{}/", server.port());
    for target in [path.clone(), format!("https://proxy.test{path}")] {
        let (mut tcp, head) = request(&stage, &target, UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let fields = head.to_ascii_lowercase();
        for field in ["upgrade: connect-udp", "connection: upgrade", "capsule-protocol: ?1"] {
            assert!(fields.contains(field), "{head}");
        }
        // An unknown capsule, a datagram with an unknown context, and a datagram, split anywhere.
        let mut sent = BytesMut::from(&b"\x17\x03abc\0\x03\x02no"[..]);
        capsule::write(&mut sent, b"hello");
        let mut capsules = CapsuleReader::default();
        for byte in sent {
            tcp.write_all(&[byte]).await.expect("writes");
        }
        assert_eq!(next(&mut tcp, &mut capsules).await, b"hello");
        tcp.shutdown().await.expect("leaves");
        assert_eq!(timeout(TIMEOUT, tcp.read(&mut [0; 9])).await.expect("ends").expect("well"), 0);
        let report = stage.report().await;
        assert_eq!((report.sent, report.received, report.end), (5, 5, ClientEnding::Done));
    }
}

//= rfc9298 §3.1, §3.2
//# a malformed request gets 4xx
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_or_broken_client_is_disconnected() {
    let server = echo().await;
    let stage = with_name(server.port(), |proxy| proxy);
    let path = format!("/.well-known/masque/udp/{}/{}/", server.ip(), server.port());
    // A datagram without a context, and an incomplete one.
    for sent in [&b"\0\0"[..], b"\0\x09\0half"] {
        let (mut tcp, head) = request(&stage, &path, UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        tcp.write_all(sent).await.expect("writes");
        tcp.shutdown().await.expect("leaves");
        let _ = timeout(TIMEOUT, tcp.read(&mut [0; 9])).await.expect("it ends");
        assert!(matches!(stage.report().await.end, ClientEnding::Client(_)));
    }
    for (target, fields, status) in [
        ("/.well-known/masque/udp/name.test/0/", UPGRADE, "400"),
        ("/.well-known/masque/udp/name.test/", UPGRADE, "400"),
        ("/.well-known/masque/udp/127.0.0.1/1/", UPGRADE, "403"),
        (&path, "Upgrade: connect-udp\r\n", "400"),
        (&path, "Connection: upgrade\r\nUpgrade: connect-ip\r\n", "400"),
    ] {
        let (tcp, head) = request(&stage, target, fields).await;
        drop(tcp);
        assert_eq!(head.split(' ').nth(1), Some(status), "{target} {head}");
        assert!(matches!(stage.report().await.end, ClientEnding::Refused(_)));
    }
}

//= rfc9298 §3.1
//# idle tunnels SHOULD stay for two minutes: an hour, `--idle-time`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_bounded_and_an_idle_one_is_disconnected() {
    // It answers each datagram with ten.
    let server = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = server.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut received = [0; 2000];
        while let Ok((_, from)) = server.recv_from(&mut received).await {
            for _ in 0..10 {
                let _ = server.send_to(&[7; 60_000], from).await;
            }
        }
    });
    let limits = ProxyLimits { idle_time: Duration::from_secs(2), ..ProxyLimits::default() };
    let stage = with_name(1, |proxy| proxy.limits(limits));
    let path = format!("/.well-known/masque/udp/127.0.0.1/{}/", address.port());
    let (mut tcp, _) = request(&stage, &path, UPGRADE).await;
    for _ in 0..1000 {
        let mut sent = BytesMut::new();
        capsule::write(&mut sent, b"more");
        tcp.write_all(&sent).await.expect("the proxy keeps reading");
    }
    let report = stage.report().await;
    assert_eq!(report.end, ClientEnding::Idle);
    let datagrams = report.datagrams.expect("it requested UDP");
    assert!(datagrams.sent > 0);
    // The buffers of the connection's sockets, and the data that waits for them.
    assert!(report.received < 50_000_000, "{}", report.received);
    assert!(report.received > 60_000, "{}", report.received);
}
