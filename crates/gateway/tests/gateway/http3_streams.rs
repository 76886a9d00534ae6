//! Requests and responses on the streams of an upstream over HTTP/3, frame by frame.

use std::future::poll_fn;
use std::time::Duration;

use eyas_gateway::GatewayLimits;
use quinn::VarInt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::raw_http3::{
    INTERNAL_ERROR, NO_ERROR, REQUEST_CANCELLED, REQUEST_REJECTED, RawStage, data, head,
};
use crate::stage::{GET, TIMEOUT, read_all};

const POST: &str =
    "POST / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn ok() -> Vec<u8> {
    [head(&[(":status", "200"), ("content-length", "2")]), data(b"ok")].concat()
}

//= hostile gateway
//# HTTP/3 responses that violate HTTP
//= bound: `header_bytes`, `header_fields`
#[tokio::test]
async fn a_malformed_response_over_http3_is_502() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let large = "x".repeat(70_000);
    let many: Vec<String> = (0..201).map(|number| format!("x-{number}")).collect();
    let mut many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    many.insert(0, (":status", "200"));
    let ok = (":status", "200");
    for (name, fields) in [
        ("connection", vec![ok, ("connection", "keep-alive")]),
        ("transfer-encoding", vec![ok, ("transfer-encoding", "chunked")]),
        ("upgrade", vec![ok, ("upgrade", "websocket")]),
        ("two lengths", vec![ok, ("content-length", "1"), ("content-length", "2")]),
        ("a length that is no number", vec![ok, ("content-length", "+1")]),
        ("a length, and no content", vec![ok, ("content-length", "1")]),
        ("no status", vec![("server", "x")]),
        ("a status that is no number", vec![(":status", "abc")]),
        ("a status with too few digits", vec![(":status", "20")]),
        ("101", vec![(":status", "101")]),
        ("upper case", vec![ok, ("X-Upper", "1")]),
        ("a line end", vec![ok, ("x", "a\r\nb: c")]),
        ("a large head", vec![ok, ("x", &large)]),
        ("many fields", many),
    ] {
        let mut client = raw.stage.send(GET).await;
        raw.request().await.respond(&head(&fields)).await;
        let answer = read_all(&mut client).await;
        let expected = "proxy-status: eyas; error=http_protocol_error";
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && answer.contains(expected),
            "{name}: {answer}"
        );
    }
    assert_eq!(raw.stage.gateway.stats().repeated, 0);
}

#[tokio::test]
async fn endless_interim_responses_over_http3_are_502() {
    let (sender, mut notices) = unbounded_channel();
    let set =
        |gateway: eyas_gateway::GatewayBuilder| gateway.notices(move |line| _ = sender.send(line));
    let mut raw = RawStage::new(100, set).await;
    let mut client = raw.stage.send(GET).await;
    let mut upstream = raw.request().await;
    upstream.write(&head(&[(":status", "103"), ("link", "</a.css>")]).repeat(17)).await;
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 502 "));
    let line = notices.recv().await.expect("a line");
    let expected = "more than 16 informational responses arrived without a final one";
    assert!(line.contains(expected), "{line}");
    assert_eq!(upstream.stopped().await, Some(REQUEST_CANCELLED.into()));
}

#[tokio::test]
async fn interim_responses_over_http3_come_before_the_response() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let tcp = TcpStream::connect(raw.stage.running.local_addr()).await.expect("connects");
    let (mut send, connection) = h2::client::handshake(tcp).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::get("http://a.example/").body(()).expect("a request");
    let (mut answer, _) = send.send_request(request, true).expect("sent");
    let mut upstream = raw.request().await;
    upstream.write(&head(&[(":status", "103"), ("link", "</a.css>; rel=preload")])).await;
    let hints = timeout(TIMEOUT, poll_fn(|cx| answer.poll_informational(cx)));
    let hints = hints.await.expect("in time").expect("some").expect("one");
    assert_eq!((hints.status().as_u16(), hints.headers().len()), (103, 1));
    assert_eq!(hints.headers()["link"], "</a.css>; rel=preload");
    upstream.respond(&ok()).await;
    assert_eq!(answer.await.expect("a response").status(), 200);
}

#[tokio::test]
async fn a_body_waits_until_the_upstream_over_http3_wants_it() {
    let limits =
        GatewayLimits { continue_time: Duration::from_secs(3600), ..GatewayLimits::default() };
    let mut raw = RawStage::new(100, |gateway| gateway.limits(limits)).await;
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let mut client = raw.stage.send(put).await;
    let mut upstream = raw.request().await;
    upstream.write(&head(&[(":status", "100")])).await;
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.expect("100");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").await.expect("writes");
    upstream.until(b"body").await;
    upstream.respond(&ok()).await;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    // An upstream that responds at once never gets the body.
    let mut client = raw.stage.send(put).await;
    let mut upstream = raw.request().await;
    upstream.respond(&head(&[(":status", "403"), ("content-length", "0")])).await;
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 403");
    assert_eq!(upstream.reset().await, REQUEST_CANCELLED.into());
}

/// How a response ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Finish,
    Reset,
    Close,
}

#[tokio::test]
async fn a_response_over_http3_that_breaks_off_never_looks_complete() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let (ten, open) =
        (vec![(":status", "200"), ("content-length", "10")], vec![(":status", "200")]);
    let mut broken = 0;
    for (fields, end) in [
        (&ten, End::Finish),
        (&ten, End::Reset),
        (&ten, End::Close),
        (&open, End::Reset),
        (&open, End::Close),
    ] {
        let mut client = raw.stage.send(GET).await;
        let mut upstream = raw.request().await;
        upstream.write(&[head(fields), data(b"abcd")].concat()).await;
        let mut begun = Vec::new();
        while !begun.ends_with(b"abcd") && !begun.ends_with(b"abcd\r\n") {
            assert!(client.read_buf(&mut begun).await.expect("reads") > 0, "{end:?}");
        }
        match end {
            End::Finish => upstream.send.finish().expect("open"),
            End::Reset => upstream.send.reset(0x102_u32.into()).expect("open"),
            End::Close => upstream.quic.close(NO_ERROR.into(), b""),
        }
        let rest = read_all(&mut client).await;
        assert!(!rest.contains("0\r\n\r\n"), "{end:?}: {rest}");
        broken += 1;
        assert_eq!(raw.stage.gateway.stats().aborted_responses, broken, "{end:?}");
    }
}

/// More than announced is not forwarded either.
#[tokio::test]
async fn a_response_over_http3_is_not_longer_than_announced() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let mut client = raw.stage.send(GET).await;
    let head = head(&[(":status", "200"), ("content-length", "4")]);
    raw.request().await.respond(&[head, data(b"ab"), data(b"cdef")].concat()).await;
    let answer = read_all(&mut client).await;
    assert!(!answer.contains("cd"), "{answer}");
    assert_eq!(raw.stage.gateway.stats().aborted_responses, 1);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_stream() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    // Before the response, and in the middle of both bodies.
    for begins in [false, true] {
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf";
        let mut client = raw.stage.send(post).await;
        let mut upstream = raw.request().await;
        upstream.until(b"half").await;
        if begins {
            let head = head(&[(":status", "200"), ("content-length", "1000000000")]);
            upstream.write(&[head, data(b"some")].concat()).await;
            let mut begun = Vec::new();
            while !begun.ends_with(b"some") {
                assert!(client.read_buf(&mut begun).await.expect("reads") > 0);
            }
        }
        drop(client);
        let code: VarInt = REQUEST_CANCELLED.into();
        assert_eq!(upstream.reset().await, code, "{begins}");
        if begins {
            // The client's host refuses what it gets from now on.
            while upstream.send.write_all(&data(&[0; 10_000])).await.is_ok() {}
        }
        assert_eq!(upstream.stopped().await, Some(code), "{begins}");
    }
    // The connection goes on.
    let mut client = raw.stage.send(GET).await;
    raw.request().await.respond(&ok()).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    assert_eq!(raw.stage.gateway.stats().http3_connections, 1);
}

#[tokio::test]
async fn a_request_that_was_rejected_is_sent_again() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    for request in [GET, POST] {
        let mut client = raw.stage.send(request).await;
        let mut upstream = raw.request().await;
        upstream.send.reset(REQUEST_REJECTED.into()).expect("open");
        raw.request().await.respond(&ok()).await;
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let stats = raw.stage.gateway.stats();
    assert_eq!(stats.repeated, 2);
    assert!(stats.http3_connections > 1, "what rejects one gets no more: {stats:?}");
}

/// RFC 9114 §5.2: the server processes none from the identifier on.
#[tokio::test]
async fn a_request_after_a_goaway_is_sent_again() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let mut client = raw.stage.send(POST).await;
    raw.request().await.go_away(0).await;
    raw.request().await.respond(&ok()).await;
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 200 "));
    // It processes the second one of this connection, and then ends.
    let mut client = raw.stage.send(POST).await;
    raw.request().await.go_away(8).await;
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn a_request_with_a_larger_head_than_the_upstream_accepts_is_431() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let large = GET.replace("Connection", &format!("X-Large: {}\r\nConnection", "x".repeat(3000)));
    let address = raw.stage.running.local_addr();
    let answering = async {
        loop {
            // Before the settings have arrived; afterwards the stream is reset at once.
            let mut upstream = raw.request().await;
            if upstream.send.write_all(&ok()).await.is_ok() {
                let _ = upstream.send.finish();
            }
        }
    };
    let requesting = async |text: &str| {
        let mut client = TcpStream::connect(address).await.expect("connects");
        client.write_all(text.as_bytes()).await.expect("writes");
        read_all(&mut client).await
    };
    let refused = async {
        while !requesting(&large).await.starts_with("HTTP/1.1 431 ") {}
        requesting(GET).await
    };
    tokio::select! {
        answer = timeout(TIMEOUT, refused) => assert!(answer.expect("431").starts_with("HTTP/1.1 200 ")),
        () = answering => {}
    }
    assert_eq!(raw.stage.gateway.stats().http3_connections, 1);
}

/// The streams of a server that is being stopped may end before its connection does.
#[tokio::test]
async fn a_request_whose_stream_ends_is_repeated_on_another_connection() {
    let mut stage = RawStage::new(100, |gateway| gateway).await;
    let mut client = stage.stage.send(GET).await;
    let mut first = stage.request().await;
    first.send.reset(INTERNAL_ERROR.into()).expect("open");
    let mut second = stage.request().await;
    assert_ne!(first.quic.stable_id(), second.quic.stable_id(), "the connection of the first");
    assert_eq!(first.quic.close_reason(), None, "it goes on");
    second.respond(&ok()).await;
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn only_what_is_safe_is_repeated_after_a_connection_over_http3_ends() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let mut client = raw.stage.send(GET).await;
    raw.request().await.quic.close(NO_ERROR.into(), b"");
    raw.request().await.respond(&ok()).await;
    assert!(read_all(&mut client).await.starts_with("HTTP/1.1 200 "));
    let mut client = raw.stage.send(POST).await;
    raw.request().await.quic.close(NO_ERROR.into(), b"");
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("error=connection_terminated"), "{answer}");
}

#[tokio::test]
async fn a_connection_carries_as_many_streams_as_the_upstream_allows() {
    let mut raw = RawStage::new(2, |gateway| gateway).await;
    let mut clients = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..6 {
        clients.push(raw.stage.send(GET).await);
        streams.push(raw.request().await);
    }
    for stream in &mut streams {
        stream.respond(&ok()).await;
    }
    for client in &mut clients {
        assert!(read_all(client).await.ends_with("ok"));
    }
    assert_eq!(raw.stage.gateway.stats().http3_connections, 3);
}

/// As a server that checks a password, or the beginning of a file, may do.
#[tokio::test]
async fn a_request_goes_on_after_a_response_that_is_complete() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    let mut client =
        raw.stage.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf").await;
    let mut upstream = raw.request().await;
    upstream.until(b"half").await;
    upstream.respond(&ok()).await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok") {
        assert!(client.read_buf(&mut answer).await.expect("reads") > 0);
    }
    client.write_all(b"rest").await.expect("writes");
    upstream.until(b"rest").await;
    let end = timeout(TIMEOUT, upstream.recv.read_to_end(100)).await.expect("in time");
    assert_eq!(end.expect("complete"), b"");
}

#[tokio::test]
async fn a_response_without_content_ends_with_its_head() {
    let mut raw = RawStage::new(100, |gateway| gateway).await;
    for (request, fields) in [
        (GET, vec![(":status", "204")]),
        (GET, vec![(":status", "304"), ("content-length", "5")]),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            vec![(":status", "200"), ("content-length", "5")],
        ),
    ] {
        let mut client = raw.stage.send(request).await;
        raw.request().await.respond(&head(&fields)).await;
        let answer = read_all(&mut client).await;
        let status = format!("HTTP/1.1 {} ", fields[0].1);
        assert!(answer.starts_with(&status) && answer.ends_with("\r\n\r\n"), "{answer}");
    }
    assert_eq!(raw.stage.gateway.stats().aborted_responses, 0);
}

#[tokio::test]
async fn an_idle_connection_over_http3_is_closed() {
    let limits =
        GatewayLimits { keep_time: Duration::from_millis(100), ..GatewayLimits::default() };
    let mut raw = RawStage::new(100, |gateway| gateway.limits(limits)).await;
    let mut client = raw.stage.send(GET).await;
    let mut upstream = raw.request().await;
    upstream.respond(&ok()).await;
    assert!(read_all(&mut client).await.ends_with("ok"));
    let reason = timeout(TIMEOUT, upstream.quic.closed()).await.expect("in time");
    let quinn::ConnectionError::ApplicationClosed(close) = reason else { panic!("{reason}") };
    assert_eq!(close.error_code, NO_ERROR.into());
    while raw.stage.gateway.stats().open > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
