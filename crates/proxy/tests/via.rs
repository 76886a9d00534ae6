//! A proxy behind a proxy, on loopback.

mod stage;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use eyas::{Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::Versions;
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{ClientEnding, ProxyBuilder, ProxyLimits, WonBy};
use eyas_relay::rules::DestinationRules;
use eyas_relay::via::UpstreamProxy;
use tokio::io::copy_bidirectional;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;

use stage::{Stage, TIMEOUT};

impl Stage {
    /// Requests a destination by SOCKS5, and returns the client and the reply code.
    async fn socks(&self, name: &str, port: u16) -> (TcpStream, u8) {
        let mut client = TcpStream::connect(self.running.local_addr()).await.expect("it listens");
        let length = u8::try_from(name.len()).expect("short");
        let mut request = [&[5, 1, 0, 5, 1, 0, 3, length], name.as_bytes()].concat();
        request.extend(port.to_be_bytes());
        client.write_all(&request).await.expect("writes");
        let mut reply = [0; 12];
        client.read_exact(&mut reply).await.expect("a reply");
        (client, reply[3])
    }
}

/// Two proxies: the near one uses the far one over TLS and with a password. Only the far one resolves `name.test`.
struct Chain {
    near: Stage,
    far: Stage,
    trusted: CertificateDer<'static>,
    port: u16,
}

impl Chain {
    fn new(name_port: u16, user: &str) -> Self {
        let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
        let trusted = identity.certificate().clone();
        let local = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::system().overriding("name.test", name_port, local.clone());
        let far = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
        let users = ProxyUsers::parse("ada:love:lace\n").expect("users");
        let far = Stage::new(far, |proxy| proxy.users(users).security(identity));
        let port = far.running.local_addr().port();
        let near = near(trusted.clone(), (port, user), |via| via, ProxyLimits::default());
        Self { near, far, trusted, port }
    }

    /// Starts another near one, with the right password and the current port of the far one.
    fn another_near(&self, set: impl FnOnce(UpstreamProxy) -> UpstreamProxy) -> Stage {
        near(self.trusted.clone(), (self.port, "ada:love%3Alace"), set, ProxyLimits::default())
    }
}

/// Starts a proxy that uses another one at this port, and trusts its certificate.
fn near(
    trusted: CertificateDer<'static>,
    to: (u16, &str),
    set: impl FnOnce(UpstreamProxy) -> UpstreamProxy,
    limits: ProxyLimits,
) -> Stage {
    stage_via(trusted, to, |proxy, via| proxy.via(set(via)).limits(limits))
}

/// Starts a proxy that `set` tells to use another one at this port.
fn stage_via(
    trusted: CertificateDer<'static>,
    (port, user): (u16, &str),
    set: impl FnOnce(ProxyBuilder, UpstreamProxy) -> ProxyBuilder,
) -> Stage {
    // Nothing listens at the first address: connections to a proxy are raced as well.
    let both = vec![IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding("proxy.test", port, both))
        .security(SecurityParameters::platform().with_roots([trusted]));
    let via = UpstreamProxy::parse(&format!("https://{user}@proxy.test:{port}")).expect("a proxy");
    let endpoint = endpoint.build().expect("an endpoint");
    Stage::new(endpoint, |proxy| set(proxy, via))
}

/// Starts a server that sends a greeting, and then returns the data of the client.
async fn greeting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(b"220 hello ").await.expect("writes");
                let mut received = Vec::new();
                // A client may reset its connection.
                if stream.read_to_end(&mut received).await.is_ok() {
                    stream.write_all(&received).await.expect("writes");
                }
            });
        }
    });
    address
}

async fn converse(client: &mut TcpStream) -> Vec<u8> {
    client.write_all(b"bytes").await.expect("writes");
    client.shutdown().await.expect("ends");
    let mut read = Vec::new();
    let reading = client.read_to_end(&mut read);
    tokio::time::timeout(TIMEOUT, reading).await.expect("it ends").expect("reads");
    read
}

/// ```text
/// client ── SOCKS5 ──▶ near ── CONNECT over TLS, as ada ──▶ far ──▶ name.test
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_is_reached_through_another_proxy() {
    let server = greeting().await;
    let chain = Chain::new(server.port(), "ada:love%3Alace");
    let (mut client, code) = chain.near.socks("name.test", server.port()).await;
    assert_eq!(code, 0);
    assert_eq!(converse(&mut client).await, b"220 hello bytes");
    let (near, far) = (chain.near.report().await, chain.far.report().await);
    assert_eq!((near.sent, near.received, near.end), (5, 15, ClientEnding::Done));
    assert_eq!(near.won_by, Some(WonBy::Transport));
    let proxy = chain.far.running.local_addr();
    assert_eq!(near.connection.expect("a connection").remote, proxy);
    assert_eq!((far.sent, far.received, far.end), (5, 15, ClientEnding::Done));
    assert_eq!(far.user.as_deref(), Some("ada"));
    assert_eq!(far.connection.expect("a connection").remote, server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_by_the_other_proxy_is_reported() {
    let server = greeting().await;
    let chain = Chain::new(server.port(), "ada:wrong");
    assert_eq!(chain.near.socks("name.test", server.port()).await.1, 1);
    let ClientEnding::Refused(why) = chain.near.report().await.end else {
        panic!("it was refused")
    };
    assert!(why.to_string().contains("407"), "{why}");
    assert!(!why.to_string().contains("wrong"), "{why}");
    let chain = Chain::new(server.port(), "ada:love%3Alace");
    // Nothing listens at port 1 of this machine.
    assert_eq!(chain.near.socks("127.0.0.1", 1).await.1, 4);
}

/// Names are looked up by the other proxy, so a rule that denies everything else must deny them by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_apply_to_names_that_the_other_proxy_looks_up() {
    let server = greeting().await;
    let chain = Chain::new(server.port(), "ada:love%3Alace");
    let near = |allow: &str| {
        let rules = |text: &str| vec![text.parse().expect("a pattern")];
        let rules = DestinationRules {
            allow: rules(allow),
            deny: rules("*"),
            ..DestinationRules::default()
        };
        let user = (chain.port, "ada:love%3Alace");
        stage_via(chain.trusted.clone(), user, |proxy, via| proxy.via(via).rules(rules))
    };
    const NOT_ALLOWED: u8 = 2;
    for (allow, expected) in
        [("*.test", 0), ("*.ok.test", NOT_ALLOWED), ("127.0.0.0/8", NOT_ALLOWED)]
    {
        let near = near(allow);
        assert_eq!(near.socks("name.test", server.port()).await.1, expected, "{allow}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_tls_is_refused_where_tls_is_expected() {
    let chain = Chain::new(1, "ada:x");
    let mut socks = TcpStream::connect(chain.far.running.local_addr()).await.expect("it listens");
    socks.write_all(b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50").await.expect("writes");
    // It may get a TLS alert.
    let _ =
        tokio::time::timeout(TIMEOUT, socks.read_to_end(&mut Vec::new())).await.expect("it ends");
    let ClientEnding::Refused(why) = chain.far.report().await.end else { panic!("it was refused") };
    assert!(why.to_string().contains("does not speak TLS"), "{why}");
    let mut plain = TcpStream::connect(chain.far.running.local_addr()).await.expect("it listens");
    plain.write_all(b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("writes");
    let mut read = String::new();
    let reading = tokio::time::timeout(TIMEOUT, plain.read_to_string(&mut read));
    reading.await.expect("it ends").expect("an end, not a reset");
    let is_told = read.starts_with("HTTP/1.1 400 ") && read.contains("This port speaks TLS");
    assert!(is_told, "{read}");
    drop(plain);
    let ClientEnding::Refused(why) = chain.far.report().await.end else { panic!("it was refused") };
    assert!(why.to_string().contains("does not speak TLS"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_destinations_share_a_connection_of_each_version_that_can() {
    for (versions, alpn, shares) in [
        (Versions::HTTP_3, "h3", true),
        (Versions::HTTP_2, "h2", true),
        (Versions::HTTP_1, "http/1.1", false),
    ] {
        let server = greeting().await;
        let mut chain = Chain::new(server.port(), "ada:love%3Alace");
        chain.near = chain.another_near(|via| via.versions(versions));
        let mut clients = Vec::new();
        for _ in 0..3 {
            let (client, code) = chain.near.socks("name.test", server.port()).await;
            assert_eq!(code, 0, "{alpn}");
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(converse(client).await, b"220 hello bytes", "{alpn}");
        }
        let reports =
            [chain.near.report().await, chain.near.report().await, chain.near.report().await];
        let races = reports.iter().filter(|report| report.race.is_some()).count();
        assert_eq!(races, if shares { 1 } else { 3 }, "{alpn}");
        for report in reports {
            assert_eq!((report.sent, report.received, report.end), (5, 15, ClientEnding::Done));
            assert_eq!(report.connection.expect("one").alpn.as_deref(), Some(alpn));
        }
        for _ in 0..3 {
            let far = chain.far.report().await;
            assert_eq!((far.sent, far.received, far.end), (5, 15, ClientEnding::Done), "{alpn}");
            assert_eq!(far.user.as_deref(), Some("ada"), "{alpn}");
        }
    }
}

/// Starts a server that resets a connection on its first byte.
async fn resetting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read_u8().await;
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
        }
    });
    address
}

//= rfc9114 §4.4
//# CONNECT over HTTP/3 is what it is over HTTP/2: credentials, refusals, and the end of each direction
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_and_ends_are_the_same_over_http2_and_http3() {
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let server = greeting().await;
        let chain = Chain::new(server.port(), "ada:love%3Alace");
        let over = |via: UpstreamProxy| via.versions(versions);
        for user in ["ada:wrong", "eve:love%3Alace"] {
            let to = (chain.port, user);
            let near = near(chain.trusted.clone(), to, over, ProxyLimits::default());
            assert_eq!(near.socks("name.test", server.port()).await.1, 1, "{versions:?}");
            let ClientEnding::Refused(why) = near.report().await.end else { panic!("{user}") };
            let why = why.to_string();
            assert!(why.contains("407") && why.contains("name.test"), "{versions:?}: {why}");
            assert!(!why.contains("wrong") && !why.contains("lace"), "{versions:?}: {why}");
            let end = chain.far.report().await.end;
            assert!(matches!(end, ClientEnding::Refused(_)), "{versions:?}: {end:?}");
        }
        let near = chain.another_near(over);
        // Nothing listens at port 1 of this machine.
        assert_eq!(near.socks("127.0.0.1", 1).await.1, 4, "{versions:?}");
        assert!(matches!(near.report().await.end, ClientEnding::Refused(_)));
        assert!(matches!(chain.far.report().await.end, ClientEnding::Refused(_)));
        // What a client has sent before its end arrives, and so does the answer.
        let (mut client, code) = near.socks("name.test", server.port()).await;
        assert_eq!((code, converse(&mut client).await), (0, b"220 hello bytes".to_vec()));
        assert_eq!(near.report().await.end, ClientEnding::Done, "{versions:?}");
        assert_eq!(chain.far.report().await.end, ClientEnding::Done, "{versions:?}");
        // A destination that resets its connection, and a client that does.
        let (mut client, code) = near.socks("127.0.0.1", resetting().await.port()).await;
        assert_eq!(code, 0, "{versions:?}");
        client.write_all(b"x").await.expect("open");
        let read = tokio::time::timeout(TIMEOUT, client.read_to_end(&mut Vec::new())).await;
        read.expect("it ends").expect_err("it was reset");
        let ends = [near.report().await.end, chain.far.report().await.end];
        assert!(
            ends.iter().all(|end| matches!(end, ClientEnding::Destination(_))),
            "{versions:?}: {ends:?}"
        );
        let (mut client, code) = near.socks("name.test", server.port()).await;
        assert_eq!(code, 0, "{versions:?}");
        // Before the destination is connected, a client that resets its connection has only left.
        client.read_exact(&mut [0; "220 hello ".len()]).await.expect("a greeting");
        socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("a socket");
        drop(client);
        let ends = [near.report().await.end, chain.far.report().await.end];
        assert!(
            ends.iter().all(|end| matches!(end, ClientEnding::Client(_))),
            "{versions:?}: {ends:?}"
        );
    }
}

/// A middlebox between two proxies, which forwards TCP, and swallows UDP.
struct Middlebox {
    port: u16,
    _swallows: UdpSocket,
    cut_signal: tokio::sync::watch::Sender<u32>,
}

impl Middlebox {
    async fn new(to: SocketAddr) -> Self {
        let (listener, swallows) = loop {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
            let address = listener.local_addr().expect("bound");
            if let Ok(udp) = UdpSocket::bind(address).await {
                break (listener, udp);
            }
        };
        let port = listener.local_addr().expect("bound").port();
        let (cut_signal, cuts) = tokio::sync::watch::channel(0);
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let mut cuts = cuts.clone();
                cuts.mark_unchanged();
                connections.spawn(async move {
                    let mut server = TcpStream::connect(to).await.expect("it listens");
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { port, _swallows: swallows, cut_signal }
    }

    /// Cuts all current connections.
    fn cut(&self) {
        self.cut_signal.send_modify(|cuts| *cuts += 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_udp_http2_is_used_and_a_broken_connection_is_replaced() {
    let server = greeting().await;
    let mut chain = Chain::new(server.port(), "ada:love%3Alace");
    let middlebox = Middlebox::new(chain.far.running.local_addr()).await;
    chain.port = middlebox.port;
    chain.near = chain.another_near(|via| via);
    let (mut kept, code) = chain.near.socks("name.test", server.port()).await;
    assert_eq!(code, 0);
    let mut greeted = [0; 10];
    kept.read_exact(&mut greeted).await.expect("it is carried");
    middlebox.cut();
    let mut rest = Vec::new();
    let reading = tokio::time::timeout(TIMEOUT, kept.read_to_end(&mut rest));
    assert!(reading.await.expect("it ends").is_err(), "a cut connection is reset");
    let report = chain.near.report().await;
    assert!(matches!(report.end, ClientEnding::Destination(_)), "{:?}", report.end);
    assert_eq!(report.connection.expect("one").alpn.as_deref(), Some("h2"));

    let (mut client, code) = chain.near.socks("name.test", server.port()).await;
    assert_eq!(code, 0, "over a new connection");
    assert_eq!(converse(&mut client).await, b"220 hello bytes");
    let report = chain.near.report().await;
    assert_eq!(report.end, ClientEnding::Done);
    assert_eq!(report.connection.expect("one").alpn.as_deref(), Some("h2"));
}

/// Starts a server that handles each connection over TLS with `alpn` in this way.
async fn custom_proxy<F>(
    alpn: &[u8],
    handle: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
) -> (CertificateDer<'static>, u16)
where
    F: Future<Output = ()> + Send + 'static,
{
    let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
    let mut config = identity.server_config().expect("a key");
    config.alpn_protocols = vec![alpn.to_vec()];
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(tls) = acceptor.accept(stream).await {
                tokio::spawn(handle(tls));
            }
        }
    });
    (identity.certificate().clone(), port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_proxy_response_is_reported_with_the_destination() {
    let (trusted, port) = custom_proxy(b"http/1.1", |mut tls| async move {
        let _ = tls.write_all(b"\x00\xffno HTTP at all\r\n\r\n").await;
        let _ = tls.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let stage = near(trusted, (port, "ada:x"), |via| via, ProxyLimits::default());
    for _ in 0..2 {
        assert_eq!(stage.socks("name.test", 80).await.1, 1);
        let ClientEnding::Refused(why) = stage.report().await.end else { panic!("it was refused") };
        let why = why.to_string();
        assert!(why.contains("https://proxy.test:") && why.contains("name.test:80"), "{why}");
    }
}

//= hostile proxy
//# informational responses of a proxy without end
//= bound: `MAX_INFORMATIONAL`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_informational_responses_of_a_proxy_are_an_error() {
    async fn hint_for_ever(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin) {
        // What comes before a request is no response to it.
        let _ = stream.read(&mut [0; 4096]).await;
        let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
        while stream.write_all(&hints).await.is_ok() {}
    }
    let (trusted, port) = custom_proxy(b"http/1.1", hint_for_ever).await;
    let over_tls = near(trusted, (port, "ada:x"), |via| via, ProxyLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let via = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(hint_for_ever(stream));
        }
    });
    let via = UpstreamProxy::parse(&via).expect("a proxy");
    let endpoint = Endpoint::builder().build().expect("an endpoint");
    let plain = Stage::new(endpoint, |proxy| proxy.via(via));
    for stage in [over_tls, plain] {
        assert_eq!(stage.socks("name.test", 80).await.1, 1);
        let ClientEnding::Refused(why) = stage.report().await.end else { panic!("it was refused") };
        let expected = "more than 16 informational responses arrived without a final one";
        assert!(why.to_string().contains(expected), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_never_answers_does_not_hold_up_the_others() {
    // Requests for `silent.test` are never answered.
    let (trusted, port) = custom_proxy(b"h2", |tls| async move {
        let mut connection = h2::server::handshake(tls).await.expect("HTTP/2");
        let mut ignored = Vec::new();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            if request.uri().host() != Some("silent.test") {
                let forbidden = http::Response::builder().status(403).body(()).expect("valid");
                respond.send_response(forbidden, true).expect("sends");
            }
            ignored.push((request, respond));
        }
    })
    .await;
    let stage = near(trusted.clone(), (port, "ada:x"), |via| via, ProxyLimits::default());
    let (address, name) =
        (stage.running.local_addr(), b"\x05\x01\x00\x05\x01\x00\x03\x0bsilent.test\0\x50");
    let mut silent = TcpStream::connect(address).await.expect("it listens");
    silent.write_all(name).await.expect("writes");
    assert_eq!(stage.socks("name.test", 80).await.1, 2);
    let ClientEnding::Refused(why) = stage.report().await.end else { panic!("it was refused") };
    assert!(why.to_string().contains("403"), "{why}");
    drop(silent);
    assert_eq!(stage.report().await.end, ClientEnding::Left);

    // The limit applies to the wait for an answer.
    let limits = ProxyLimits { connect_time: Duration::from_secs(2), ..ProxyLimits::default() };
    let stage = near(trusted, (port, "ada:x"), |via| via, limits);
    assert_eq!(stage.socks("silent.test", 80).await.1, 6);
    let ClientEnding::Refused(why) = stage.report().await.end else { panic!("it was refused") };
    assert!(why.to_string().contains("https://proxy.test:"), "{why}");
}

/// Forwards UDP between a client and a server that can be replaced; returns its port, and the server's.
async fn path_to(server: u16) -> (u16, Arc<AtomicU16>) {
    let inside = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let outside = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let port = inside.local_addr().expect("bound").port();
    let server = Arc::new(AtomicU16::new(server));
    let to = Arc::clone(&server);
    tokio::spawn(async move {
        let (mut there, mut back, mut client) = ([0; 65_536], [0; 65_536], None);
        loop {
            tokio::select! {
                Ok((size, from)) = inside.recv_from(&mut there) => {
                    client = Some(from);
                    let server = (Ipv4Addr::LOCALHOST, to.load(Ordering::SeqCst));
                    let _ = outside.send_to(&there[..size], server).await;
                }
                Ok((size, from)) = outside.recv_from(&mut back) => {
                    if let Some(client) = client && from.port() == to.load(Ordering::SeqCst) {
                        let _ = inside.send_to(&back[..size], client).await;
                    }
                }
            }
        }
    });
    (port, server)
}

/// The other proxy restarts; the connection that tunnels share is dead and does not know it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_is_raced_where_the_other_proxy_has_restarted() {
    let server = greeting().await;
    let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
    let far = || {
        let local = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::system().overriding("name.test", server.port(), local);
        let endpoint = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
        Stage::new(endpoint, |proxy| proxy.security(identity.clone()))
    };
    let (before, after) = (far(), far());
    let (port, to) = path_to(before.running.local_addr().port()).await;
    let trusted = identity.certificate().clone();
    let set = |via: UpstreamProxy| via.versions(Versions::HTTP_3);
    let near = near(trusted, (port, "ada:secret"), set, ProxyLimits::default());
    let (mut client, code) = near.socks("name.test", server.port()).await;
    assert_eq!((code, converse(&mut client).await), (0, b"220 hello bytes".to_vec()));
    to.store(after.running.local_addr().port(), Ordering::SeqCst);
    // Without a race, the connection would time out after 30 s.
    let again =
        tokio::time::timeout(Duration::from_secs(20), near.socks("name.test", server.port()));
    let (mut client, code) = again.await.expect("it does not hang");
    assert_eq!((code, converse(&mut client).await), (0, b"220 hello bytes".to_vec()));
    assert_eq!(after.report().await.end, ClientEnding::Done);
}
