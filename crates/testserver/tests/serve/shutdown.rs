//! Tests of shutdown.

use std::{net::Ipv4Addr, time::Duration};

use bytes::Bytes;
use eyas_http::serve::Running;
use eyas_testserver::site::pattern_byte;
use http::{Response, Version};
use tokio::time::{sleep, timeout};

use crate::{
    builder,
    clients::{SOON, get, h3_exchange, http1, http2, quic, start, tcp, tls},
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
