//! Ends of responses that must not be lost: those that end before the request was read, and those
//! that a slow client is still reading when the server stops.

use std::{sync::Arc, time::Duration};

use eyas_http::serve::{Limits, Running, ServerBuilder};
use eyas_testserver::site::pattern_byte;
use http::{Method, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{sleep, timeout},
};

use crate::{
    builder,
    clients::{SOON, Speak, fetch, get, request, start, tcp, tls},
    server,
};

/// More than all buffers of a connection.
const UPLOAD: usize = 12_000_000;

/// Requests that are answered before they were read: a name, the head and the status.
const EARLY: [(&str, &str, u16); 6] = [
    (
        "too large as announced",
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n",
        413,
    ),
    ("no such route", "POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 12000000\r\n\r\n", 404),
    (
        "method not allowed",
        "PUT /bytes/9 HTTP/1.1\r\nHost: x\r\nContent-Length: 12000000\r\n\r\n",
        405,
    ),
    ("no host", "POST /echo HTTP/1.1\r\nContent-Length: 12000000\r\n\r\n", 400),
    (
        "closed by the client's wish",
        "POST /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 12000000\r\n\r\n",
        404,
    ),
    ("not HTTP", "POST\u{1} /echo HTTP/1.1\r\nContent-Length: 12000000\r\n\r\n", 400),
];

fn limited(body_bytes: u64) -> ServerBuilder {
    builder().limits(Limits { body_bytes, ..Limits::default() })
}

/// Sends everything before it reads, as simple clients do; returns the response.
async fn upload_then_read<T: AsyncRead + AsyncWrite + Unpin>(mut io: T, head: &str) -> String {
    io.write_all(head.as_bytes()).await.expect("the head is sent");
    // A client that does not expect a response yet.
    sleep(Duration::from_millis(100)).await;
    let piece = vec![b'.'; 64 * 1024];
    for start in (0..UPLOAD).step_by(piece.len()) {
        let length = piece.len().min(UPLOAD - start);
        io.write_all(&piece[..length]).await.unwrap_or_else(|error| {
            panic!("{head:?}: {error} after {start} bytes of the body");
        });
    }
    io.flush().await.expect("the body is sent");
    let mut response = Vec::new();
    // Reads the response, and no more: the connection may stay open.
    while !is_complete(&response) {
        let length = io.read_buf(&mut response).await.expect("a response, not a reset");
        assert!(length > 0, "{head:?}: the response is cut short");
    }
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns whether the response has all of the content that it announces.
fn is_complete(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_reaches_clients_that_only_write() {
    let running = start(limited(20_000_000)).await;
    for (name, head, status) in EARLY {
        let response = timeout(SOON, upload_then_read(tls(&running, b"http/1.1").await, head));
        let response = response.await.unwrap_or_else(|_| panic!("{name}: no response in time"));
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {response}");
    }
    let plain = start(limited(20_000_000).plain()).await;
    for (name, head, status) in EARLY {
        let response = timeout(SOON, upload_then_read(tcp(plain.local_addr()).await, head));
        let response = response.await.unwrap_or_else(|_| panic!("{name}: no response in time"));
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {response}");
    }
}

/// The same over every version, with clients that read while they write.
#[tokio::test]
async fn a_response_before_the_end_of_the_request_arrives_over_every_version() {
    let running = start(limited(1_000_000)).await;
    for speak in [Speak::Http1, Speak::Http2] {
        let answered = fetch(&running, speak, request(Method::POST, "/none", vec![0; 3_000_000]));
        assert_eq!(answered.await.status(), StatusCode::PAYLOAD_TOO_LARGE, "{speak:?}");
        let answered = fetch(&running, speak, request(Method::POST, "/none", vec![0; 900_000]));
        assert_eq!(answered.await.status(), StatusCode::NOT_FOUND, "{speak:?}");
    }
    assert_eq!(fetch(&running, Speak::Http3, get("/none")).await.status(), StatusCode::NOT_FOUND);
}

/// Reads an HTTP/2 response slowly, with a window that the client opens as it reads.
async fn read_slowly(
    running: &Running,
    count: u64,
) -> (tokio::task::JoinHandle<Vec<u8>>, Arc<tokio::sync::Notify>) {
    let io = tls(running, b"h2").await;
    let (mut send, connection) = h2::client::Builder::new()
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 20)
        .handshake::<_, bytes::Bytes>(io)
        .await
        .expect("a connection");
    tokio::spawn(connection);
    let begun = Arc::new(tokio::sync::Notify::new());
    let started = Arc::clone(&begun);
    let reading = tokio::spawn(async move {
        let request = get(&format!("/bytes/{count}")).map(|_| ());
        let (response, _) = send.send_request(request, true).expect("a stream");
        let mut body = response.await.expect("a response").into_body();
        let mut read = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.expect("a whole response");
            read.extend_from_slice(&piece);
            let _ = body.flow_control().release_capacity(piece.len());
            started.notify_one();
            sleep(Duration::from_millis(4)).await;
        }
        read
    });
    (reading, begun)
}

#[tokio::test]
async fn a_slow_download_over_http2_survives_a_graceful_stop() {
    const COUNT: u64 = 8_000_000;
    for _ in 0..3 {
        let running = server().await;
        let (reading, begun) = read_slowly(&running, COUNT).await;
        begun.notified().await;
        let cut = timeout(SOON * 2, running.shutdown(SOON * 2)).await.expect("the stop ends");
        assert_eq!(cut, 0);
        let read = reading.await.expect("no panic");
        assert!(read == (0..COUNT).map(pattern_byte).collect::<Vec<u8>>(), "{} bytes", read.len());
    }
}

/// The same over HTTP/1.1, with a client that has more requests under way.
#[tokio::test]
async fn a_slow_download_over_http1_survives_a_graceful_stop() {
    const COUNT: usize = 8_000_000;
    let running = server().await;
    let mut io = tls(&running, b"http/1.1").await;
    let request = format!(
        "GET /bytes/{COUNT} HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    io.write_all(request.as_bytes()).await.expect("sent");
    let mut read = vec![0; 4096];
    let head = io.read(&mut read).await.expect("a response");
    assert!(head > 0);
    let reading = tokio::spawn(async move {
        let mut total = head;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match io.read(&mut buffer).await {
                Ok(0) => return total,
                Ok(length) => total += length,
                Err(error) => panic!("{error} after {total} bytes"),
            }
            sleep(Duration::from_millis(4)).await;
        }
    });
    let cut = timeout(SOON * 2, running.shutdown(SOON * 2)).await.expect("the stop ends");
    assert_eq!(cut, 0);
    assert!(reading.await.expect("no panic") >= COUNT);
}

/// A client that leaves an idle connection open does not hold up the stop of the server.
#[tokio::test]
async fn an_idle_connection_is_closed_at_once() {
    let running = server().await;
    let mut io = tls(&running, b"http/1.1").await;
    io.write_all(b"GET /bytes/9 HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let mut response = Vec::new();
    while !is_complete(&response) {
        assert!(io.read_buf(&mut response).await.expect("a response") > 0);
    }
    let grace = Duration::from_secs(60);
    assert_eq!(timeout(SOON, running.shutdown(grace)).await.expect("the stop ends"), 0);
}
