//! Failures of the upstream and of clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use eyas_gateway::{Gateway, GatewayLimits};
use eyas_http::serve::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::unbounded_channel;

use crate::ports;
use crate::stage::{EACH_VERSION, GET, Stage, TIMEOUT, client, read_all};

//= hostile gateway
//# an upstream that never answers, or invalidly
//= bound: `response_time`; 502, 504
#[tokio::test]
async fn an_upstream_that_never_answers_is_504_with_a_reason() {
    let (sender, mut notices) = unbounded_channel();
    let limits =
        GatewayLimits { response_time: Duration::from_millis(200), ..GatewayLimits::default() };
    let mut stage = Stage::new(true, |gateway| {
        gateway.limits(limits).notices(move |line| _ = sender.send(line))
    })
    .await;
    let mut client = stage.send(GET).await;
    let mut upstream = stage.connection().await;
    upstream.head().await;
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("in time"), "{answer}");
    let status = "proxy-status: eyas; error=connection_read_timeout; details=\"The application";
    assert!(answer.contains(status), "{answer}");
    let line = notices.recv().await.expect("a line");
    assert!(line.starts_with("GET /p: 504: "), "{line}");
    assert_eq!(upstream.end().await, "", "the connection is closed");
}

#[tokio::test]
async fn an_invalid_response_is_502() {
    let mut stage = Stage::plain().await;
    let invalid = "an invalid response";
    for (response, text, error) in [
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", invalid, "http_upgrade_failed"),
        ("SSH-2.0-x\r\n\r\n", invalid, "http_protocol_error"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            invalid,
            "http_protocol_error",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
            invalid,
            "http_response_transfer_coding",
        ),
        ("HTTP/1.1 200", "without an answer", "connection_terminated"),
    ] {
        // With a method that is not repeated.
        let mut client = stage.send(&GET.replacen("GET", "POST", 1)).await;
        let mut upstream = stage.connection().await;
        upstream.head().await;
        upstream.send(response).await;
        drop(upstream);
        let answer = read_all(&mut client).await;
        assert!(
            answer.starts_with("HTTP/1.1 502 ") && answer.contains(text),
            "{response:?}: {answer}"
        );
        let status = format!("proxy-status: eyas; error={error}; details=");
        assert!(answer.contains(&status), "{response:?}: {answer}");
    }
}

//= hostile gateway
//# informational responses without end
//= bound: `MAX_INFORMATIONAL`, `MAX_HEAD_BYTES`
/// The same for a client that uploads, and for one whose version carries interim responses.
#[tokio::test]
async fn endless_interim_responses_are_502() {
    let (sender, mut notices) = unbounded_channel();
    let mut stage =
        Stage::new(false, |gateway| gateway.notices(move |line| _ = sender.send(line))).await;
    for versions in EACH_VERSION {
        let client = client(&stage, versions);
        let url = format!("https://localhost:{}/p", stage.running.local_addr().port());
        for request in [client.get(&url), client.post(&url).body("a body")] {
            let sending = tokio::spawn(request.send());
            let mut upstream = stage.connection().await;
            let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".repeat(100);
            while upstream.stream.write_all(hints.as_bytes()).await.is_ok() {}
            let answered = tokio::time::timeout(TIMEOUT, sending).await.expect("in time");
            let response = answered.expect("no panic").expect("a response");
            assert_eq!(response.status().as_u16(), 502, "{versions:?}");
        }
    }
    // Further ones of the same kind are only counted.
    let line = notices.recv().await.expect("a line");
    let expected = "more than 16 informational responses arrived without a final one";
    assert!(line.contains(expected), "{line}");
}

#[tokio::test]
async fn an_unreachable_upstream_is_502() {
    let upstream = format!("http://127.0.0.1:{}", ports::own_port());
    let gateway = Gateway::builder(upstream.parse().expect("one")).build().expect("a gateway");
    let running = Server::builder().plain().service(gateway.clone()).start().await.expect("starts");
    let mut client = TcpStream::connect(running.local_addr()).await.expect("connects");
    client.write_all(GET.as_bytes()).await.expect("writes");
    let answer = read_all(&mut client).await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot be reached"),
        "{answer}"
    );
    assert!(answer.contains("proxy-status: eyas; error=connection_refused;"), "{answer}");
    assert!(!answer.contains("127.0.0.1"), "{answer}");
}

//= hostile gateway
//# an upstream that resets in mid-body
//= bound: the response never looks complete
#[tokio::test]
async fn a_truncated_response_never_looks_complete() {
    let mut stage = Stage::plain().await;
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let mut client = stage.send(GET).await;
        let mut upstream = stage.connection().await;
        upstream.head().await;
        upstream.send(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n4\r\nabcd\r\n")).await;
        drop(upstream);
        let answer = read_all(&mut client).await;
        assert!(answer.contains("abcd") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    assert_eq!(stage.gateway.stats().aborted_responses, 2);
}

#[tokio::test]
async fn a_truncated_request_never_looks_complete() {
    let mut stage = Stage::plain().await;
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n";
    let mut client = stage.send(chunked).await;
    let mut upstream = stage.connection().await;
    upstream.until("abcd\r\n").await;
    client.shutdown().await.expect("ends");
    drop(client);
    assert!(!upstream.end().await.contains("0\r\n"));
}

#[tokio::test]
async fn a_gateway_in_front_of_itself_detects_the_loop() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::own_port()));
    let upstream = format!("http://{address}").parse().expect("one");
    let gateway = Gateway::builder(upstream).build().expect("a gateway");
    let server = Server::builder().plain().listen(address).service(gateway);
    let running = server.start().await.expect("a server");
    let mut client = TcpStream::connect(running.local_addr()).await.expect("connects");
    client.write_all(GET.as_bytes()).await.expect("writes");
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 508 "), "{answer}");
    // The field is of the gateway that found the loop, which is the same one that forwards it.
    assert!(answer.contains("proxy-status: eyas; error=proxy_loop_detected;"), "{answer}");
}
