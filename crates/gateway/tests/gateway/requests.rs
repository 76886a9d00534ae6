//! Requests and their responses.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use eyas_gateway::{Gateway, GatewayLimits};
use eyas_http::Body;
use eyas_http::serve::Server;
use eyas_testserver::site::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;

use crate::stage::{EACH_VERSION, GET, OK, Stage, client, read_all};

#[tokio::test]
async fn a_request_is_forwarded_and_its_response_returned() {
    let mut stage = Stage::plain().await;
    let mut client = stage
        .send(
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
    for removed in ["x-hop", "192.0.2.9", "connection:", "chunked"] {
        assert!(!head.contains(removed), "{removed}: {head}");
    }
    upstream.until("body").await;
    upstream.send("HTTP/1.1 201 Created\r\nX-A: b\r\nConnection: x-c\r\nX-C: 1\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    upstream.send("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n").await;
    let answer = read_all(&mut client).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 201 created\r\n"), "{answer}");
    assert!(answer.contains("x-a: b\r\n") && !answer.contains("x-c"), "{answer}");
    assert!(answer.contains("one") && answer.contains("two"), "{answer}");
}

#[tokio::test]
async fn a_connection_is_reused_and_a_request_on_a_closed_one_is_retried() {
    let limits = GatewayLimits { keep_time: Duration::from_secs(3600), ..GatewayLimits::default() };
    let mut stage = Stage::new(true, |gateway| gateway.limits(limits)).await;
    let mut client = stage.send(GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.send(OK).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    // A GET on a reused connection that closes without an answer is retried on a new one.
    let mut client = stage.send(GET).await;
    upstream.head().await;
    drop(upstream);
    let mut another = stage.connection().await;
    another.head().await;
    another.send(OK).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    assert_eq!(stage.gateway.stats().repeated, 1);
    // A POST is not.
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let mut client = stage.send(post).await;
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
async fn a_connection_is_reused_after_a_body_with_a_length() {
    let limits = GatewayLimits { keep_time: Duration::from_secs(3600), ..GatewayLimits::default() };
    let mut stage = Stage::new(true, |gateway| gateway.limits(limits)).await;
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody";
    let mut client = stage.send(post).await;
    let mut upstream = stage.connection().await;
    for _ in 0..3 {
        upstream.until("\r\n\r\nbody").await;
        upstream.send(OK).await;
        assert!(read_all(&mut client).await.ends_with("ok"));
        client = stage.send(post).await;
    }
    assert_eq!(stage.gateway.stats().connections, 1);
}

#[tokio::test]
async fn a_body_waits_until_the_upstream_wants_it() {
    let mut stage = Stage::plain().await;
    let head = "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let mut client = stage.send(head).await;
    let mut upstream = stage.connection().await;
    assert!(upstream.head().await.to_lowercase().contains("expect: 100-continue"));
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.expect("100");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").await.expect("writes");
    upstream.until("body").await;
    upstream.send(OK).await;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    // An upstream that responds at once never gets the body.
    let mut client = stage.send(head).await;
    upstream.head().await;
    upstream.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(upstream.end().await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_becomes_the_same_request() {
    let mut stage = Stage::new(false, |gateway| gateway).await;
    for versions in EACH_VERSION {
        let client = client(&stage, versions);
        let url = format!("https://localhost:{}/p?q", stage.running.local_addr().port());
        let getting = tokio::spawn(client.get(url.as_str()).send());
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(head.starts_with("get /p?q http/1.1\r\nhost: localhost:"), "{head}");
        assert!(head.contains("x-forwarded-proto: https") && !head.contains("chunked"), "{head}");
        let much = "x".repeat(1_000_000);
        upstream.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{much}")).await;
        let got = getting.await.expect("no panic").expect("a response");
        assert_eq!(got.bytes().await.expect("a body").len(), much.len());
        let posting = tokio::spawn(client.post(url.as_str()).body(Body::from("four")).send());
        upstream.until("four").await;
        upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(posting.await.expect("no panic").expect("a response").status(), 204);
        // The next version must not find an idle connection.
        drop(upstream);
        while stage.gateway.stats().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Returns pseudo-random numbers, which are the same in each run.
fn numbers(seed: u64) -> impl Iterator<Item = usize> {
    let step = |state: &mut u64| {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 33) as usize)
    };
    std::iter::repeat(()).scan(seed, move |state, ()| step(state))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_echoed_however_they_are_split() {
    let echo = Server::builder().plain().service(Site::new()).start().await.expect("an upstream");
    let upstream = format!("http://{}", echo.local_addr()).parse().expect("one");
    let gateway = Gateway::builder(upstream).build().expect("a gateway");
    let running = Server::builder().service(gateway.clone()).start().await.expect("a server");
    let (_, connections) = unbounded_channel();
    let stage = Stage { running, gateway, connections };
    let url = format!("https://localhost:{}/echo", stage.running.local_addr().port());
    for versions in EACH_VERSION {
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
    let request = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(request.as_bytes()).await.expect("writes");
    let page = read_all(&mut client).await;
    assert!(page.contains("eyas_requests_total{version=\"1.1\"} 0\n"), "{page}");
    assert!(page.contains("eyas_upstream_failures_total{reason=\"closed\"} 0\n"), "{page}");
}
