//! WebSockets.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use eyas_http::serve::Server;
use sha1::Digest as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{OK, Stage, TIMEOUT, Upstream};

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

#[tokio::test]
async fn a_websocket_over_http2_becomes_one_over_http1() {
    let mut stage = Stage::plain().await;
    // The limits on idle time and body length do not apply to WebSockets.
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
    let mut request = http::Request::builder().method("CONNECT").uri("http://a.example/chat");
    request = request
        .header("sec-websocket-version", "13")
        .extension(h2::ext::Protocol::from("websocket"));
    let (answer, mut sender) =
        send.send_request(request.body(()).expect("one"), false).expect("sent");
    let mut upstream = stage.connection().await;
    let head = upstream.head().await;
    assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
    let key =
        head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).expect("a key");
    let hash = sha1::Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    let accept = base64::engine::general_purpose::STANDARD.encode(hash);
    upstream
        .send(&format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\nhello"
        ))
        .await;
    let answer = tokio::time::timeout(TIMEOUT, answer).await.expect("in time").expect("a response");
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("sec-websocket-accept"));
    let mut body = answer.into_body();
    assert_eq!(body.data().await.expect("some").expect("data"), "hello");
    sender.send_data("back".into(), false).expect("sent");
    upstream.until("back").await;
    tokio::time::sleep(2 * idle_time).await;
    upstream.send("more").await;
    assert_eq!(body.data().await.expect("some").expect("data"), "more");
    sender.send_data(Bytes::new(), true).expect("sent");
    assert_eq!(upstream.stream.read(&mut [0]).await.expect("an end"), 0);
    upstream.stream.shutdown().await.expect("ends");
    let rest = tokio::time::timeout(TIMEOUT, body.data()).await.expect("in time");
    assert!(rest.is_none_or(|rest| rest.expect("no reset").is_empty()));
}
