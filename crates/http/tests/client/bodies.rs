//! Tests of invalid response bodies, and of the limits on bodies.

use std::time::Duration;

use eyas_http::{Kind, Versions};
use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::site::{End, Plan, Reply, builder, builder_for};

const EACH: [Versions; 3] = [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3];

/// Starts a server that answers every connection with these octets and closes it.
async fn octets(reply: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(reply).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_reset_in_mid_body_is_a_distinct_error() {
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let site = Plan::default().start(|_| Reply::text("half").end(End::Reset)).await;
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let mut response = client.get(site.url("/")).send().await.expect("a head");
        assert_eq!(response.chunk().await.expect("a chunk").as_deref(), Some(&b"half"[..]));
        site.reset();
        let error = response.chunk().await.expect_err("a reset");
        assert_eq!(error.kind(), Kind::BodyReset, "{error}");
        assert!(error.to_string().contains(&site.url("/")), "{error}");
        assert!(error.candidate().is_some());
        assert!(response.chunk().await.expect("the end").is_none());
    }
}

#[tokio::test]
async fn a_truncated_body_over_http_1() {
    for reply in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let port = octets(reply).await;
        let client = builder_for(&[port], &[]).build().expect("a client");
        let response = client.get(format!("http://127.0.0.1:{port}/")).send().await;
        let error = response.expect("a head").bytes().await.expect_err("truncated");
        assert_eq!(error.kind(), Kind::BodyTruncated, "{error}");
        assert!(error.kind().is_body());
    }
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_is_complete() {
    let port = octets(b"HTTP/1.0 200 OK\r\n\r\nall of it").await;
    let client = builder_for(&[port], &[]).build().expect("a client");
    let response = client.get(format!("http://127.0.0.1:{port}/")).send().await.expect("a head");
    assert_eq!(response.version(), http::Version::HTTP_10);
    assert_eq!(response.text().await.expect("a body"), "all of it");
}

//= hostile client
//# a body that is not as long as announced
//= bound: `-o` leaves no file
#[tokio::test]
async fn a_body_that_is_not_as_long_as_announced() {
    for (announced, body) in [("10", "short"), ("3", "too long")] {
        let site = Plan::default()
            .start(move |_| Reply::text(body).header("content-length", announced))
            .await;
        let client = builder(&[&site]).versions(Versions::HTTP_3).build().expect("a client");
        let response = client.get(site.url("/")).send().await.expect("a head");
        let error = response.bytes().await.expect_err("a wrong length");
        assert_eq!(error.kind(), Kind::BodyLength, "{error}");
    }
}

//= hostile client
//# silence
//= bound: `--max-time`
#[tokio::test]
async fn silence_in_mid_body_and_before_the_response() {
    let site = Plan::default().start(|_| Reply::text("half").end(End::Never)).await;
    // Long enough for the head on any machine.
    let idle = Duration::from_secs(2);
    let fetch = |versions| {
        let client = builder(&[&site]).versions(versions).idle_timeout(idle).build();
        let request = client.expect("a client").get(site.url("/"));
        async move {
            let response = request.send().await.expect("a head");
            let error = response.bytes().await.expect_err("silence");
            assert_eq!(error.kind(), Kind::IdleTimeout, "{error}");
            assert!(error.kind().is_timeout());
        }
    };
    join_all(EACH.map(fetch)).await;
}

#[tokio::test]
async fn the_total_timeout_includes_the_body() {
    let site = Plan::default().start(|_| Reply::text("half").end(End::Never)).await;
    // Long enough for the head on any machine.
    let total = Duration::from_secs(4);
    let fetch = |versions| {
        let client = builder(&[&site]).versions(versions).timeout(total).build();
        let request = client.expect("a client").get(site.url("/"));
        async move {
            let response = request.send().await.expect("a head");
            let error = response.bytes().await.expect_err("too late");
            assert_eq!(error.kind(), Kind::TotalTimeout, "{error}");
        }
    };
    join_all(EACH.map(fetch)).await;
}

#[tokio::test]
async fn dropping_a_body_does_not_disturb_the_next_request() {
    let site = Plan::default()
        .start(|seen| match seen.target.ends_with("/endless") {
            true => Reply::text("half").end(End::Never),
            false => Reply::text("whole"),
        })
        .await;
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        drop(client.get(site.url("/endless")).send().await.expect("a head"));
        let response = client.get(site.url("/")).send().await.expect("a response");
        assert_eq!(response.text().await.expect("a body"), "whole");
    }
}
