//! Tests of peers that request much and read little: how much the server buffers for them, and for
//! how long.

use std::{fs, future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use eyas_http::serve::{Limits, Running, Server, Stats};
use eyas_testserver::site::Site;
use http::{Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{sleep, timeout},
};

use crate::clients::{H3Sender, SOON, Speak, fetch, get, h3_over, quic, start, tcp, trust};

/// The memory that each request may hold regardless of the budget.
const LEAST_PIECE: u64 = 4096;

const LARGE: usize = 3_000_000;

/// Starts a server without TLS, with a large file and a directory of many names.
async fn server_with(change: impl FnOnce(&mut Limits)) -> (TempDir, Running) {
    let home = tempfile::tempdir().unwrap();
    let pattern: Vec<u8> = (0..LARGE).map(|offset| (offset % 251) as u8).collect();
    fs::write(home.path().join("large"), pattern).unwrap();
    fs::create_dir(home.path().join("many")).unwrap();
    for number in 0..1000 {
        fs::write(home.path().join(format!("many/{number:04}")), "").unwrap();
    }
    let mut limits = Limits::default();
    change(&mut limits);
    let running = start(
        Server::builder()
            .service(Site::with_directory(home.path()).unwrap())
            .plain()
            .limits(limits),
    )
    .await;
    (home, running)
}

/// Starts a server with TLS and a large file.
async fn secure_with(change: impl FnOnce(&mut Limits)) -> (TempDir, Running) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("large"), vec![7; LARGE]).unwrap();
    let mut limits = Limits::default();
    change(&mut limits);
    let running =
        start(Server::builder().service(Site::with_directory(home.path()).unwrap()).limits(limits))
            .await;
    (home, running)
}

async fn until(running: &Running, what: &str, holds: impl Fn(&Stats) -> bool) -> Stats {
    let reached = timeout(SOON, async {
        while !holds(&running.stats()) {
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(reached.await.is_ok(), "{what}: {:?}", running.stats());
    running.stats()
}

type Sender = h2::client::SendRequest<Bytes>;
type ResponseFuture = h2::client::ResponseFuture;

/// Opens an HTTP/2 connection with windows of this size, and returns its pings too.
async fn h2_with(running: &Running, window: u32) -> (Sender, h2::PingPong) {
    let io = tcp(running.local_addr()).await;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    let (send, mut conn) = builder.handshake::<_, Bytes>(io).await.unwrap();
    let pings = conn.ping_pong().unwrap();
    tokio::spawn(conn);
    (send.ready().await.unwrap(), pings)
}

async fn send_get(send: &mut Sender, path: &str) -> ResponseFuture {
    *send = send.clone().ready().await.unwrap();
    let request = Request::get(format!("http://localhost{path}")).body(()).unwrap();
    send.send_request(request, true).unwrap().0
}

//= hostile http
//# one-byte windows on every stream
//= bound: `LEAST_PIECE` per request, `open_files_per_connection`, `open_files`
#[tokio::test]
async fn one_byte_windows_limit_what_the_server_buffers() {
    let (_home, running) = server_with(|_| {}).await;
    let (mut send, _pings) = h2_with(&running, 1).await;
    let mut bodies = Vec::new();
    for _ in 0..100 {
        bodies.push(send_get(&mut send, "/large").await.await.unwrap().into_body());
    }
    for body in &mut bodies {
        assert_eq!(body.data().await.unwrap().unwrap().len(), 1);
    }
    let stats = running.stats();
    assert_eq!(stats.requests_in_flight, 100);
    assert!(stats.buffered_bytes <= 100 * LEAST_PIECE, "{stats:?}");
    assert!(stats.open_files <= 16, "{stats:?}");
    drop((bodies, send));
    let nothing = |stats: &Stats| {
        (stats.buffered_bytes, stats.open_files, stats.requests_in_flight) == (0, 0, 0)
    };
    until(&running, "everything is released", nothing).await;
}

//= hostile http
//# zero windows on files and listings
//= bound: nothing is read before a byte of it can be sent
#[tokio::test]
async fn files_are_read_only_as_fast_as_they_are_sent() {
    let (_home, running) = server_with(|_| {}).await;
    let (mut send, _pings) = h2_with(&running, 0).await;
    let mut responses = Vec::new();
    for path in ["/large", "/many/", "/bytes/1000000"].repeat(20) {
        responses.push(send_get(&mut send, path).await.await.unwrap());
    }
    let stats = running.stats();
    assert_eq!((stats.buffered_bytes, stats.open_files), (0, 0), "{stats:?}");
}

//= hostile http
//# PINGs instead of progress
//= bound: `idle_time` per response
#[tokio::test]
async fn pings_do_not_keep_a_response_open() {
    let (_home, running) =
        server_with(|limits| limits.idle_time = Duration::from_millis(300)).await;
    let (mut send, mut pings) = h2_with(&running, 1).await;
    let mut body = send_get(&mut send, "/large").await.await.unwrap().into_body();
    body.data().await.unwrap().unwrap();
    let pinging = async {
        while pings.ping(h2::Ping::opaque()).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::select! {
        ended = timeout(SOON, body.data()) => ended.expect("an end"),
        () = pinging => panic!("the connection continues"),
    };
    let error = ended.expect("no end of the body").expect_err("a reset");
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
    assert_eq!(running.stats().responses_stalled, 1);
}

//= hostile http
//# a window that opens by a byte at times
//= bound: `progress_bytes`
#[tokio::test]
async fn a_window_update_of_one_byte_is_not_progress() {
    let (_home, running) =
        server_with(|limits| limits.idle_time = Duration::from_millis(300)).await;
    let (mut send, _pings) = h2_with(&running, 1).await;
    let mut body = send_get(&mut send, "/large").await.await.unwrap().into_body();
    let slow_reader = async {
        while let Some(Ok(data)) = body.data().await {
            body.flow_control().release_capacity(data.len()).unwrap();
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, slow_reader).await.expect("it is aborted");
    assert_eq!(running.stats().responses_stalled, 1);
}

//= hostile http
//# endless requests
//= bound: `requests`, `concurrent_streams`
#[tokio::test]
async fn requests_above_the_limit_are_refused_but_never_the_first() {
    let (_home, running) = server_with(|limits| limits.requests = 0).await;
    let (mut send, _pings) = h2_with(&running, 65_535).await;
    let first = send_get(&mut send, "/slow?ms=2000").await;
    until(&running, "it has started", |stats| stats.requests_in_flight == 1).await;
    let refused = send_get(&mut send, "/bytes/1").await.await.unwrap_err();
    assert_eq!(refused.reason(), Some(h2::Reason::REFUSED_STREAM));
    assert_eq!(first.await.unwrap().status(), StatusCode::OK);
    // The first request of other clients is served, too.
    let response = fetch(&running, Speak::PlainHttp2, get("/bytes/1")).await;
    assert_eq!((response.status(), running.stats().requests_refused), (StatusCode::OK, 1));
}

#[tokio::test]
async fn requests_above_the_limit_are_rejected_over_http3() {
    let (_home, running) = secure_with(|limits| limits.requests = 0).await;
    let (conn, _driver, mut send) = quic(&running).await;
    let mut slow = send.send_request(get("/slow?ms=2000").map(|_| ())).await.unwrap();
    slow.finish().await.unwrap();
    until(&running, "it has started", |stats| stats.requests_in_flight == 1).await;
    let (_, mut recv) = conn.open_bi().await.map(|(mut send, recv)| (send.finish(), recv)).unwrap();
    let refused = timeout(SOON, recv.read_to_end(100)).await.expect("an answer");
    let quinn::ReadToEndError::Read(quinn::ReadError::Reset(code)) = refused.unwrap_err() else {
        panic!("a reset is expected");
    };
    assert_eq!(code.into_inner(), 0x10b, "H3_REQUEST_REJECTED");
    assert_eq!(slow.recv_response().await.unwrap().status(), StatusCode::OK);
}

/// Opens an HTTP/3 connection whose streams have windows of this size.
async fn h3_with(running: &Running, window: u32) -> (quinn::Connection, H3Sender) {
    let root = running.identity().unwrap().certificate();
    let crypto = QuicClientConfig::try_from(trust(root, b"h3")).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(window.into());
    config.transport_config(Arc::new(transport));
    let mut endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    endpoint.set_default_client_config(config);
    let conn = endpoint.connect(running.local_addr(), "localhost").unwrap().await.unwrap();
    let (mut driver, send) = h3_over(conn.clone()).await;
    tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    (conn, send)
}

//= hostile http
//# stalled HTTP/3 streams
//= bound: as for HTTP/2; `MAX_WINDOW`
#[tokio::test]
async fn stalled_http3_streams_limit_what_the_server_buffers() {
    let (_home, running) = secure_with(|_| {}).await;
    let (_conn, mut send) = h3_with(&running, 200).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        let mut stream = send.send_request(get("/large").map(|_| ())).await.unwrap();
        stream.finish().await.unwrap();
        streams.push(stream);
    }
    let stats = until(&running, "all are answered", |stats| {
        stats.requests_in_flight == 100 && stats.buffered_bytes >= 100 * 1024
    });
    let stats = stats.await;
    assert!(stats.buffered_bytes <= 2 * 100 * LEAST_PIECE, "{stats:?}");
    assert!(stats.open_files <= 16, "{stats:?}");
}

#[tokio::test]
async fn a_stalled_stream_of_http3_is_reset_and_others_continue() {
    // Long enough for the handshake on any machine.
    let (_home, running) = secure_with(|limits| limits.idle_time = Duration::from_secs(2)).await;
    let (conn, mut send) = h3_with(&running, 1000).await;
    let mut stalled = send.send_request(get("/large").map(|_| ())).await.unwrap();
    stalled.finish().await.unwrap();
    let others = async {
        loop {
            let mut stream = send.send_request(get("/bytes/10").map(|_| ())).await.unwrap();
            stream.finish().await.unwrap();
            assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        _ = until(&running, "it is reset", |stats| stats.responses_stalled == 1) => {}
        () = others => {}
    }
    assert!(conn.close_reason().is_none(), "the connection continues");
}

#[tokio::test]
async fn responses_are_complete_without_a_budget() {
    let (_home, running) = server_with(|limits| {
        limits.buffered_bytes = 0;
        limits.open_files = 0;
    })
    .await;
    for speak in Speak::PLAIN {
        let response = fetch(&running, speak, get("/large")).await;
        let body = response.body();
        assert_eq!(body.len(), LARGE, "{speak:?}");
        assert!(body.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251));
        // Responses that must be buffered completely are refused.
        let busy = fetch(&running, speak, get("/many/")).await;
        assert_eq!(busy.status(), StatusCode::SERVICE_UNAVAILABLE, "{speak:?}");
        assert!(busy.headers().contains_key("retry-after"));
    }
    let (_home, running) = secure_with(|limits| {
        limits.buffered_bytes = 0;
        limits.open_files = 0;
    })
    .await;
    let response = fetch(&running, Speak::Http3, get("/large")).await;
    assert_eq!(response.body().len(), LARGE);
}

//= hostile http
//# listings of large directories
//= bound: `MAX_ITEMS`; read once for all within `FRESH`, `MAX_READING` at a time
#[tokio::test]
async fn many_names_are_listed_completely() {
    let (_home, running) = server_with(|_| {}).await;
    for speak in Speak::PLAIN {
        let response = fetch(&running, speak, get("/many/")).await;
        let page = String::from_utf8(response.into_body().to_vec()).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{speak:?}");
        assert!((0..1000).all(|number| page.contains(&format!("\"{number:04}\""))), "{speak:?}");
    }
}

#[tokio::test]
async fn a_file_replaced_during_a_download_is_not_mixed_with_the_new_one() {
    let (home, running) = server_with(|limits| limits.open_files = 0).await;
    let (mut send, _pings) = h2_with(&running, 1000).await;
    let mut body = send_get(&mut send, "/large").await.await.unwrap().into_body();
    let first = body.data().await.unwrap().unwrap();
    fs::write(home.path().join("new"), vec![9; LARGE]).unwrap();
    fs::rename(home.path().join("new"), home.path().join("large")).unwrap();
    body.flow_control().release_capacity(first.len()).unwrap();
    let rest = async {
        loop {
            match body.data().await {
                Some(Ok(data)) => {
                    assert!(!data.contains(&9) || data.iter().any(|byte| *byte > 9));
                    body.flow_control().release_capacity(data.len()).unwrap();
                }
                Some(Err(error)) => return error,
                None => panic!("the body ended although it is incomplete"),
            }
        }
    };
    let error = timeout(SOON, rest).await.expect("an end");
    assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
}

//= hostile http
//# uploads that trickle
//= bound: `progress_bytes` within `idle_time`; 408
#[tokio::test]
async fn an_upload_that_trickles_is_closed() {
    let (_home, running) =
        server_with(|limits| limits.idle_time = Duration::from_millis(400)).await;
    let mut upload = tcp(running.local_addr()).await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    upload.write_all(head).await.unwrap();
    let (mut read, mut write) = upload.split();
    let trickling = async {
        while write.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        ended = timeout(SOON, read.read_to_end(&mut answer)) => drop(ended.expect("closed")),
        () = trickling => {}
    }
    assert_eq!(running.stats().timed_out, 1);
}
