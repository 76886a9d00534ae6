//! The proxy from the point of view of its clients, on loopback.

#[path = "../../eyas/tests/ports/mod.rs"]
mod ports;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, Resolver};
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{
    ClientEnding, Proxy, ProxyBuilder, ProxyClientReport, ProxyError, ProxyLimits, RunningProxy,
    WonBy,
};
use eyas_relay::rules::DestinationRules;
use eyas_testserver::{ServerPersonality, TestAuthority};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Long enough for anything here; what takes longer has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Stage {
    running: RunningProxy,
    reports: Receiver<ProxyClientReport>,
    endpoint: Endpoint,
}

impl Stage {
    /// Starts a proxy that resolves `name.test` at this port to both loopback addresses.
    fn new(port: u16, set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Self {
        let both = vec![IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
        Self::with(Resolver::system().overriding("name.test", port, both), set)
    }

    /// Starts a proxy with this resolver.
    fn with(resolver: Resolver, set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Self {
        let endpoint = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
        let (sender, reports) = channel();
        let builder = Proxy::builder(endpoint.clone()).reports(move |report| {
            // The test may be over already.
            let _ = sender.send(report);
        });
        let running = set(builder).start().expect("a proxy");
        Self { running, reports, endpoint }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.running.local_addr()).await.expect("the proxy listens")
    }

    /// Requests `name.test` by SOCKS5, and returns the client and the reply code.
    async fn socks(&self, port: u16) -> (TcpStream, u8) {
        let mut client = self.client().await;
        let mut request = b"\x05\x01\x00\x05\x01\x00\x03\x09name.test".to_vec();
        request.extend(port.to_be_bytes());
        client.write_all(&request).await.expect("writes");
        let mut reply = [0; 12];
        client.read_exact(&mut reply).await.expect("a reply");
        assert_eq!(reply[..3], [5, 0, 5]);
        (client, reply[3])
    }

    fn report(&self) -> ProxyClientReport {
        self.reports.recv_timeout(TIMEOUT).expect("a report")
    }
}

/// Returns listeners on both loopback addresses, at one port.
async fn both() -> (TcpListener, TcpListener, u16) {
    let port = ports::own_port();
    let six = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.expect("IPv6 on loopback");
    let four = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("the port is ours");
    (six, four, port)
}

/// Answers the first data of each client with `prefix` and that data, and then closes the connection.
fn answering(listener: TcpListener, prefix: &'static [u8]) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = vec![0; 4096];
                let length = stream.read(&mut received).await.expect("reads");
                stream.write_all(&[prefix, &received[..length]].concat()).await.expect("writes");
                stream.shutdown().await.expect("ends");
                // With unread data the system would reset the connection.
                let _ = stream.read_to_end(&mut received).await;
            });
        }
    });
}

/// Accepts clients, and sends nothing until they leave.
fn silent(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
}

/// A ClientHello without extensions.
fn client_hello() -> Vec<u8> {
    let mut message = vec![1, 0, 0, 41, 3, 3];
    message.extend([7; 32]);
    message.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    let mut flight = vec![22, 3, 1, 0, u8::try_from(message.len()).expect("short")];
    flight.extend(message);
    flight
}

async fn read_all(client: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    tokio::time::timeout(TIMEOUT, client.read_to_end(&mut read))
        .await
        .expect("ends")
        .expect("reads");
    read
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socks5_client_reaches_its_destination() {
    let (six, _four, port) = both().await;
    answering(six, b"heard ");
    let stage = Stage::new(port, |proxy| proxy);
    let (mut client, code) = stage.socks(port).await;
    assert_eq!(code, 0);
    client.write_all(b"hello").await.unwrap();
    assert_eq!(read_all(&mut client).await, b"heard hello");
    drop(client);
    let report = stage.report();
    assert_eq!((report.sent, report.received, report.end), (5, 11, ClientEnding::Done));
    assert_eq!(report.won_by, Some(WonBy::Transport));
    assert_eq!(stage.running.stats().protocols, [1, 0, 0, 0, 0, 0]);
}

//= hostile proxy
//# a destination that never answers, or accepts and stays silent
//= bound: `connect_time`
/// ```text
/// 0      ::1 ──▶       accepts, receives the ClientHello, and sends nothing
/// 250    127.0.0.1 ──▶ accepts, receives the same, and answers: it wins
/// later  ::1           is remembered as silent
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_accepts_and_stays_silent_does_not_win() {
    let (six, four, port) = both().await;
    silent(six);
    answering(four, b"");
    let stage = Stage::new(port, |proxy| proxy);
    let (mut client, code) = stage.socks(port).await;
    assert_eq!(code, 0);
    client.write_all(&client_hello()).await.unwrap();
    assert_eq!(read_all(&mut client).await, client_hello());
    drop(client);
    let report = stage.report();
    assert_eq!((report.won_by, report.end), (Some(WonBy::FirstByte), ClientEnding::Done));
    assert_eq!(report.sent, client_hello().len() as u64);
    assert!(report.connection.expect("a connection").remote.is_ipv4());
    let name = TargetHost::parse("name.test").expect("a name");
    let target = Target::plain(name, port, vec![Transport::Tcp], Security::None);
    let began = std::time::Instant::now();
    loop {
        let plan = stage.endpoint.preconnection(target.clone()).plan().await;
        if plan.entries[0].candidate.address.is_ipv4() {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "nothing was learnt: {:?}", plan.entries);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_client_hello_the_first_transport_to_connect_wins() {
    let (six, four, port) = both().await;
    answering(six, b"six ");
    answering(four, b"four ");
    let stage = Stage::new(port, |proxy| proxy);
    let early_data = [
        &[22, 3, 1, 0, 51, 1, 0, 0, 47, 3, 3][..],
        &[7; 32],
        &[0, 0, 2, 0x13, 1, 1, 0],
        &[0, 4, 0, 42, 0, 0],
    ]
    .concat();
    for first in [&b"EHLO me\r\n"[..], &early_data] {
        let (mut client, _) = stage.socks(port).await;
        client.write_all(first).await.unwrap();
        assert_eq!(read_all(&mut client).await, [&b"six "[..], first].concat());
        drop(client);
        assert_eq!(stage.report().won_by, Some(WonBy::Transport));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_first_wins() {
    let (six, _four, port) = both().await;
    tokio::spawn(async move {
        let (mut stream, _) = six.accept().await.expect("accepts");
        stream.write_all(b"220 ready\r\n").await.expect("writes");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.expect("reads");
        stream.write_all(&received).await.expect("writes");
    });
    let stage = Stage::new(port, |proxy| proxy);
    let (mut client, _) = stage.socks(port).await;
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
    client.write_all(b"QUIT").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, b"QUIT");
    assert_eq!(stage.report().end, ClientEnding::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_gets_the_cause() {
    let (six, four, port) = both().await;
    drop((six, four));
    let stage = Stage::new(port, |proxy| proxy);
    assert_eq!(stage.socks(port).await.1, 5, "nothing listens");
    let mut client = stage.client().await;
    let request = format!("CONNECT name.test:{port} HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let response = String::from_utf8(read_all(&mut client).await).expect("text");
    assert!(
        response.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && response.contains("refused"),
        "{response}"
    );
    let status =
        "\r\nproxy-status: eyas; error=connection_refused; details=\"cannot connect to name";
    assert!(response.contains(status), "{response}");
    let rules = DestinationRules {
        deny: vec!["*".parse().expect("a pattern")],
        ..DestinationRules::default()
    };
    let stage = Stage::new(port, |proxy| proxy.rules(rules));
    assert_eq!(stage.socks(port).await.1, 2, "by its addresses");
    let rules = DestinationRules {
        deny: vec!["name.test".parse().expect("a pattern")],
        ..DestinationRules::default()
    };
    let stage = Stage::new(port, |proxy| proxy.rules(rules));
    assert_eq!(stage.socks(port).await.1, 2, "by its name");
}

/// Starts a DNS server that answers every query with this response code (RFC 1035 §4.1.1), or no answer.
async fn dns(code: Option<u8>) -> Resolver {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let address = socket.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let Some(code) = code else { continue };
            let name = buffer[12..length].iter().position(|octet| *octet == 0).expect("a name");
            let mut answer = buffer[..12 + name + 1 + 4].to_vec();
            answer[2..4].copy_from_slice(&[0x81, 0x80 | code]);
            // Only the question.
            answer[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
            let _ = socket.send_to(&answer, from).await;
        }
    });
    Resolver::server(address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_name_is_distinguished_from_a_dns_timeout() {
    let (no_such_name, server_failure) = (3, 2);
    for (code, socks, status, error) in [
        (Some(no_such_name), 4, "502 ", "dns_error"),
        (Some(server_failure), 4, "502 ", "dns_error"),
        (None, 6, "504 ", "dns_timeout"),
    ] {
        let connect_time = Duration::from_millis(if code.is_some() { 30_000 } else { 300 });
        let limits = ProxyLimits { connect_time, ..ProxyLimits::default() };
        let stage = Stage::with(dns(code).await, |proxy| proxy.limits(limits));
        assert_eq!(stage.socks(443).await.1, socks, "{code:?}");
        let mut client = stage.client().await;
        client.write_all(b"CONNECT name.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
        let response = String::from_utf8(read_all(&mut client).await).expect("text");
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{code:?}: {response}");
        assert!(response.contains(&format!("eyas; error={error};")), "{code:?}: {response}");
        let ClientEnding::Refused(why) = stage.report().end else { panic!("{code:?}: no refusal") };
        assert_eq!(why.name(), if code.is_some() { "dns" } else { "timeout" }, "{code:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_never_answers_is_given_up() {
    let limits =
        || ProxyLimits { connect_time: Duration::from_millis(500), ..ProxyLimits::default() };
    let authority = TestAuthority::new(["name.test"]).expect("an authority");
    let server = ServerPersonality::AllSwallowed.start(&authority).await.expect("a server");
    let port = server.local_addr().port();
    let resolver =
        Resolver::system().overriding("name.test", port, vec![Ipv4Addr::LOCALHOST.into()]);
    let stage = Stage::with(resolver, |proxy| proxy.limits(limits()));
    assert_eq!(stage.socks(port).await.1, 6, "no SYN ACK");
    assert!(matches!(stage.report().end, ClientEnding::Refused(_)));
    let (six, four, port) = both().await;
    silent(six);
    silent(four);
    let stage = Stage::new(port, |proxy| proxy.limits(limits()));
    let (mut client, reply) = stage.socks(port).await;
    assert_eq!(reply, 0);
    client.write_all(&client_hello()).await.unwrap();
    let read = tokio::time::timeout(TIMEOUT, client.read(&mut [0])).await.expect("an end");
    let error = read.expect_err("an end would look as if the server had ended it");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(matches!(stage.report().end, ClientEnding::Unanswered(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_ends_the_race() {
    let (six, four, port) = both().await;
    drop(four);
    let stage = Stage::new(port, |proxy| proxy);
    let (mut client, _) = stage.socks(port).await;
    client.write_all(&client_hello()).await.unwrap();
    let (mut server, _) = six.accept().await.unwrap();
    let mut received = vec![0; client_hello().len()];
    server.read_exact(&mut received).await.unwrap();
    drop(client);
    assert_eq!(stage.report().end, ClientEnding::Left);
    assert_eq!(
        tokio::time::timeout(TIMEOUT, server.read(&mut received)).await.unwrap().unwrap(),
        0
    );
}

//= hostile proxy
//# a request smuggled behind another
//= bound: `MAX_DISCARDED`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_a_url_is_forwarded_and_nothing_after_it() {
    let (six, _four, port) = both().await;
    tokio::spawn(async move {
        let (mut stream, _) = six.accept().await.expect("accepts");
        let mut received = Vec::new();
        while !received.ends_with(b"hi") {
            stream.read_buf(&mut received).await.expect("reads");
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        stream.write_all(&[answer, &received[..]].concat()).await.expect("writes");
    });
    let stage = Stage::new(port, |proxy| proxy);
    let mut client = stage.client().await;
    let request = format!(
        "POST http://name.test:{port}/x HTTP/1.1\r\nHost: y\r\nContent-Length: 2\r\n\r\nhi\
         GET http://elsewhere.test/ HTTP/1.1\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let response = String::from_utf8(read_all(&mut client).await).expect("text");
    let forwarded = format!(
        "okPOST /x HTTP/1.1\r\nHost: name.test:{port}\r\nContent-Length: 2\r\n\
         Connection: close\r\n\r\nhi"
    );
    assert!(response.ends_with(&forwarded), "{response}");
    drop(client);
    assert_eq!(stage.report().end, ClientEnding::Done);
}

/// Sends a long request before it reads anything, as simple clients do; returns the response.
async fn upload(stage: &Stage, port: u16) -> String {
    const LENGTH: usize = 12_000_000;
    let mut client = stage.client().await;
    let head =
        format!("POST http://name.test:{port}/ HTTP/1.1\r\nContent-Length: {LENGTH}\r\n\r\n");
    client.write_all(head.as_bytes()).await.expect("the head is sent");
    // Whoever refuses it does so before the rest.
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.write_all(&vec![b'.'; LENGTH]).await.expect("the whole request is taken");
    let (mut response, mut piece) = (Vec::new(), [0; 4096]);
    while !response.ends_with(b"\n") {
        match client.read(&mut piece).await {
            Ok(some @ 1..) => response.extend_from_slice(&piece[..some]),
            end => panic!("{end:?} after {:?}", String::from_utf8_lossy(&response)),
        }
    }
    String::from_utf8(response).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_before_the_end_of_the_request_arrives() {
    let (six, four, port) = both().await;
    let rules = DestinationRules {
        deny: vec!["name.test".parse().expect("a pattern")],
        ..DestinationRules::default()
    };
    let stage = Stage::new(port, |proxy| proxy.rules(rules));
    let denied = tokio::time::timeout(TIMEOUT, upload(&stage, port)).await.expect("no hang");
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    drop(four);
    // One that ends the connection with a reset, because it has not read everything.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = six.accept().await {
            let _ = stream.read(&mut [0; 16]).await;
            let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 10\r\n\r\ntoo large\n";
            stream.write_all(answer).await.expect("writes");
        }
    });
    let stage = Stage::new(port, |proxy| proxy);
    let refused = tokio::time::timeout(TIMEOUT, upload(&stage, port)).await.expect("no hang");
    assert!(refused.starts_with("HTTP/1.1 413 ") && refused.ends_with("too large\n"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_by_the_destination_is_not_taken_for_its_end() {
    let (six, _four, port) = both().await;
    tokio::spawn(async move {
        let (mut stream, _) = six.accept().await.expect("accepts");
        stream.read_u8().await.expect("reads");
        stream.write_all(b"half").await.expect("writes");
        stream.set_zero_linger().expect("can be reset");
    });
    let stage = Stage::new(port, |proxy| proxy);
    let (mut client, _) = stage.socks(port).await;
    client.write_all(b"x").await.unwrap();
    let mut read = Vec::new();
    let error = client.read_to_end(&mut read).await.expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(matches!(stage.report().end, ClientEnding::Destination(_)));
}

//= hostile proxy
//# a client that sends nothing, or slowly; an idle connection
//= bound: `handshake_time`, `idle_time`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_have_limits() {
    let (six, _four, port) = both().await;
    silent(six);
    let limits = ProxyLimits {
        connections: 2,
        handshake_time: Duration::from_millis(50),
        idle_time: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let stage = Stage::new(port, |proxy| proxy.limits(limits));
    let mut slow = stage.client().await;
    slow.write_all(b"\x05").await.unwrap();
    assert_eq!(read_all(&mut slow).await, b"");
    assert!(matches!(stage.report().end, ClientEnding::Refused(_)));
    let (mut idle, _) = stage.socks(port).await;
    idle.write_all(b"x").await.unwrap();
    assert!(idle.read(&mut [0]).await.is_err(), "it is reset");
    assert_eq!(stage.report().end, ClientEnding::Idle);
    let stage = Stage::new(port, |proxy| {
        proxy.limits(ProxyLimits { connections: 2, ..ProxyLimits::default() })
    });
    let (_first, _) = stage.socks(port).await;
    let (_second, _) = stage.socks(port).await;
    let mut third = stage.client().await;
    assert!(matches!(third.read(&mut [0]).await, Ok(0) | Err(_)));
    assert_eq!(stage.running.stats().over_limit, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_proxy_does_not_start() {
    let endpoint = Endpoint::builder().build().expect("an endpoint");
    let everywhere: SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let refused = Proxy::builder(endpoint.clone()).listen(everywhere).start();
    assert!(matches!(refused, Err(ProxyError::Open(_))), "{refused:?}");
    let users = ProxyUsers::parse("ada:lace\n").expect("users");
    let running = Proxy::builder(endpoint).listen(everywhere).users(users).start();
    assert_eq!(running.expect("a proxy").shutdown().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_stops_lets_clients_finish_and_then_cuts_them() {
    let (six, _four, port) = both().await;
    silent(six);
    let limits = ProxyLimits { grace: Duration::from_millis(200), ..ProxyLimits::default() };
    let stage = Stage::new(port, |proxy| proxy.limits(limits));
    let (mut client, _) = stage.socks(port).await;
    client.write_all(b"x").await.unwrap();
    let address = stage.running.local_addr();
    assert_eq!(stage.running.shutdown().await, 1);
    assert!(TcpStream::connect(address).await.is_err());
    assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_clients_races_and_bytes() {
    let (six, _four, port) = both().await;
    answering(six, b"");
    let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let stage = Stage::new(port, |proxy| proxy.metrics(local));
    let (mut client, _) = stage.socks(port).await;
    client.write_all(b"hello").await.unwrap();
    read_all(&mut client).await;
    drop(client);
    stage.report();
    let page = scrape(stage.running.metrics_addr().expect("an address")).await;
    for row in [
        "eyas_proxy_connections_accepted_total 1",
        "eyas_proxy_clients_total{protocol=\"socks5\"} 1",
        "eyas_proxy_ended_total{end=\"done\"} 1",
        "eyas_proxy_races_won_total{by=\"transport\"} 1",
        "eyas_proxy_bytes_total{direction=\"received\"} 5",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
}

async fn scrape(metrics: SocketAddr) -> String {
    let mut scraper = TcpStream::connect(metrics).await.expect("it listens");
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    scraper.write_all(request).await.unwrap();
    let read = tokio::time::timeout(TIMEOUT, read_all(&mut scraper)).await.expect("an answer");
    String::from_utf8(read).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_metrics_client_does_not_block_others() {
    let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let stage = Stage::new(1, |proxy| proxy.metrics(local));
    let metrics = stage.running.metrics_addr().expect("an address");
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(metrics).await.expect("it listens"));
    }
    assert!(scrape(metrics).await.contains("eyas_proxy_connections 0\n"));
}
