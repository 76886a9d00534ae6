//! Tests of the metrics at a separate address.

use std::{convert::Infallible, future::ready, io::Write, net::SocketAddr, time::Duration};

use eyas::{
    Endpoint,
    race::{
        candidate::{AddressOrigin, Candidate, Security, Transport},
        target::TargetHost,
    },
};
use eyas_http::serve::{RequestBody, Server, ServerBuilder};
use http::{Request, Response, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::service_fn;

use crate::clients::{SOON, start};

/// Returns a server of ten bytes.
fn builder() -> ServerBuilder {
    Server::builder().service(service_fn(|request: Request<RequestBody>| {
        let mut response = Response::new(String::from("0123456789"));
        if request.uri().path() != "/bytes/10" {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        ready(Ok::<_, Infallible>(response))
    }))
}

async fn get_raw(at: SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(at).await.expect("a listener");
    let head = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    tcp.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = tokio::time::timeout(SOON, tcp.read_to_string(&mut answer)).await;
    read.expect("soon").expect("read to the end");
    answer
}

#[tokio::test]
async fn metrics_are_served_at_another_address() {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let running = start(builder().plain().metrics(local)).await;
    let metrics = running.metrics_addr().expect("an address");
    for _ in 0..3 {
        assert!(get_raw(running.local_addr(), "GET /bytes/10").await.starts_with("HTTP/1.1 200"));
    }
    let page = get_raw(metrics, "GET /metrics").await;
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("text/plain; version=0.0.4"),
        "{page}"
    );
    for line in [
        "\neyas_requests_total{version=\"1.1\"} 3\n",
        "\neyas_connections_accepted_total{transport=\"tcp\"} 3\n",
        "\neyas_response_body_bytes_total 30\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(get_raw(metrics, "HEAD /metrics").await.ends_with("\r\n\r\n"));
    assert!(get_raw(metrics, "POST /metrics").await.starts_with("HTTP/1.1 405"));
    assert!(get_raw(metrics, "GET /bytes/10").await.starts_with("HTTP/1.1 404"));
    assert!(get_raw(running.local_addr(), "GET /metrics").await.starts_with("HTTP/1.1 404"));
    assert_eq!(running.shutdown(SOON).await, 0);
}

//= hostile http
//# idle connections to the metrics
//= bound: `MAX_CONNECTIONS`
#[tokio::test]
async fn an_idle_connection_to_the_metrics_does_not_block_others() {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let running = start(builder().plain().metrics(local)).await;
    let metrics = running.metrics_addr().expect("an address");
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(metrics).await.expect("a listener"));
    }
    assert!(get_raw(metrics, "GET /metrics").await.starts_with("HTTP/1.1 200"));
    // The first connections were closed to make room.
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(SOON, idle[0].read_to_end(&mut rest)).await;
    assert!(closed.is_ok());
}

#[tokio::test]
async fn metrics_are_off_by_default() {
    let running = start(builder().plain()).await;
    assert_eq!(running.metrics_addr(), None);
}

#[tokio::test]
async fn multipath_tcp_is_counted_separately() {
    let running = start(builder().plain().mptcp(true)).await;
    let endpoint = Endpoint::builder().build().expect("an endpoint");
    let candidate = Candidate {
        address: running.local_addr(),
        transport: Transport::Mptcp,
        security: Security::None,
        alpn: Vec::new(),
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    };
    let host = TargetHost::Name("localhost".into());
    let attempt = tokio::time::timeout(SOON, endpoint.attempt(&host, candidate, None)).await;
    let connection = attempt.expect("soon");
    if !connection.as_ref().is_ok_and(|connection| connection.info().transport == Transport::Mptcp)
    {
        // Bypasses the harness, which captures the output of successful tests.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: no Multipath TCP in this kernel: {connection:?}")
            .expect("written");
        return;
    }
    let accepted = async {
        while running.stats().connections_open == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, accepted).await.expect("it is accepted");
    let stats = running.stats();
    assert_eq!((stats.mptcp_connections, stats.mptcp_open), (1, 1), "{stats:?}");
    assert_eq!((stats.tcp_connections, stats.tcp_open), (0, 0), "{stats:?}");
}
