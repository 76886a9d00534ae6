//! Upstreams of all kinds.

use std::net::SocketAddr;

use eyas::SecurityParameters;
use eyas_gateway::{Gateway, GatewayBuilder};
use eyas_http::serve::{Running, Server};
use eyas_testserver::site::Site;
use ppp::v2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener};

use crate::stage::{EACH_VERSION, GET, OK, Stage, Upstream, client, read_all};

/// A gateway to this upstream, in the clear.
async fn before(upstream: String, set: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Running {
    let gateway = set(Gateway::builder(upstream.parse().expect("an upstream"))).build();
    let server = Server::builder().plain().service(gateway.expect("a gateway"));
    server.start().await.expect("a server")
}

async fn ask(running: &Running, text: &str) -> String {
    let mut client = TcpStream::connect(running.local_addr()).await.expect("connects");
    client.write_all(text.as_bytes()).await.expect("writes");
    read_all(&mut client).await
}

#[tokio::test]
async fn an_upstream_can_be_a_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let running = before(format!("unix:{}", path.display()), |gateway| gateway).await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a byte"));
        }
        stream.write_all(OK.as_bytes()).await.expect("writes");
        String::from_utf8(head).expect("text")
    });
    let answer = ask(&running, GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    let head = serving.await.expect("no panic");
    assert!(head.starts_with("GET /p?q HTTP/1.1\r\nhost: a.example\r\n"), "{head}");
    // The listener is closed, but the file remains.
    assert!(ask(&running, GET).await.starts_with("HTTP/1.1 502 "));
    drop(directory);
    assert!(ask(&running, GET).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn an_upstream_over_tls_needs_a_trusted_certificate() {
    let upstream = Server::builder().names(["localhost"]).service(Site::new());
    let upstream = upstream.start().await.expect("an upstream");
    let root = upstream.identity().expect("TLS").certificate().clone();
    let url = format!("https://localhost:{}", upstream.local_addr().port());
    let echo = "GET /echo HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let trusting = SecurityParameters::platform().with_roots([root]);
    let running = before(url.clone(), |gateway| gateway.security(trusting)).await;
    let answer = ask(&running, echo).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("a.example"), "{answer}");
    assert!(answer.contains("HTTP/3"), "the best version is used: {answer}");
    let running = before(url, |gateway| gateway).await;
    let answer = ask(&running, echo).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(upstream.stats().http3_requests, 1);
    assert_eq!(upstream.stats().requests(), 1);
}

/// Returns the addresses of client and server in the header of a connection.
async fn proxy_header(upstream: &mut Upstream) -> (SocketAddr, SocketAddr) {
    let mut header = vec![0; 16];
    upstream.stream.read_exact(&mut header).await.expect("a header");
    let mut rest = vec![0; usize::from(u16::from_be_bytes([header[14], header[15]]))];
    upstream.stream.read_exact(&mut rest).await.expect("addresses");
    header.extend(rest);
    match v2::Header::try_from(header.as_slice()).expect("a valid header").addresses {
        v2::Addresses::IPv4(ip) => (
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        ),
        v2::Addresses::IPv6(ip) => (
            (ip.source_address, ip.source_port).into(),
            (ip.destination_address, ip.destination_port).into(),
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proxy_protocol_names_the_client_of_every_version() {
    for version in EACH_VERSION {
        let mut stage = Stage::new(false, |gateway| gateway.proxy_protocol(true)).await;
        let port = stage.running.local_addr().port();
        let request = client(&stage, version).get(format!("https://localhost:{port}/p").as_str());
        let getting = tokio::spawn(request.send());
        let mut upstream = stage.connection().await;
        let (from, to) = proxy_header(&mut upstream).await;
        assert!(from.ip().is_loopback() && to.ip() == from.ip(), "{from} {to}");
        assert_eq!(to.port(), port);
        let head = upstream.head().await;
        assert!(head.starts_with("GET /p HTTP/1.1\r\n"), "{version:?}: {head}");
        upstream.send(OK).await;
        let got = getting.await.expect("no panic").expect("a response");
        assert_eq!(got.bytes().await.expect("whole"), "ok");
    }
}

#[tokio::test]
async fn the_proxy_header_comes_first_and_connections_serve_one_client() {
    let mut stage = Stage::new(true, |gateway| gateway.proxy_protocol(true)).await;
    for _ in 0..2 {
        let mut client = stage.send(GET).await;
        let from = client.local_addr().expect("connected");
        let mut upstream = stage.connection().await;
        let mut header = [0; 28];
        upstream.stream.read_exact(&mut header).await.expect("a header");
        assert_eq!(header[..14], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11");
        assert_eq!(header[24..26], from.port().to_be_bytes());
        upstream.head().await;
        upstream.send(OK).await;
        assert!(read_all(&mut client).await.ends_with("ok"));
    }
}
