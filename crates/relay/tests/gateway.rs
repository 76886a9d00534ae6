//! The gateway between clients and an upstream whose every byte the test decides.

#[path = "../../eyas/tests/ports/mod.rs"]
mod ports;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_http::serve::{Running, Server};
use eyas_http::{Body, Client, Proxy, Versions};
use eyas_relay::gateway::{Gateway, GatewayBuilder, Limits};
use sha1::Digest as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Nothing here takes so long; what does hangs.
const HANGS: Duration = Duration::from_secs(60);

/// What an upstream does with the connections that come to it.
struct Stage {
    running: Running,
    gateway: Gateway,
    /// The connections, in the order in which they came.
    connections: UnboundedReceiver<TcpStream>,
}

impl Stage {
    async fn new(plain: bool, set: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (send, connections) = unbounded_channel();
        tokio::spawn(accept(listener, send));
        let upstream = format!("http://{address}").parse().expect("an upstream");
        let gateway = set(Gateway::builder(upstream)).build().expect("a gateway");
        let mut server = Server::builder().extended_connect(true).service(gateway.clone());
        if plain {
            server = server.plain();
        }
        let running = server.start().await.expect("a server");
        Self { running, gateway, connections }
    }

    async fn plain() -> Self {
        Self::new(true, |gateway| gateway).await
    }

    async fn connection(&mut self) -> Upstream {
        let next = tokio::time::timeout(HANGS, self.connections.recv()).await;
        Upstream { stream: next.expect("in time").expect("a connection"), read: Vec::new() }
    }

    /// A client over TCP that has said this.
    async fn says(&self, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.running.local_addr()).await.expect("connects");
        client.write_all(text.as_bytes()).await.expect("writes");
        client
    }

    /// What becomes of a request that the upstream is not to hear of.
    async fn refused(&mut self, text: &str) -> String {
        let mut client = self.says(text).await;
        let answer = read_all(&mut client).await;
        assert!(self.connections.try_recv().is_err(), "the upstream was asked: {text:?}");
        answer
    }
}

async fn accept(listener: TcpListener, send: UnboundedSender<TcpStream>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = send.send(stream);
    }
}

/// The upstream's side of a connection.
struct Upstream {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Upstream {
    /// Reads until this has come, and gives all before it, and it.
    async fn until(&mut self, mark: &str) -> String {
        let mark = mark.as_bytes();
        loop {
            if let Some(at) = self.read.windows(mark.len()).position(|some| some == mark) {
                let rest = self.read.split_off(at + mark.len());
                let read = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(read).expect("text");
            }
            let reading = self.stream.read_buf(&mut self.read);
            let some = tokio::time::timeout(HANGS, reading).await.expect("in time").expect("reads");
            assert!(some > 0, "it ended after {:?}", String::from_utf8_lossy(&self.read));
        }
    }

    async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    async fn says(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("writes");
    }

    /// Waits for the end, and gives what came before it.
    async fn end(mut self) -> String {
        let mut rest = self.read;
        let reading = self.stream.read_to_end(&mut rest);
        let _ = tokio::time::timeout(HANGS, reading).await.expect("ends");
        String::from_utf8_lossy(&rest).into_owned()
    }
}

async fn read_all(client: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = client.read_to_end(&mut read);
    let _ = tokio::time::timeout(HANGS, reading).await.expect("ends");
    String::from_utf8_lossy(&read).into_owned()
}

const GET: &str = "GET /p?q HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_request_goes_on_and_its_response_comes_back() {
    let mut stage = Stage::plain().await;
    let mut client = stage
        .says(
            "POST /p?q HTTP/1.1\r\nHost: a.example\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
             X-Forwarded-For: 192.0.2.9\r\nX_Forwarded_For: 192.0.2.9\r\nAccept: x\r\n\
             Content-Length: 4\r\n\r\nbody",
        )
        .await;
    let mut upstream = stage.connection().await;
    let head = upstream.head().await.to_lowercase();
    assert!(head.starts_with("post /p?q http/1.1\r\nhost: a.example\r\n"), "{head}");
    for line in ["accept: x", "content-length: 4", "x-forwarded-for: 127.0.0.1", "via: 1.1 eyas-"] {
        assert!(head.contains(&format!("\r\n{line}")), "{line}: {head}");
    }
    for gone in ["x-hop", "192.0.2.9", "connection:", "chunked"] {
        assert!(!head.contains(gone), "{gone}: {head}");
    }
    upstream.until("body").await;
    upstream.says("HTTP/1.1 201 Created\r\nX-A: b\r\nConnection: x-c\r\nX-C: 1\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    upstream.says("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n").await;
    let answer = read_all(&mut client).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 201 created\r\n"), "{answer}");
    assert!(answer.contains("x-a: b\r\n") && !answer.contains("x-c"), "{answer}");
    assert!(answer.contains("one") && answer.contains("two"), "{answer}");
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    let mut stage = Stage::plain().await;
    let host = "Host: a.example\r\n";
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\n{host}{host}Connection: close\r\n\r\n"), "400"),
        (format!("GET http://b.example/ HTTP/1.1\r\n{host}\r\n"), "400"),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), "400"),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: +1\r\n\r\n"), "400"),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n"), "400"),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\n{host}X: a\r\n b\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\n{host}X: a\rb\r\n\r\n"), "400"),
        (format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"), "400"),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), "400"),
        (format!("TRACE / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"), "405"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n".to_owned(), "501"),
        (
            format!(
                "POST / HTTP/1.1\r\n{host}Transfer-Encoding: gzip, chunked\r\n\
                 Connection: close\r\n\r\n0\r\n\r\n"
            ),
            "501",
        ),
    ] {
        let answer = stage.refused(&request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} "))
                || answer.starts_with(&format!("HTTP/1.0 {status} ")),
            "{request:?}: {answer}"
        );
    }
}

#[tokio::test]
async fn nothing_is_smuggled_behind_a_body_with_two_lengths() {
    let mut stage = Stage::plain().await;
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
    ] {
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let request =
            format!("POST / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n0\r\n\r\n{smuggled}");
        let mut client = stage.says(&request).await;
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(!head.contains("content-length") && head.contains("chunked"), "{head}");
        upstream.until("0\r\n\r\n").await;
        upstream.says("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        let answer = read_all(&mut client).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert_eq!(upstream.end().await, "", "nothing more reaches the upstream");
    }
}

#[tokio::test]
async fn a_connection_serves_again_and_a_request_that_met_its_end_is_sent_again() {
    let limits = Limits { keep_time: Duration::from_secs(3600), ..Limits::default() };
    let mut stage = Stage::new(true, |gateway| gateway.limits(limits)).await;
    let mut client = stage.says(GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.says(OK).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    // Reused, and closed without an answer: a GET goes on over a new connection.
    let mut client = stage.says(GET).await;
    upstream.head().await;
    drop(upstream);
    let mut another = stage.connection().await;
    another.head().await;
    another.says(OK).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    assert_eq!(stage.gateway.stats().repeated, 1);
    // A POST does not.
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let mut client = stage.says(post).await;
    another.head().await;
    drop(another);
    let answer = read_all(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("without an answer"),
        "{answer}"
    );
    assert!(stage.connections.try_recv().is_err());
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_504_and_says_why() {
    let (told, mut heard) = unbounded_channel();
    let limits = Limits { response_time: Duration::from_millis(200), ..Limits::default() };
    let mut stage =
        Stage::new(true, |gateway| gateway.limits(limits).notices(move |line| _ = told.send(line)))
            .await;
    let mut client = stage.says(GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("in time"), "{answer}");
    let line = heard.recv().await.expect("a line");
    assert!(line.starts_with("GET /p: 504: "), "{line}");
    assert_eq!(upstream.end().await, "", "the connection is given up");
}

#[tokio::test]
async fn what_is_no_response_is_502() {
    let mut stage = Stage::plain().await;
    for (says, text) in [
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "no valid answer"),
        ("SSH-2.0-x\r\n\r\n", "no valid answer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "no valid answer"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "no valid answer"),
        ("HTTP/1.1 200", "without an answer"),
    ] {
        let mut client = stage.says(GET).await;
        let mut upstream = stage.connection().await;
        upstream.head().await;
        upstream.says(says).await;
        drop(upstream);
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(text), "{says:?}: {answer}");
    }
}

#[tokio::test]
async fn nobody_at_the_upstream_is_502() {
    let upstream = format!("http://127.0.0.1:{}", ports::own_port());
    let gateway = Gateway::builder(upstream.parse().expect("one")).build().expect("a gateway");
    let running = Server::builder().plain().service(gateway.clone()).start().await.expect("starts");
    let mut client = TcpStream::connect(running.local_addr()).await.expect("connects");
    client.write_all(GET.as_bytes()).await.expect("writes");
    let answer = read_all(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot be reached"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_response_that_breaks_off_never_looks_whole() {
    let mut stage = Stage::plain().await;
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let mut client = stage.says(GET).await;
        let mut upstream = stage.connection().await;
        upstream.head().await;
        upstream.says(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n4\r\nabcd\r\n")).await;
        drop(upstream);
        let answer = read_all(&mut client).await;
        assert!(answer.contains("abcd") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    assert_eq!(stage.gateway.stats().broken_off, 2);
}

#[tokio::test]
async fn a_request_that_breaks_off_never_looks_whole() {
    let mut stage = Stage::plain().await;
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n";
    let mut client = stage.says(chunked).await;
    let mut upstream = stage.connection().await;
    upstream.until("abcd\r\n").await;
    client.shutdown().await.expect("ends");
    drop(client);
    assert!(!upstream.end().await.contains("0\r\n"));
}

#[tokio::test]
async fn a_body_waits_until_the_upstream_wants_it() {
    let mut stage = Stage::plain().await;
    let head = "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let mut client = stage.says(head).await;
    let mut upstream = stage.connection().await;
    assert!(upstream.head().await.to_lowercase().contains("expect: 100-continue"));
    upstream.says("HTTP/1.1 100 Continue\r\n\r\n").await;
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.expect("100");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").await.expect("writes");
    upstream.until("body").await;
    upstream.says(OK).await;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    // An upstream that does not want it says so at once, and never gets it.
    let mut client = stage.says(head).await;
    let mut another = stage.connection().await;
    another.head().await;
    another.says("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(another.end().await, "");
}

#[tokio::test]
async fn a_websocket_is_opened_and_nothing_else_is() {
    let mut stage = Stage::plain().await;
    let ask = |upgrade: &str| {
        format!(
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    let mut client = stage.says(&ask("websocket")).await;
    let mut upstream = stage.connection().await;
    let head = upstream.head().await.to_lowercase();
    assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"), "{head}");
    upstream
        .says(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
        )
        .await;
    let mut client_side = Upstream { stream: client, read: Vec::new() };
    let answer = client_side.head().await.to_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3ppl"), "{answer}");
    client_side.until("hello").await;
    client_side.says("back").await;
    upstream.until("back").await;
    assert_eq!(stage.gateway.stats().tunnels, 1);
    drop(client_side);
    assert_eq!(upstream.end().await, "");
    // Another protocol is not asked for, and an upstream that only says that it switched is not believed.
    client = stage.says(&ask("h2c")).await;
    let mut upstream = stage.connection().await;
    assert!(!upstream.head().await.to_lowercase().contains("upgrade"));
    upstream.says(OK).await;
    drop(client);
    let mut client = stage.says(&ask("websocket")).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n").await;
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 502");
}

#[tokio::test]
async fn a_websocket_over_http2_becomes_one_over_http1() {
    let mut stage = Stage::plain().await;
    // A silent WebSocket is nobody's fault, and what goes through it is no body.
    let (idle_time, body_bytes) = (Duration::from_secs(2), 3);
    let limits = eyas_http::serve::Limits { idle_time, body_bytes, ..Default::default() };
    let server = Server::builder().plain().extended_connect(true).limits(limits);
    let running = server.service(stage.gateway.clone()).start().await.expect("a server");
    let tcp = TcpStream::connect(running.local_addr()).await.expect("connects");
    let (mut send, connection) = h2::client::handshake(tcp).await.expect("HTTP/2");
    tokio::spawn(connection);
    while !send.is_extended_connect_protocol_enabled() {
        send = send.ready().await.expect("a stream");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut ask = http::Request::builder().method("CONNECT").uri("http://a.example/chat");
    ask = ask.header("sec-websocket-version", "13").extension(h2::ext::Protocol::from("websocket"));
    let (answer, mut says) = send.send_request(ask.body(()).expect("one"), false).expect("sent");
    let mut upstream = stage.connection().await;
    let head = upstream.head().await;
    assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
    let key =
        head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).expect("a key");
    let hash = sha1::Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    let accept = base64::engine::general_purpose::STANDARD.encode(hash);
    upstream
        .says(&format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\nhello"
        ))
        .await;
    let answer = tokio::time::timeout(HANGS, answer).await.expect("in time").expect("a response");
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("sec-websocket-accept"));
    let mut hears = answer.into_body();
    assert_eq!(hears.data().await.expect("some").expect("data"), "hello");
    says.send_data("back".into(), false).expect("sent");
    upstream.until("back").await;
    tokio::time::sleep(2 * idle_time).await;
    upstream.says("more").await;
    assert_eq!(hears.data().await.expect("some").expect("data"), "more");
    says.send_data(Bytes::new(), true).expect("sent");
    assert_eq!(upstream.stream.read(&mut [0]).await.expect("an end"), 0);
    upstream.stream.shutdown().await.expect("ends");
    let rest = tokio::time::timeout(HANGS, hears.data()).await.expect("in time");
    assert!(rest.is_none_or(|rest| rest.expect("no reset").is_empty()));
}

#[tokio::test]
async fn a_gateway_in_front_of_itself_notices() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::own_port()));
    let upstream = format!("http://{address}").parse().expect("one");
    let gateway = Gateway::builder(upstream).build().expect("a gateway");
    let server = Server::builder().plain().listen(address).service(gateway);
    let running = server.start().await.expect("a server");
    let mut client = TcpStream::connect(running.local_addr()).await.expect("connects");
    client.write_all(GET.as_bytes()).await.expect("writes");
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 508 "));
}

#[tokio::test]
async fn the_proxy_protocol_comes_first_and_connections_are_of_one_client() {
    let mut stage = Stage::new(true, |gateway| gateway.proxy_protocol(true)).await;
    for _ in 0..2 {
        let mut client = stage.says(GET).await;
        let from = client.local_addr().expect("connected");
        let mut upstream = stage.connection().await;
        let mut header = [0; 28];
        upstream.stream.read_exact(&mut header).await.expect("a header");
        assert_eq!(header[..14], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11");
        assert_eq!(header[24..26], from.port().to_be_bytes());
        upstream.head().await;
        upstream.says(OK).await;
        assert!(read_all(&mut client).await.ends_with("ok"));
    }
}

/// A client that speaks one version, and trusts the stage.
fn client(stage: &Stage, versions: Versions) -> Client {
    let root = stage.running.identity().expect("TLS").certificate().clone();
    let port = stage.running.local_addr().port();
    let resolver = Resolver::system();
    let endpoint = Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([root]))
        .resolver(resolver.overriding("localhost", port, vec![Ipv4Addr::LOCALHOST.into()]))
        .memory(MemoryStore::none())
        .build()
        .expect("an endpoint");
    let client = Client::builder().endpoint(endpoint).proxy(Proxy::none()).versions(versions);
    client.build().expect("a client")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_becomes_the_same_request() {
    let mut stage = Stage::new(false, |gateway| gateway).await;
    let only = |http1, http2, http3| Versions { http1, http2, http3 };
    for versions in [only(true, false, false), only(false, true, false), only(false, false, true)] {
        let client = client(&stage, versions);
        let url = format!("https://localhost:{}/p?q", stage.running.local_addr().port());
        let getting = tokio::spawn(client.get(url.as_str()).send());
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(head.starts_with("get /p?q http/1.1\r\nhost: localhost:"), "{head}");
        assert!(head.contains("x-forwarded-proto: https") && !head.contains("chunked"), "{head}");
        let much = "x".repeat(1_000_000);
        upstream.says(&format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{much}")).await;
        let got = getting.await.expect("no panic").expect("a response");
        assert_eq!(got.bytes().await.expect("a body").len(), much.len());
        let posting = tokio::spawn(client.post(url.as_str()).body(Body::from("four")).send());
        upstream.until("four").await;
        upstream.says("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(posting.await.expect("no panic").expect("a response").status(), 204);
        // The next version finds no connection that waits.
        drop(upstream);
        while stage.gateway.stats().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Numbers that look random, and are the same in each run.
fn numbers(seed: u64) -> impl Iterator<Item = usize> {
    let step = |state: &mut u64| {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 33) as usize)
    };
    std::iter::repeat(()).scan(seed, move |state, ()| step(state))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_all_cuts_come_back_as_they_were_sent() {
    let echo = Server::builder().plain().start().await.expect("an upstream");
    let upstream = format!("http://{}", echo.local_addr()).parse().expect("one");
    let gateway = Gateway::builder(upstream).build().expect("a gateway");
    let running = Server::builder().service(gateway.clone()).start().await.expect("a server");
    let (_, connections) = unbounded_channel();
    let stage = Stage { running, gateway, connections };
    let url = format!("https://localhost:{}/echo", stage.running.local_addr().port());
    let only = |http1, http2, http3| Versions { http1, http2, http3 };
    for versions in [only(true, false, false), only(false, true, false), only(false, false, true)] {
        let client = client(&stage, versions);
        for seed in 1..9 {
            let mut numbers = numbers(seed);
            let count = numbers.next().expect("endless") % 60;
            let pieces: Vec<Vec<u8>> = numbers
                .take(count)
                .map(|number| {
                    vec![number as u8; number % if number % 7 == 0 { 200_000 } else { 900 }]
                })
                .collect();
            let whole = pieces.concat();
            let pieces = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
            let body = Body::from_stream(futures_util::stream::iter(pieces));
            let got = client.post(url.as_str()).body(body).send().await.expect("a response");
            let back = got.bytes().await.expect("whole");
            assert!(back == whole, "{versions:?} {seed}: {} of {}", back.len(), whole.len());
        }
    }
}

#[tokio::test]
async fn the_page_of_metrics_has_the_upstream_beside_the_server() {
    let gateway = Gateway::builder("http://127.0.0.1:9".parse().expect("one")).build();
    let counted = gateway.expect("a gateway");
    let service = counted.clone();
    let server = Server::builder().plain().metrics(([127, 0, 0, 1], 0).into()).service(service);
    let running = server.more_metrics(move |page| counted.stats().write(page)).start().await;
    let running = running.expect("a server");
    let address = running.metrics_addr().expect("metrics");
    let mut client = TcpStream::connect(address).await.expect("connects");
    let asked = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(asked.as_bytes()).await.expect("writes");
    let page = read_all(&mut client).await;
    assert!(page.contains("eyas_requests_total{version=\"1.1\"} 0\n"), "{page}");
    assert!(page.contains("eyas_upstream_failures_total{reason=\"closed\"} 0\n"), "{page}");
}
