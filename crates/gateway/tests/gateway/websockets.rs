//! WebSockets.

use std::convert::Infallible;
use std::time::Duration;

use base64::Engine as _;
use eyas::SecurityParameters;
use eyas_gateway::Gateway;
use eyas_http::pipe::{PipeBody, pipe};
use eyas_http::serve::{RequestBody, Running, Server};
use eyas_http::{Connected, Tunnel, Versions};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use sha1::Digest as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tower::service_fn;

use crate::raw_http3::{REQUEST_CANCELLED, RawStage, data, head};
use crate::stage::{EACH_VERSION, OK, Stage, TIMEOUT, Upstream};

#[tokio::test]
async fn a_websocket_is_opened_and_nothing_else_is() {
    let mut stage = Stage::plain().await;
    let request = |upgrade: &str| {
        format!(
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    let mut client = stage.send(&request("websocket")).await;
    let mut upstream = stage.connection().await;
    let head = upstream.head().await.to_lowercase();
    assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"), "{head}");
    upstream
        .send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
        )
        .await;
    let mut client_side = Upstream { stream: client, read: Vec::new() };
    let answer = client_side.head().await.to_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3ppl"), "{answer}");
    client_side.until("hello").await;
    client_side.send("back").await;
    upstream.until("back").await;
    assert_eq!(stage.gateway.stats().tunnels, 1);
    drop(client_side);
    assert_eq!(upstream.end().await, "");
    // No other protocol is requested, and a 101 without the right key is an error.
    client = stage.send(&request("h2c")).await;
    let mut upstream = stage.connection().await;
    assert!(!upstream.head().await.to_lowercase().contains("upgrade"));
    upstream.send(OK).await;
    drop(client);
    let mut client = stage.send(&request("websocket")).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n").await;
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 502");
}

/// A handshake of an embedded client, and requests of docker and Tailscale.
#[tokio::test]
async fn allowed_upgrades_pass_with_any_method_and_body() {
    let mut stage =
        Stage::new(true, |gateway| gateway.upgrade("tcp").upgrade("tailscale-control-protocol"))
            .await;
    for (request, protocol, body) in [
        ("POST /containers/x/attach?stream=1", "tcp", ""),
        ("POST /exec/x/start", "tcp", r#"{"Tty":true}"#),
        ("POST /ts2021", "tailscale-control-protocol", ""),
        ("GET /x", "tcp", ""),
        ("PATCH /x", "h2c, tcp", "x"),
    ] {
        let forwarded = protocol.trim_start_matches("h2c, ");
        let length = body.len();
        let client = stage
            .send(&format!(
                "{request} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\
                 Content-Length: {length}\r\nX-Handshake: y\r\n\r\n{body}"
            ))
            .await;
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(head.contains(&format!("upgrade: {forwarded}\r\n")), "{head}");
        assert!(head.contains("connection: upgrade\r\n") && head.contains("x-handshake: y"));
        if !body.is_empty() {
            upstream.until(body).await;
        }
        let switched = format!(
            "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: {forwarded}\r\n\r\nhello"
        );
        upstream.send(&switched).await;
        let mut client = Upstream { stream: client, read: Vec::new() };
        let answer = client.head().await.to_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{request}: {answer}");
        assert!(answer.contains(&format!("upgrade: {forwarded}\r\n")), "{answer}");
        client.until("hello").await;
        client.send("back").await;
        upstream.until("back").await;
    }
    // The upstream may answer instead, and must not switch to what nobody asked for.
    for (answer, status) in [
        (OK, "HTTP/1.1 200"),
        ("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", "HTTP/1.1 502"),
    ] {
        let upgrade = "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
        let mut client = stage.send(upgrade).await;
        let mut upstream = stage.connection().await;
        upstream.head().await;
        upstream.send(answer).await;
        let mut read = [0; 12];
        client.read_exact(&mut read).await.expect("an answer");
        assert_eq!(std::str::from_utf8(&read), Ok(status));
    }
}

#[tokio::test]
async fn a_handshake_with_an_empty_body_opens_a_websocket() {
    let mut stage = Stage::plain().await;
    let _client = stage
        .send(
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Content-Length: 0\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .await;
    let head = stage.connection().await.head().await.to_lowercase();
    assert!(head.contains("upgrade: websocket"), "{head}");
    assert!(!head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn raw_targets_are_encoded_or_refused() {
    let request = "GET http://a?caf\u{e9} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut stage = Stage::plain().await;
    let _client = stage.send(request).await;
    let head = stage.connection().await.head().await;
    assert!(head.starts_with("GET /?caf%C3%A9 HTTP/1.1\r\n"), "{head}");
    let mut strict = Stage::new(true, |gateway| gateway.refuse_raw_targets(true)).await;
    assert!(strict.refused(request).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn a_folded_field_of_the_upstream_becomes_one_line() {
    let mut stage = Stage::plain().await;
    let client = stage.send(crate::stage::GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.send("HTTP/1.1 200 OK\r\nX-A: one\r\n\ttwo\r\nContent-Length: 2\r\n\r\nok").await;
    let answer = Upstream { stream: client, read: Vec::new() }.head().await;
    assert!(answer.contains("X-A: one two\r\n"), "{answer}");
}

/// A gateway over TLS, and a client of it with one version.
struct Versioned {
    stage: Stage,
    client: eyas_http::Client,
    url: String,
}

impl Versioned {
    async fn new(
        versions: Versions,
        set: impl FnOnce(eyas_gateway::GatewayBuilder) -> eyas_gateway::GatewayBuilder,
    ) -> Self {
        // The limits on idle time and body length do not apply to WebSockets.
        let (idle_time, body_bytes) = (Duration::from_secs(1), 3);
        let limits = eyas_http::serve::Limits { idle_time, body_bytes, ..Default::default() };
        let stage = Stage::with(|server| server.limits(limits), set).await;
        let client = crate::stage::client(&stage, versions);
        let url = format!("https://localhost:{}/chat?a", stage.running.local_addr().port());
        Self { stage, client, url }
    }

    /// Requests a WebSocket, or another protocol, in the background.
    fn request(&self, protocol: &'static str) -> JoinHandle<Connected> {
        let (client, url) = (self.client.clone(), self.url.clone());
        let request = http::Request::get(&url)
            .header("sec-websocket-version", "13")
            .header("sec-websocket-protocol", "chat, other")
            .header("sec-websocket-extensions", "permessage-deflate")
            .header("origin", "https://a.example")
            .body(())
            .expect("a request");
        tokio::spawn(async move {
            client.upgrade(&url, protocol, request, TIMEOUT).await.expect("an answer")
        })
    }

    /// Opens a WebSocket, and returns both of its ends.
    async fn open(&mut self) -> (Tunnel, Upstream) {
        let requested = self.request("websocket");
        let mut upstream = self.stage.connection().await;
        let head = upstream.head().await;
        assert!(head.starts_with("GET /chat?a HTTP/1.1\r\n"), "{head}");
        for field in [
            "connection: Upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            "sec-websocket-protocol: chat, other",
            "sec-websocket-extensions: permessage-deflate",
            "origin: https://a.example",
        ] {
            assert!(head.contains(&format!("{field}\r\n")), "{field}: {head}");
        }
        let fields =
            "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Extensions: permessage-deflate\r\n";
        upstream.send(&accepting(&head, fields)).await;
        match requested.await.expect("no panic") {
            Connected::Tunnel(tunnel) => {
                let headers = tunnel.headers();
                assert_eq!(headers["sec-websocket-protocol"], "chat");
                assert_eq!(headers["sec-websocket-extensions"], "permessage-deflate");
                for name in ["sec-websocket-accept", "connection", "upgrade", "content-length"] {
                    assert!(!headers.contains_key(name), "{name}");
                }
                (tunnel, upstream)
            }
            Connected::Refused(response) => panic!("{response:?}"),
        }
    }
}

/// Returns an upstream's response that accepts a WebSocket.
fn accepting(head: &str, fields: &str) -> String {
    let key =
        head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).expect("a key");
    let hash = sha1::Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    let accept = base64::engine::general_purpose::STANDARD.encode(hash);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{fields}\r\n"
    )
}

async fn in_flight(stage: &Stage, expected: u64) {
    let wait = async {
        while (stage.running.stats().requests_in_flight, stage.gateway.stats().tunnels)
            != (expected, expected)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let now = || (stage.running.stats().requests_in_flight, stage.gateway.stats().tunnels);
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("{:?}", now()));
}

//= rfc9220 §3, RFC 8441 §5
//# a WebSocket on a stream: its fields, both directions and the end of each
#[tokio::test]
async fn a_websocket_on_a_stream_becomes_one_over_http1() {
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let mut versioned = Versioned::new(versions, |gateway| gateway).await;
        let (mut tunnel, mut upstream) = versioned.open().await;
        for round in ["one", "two"] {
            tunnel.write_all(round.as_bytes()).await.expect("open");
            upstream.until(round).await;
            upstream.send(&format!("{round} back")).await;
            let mut read = vec![0; round.len() + 5];
            tunnel.read_exact(&mut read).await.expect("open");
            assert_eq!(read, format!("{round} back").as_bytes());
            in_flight(&versioned.stage, 1).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        // Each direction ends by itself.
        tunnel.shutdown().await.expect("open");
        assert_eq!(upstream.stream.read(&mut [0]).await.expect("an end"), 0);
        upstream.send("the rest").await;
        drop(upstream);
        let mut rest = String::new();
        tunnel.read_to_string(&mut rest).await.expect("a regular end");
        assert_eq!(rest, "the rest", "{versions:?}");
        drop(tunnel);
        in_flight(&versioned.stage, 0).await;
    }
}

//= rfc9220 §3, RFC 8441 §5
//# a reset of a stream is one of the WebSocket's connection, and the other way round
#[tokio::test]
async fn what_breaks_one_side_of_a_websocket_ends_the_other() {
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let mut versioned = Versioned::new(versions, |gateway| gateway).await;
        let (tunnel, upstream) = versioned.open().await;
        drop(tunnel);
        assert_eq!(upstream.end().await, "");
        in_flight(&versioned.stage, 0).await;
        let (mut tunnel, upstream) = versioned.open().await;
        socket2::SockRef::from(&upstream.stream).set_linger(Some(Duration::ZERO)).expect("set");
        drop(upstream);
        let read = tokio::time::timeout(TIMEOUT, tunnel.read(&mut [0])).await.expect("in time");
        // hyper takes the CANCEL of RFC 8441 for an end.
        let is_end = matches!(read, Ok(0)) && versions == Versions::HTTP_2;
        assert!(read.is_err() || is_end, "{versions:?}: {read:?}");
        in_flight(&versioned.stage, 0).await;
    }
}

#[tokio::test]
async fn an_upstream_that_does_not_read_holds_its_client_back() {
    /// More than all buffers on the way have room for.
    const FLOOD: usize = 64 << 20;
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let mut versioned = Versioned::new(versions, |gateway| gateway).await;
        let (mut tunnel, mut upstream) = versioned.open().await;
        let piece = [b'x'; 16 * 1024];
        let mut written = 0;
        while let Ok(some) =
            tokio::time::timeout(Duration::from_secs(2), tunnel.write(&piece)).await
        {
            written += some.expect("open");
            assert!(written < FLOOD, "{versions:?}: nothing holds it back");
        }
        // Nothing of it is lost.
        let mut read = vec![0; written];
        let reading = upstream.stream.read_exact(&mut read);
        tokio::time::timeout(TIMEOUT, reading).await.expect("in time").expect("open");
        tunnel.write_all(b"on it goes").await.expect("open");
        upstream.until("on it goes").await;
    }
}

#[tokio::test]
async fn a_websocket_on_a_stream_may_be_refused() {
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let mut versioned = Versioned::new(versions, |gateway| gateway).await;
        for (answer, status) in [
            ("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 403),
            // The client would take it for a WebSocket.
            (OK, 502),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", 502),
        ] {
            let requested = versioned.request("websocket");
            let mut upstream = versioned.stage.connection().await;
            upstream.head().await;
            upstream.send(answer).await;
            let Connected::Refused(response) = requested.await.expect("no panic") else {
                panic!("{versions:?}: {answer}");
            };
            assert_eq!(response.status(), status, "{versions:?}: {answer}");
        }
        let Connected::Refused(response) = versioned.request("connect-udp").await.expect("one")
        else {
            panic!("{versions:?}: another protocol");
        };
        assert_eq!(response.status(), 501);
        in_flight(&versioned.stage, 0).await;
    }
}

/// Repeats what arrives on the stream of a WebSocket, and breaks it off at a `!`.
async fn repeat(request: Request<RequestBody>) -> Result<Response<PipeBody>, Infallible> {
    assert_eq!(request.method(), Method::CONNECT);
    for name in ["sec-websocket-key", "connection", "upgrade"] {
        assert!(!request.headers().contains_key(name), "{name}");
    }
    assert_eq!(request.headers()["sec-websocket-protocol"], "chat, other");
    assert_eq!(request.uri().path_and_query().expect("a path"), "/chat?a");
    let (mut writer, body) = pipe();
    let mut received = request.into_body();
    tokio::spawn(async move {
        while let Some(Ok(frame)) = received.frame().await {
            let data = frame.into_data().expect("data");
            if data.ends_with(b"!") {
                return;
            }
            writer.write_all(&data).await.expect("open");
        }
        writer.shutdown().await.expect("open");
    });
    let response = Response::builder().header("sec-websocket-protocol", "chat").body(body);
    Ok(response.expect("a response"))
}

/// A gateway over TLS before an upstream over HTTP/2 or HTTP/3 alone, with this service and these protocols.
async fn before_streams(scheme: &str, protocols: &[&'static str]) -> (Stage, Running) {
    let upstream = Server::builder().extended_connect(protocols.iter().copied());
    let upstream = if scheme == "h2c" { upstream.plain() } else { upstream.names(["localhost"]) };
    let upstream = upstream.service(service_fn(repeat)).start().await.expect("a server");
    let url = format!("{scheme}://localhost:{}", upstream.local_addr().port());
    let mut gateway = Gateway::builder(url.parse().expect("an upstream"));
    if let Some(identity) = upstream.identity() {
        let roots = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        gateway = gateway.security(roots);
    }
    let gateway = gateway.build().expect("a gateway");
    let server = Server::builder().extended_connect(["websocket"]).service(gateway.clone());
    (Stage::of(server.start().await.expect("a server"), gateway), upstream)
}

//= rfc9220 §3, RFC 8441 §3, §5
//# extended CONNECT only once the setting has arrived; no `Sec-WebSocket-Key` and `-Accept`
#[tokio::test]
async fn a_websocket_passes_to_an_upstream_over_http2() {
    passes_to_an_upstream_over("h2c").await;
}

//= rfc9220 §3
//# a WebSocket on a stream to an upstream: its fields, both directions, the end and the reset of each
#[tokio::test]
async fn a_websocket_passes_to_an_upstream_over_http3() {
    passes_to_an_upstream_over("h3").await;
}

async fn passes_to_an_upstream_over(scheme: &str) {
    let (stage, _upstream) = before_streams(scheme, &["websocket"]).await;
    let gateway = stage.gateway.clone();
    let url = format!("https://localhost:{}/chat?a", stage.running.local_addr().port());
    for version in EACH_VERSION {
        let client = crate::stage::client(&stage, version);
        for breaks in [false, true] {
            let mut request = http::Request::get(&url)
                .header("sec-websocket-version", "13")
                .header("sec-websocket-protocol", "chat, other");
            if version.http1 {
                request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
            }
            let request = request.body(()).expect("a request");
            let answer = client.upgrade(&url, "websocket", request, TIMEOUT).await;
            let Connected::Tunnel(mut tunnel) = answer.expect("an answer") else {
                panic!("{version:?}")
            };
            assert_eq!(tunnel.headers()["sec-websocket-protocol"], "chat", "{version:?}");
            let accept = tunnel.headers().get("sec-websocket-accept").cloned();
            let expected = version.http1.then_some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
            assert_eq!(accept.as_ref().map(|accept| accept.to_str().expect("text")), expected);
            tunnel.write_all(b"hello").await.expect("open");
            let mut read = [0; 5];
            tunnel.read_exact(&mut read).await.expect("open");
            assert_eq!(&read, b"hello", "{version:?}");
            assert_eq!(gateway.stats().tunnels, 1);
            let mut rest = Vec::new();
            if breaks {
                tunnel.write_all(b"!").await.expect("open");
                let read = tokio::time::timeout(TIMEOUT, tunnel.read_to_end(&mut rest)).await;
                // hyper takes the CANCEL of RFC 8441 for an end, as the gateway's client, and as the test's.
                let is_end = scheme == "h2c" || version.http2;
                let read = read.expect("in time");
                assert!(read.is_err() || is_end, "{version:?}: {read:?}");
                assert_eq!(rest, b"", "{version:?}");
            } else {
                tunnel.write_all(b"the rest").await.expect("open");
                tunnel.shutdown().await.expect("open");
                let read = tokio::time::timeout(TIMEOUT, tunnel.read_to_end(&mut rest)).await;
                read.expect("in time").expect("a regular end");
                assert_eq!(rest, b"the rest", "{version:?}");
            }
            drop(tunnel);
            let ended = async {
                while gateway.stats().tunnels > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(TIMEOUT, ended).await.expect("it ends");
        }
    }
    assert_eq!(gateway.stats().connections, 1, "they share it");
}

#[tokio::test]
async fn an_upstream_without_websockets_on_streams_is_501() {
    for scheme in ["h2c", "h3"] {
        let (stage, _upstream) = before_streams(scheme, &[]).await;
        let url = format!("https://localhost:{}/chat?a", stage.running.local_addr().port());
        for version in EACH_VERSION {
            let client = crate::stage::client(&stage, version);
            let request = http::Request::get(&url)
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
                .body(())
                .expect("a request");
            let answer = client.upgrade(&url, "websocket", request, TIMEOUT).await;
            let Connected::Refused(response) = answer.expect("an answer") else {
                panic!("{scheme} {version:?}")
            };
            assert_eq!(response.status(), 501, "{scheme} {version:?}");
        }
        assert_eq!(stage.gateway.stats().tunnels, 0);
    }
}

//= rfc9220 §3
//# a reset, and the disappearance of the client, end both directions with H3_REQUEST_CANCELLED
#[tokio::test]
async fn what_breaks_one_side_of_a_websocket_over_http3_resets_the_other() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let request = "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    // The length means nothing there (RFC 9110 §9.3.6).
    let accepted = head(&[(":status", "200"), ("content-length", "3")]);
    for resets in [false, true] {
        let mut client = Upstream { stream: raw.stage.send(request).await, read: Vec::new() };
        let mut upstream = raw.request().await;
        upstream.write(&accepted).await;
        let answer = client.head().await.to_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        assert!(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
        assert!(!answer.contains("content-length"), "{answer}");
        client.send("hello").await;
        upstream.until(b"hello").await;
        upstream.write(&data(b"back again")).await;
        client.until("back again").await;
        if resets {
            upstream.send.reset(REQUEST_CANCELLED.into()).expect("open");
            assert_eq!(client.end().await, "");
        } else {
            socket2::SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).expect("set");
            drop(client);
        }
        // The other direction is not ended as if it were complete.
        assert_eq!(upstream.reset().await, REQUEST_CANCELLED.into());
    }
    // A refusal passes as any response does.
    let mut client = Upstream { stream: raw.stage.send(request).await, read: Vec::new() };
    let mut upstream = raw.request().await;
    let refusal = head(&[(":status", "403"), ("content-length", "2")]);
    upstream.respond(&[refusal, data(b"no")].concat()).await;
    assert!(client.head().await.starts_with("HTTP/1.1 403 "));
    client.until("no").await;
    assert_eq!(raw.stage.gateway.stats().tunnels, 0);
}
