//! Tests of shutdown.

use std::{net::Ipv4Addr, time::Duration};

use bytes::Bytes;
use eyas_http::serve::Running;
use eyas_testserver::site::pattern_byte;
use http::{Response, Version};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    builder,
    clients::{SOON, get, h3_exchange, h3_over, http1, http2, quic, quic_to, start, tcp, tls},
    ports::own_port,
    server,
};

/// Waits until the server has received a request.
async fn request_received(running: &Running) {
    let seen = timeout(SOON, async {
        while running.stats().requests() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    });
    seen.await.expect("the request arrives");
}

fn assert_body(response: &Response<Bytes>, text: &str) {
    assert_eq!(std::str::from_utf8(response.body()).unwrap(), text);
}

#[tokio::test]
async fn responses_in_flight_over_tcp_are_completed() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        // A port that nothing else uses afterwards.
        let address = (Ipv4Addr::LOCALHOST, own_port()).into();
        let running = start(builder().listen(address)).await;
        let alpn: &[u8] = if version == Version::HTTP_2 { b"h2" } else { b"http/1.1" };
        let io = tls(&running, alpn).await;
        let request = tokio::spawn(async move {
            let slow = get("/slow?ms=400");
            if version == Version::HTTP_2 { http2(io, slow).await } else { http1(io, slow).await }
        });
        request_received(&running).await;
        let cut = timeout(SOON, running.shutdown(SOON)).await.expect("the shutdown ends");
        assert_eq!(cut, 0, "{version:?}");
        assert_body(&request.await.unwrap().expect("a whole response"), "waited 400 ms\n");
        assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nothing listens");
    }
}

#[tokio::test]
async fn a_response_in_flight_survives_a_graceful_shutdown() {
    let running = server().await;
    let (_conn, mut driver, mut send) = quic(&running).await;
    let driving =
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let request = tokio::spawn(async move {
        let response = h3_exchange(&mut send, get("/slow?ms=400")).await;
        (response, send)
    });
    request_received(&running).await;
    let cut = timeout(SOON, running.shutdown(SOON)).await.expect("the shutdown ends");
    let (response, _send) = request.await.unwrap();
    assert_body(&response.expect("a whole response"), "waited 400 ms\n");
    assert_eq!(cut, 0);
    let ended = timeout(SOON, driving).await.expect("the connection ends").unwrap();
    assert!(ended.is_h3_no_error(), "{ended}");
}

#[tokio::test]
async fn a_deadline_cuts_off_unfinished_responses() {
    let running = server().await;
    let (_conn, mut driver, mut send) = quic(&running).await;
    tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let request = tokio::spawn(async move {
        let mut stream =
            send.send_request(get("/slow?ms=60000").map(|_| ())).await.expect("a stream");
        stream.finish().await.expect("a request sent");
        stream.recv_response().await.is_err()
    });
    let held = tcp(running.local_addr()).await;
    request_received(&running).await;
    let grace = Duration::from_millis(100);
    let cut = timeout(SOON, running.shutdown(grace)).await.expect("the shutdown ends");
    assert!(cut >= 1, "{cut}");
    assert!(request.await.unwrap(), "the request fails");
    drop(held);
}

#[tokio::test]
async fn large_responses_are_completed_during_a_shutdown() {
    const COUNT: u64 = 8_000_000;
    let running = server().await;
    let (_conn, mut driver, mut send) = quic(&running).await;
    tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    let path = format!("/bytes/{COUNT}");
    let request = tokio::spawn(async move { h3_exchange(&mut send, get(&path)).await });
    request_received(&running).await;
    assert_eq!(timeout(SOON, running.shutdown(SOON)).await.expect("the shutdown ends"), 0);
    let response = request.await.unwrap().expect("a whole response");
    assert!(*response.body() == (0..COUNT).map(pattern_byte).collect::<Vec<u8>>());
}

/// What a client does before it vanishes.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// It sends the first packet of a handshake.
    Handshake,
    /// It has had no request.
    Nothing,
    /// It has asked for a response that takes long.
    Request(&'static str),
    /// It has asked for a response, and received a part of it.
    Part(&'static str),
}

/// Connects over QUIC and vanishes: nothing runs the client any more, and its socket stays open.
fn vanish(
    address: std::net::SocketAddr,
    root: rustls_pki_types::CertificateDer<'static>,
    last: Last,
) -> impl Drop + Send {
    struct Vanished(Option<tokio::runtime::Runtime>);
    impl Drop for Vanished {
        fn drop(&mut self) {
            self.0.take().expect("dropped once").shutdown_background();
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        if let Last::Handshake = last {
            let _ = timeout(Duration::from_millis(1), quic_to(address, &root)).await;
            return;
        }
        let conn = quic_to(address, &root).await.expect("a QUIC handshake");
        let (mut driver, mut send) = h3_over(conn.clone()).await;
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
        if let Last::Request(path) | Last::Part(path) = last {
            let mut stream = send.send_request(get(path).map(|_| ())).await.expect("a stream");
            stream.finish().await.expect("a request sent");
            if let Last::Part(_) = last {
                stream.recv_response().await.expect("a response");
                stream.recv_data().await.expect("a part").expect("a part");
            } else {
                sleep(Duration::from_millis(200)).await;
            }
            std::mem::forget(stream);
        }
        std::mem::forget((conn, send));
    });
    Vanished(Some(runtime))
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_have_vanished_do_not_hold_up_a_graceful_stop() {
    let mut stopping = JoinSet::new();
    for last in [
        Last::Handshake,
        Last::Nothing,
        Last::Request("/slow?ms=900"),
        Last::Request("/slow?ms=600000"),
        Last::Part("/bytes/1000000000"),
    ] {
        stopping.spawn(async move {
            let running = server().await;
            let root = running.identity().expect("a server with TLS").certificate().clone();
            let address = running.local_addr();
            let client = tokio::task::spawn_blocking(move || vanish(address, root, last));
            let vanished = client.await.expect("no panic");
            // As much of the response is in flight as the window allows.
            sleep(Duration::from_millis(500)).await;
            let stopped = timeout(SOON, running.shutdown(Duration::from_secs(600))).await;
            stopped.unwrap_or_else(|_| panic!("{last:?}: the stop hangs"));
            drop(vanished);
        });
    }
    while let Some(stopped) = stopping.join_next().await {
        stopped.expect("it stops");
    }
}
