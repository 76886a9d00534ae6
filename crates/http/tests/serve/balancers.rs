//! Clients behind a load balancer that speaks the PROXY protocol, and clients that speak the wrong protocol.

use std::{convert::Infallible, net::IpAddr, sync::mpsc};

use eyas_http::{
    proxy_protocol::{self, Addresses},
    serve::{Limits, PeerInfo, RequestBody, Running, Server, ServerBuilder},
};
use http::{Request, Response};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::service_fn;

use crate::clients::{SOON, Speak, fetch, get, http1, tcp, trust};

/// Answers with the addresses of the connection.
async fn answer(request: Request<RequestBody>) -> Result<Response<String>, Infallible> {
    let peer = request.extensions().get::<PeerInfo>().expect("information");
    let local = peer.local.expect("known");
    Ok(Response::new(format!("{} {local} {}", peer.remote, peer.secure)))
}

async fn start(builder: ServerBuilder) -> Running {
    builder.service(service_fn(answer)).start().await.expect("a server")
}

fn behind_a_balancer(builder: ServerBuilder) -> ServerBuilder {
    builder.proxy_protocol(|ip| ip == IpAddr::from([127, 0, 0, 1]))
}

fn client() -> Addresses {
    let parse = |text: &str| text.parse().expect("an address");
    Addresses { source: parse("192.0.2.7:5000"), destination: parse("198.51.100.1:443") }
}

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 5000 443\r\n";

/// Sends this in pieces, and returns all that comes back.
async fn ask(running: &Running, pieces: &[&[u8]]) -> String {
    let mut stream = tcp(running.local_addr()).await;
    stream.set_nodelay(true).expect("an open socket");
    for piece in pieces {
        stream.write_all(piece).await.expect("sends");
        tokio::task::yield_now().await;
    }
    let mut text = Vec::new();
    // A connection that is closed with unread bytes is reset.
    let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut text)).await.expect("it ends");
    String::from_utf8(text).expect("text")
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn the_client_is_the_one_that_the_balancer_names() {
    let running = start(behind_a_balancer(Server::builder().plain())).await;
    let binary = proxy_protocol::header(Some(client())).expect("it fits");
    let (begin, rest) = binary.split_at(5);
    for pieces in [&[LINE, GET][..], &[&binary[..], GET], &[begin, rest, GET]] {
        let text = ask(&running, pieces).await;
        assert!(text.ends_with("192.0.2.7:5000 198.51.100.1:443 false"), "{text}");
    }
    // A balancer that checks whether the server is alive is served as itself.
    let own = proxy_protocol::header(None).expect("it fits");
    for header in [&own[..], b"PROXY UNKNOWN\r\n"] {
        let text = ask(&running, &[header, GET]).await;
        let (_, body) = text.split_once("\r\n\r\n").expect("a response");
        assert!(body.starts_with("127.0.0.1:"), "{text}");
    }
}

#[tokio::test]
async fn a_balancer_that_ends_tls_says_so() {
    let running = start(behind_a_balancer(Server::builder().plain())).await;
    for (bits, secure) in [(1, true), (0, false)] {
        // PP2_TYPE_SSL, with PP2_CLIENT_SSL or without.
        let ssl = [0x20, 0, 5, bits, 0, 0, 0, 0];
        let mut header = proxy_protocol::header(Some(client())).expect("it fits");
        let length = u16::from_be_bytes([header[14], header[15]]) + 8;
        header[14..16].copy_from_slice(&length.to_be_bytes());
        header.extend(ssl);
        let text = ask(&running, &[&header, GET]).await;
        assert!(text.ends_with(&format!(" 198.51.100.1:443 {secure}")), "{text}");
    }
}

#[tokio::test]
async fn the_header_comes_before_tls() {
    let running = start(behind_a_balancer(Server::builder())).await;
    let root = running.identity().expect("TLS").certificate().clone();
    let mut stream = tcp(running.local_addr()).await;
    stream.write_all(LINE).await.expect("sends");
    let connector =
        tokio_rustls::TlsConnector::from(std::sync::Arc::new(trust(&root, b"http/1.1")));
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = connector.connect(name, stream).await.expect("a handshake");
    let response = http1(tls, get("/")).await.expect("a response");
    assert_eq!(response.body(), "192.0.2.7:5000 198.51.100.1:443 true");
    // QUIC has no such header.
    let response = fetch(&running, Speak::Http3, get("/")).await;
    assert!(response.body().starts_with(b"127.0.0.1:"), "{:?}", response.body());
}

//= hostile http
//# a client that claims by the PROXY protocol to be somebody else
//= bound: only the addresses of `--accept-proxy-protocol` are believed
#[tokio::test]
async fn without_a_header_a_balancer_is_not_served_and_others_cannot_send_one() {
    let (tell, told) = mpsc::channel();
    let builder = behind_a_balancer(Server::builder().plain());
    let running = start(builder.notices(move |text| tell.send(text).expect("a test"))).await;
    assert_eq!(ask(&running, &[GET]).await, "");
    let notice = told.recv_timeout(SOON).expect("a notice");
    assert!(notice.contains("127.0.0.1") && notice.contains("PROXY"), "{notice}");
    let elsewhere =
        Server::builder().plain().proxy_protocol(|ip| ip == IpAddr::from([192, 0, 2, 1]));
    let running = start(elsewhere).await;
    let text = ask(&running, &[LINE, GET]).await;
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    let text = ask(&running, &[GET]).await;
    assert!(text.contains("127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn limits_count_the_clients_behind_a_balancer() {
    let limits = Limits { connections_per_peer: 1, ..Limits::default() };
    let running = start(behind_a_balancer(Server::builder().plain().limits(limits))).await;
    let open = |last: u8| {
        let running = &running;
        async move {
            let mut stream: TcpStream = tcp(running.local_addr()).await;
            let line = format!("PROXY TCP4 192.0.2.{last} 198.51.100.1 5000 443\r\n");
            stream.write_all(line.as_bytes()).await.expect("sends");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sends");
            let mut byte = [0];
            let read = stream.read(&mut byte).await;
            (stream, matches!(read, Ok(1)))
        }
    };
    let (_first, is_served) = open(1).await;
    assert!(is_served);
    let (_second, is_served) = open(1).await;
    assert!(!is_served, "it has one already");
    let (_other, is_served) = open(2).await;
    assert!(is_served, "another client of the same balancer");
}

#[tokio::test]
async fn http_without_tls_is_answered_in_text() {
    let running = start(Server::builder()).await;
    for request in
        [GET, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
    {
        let text = ask(&running, &[request]).await;
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
        assert!(text.contains("This port speaks TLS"), "{text}");
    }
    assert_eq!(running.stats().handshakes_failed, 3);
}
