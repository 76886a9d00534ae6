//! Trailers, interim responses and resets, which HTTP/2 and HTTP/3 express in their own ways.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use eyas_gateway::GatewayLimits;
use eyas_http::Body;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use socket2::SockRef;
use tokio::net::TcpStream;

use crate::stage::{EACH_VERSION, OK, Stage, TIMEOUT, client};

fn url(stage: &Stage) -> String {
    format!("https://localhost:{}/p", stage.running.local_addr().port())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_pass_both_ways_in_every_version() {
    for version in EACH_VERSION {
        let mut stage = Stage::new(false, |gateway| gateway).await;
        let mut ends = HeaderMap::new();
        for (name, value) in [("x-sum", "7"), ("x-forwarded-for", "192.0.2.9"), ("host", "b")] {
            ends.append(name, value.parse().expect("a value"));
        }
        let parts =
            [Ok::<_, std::io::Error>(Frame::data(Bytes::from("body"))), Ok(Frame::trailers(ends))];
        let body = Body::wrap(StreamBody::new(futures_util::stream::iter(parts)));
        let post = client(&stage, version).post(url(&stage).as_str()).body(body);
        let post = post.header("te", "trailers").header("trailer", "x-sum, host");
        let posting = tokio::spawn(post.send());
        let mut upstream = stage.connection().await;
        let head = upstream.head().await.to_lowercase();
        assert!(head.contains("te: trailers") && head.contains("trailer: x-sum"), "{head}");
        let received = upstream.until("\r\n\r\n").await;
        assert_eq!(received, "4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n", "{version:?}");
        upstream
            .send(
                "HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\nok\r\n0\r\nX-End: yes\r\nX-Real-IP: 192.0.2.9\r\n\r\n",
            )
            .await;
        let got = posting.await.expect("no panic").expect("a response");
        let whole = got.into_body().collect().await.expect("whole");
        let trailers = whole.trailers().cloned().expect("trailers");
        assert_eq!(trailers.get("x-end").expect("valid"), "yes", "{version:?}");
        assert_eq!(trailers.len(), 1, "{version:?}: {trailers:?}");
        assert_eq!(whole.to_bytes(), "ok", "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_is_reset_is_incomplete_in_every_version() {
    for version in EACH_VERSION {
        for framing in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
            let mut stage = Stage::new(false, |gateway| gateway).await;
            let getting = tokio::spawn(client(&stage, version).get(url(&stage).as_str()).send());
            let mut upstream = stage.connection().await;
            upstream.head().await;
            upstream.send(&format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n4\r\nabcd\r\n")).await;
            let mut got = getting.await.expect("no panic").expect("a response");
            let begun = got.chunk().await.expect("data").expect("some");
            assert!(!begun.is_empty());
            let reset = SockRef::from(&upstream.stream).set_linger(Some(Duration::ZERO));
            reset.expect("an option");
            drop(upstream);
            let rest = tokio::time::timeout(TIMEOUT, got.bytes()).await.expect("ends");
            assert!(rest.is_err(), "{version:?}, {framing}: {rest:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_reset_is_incomplete_for_the_upstream() {
    for version in EACH_VERSION {
        let mut stage = Stage::new(false, |gateway| gateway).await;
        let (give, pieces) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let pieces = futures_util::stream::unfold(pieces, async |mut pieces| {
            pieces.recv().await.map(|piece| (piece, pieces))
        });
        let post = client(&stage, version).post(url(&stage).as_str());
        let posting = tokio::spawn(post.body(Body::from_stream(pieces)).send());
        give.send(Ok("begun".into())).await.expect("a reader");
        let mut upstream = stage.connection().await;
        upstream.until("begun\r\n").await;
        give.send(Err(std::io::Error::other("no more"))).await.expect("a reader");
        assert_eq!(upstream.end().await, "", "{version:?}: neither an end nor more data");
        let _ = posting.await.expect("no panic");
    }
}

/// Opens an unencrypted HTTP/2 connection to the gateway.
async fn http2(stage: &Stage) -> h2::client::SendRequest<Bytes> {
    let tcp = TcpStream::connect(stage.running.local_addr()).await.expect("connects");
    let (send, connection) = h2::client::handshake(tcp).await.expect("HTTP/2");
    tokio::spawn(connection);
    send
}

#[tokio::test]
async fn early_hints_come_before_the_response() {
    let mut stage = Stage::plain().await;
    let request = http::Request::get("http://a.example/").body(()).expect("a request");
    let mut send = http2(&stage).await;
    let (mut answer, _) = send.send_request(request, true).expect("sent");
    let mut upstream = stage.connection().await;
    upstream.head().await;
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n";
    upstream.send(hint).await;
    let hints = tokio::time::timeout(TIMEOUT, poll_fn(|cx| answer.poll_informational(cx)));
    let hints = hints.await.expect("in time").expect("some").expect("one");
    assert_eq!(hints.status(), 103);
    assert_eq!(hints.headers()["link"], "</a.css>; rel=preload");
    assert_eq!(hints.headers().len(), 1, "{hints:?}");
    // An interim response directly before the response arrives before it.
    upstream.send(&format!("HTTP/1.1 100 Continue\r\n\r\n{hint}{OK}")).await;
    let hints = tokio::time::timeout(TIMEOUT, poll_fn(|cx| answer.poll_informational(cx)));
    assert_eq!(hints.await.expect("in time").expect("some").expect("one").status(), 103);
    assert_eq!(answer.await.expect("a response").status(), 200);
}

#[tokio::test]
async fn early_hints_do_not_confuse_http1() {
    let mut stage = Stage::plain().await;
    let mut client = stage.send(crate::stage::GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    upstream.send(&format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{OK}")).await;
    let answer = crate::stage::read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("103"), "{answer}");
}

#[tokio::test]
async fn a_body_over_http2_waits_until_the_upstream_wants_it() {
    let limits =
        GatewayLimits { continue_time: Duration::from_secs(3600), ..GatewayLimits::default() };
    let mut stage = Stage::new(true, |gateway| gateway.limits(limits)).await;
    let request = || {
        let request = http::Request::put("http://a.example/").header("expect", "100-continue");
        request.header("content-length", "4").body(()).expect("a request")
    };
    let mut send = http2(&stage).await;
    let (mut answer, mut sender) = send.send_request(request(), false).expect("sent");
    let mut upstream = stage.connection().await;
    assert!(upstream.head().await.to_lowercase().contains("expect: 100-continue"));
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    let go_on = tokio::time::timeout(TIMEOUT, poll_fn(|cx| answer.poll_informational(cx)));
    assert_eq!(go_on.await.expect("in time").expect("some").expect("one").status(), 100);
    sender.send_data("body".into(), true).expect("sent");
    upstream.until("body").await;
    upstream.send(OK).await;
    assert_eq!(answer.await.expect("a response").status(), 200);
    // An upstream that does not want it responds without a 100.
    let mut send = http2(&stage).await;
    let (mut answer, _sender) = send.send_request(request(), false).expect("sent");
    upstream.head().await;
    upstream.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n").await;
    let none = tokio::time::timeout(TIMEOUT, poll_fn(|cx| answer.poll_informational(cx)));
    assert!(none.await.expect("in time").is_none());
    assert_eq!(answer.await.expect("a response").status(), 417);
}
