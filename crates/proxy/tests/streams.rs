//! A proxy with clients on HTTP/2 and SCTP streams, on loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetHost};
use eyas::{ByteStream, Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::serve::SctpService;
use eyas_proxy::internals::capsule;
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{ClientEnding, Proxy, ProxyClientReport, RunningProxy};
use eyas_relay::handshake::HandshakeProtocol;
use eyas_relay::rules::DestinationRules;
use eyas_sctp_tokio::SctpListener;
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Long enough for anything here; what takes longer has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// `ada:love`, encoded as RFC 7617 requires.
const ADA: &str = "Basic YWRhOmxvdmU=";

struct Stage {
    running: RunningProxy,
    reports: Receiver<ProxyClientReport>,
    h2: SendRequest<Bytes>,
    trusted: CertificateDer<'static>,
}

/// Connects to the proxy over TLS with this transport and application protocol.
async fn stream(
    running: &RunningProxy,
    trusted: &CertificateDer<'static>,
    (transport, alpn): (Transport, &str),
) -> ByteStream {
    let port = running.local_addr().port();
    let here = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    let sctp = running.sctp().and_then(SctpListener::encapsulation_port).expect("SCTP inside UDP");
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding("proxy.test", port, here))
        .security(SecurityParameters::platform().with_roots([trusted.clone()]))
        .sctp_encapsulation_port(sctp)
        .build()
        .expect("an endpoint");
    let host = TargetHost::parse("proxy.test").expect("a name");
    let target = Target::plain(host, port, vec![transport], Security::Tls).with_alpn([alpn]);
    let policy = Policy { transports: vec![transport], ..Policy::default() };
    let race = endpoint.preconnection(target).policy(policy).connect().await;
    let connection = race.expect("the proxy listens");
    assert_eq!(connection.info().alpn.as_deref(), Some(alpn));
    connection.into_stream().expect("open")
}

impl Stage {
    /// Starts a proxy over TLS with the user `ada`, which denies port 1, and opens an HTTP/2 connection.
    async fn new() -> Self {
        let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
        let trusted = identity.certificate().clone();
        let (sender, reports) = channel();
        let endpoint = Endpoint::builder().build().expect("an endpoint");
        let rules = DestinationRules {
            deny: vec!["*:1".parse().expect("a pattern")],
            ..DestinationRules::default()
        };
        let running = Proxy::builder(endpoint)
            .users(ProxyUsers::parse("ada:love\n").expect("users"))
            .security(identity)
            .rules(rules)
            .sctp(SctpService::with_free_port())
            .reports(move |report| {
                // The test may be over already.
                let _ = sender.send(report);
            })
            .start()
            .expect("a proxy");
        let stream = stream(&running, &trusted, (Transport::Tcp, "h2")).await;
        let (h2, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        Self { running, reports, h2, trusted }
    }

    /// Sends a request as `user`.
    async fn request(
        &self,
        method: Method,
        target: &str,
        user: Option<&str>,
    ) -> (SendStream<Bytes>, Response<RecvStream>) {
        let mut request = Request::builder().method(method).uri(target);
        if let Some(user) = user {
            request = request.header("proxy-authorization", user);
        }
        let mut h2 = self.h2.clone().ready().await.expect("ready");
        let (response, send) = h2.send_request(request.body(()).unwrap(), false).expect("sends");
        (send, timeout(TIMEOUT, response).await.expect("it answers").expect("an answer"))
    }

    /// Connects to a destination, and sends a byte.
    async fn connect(&self, to: SocketAddr) -> (SendStream<Bytes>, RecvStream) {
        let (mut send, response) = self.request(Method::CONNECT, &to.to_string(), Some(ADA)).await;
        assert_eq!(response.status(), StatusCode::OK);
        send.send_data(Bytes::from_static(b"x"), false).expect("sends");
        (send, response.into_body())
    }

    fn report(&self) -> ProxyClientReport {
        self.reports.recv_timeout(TIMEOUT).expect("a report")
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

async fn all(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut read = Vec::new();
    while let Some(data) = timeout(TIMEOUT, body.data()).await.expect("it ends") {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        read.extend_from_slice(&data);
    }
    Ok(read)
}

/// Returns the connection on which data arrives, after reading a byte. On a slow machine the race may have
/// opened two, of which it closes the other.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        let accepted = timeout(TIMEOUT, listener.accept()).await.expect("a connection");
        let (mut stream, _) = accepted.expect("accepts");
        if timeout(TIMEOUT, stream.read_u8()).await.expect("data or the end").is_ok() {
            return stream;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_stream_is_a_connection_of_its_own() {
    let stage = Stage::new().await;
    let (listener, address) = listener().await;
    let (mut first, received_by_first) = stage.connect(address).await;
    let mut server_first = accept(&listener).await;
    let (mut second, received_by_second) = stage.connect(address).await;
    let mut server_second = accept(&listener).await;

    // One ends in both directions while the other is open, and then the other one is used.
    for (send, server, received) in [
        (&mut second, &mut server_second, received_by_second),
        (&mut first, &mut server_first, received_by_first),
    ] {
        send.send_data(Bytes::from_static(b"question"), true).expect("sends");
        let mut question = Vec::new();
        timeout(TIMEOUT, server.read_to_end(&mut question)).await.expect("it ends").expect("reads");
        assert_eq!(question, b"question");
        server.write_all(b"an answer").await.expect("writes");
        server.shutdown().await.expect("ends");
        assert_eq!(all(received).await.expect("ends well"), b"an answer");
        let report = stage.report();
        assert_eq!((report.sent, report.received, report.end), (9, 9, ClientEnding::Done));
        assert_eq!(report.protocol, Some(HandshakeProtocol::Connect));
        assert_eq!(report.user.as_deref(), Some("ada"));
        assert_eq!(report.connection.expect("a connection").remote, address);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_reads_nothing_blocks_only_its_own_stream() {
    let stage = Stage::new().await;
    let (listener, address) = listener().await;
    let (mut stuck, _heard) = stage.connect(address).await;
    let _reads_nothing = accept(&listener).await;
    // Until the buffers of system and proxy and the window are full, whatever their sizes.
    let mut total = 0_usize;
    loop {
        stuck.reserve_capacity(64 * 1024);
        let room = std::future::poll_fn(|cx| stuck.poll_capacity(cx));
        match timeout(Duration::from_secs(2), room).await {
            Ok(room) => {
                let room = room.expect("open").expect("a window");
                stuck.send_data(Bytes::from(vec![7; room]), false).expect("sends");
                total += room;
            }
            Err(_) if total >= 1 << 20 => break,
            Err(_) => {}
        }
        assert!(total < 64 << 20, "nothing limits it");
    }
    let (mut send, received) = stage.connect(address).await;
    let mut server = accept(&listener).await;
    send.send_data(Bytes::from_static(b"hello"), true).expect("sends");
    let mut question = Vec::new();
    timeout(TIMEOUT, server.read_to_end(&mut question)).await.expect("it ends").expect("reads");
    assert_eq!(question, b"hello");
    drop(server);
    assert_eq!(all(received).await.expect("ends well"), b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_stream_gets_the_cause() {
    let stage = Stage::new().await;
    let (closed, address) = listener().await;
    drop(closed);
    let there = address.to_string();
    let wrong = "Basic YWRhOmhhdGU=";
    let (denied, unknown) = ("http_request_denied", StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    for (method, target, user, status, error) in [
        (Method::CONNECT, there.as_str(), None, unknown, denied),
        (Method::CONNECT, &there, Some(wrong), unknown, denied),
        (Method::CONNECT, "127.0.0.1:1", Some(ADA), StatusCode::FORBIDDEN, denied),
        (Method::CONNECT, "127.0.0.1:0", Some(ADA), StatusCode::BAD_REQUEST, "http_request_error"),
        (Method::CONNECT, &there, Some(ADA), StatusCode::BAD_GATEWAY, "connection_refused"),
        (Method::GET, "http://a.test/", Some(ADA), StatusCode::NOT_IMPLEMENTED, denied),
    ] {
        let (_send, response) = stage.request(method.clone(), target, user).await;
        assert_eq!(response.status(), status, "{method} {target}");
        let proxy_status = response.headers()["proxy-status"].to_str().expect("printable ASCII");
        let starts = format!("eyas; error={error}; details=\"");
        assert!(proxy_status.starts_with(&starts), "{method} {target}: {proxy_status}");
        let challenged = response.headers().contains_key("proxy-authenticate");
        assert_eq!(challenged, status == StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        let text = all(response.into_body()).await.expect("ends well");
        assert!(text.starts_with(b"eyas proxy: "), "{}", String::from_utf8_lossy(&text));
        assert!(matches!(stage.report().end, ClientEnding::Refused(_)));
    }
    assert_eq!(stage.running.stats().open, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_arrives_while_the_client_already_sends() {
    let stage = Stage::new().await;
    let (closed, address) = listener().await;
    drop(closed);
    for (target, status) in [
        ("127.0.0.1:1", StatusCode::FORBIDDEN),
        (address.to_string().as_str(), StatusCode::BAD_GATEWAY),
    ] {
        let request = Request::builder().method(Method::CONNECT).uri(target);
        let request = request.header("proxy-authorization", ADA).body(()).unwrap();
        let mut h2 = stage.h2.clone().ready().await.expect("ready");
        let (response, mut send) = h2.send_request(request, false).expect("sends");
        // As much as the windows allow, without an end. A refusal that was faster has ended the stream.
        let _ = send.send_data(Bytes::from(vec![b'.'; 1 << 20]), false);
        let response = timeout(TIMEOUT, response).await.expect("it answers").expect("an answer");
        assert_eq!(response.status(), status, "{target}");
        let text = all(response.into_body()).await.expect("ends well");
        assert!(text.starts_with(b"eyas proxy: "), "{}", String::from_utf8_lossy(&text));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_is_forwarded_as_a_reset() {
    let stage = Stage::new().await;
    let (listener, address) = listener().await;
    let (mut send, _heard) = stage.connect(address).await;
    let mut server = accept(&listener).await;
    send.send_reset(Reason::CANCEL);
    let read = timeout(TIMEOUT, server.read_to_end(&mut Vec::new())).await.expect("it ends");
    drop(read);
    assert!(matches!(stage.report().end, ClientEnding::Client(_)));

    let (_send, received) = stage.connect(address).await;
    let server = accept(&listener).await;
    socket2::SockRef::from(&server).set_linger(Some(Duration::ZERO)).expect("a socket");
    drop(server);
    let error = all(received).await.expect_err("it was reset");
    assert!(error.is_reset(), "{error}");
    assert!(matches!(stage.report().end, ClientEnding::Destination(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_sctp_association_becomes_a_connection() {
    let stage = Stage::new().await;
    let (listener, address) = listener().await;
    let mut client = stream(&stage.running, &stage.trusted, (Transport::SctpUdp, "http/1.1")).await;
    let request = format!(
        "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\nProxy-Authorization: {ADA}\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.expect("writes");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(TIMEOUT, client.read_u8()).await.expect("it answers").expect("reads"));
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    client.write_all(b"xquestion").await.expect("writes");
    let mut server = accept(&listener).await;
    let mut question = [0; 8];
    timeout(TIMEOUT, server.read_exact(&mut question)).await.expect("in time").expect("reads");
    server.write_all(b"an answer").await.expect("writes");
    let mut received = [0; 9];
    timeout(TIMEOUT, client.read_exact(&mut received)).await.expect("in time").expect("reads");
    assert_eq!((&question, &received), (b"question", b"an answer"));
    drop((client, server));
    let report = stage.report();
    assert_eq!((report.sent, report.received), (9, 9));
    assert_eq!(report.user.as_deref(), Some("ada"));
}

/// Starts a server that returns each datagram.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut received = [0; 2000];
        while let Ok((length, from)) = socket.recv_from(&mut received).await {
            let _ = socket.send_to(&received[..length], from).await;
        }
    });
    address
}

fn capsule(payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    capsule::write(&mut bytes, payload);
    bytes.freeze()
}

//= rfc9298 §3.4, §3.5
//# HTTP/2 and 3: extended CONNECT, 200
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_carried_by_a_stream_that_requests_them() {
    let stage = Stage::new().await;
    let server = echo().await;
    while !stage.h2.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    let request = async |protocol: &'static str, port: u16, user: &str| {
        let path = format!("/.well-known/masque/udp/127.0.0.1/{port}/");
        let mut request = Request::connect(format!("https://proxy.test{path}"));
        if !user.is_empty() {
            request = request.header("proxy-authorization", user);
        }
        let mut request = request.body(()).expect("a request");
        request.extensions_mut().insert(h2::ext::Protocol::from_static(protocol));
        let mut h2 = stage.h2.clone().ready().await.expect("ready");
        let (response, send) = h2.send_request(request, false).expect("sends");
        (send, timeout(TIMEOUT, response).await.expect("it answers").expect("an answer"))
    };
    for (protocol, port, user, status) in [
        ("connect-udp", server.port(), "", StatusCode::PROXY_AUTHENTICATION_REQUIRED),
        ("connect-udp", 1, ADA, StatusCode::FORBIDDEN),
        ("connect-udp", 0, ADA, StatusCode::BAD_REQUEST),
        ("connect-ip", server.port(), ADA, StatusCode::NOT_IMPLEMENTED),
    ] {
        let (_send, response) = request(protocol, port, user).await;
        assert_eq!(response.status(), status, "{protocol} {port}");
        assert!(matches!(stage.report().end, ClientEnding::Refused(_)));
    }
    let (mut send, response) = request("connect-udp", server.port(), ADA).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["capsule-protocol"], "?1");
    send.send_data(capsule(b"hello"), false).expect("sends");
    let mut body = response.into_body();
    let received =
        timeout(TIMEOUT, body.data()).await.expect("in time").expect("open").expect("data");
    assert_eq!(received, capsule(b"hello"));
    send.send_data(Bytes::new(), true).expect("ends");
    assert_eq!(all(body).await.expect("ends well"), b"");
    let report = stage.report();
    assert_eq!((report.sent, report.received, report.end), (5, 5, ClientEnding::Done));
    assert_eq!(
        (report.protocol, report.user),
        (Some(HandshakeProtocol::ConnectUdp), Some("ada".into()))
    );
    // A client that resets its stream is reported as such.
    let (mut send, response) = request("connect-udp", server.port(), ADA).await;
    assert_eq!(response.status(), StatusCode::OK);
    send.send_reset(Reason::CANCEL);
    assert!(matches!(stage.report().end, ClientEnding::Client(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_over_an_sctp_association() {
    let stage = Stage::new().await;
    let server = echo().await;
    let mut client = stream(&stage.running, &stage.trusted, (Transport::SctpUdp, "http/1.1")).await;
    let request = format!(
        "GET /.well-known/masque/udp/127.0.0.1/{}/ HTTP/1.1\r\nHost: proxy.test\r\n\
         Connection: upgrade\r\nUpgrade: connect-udp\r\nProxy-Authorization: {ADA}\r\n\r\n",
        server.port()
    );
    client.write_all(request.as_bytes()).await.expect("writes");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(TIMEOUT, client.read_u8()).await.expect("it answers").expect("reads"));
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("capsule-protocol: ?1"), "{head}");
    client.write_all(&capsule(b"hello")).await.expect("writes");
    let mut received = [0; 8];
    timeout(TIMEOUT, client.read_exact(&mut received)).await.expect("in time").expect("reads");
    assert_eq!(received[..], capsule(b"hello"));
    drop(client);
    let report = stage.report();
    assert_eq!((report.sent, report.received), (5, 5));
    assert_eq!(report.protocol, Some(HandshakeProtocol::ConnectUdp));
}
