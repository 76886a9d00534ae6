//! Tests of slow, large and hostile requests.

use std::time::Duration;

use bytes::Bytes;
use eyas_http::serve::{Limits, Running};
use http::{Method, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{sleep, timeout},
};

use crate::{
    builder,
    clients::{SOON, Speak, fetch, get, quic, raw, request, start, tcp},
    server,
};

async fn plain(limits: impl FnOnce(&mut Limits)) -> Running {
    start(builder().plain().limits(changed(limits))).await
}

async fn secure(limits: impl FnOnce(&mut Limits)) -> Running {
    start(builder().limits(changed(limits))).await
}

fn changed(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[tokio::test]
async fn invalid_requests_are_answered_400() {
    let running = start(builder().plain()).await;
    for request in [
        "GET\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
    ] {
        let close = request.replace("Host: a\r\n", "Host: a\r\nConnection: close\r\n");
        let close = close.replace("HTTP/1.1\r\n\r\n", "HTTP/1.1\r\nConnection: close\r\n\r\n");
        let answer = raw(running.local_addr(), close.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
    }
}

//= hostile http
//# endless heads and bodies
//= bound: `header_bytes`, `header_fields`, `body_bytes`
#[tokio::test]
async fn large_heads_are_answered_431() {
    let big = "x".repeat(40 * 1024);
    let running = start(builder().plain()).await;
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Big: {big}\r\n\r\n");
    let answer = raw(running.local_addr(), head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many = "X-Many: 1\r\n".repeat(101);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n");
    let answer = raw(running.local_addr(), head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");

    let running = server().await;
    for speak in [Speak::Http2, Speak::Http3] {
        let mut request = get("/");
        request.headers_mut().insert("x-big", big.parse().unwrap());
        let response = fetch(&running, speak, request).await;
        assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{speak:?}");
    }
}

#[tokio::test]
async fn an_endless_head_over_http3_is_cut_off() {
    let running = server().await;
    let (conn, _driver, _send) = quic(&running).await;
    let (mut send, mut recv) = conn.open_bi().await.unwrap();
    // HEADERS of 2^30 bytes.
    send.write_all(&[0x01, 0xc0, 0, 0, 0, 0x40, 0, 0, 0]).await.unwrap();
    let cut = timeout(SOON, async {
        while send.write_all(&[0; 1024]).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
        recv.read_to_end(1024).await
    });
    assert!(cut.await.expect("an end").is_err());
    // The connection remains usable for others.
    let response = fetch(&running, Speak::Http3, get("/bytes/1")).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn large_bodies_are_refused_or_cut_off() {
    let running = start(builder().limits(changed(|limits| limits.body_bytes = 1000))).await;
    for speak in Speak::SECURE {
        let small = request(Method::POST, "/echo", Bytes::from(vec![1; 1000]));
        assert_eq!(fetch(&running, speak, small).await.status(), StatusCode::OK, "{speak:?}");
        let mut big = request(Method::POST, "/echo", Bytes::from(vec![1; 1001]));
        big.headers_mut().insert("content-length", "1001".parse().unwrap());
        let response = fetch(&running, speak, big).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE, "{speak:?}");
    }
    let plain = plain(|limits| limits.body_bytes = 1000).await;
    let chunk = format!("3e9\r\n{}\r\n", "x".repeat(1001));
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = raw(plain.local_addr(), format!("{head}{chunk}0\r\n\r\n").as_bytes()).await;
    assert!(!answer.ends_with("0\r\n\r\n"), "cut, not complete: {answer}");
}

//= hostile http
//# a slow loris, or silence
//= bound: `header_read_time`, `handshake_time`, `idle_time`
#[tokio::test]
async fn a_slow_loris_is_cut_off_and_does_not_block_others() {
    // Long enough for the other one, on any machine.
    let running = plain(|limits| limits.header_read_time = Duration::from_secs(2)).await;
    let mut loris = tcp(running.local_addr()).await;
    loris.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let dribble = async {
        loop {
            if loris.write_all(b"X: y\r\n").await.is_err() {
                return;
            }
            let mut byte = [0; 256];
            if let Ok(Ok(0) | Err(_)) =
                timeout(Duration::from_millis(20), loris.read(&mut byte)).await
            {
                return;
            }
        }
    };
    let other = async {
        let response = fetch(&running, Speak::PlainHttp2, get("/bytes/10")).await;
        assert_eq!(response.status(), StatusCode::OK);
    };
    timeout(SOON, async { tokio::join!(dribble, other) }).await.expect("the loris is cut");
    assert!(running.stats().timed_out >= 1);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let idle = |limits: &mut Limits| {
        limits.idle_time = Duration::from_millis(200);
        limits.handshake_time = Duration::from_millis(200);
    };
    for running in [plain(idle).await, secure(idle).await] {
        let mut silent = tcp(running.local_addr()).await;
        let mut rest = Vec::new();
        let closed = timeout(SOON, silent.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "closed by the server");
    }
    // Long enough for the handshake on any machine.
    let running = secure(|limits| limits.idle_time = Duration::from_secs(2)).await;
    let (conn, mut driver, _send) = quic(&running).await;
    tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    timeout(SOON, conn.closed()).await.expect("closed by the server");
    assert_eq!(running.stats().timed_out, 1);
}

//= hostile http
//# HTTP/1 clients that do not read
//= bound: `progress_bytes` within `idle_time`
#[tokio::test]
async fn a_connection_that_does_not_read_is_closed() {
    let running = plain(|limits| limits.idle_time = Duration::from_secs(1)).await;
    let mut stalled = tcp(running.local_addr()).await;
    stalled.write_all(b"GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let closed = timeout(SOON, async {
        while running.stats().requests() == 0 || running.stats().connections_open > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    });
    closed.await.expect("closed by the server");
    assert_eq!(running.stats().timed_out, 1);
}

#[tokio::test]
async fn a_slow_answer_is_not_an_idle_connection() {
    // Long enough for the request to arrive, on any machine.
    let running = secure(|limits| limits.idle_time = Duration::from_secs(2)).await;
    let ask = async |speak| fetch(&running, speak, get("/slow?ms=5000")).await.status();
    let [one, two, three] = Speak::SECURE;
    let answers = tokio::join!(ask(one), ask(two), ask(three));
    assert_eq!(answers, (StatusCode::OK, StatusCode::OK, StatusCode::OK));
}

//= hostile http
//# endless connections
//= bound: `connections`, `connections_per_peer`, from half on what is free
#[tokio::test]
async fn connections_above_the_limit_are_refused() {
    let running = plain(|limits| limits.connections = 2).await;
    let mut held = [tcp(running.local_addr()).await, tcp(running.local_addr()).await];
    for connection in &mut held {
        connection.write_all(b"GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        connection.read_exact(&mut [0; 12]).await.unwrap();
    }
    let mut third = tcp(running.local_addr()).await;
    let mut rest = Vec::new();
    let end = timeout(SOON, third.read_to_end(&mut rest)).await.expect("closed at once");
    assert!(matches!(end, Ok(0) | Err(_)));
    assert_eq!(running.stats().connections_refused, 1);
    drop(held);
    let room = timeout(SOON, async {
        while running.stats().connections_open > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    });
    room.await.expect("connections are allowed again");
    let answer = raw(running.local_addr(), b"GET /bytes/1 HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
}

//= hostile http
//# connections that never send a request
//= bound: `connections`, `MAX_EVICTED`
#[tokio::test]
async fn connections_without_a_request_make_room_for_others() {
    let running = secure(|limits| limits.connections = 2).await;
    let open = async |expected| {
        let counted = timeout(SOON, async {
            while running.stats().connections_open != expected {
                sleep(Duration::from_millis(5)).await;
            }
        });
        counted.await.unwrap_or_else(|_| panic!("{expected} connections"));
    };
    let mut oldest = tcp(running.local_addr()).await;
    for speak in Speak::SECURE {
        open(1).await;
        let later = tcp(running.local_addr()).await;
        open(2).await;
        assert_eq!(fetch(&running, speak, get("/bytes/1")).await.status(), StatusCode::OK);
        let end = timeout(SOON, oldest.read_to_end(&mut Vec::new())).await.expect("closed");
        assert!(matches!(end, Ok(0) | Err(_)));
        oldest = later;
    }
    assert_eq!(running.stats().connections_refused, 0);
}
