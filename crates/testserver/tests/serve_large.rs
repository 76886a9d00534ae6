//! Tests that a large body arrives completely over HTTP/3 in constant memory.
//!
//! The default size keeps a test run short; `EYAS_LARGE_BYTES=104857600` is what a release must pass.
#![cfg(target_os = "linux")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Buf;
use eyas_http::serve::Server;
use eyas_testserver::site::{Site, pattern_byte};
use quinn::crypto::rustls::QuicClientConfig;

/// The size without `EYAS_LARGE_BYTES`.
const DEFAULT_BYTES: u64 = 32 * 1024 * 1024;

/// The maximum growth of the process with client and server, in KiB: the windows of one connection
/// on both sides, and some for the allocator. Buffering the body would take more.
const MAX_GROWTH_KIB: u64 = 28 * 1024;

/// Returns the peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("with a peak");
    line.split_whitespace().nth(1).expect("in KiB").parse().expect("a number")
}

#[tokio::test]
async fn a_large_body_is_complete_and_not_buffered() {
    let count = std::env::var("EYAS_LARGE_BYTES")
        .map_or(DEFAULT_BYTES, |count| count.parse().expect("EYAS_LARGE_BYTES is a number"));
    let running = Server::builder().service(Site::new()).start().await.expect("the server starts");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(running.identity().expect("TLS").certificate().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).expect("a QUIC configuration");
    let mut endpoint =
        quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("an endpoint");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    let connecting = endpoint.connect(running.local_addr(), "localhost").expect("a target");
    let conn = connecting.await.expect("a handshake");
    let (mut driver, mut send) =
        h3::client::new(h3_quinn::Connection::new(conn)).await.expect("HTTP/3");
    tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });

    let before = peak_kib();
    let uri = format!("https://localhost/bytes/{count}");
    let request = http::Request::get(uri).body(()).expect("a request");
    let mut stream = send.send_request(request).await.expect("a stream");
    stream.finish().await.expect("sent");
    let response = stream.recv_response().await.expect("a response");
    assert_eq!(response.headers()["content-length"], count.to_string());
    let mut position = 0;
    while let Some(mut data) = stream.recv_data().await.expect("a whole body") {
        while data.has_remaining() {
            let chunk = data.chunk();
            assert!(
                chunk.iter().zip(position..).all(|(byte, offset)| *byte == pattern_byte(offset)),
                "the pattern breaks after {position}"
            );
            position += chunk.len() as u64;
            let length = chunk.len();
            data.advance(length);
        }
    }
    assert_eq!(position, count);
    let growth = peak_kib() - before;
    assert!(growth < MAX_GROWTH_KIB, "memory grew by {growth} KiB");
    running.shutdown(Duration::from_secs(10)).await;
}
