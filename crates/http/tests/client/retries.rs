//! Tests of which requests are retried.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use eyas_http::{Body, Kind};
use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::site::builder_for;

/// How the server ends a connection instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Close,
    Reset,
    /// It closes in the middle of a head.
    Partial,
}

/// An HTTP/1.1 server that counts requests. It answers the first ones on each connection; it reads
/// the next one and ends the connection without an answer.
struct Stale {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Stale {
    async fn start(answered: usize) -> Self {
        Self::ending(answered, Ending::Close).await
    }

    async fn ending(answered: usize, ending: Ending) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, (answered, ending), Arc::clone(&counter)));
            }
        });
        Self { port, requests }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(
    mut stream: TcpStream,
    (answered, ending): (usize, Ending),
    requests: Arc<AtomicUsize>,
) {
    for number in 0.. {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !is_complete(&seen) {
            match stream.read(&mut buffer).await {
                Ok(size) if size > 0 => seen.extend_from_slice(&buffer[..size]),
                _ => return,
            }
        }
        requests.fetch_add(1, Ordering::SeqCst);
        if number >= answered {
            match ending {
                Ending::Close => {}
                Ending::Reset => stream.set_zero_linger().expect("an open socket"),
                Ending::Partial => _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-").await,
            }
            return;
        }
        let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        if stream.write_all(reply).await.is_err() {
            return;
        }
    }
}

/// Returns whether the head and the announced body, "data", are complete.
fn is_complete(seen: &[u8]) -> bool {
    let text = String::from_utf8_lossy(seen);
    match text.split_once("\r\n\r\n") {
        Some((head, body)) => {
            (!head.contains("content-length: 4") || body == "data")
                && (!head.contains("chunked") || body.ends_with("0\r\n\r\n"))
        }
        None => false,
    }
}

#[tokio::test]
async fn an_idempotent_request_is_retried_once_on_a_stale_connection() {
    let endings = [Ending::Close, Ending::Reset, Ending::Partial];
    let methods = [Method::GET, Method::PUT, Method::DELETE, Method::QUERY];
    for (method, ending) in methods.iter().flat_map(|method| endings.map(|ending| (method, ending)))
    {
        let server = Stale::ending(1, ending).await;
        let client = builder_for(&[server.port], &[]).build().expect("a client");
        client.get(server.url()).send().await.expect("a response").bytes().await.expect("ok");
        let second = client.request(method.clone(), server.url()).body("data").send().await;
        let second = second.expect("a response");
        assert!(!second.connection_was_reused());
        assert_eq!(second.text().await.expect("ok"), "ok");
        assert_eq!(server.requests(), 3, "{method} {ending:?}");
    }
}

#[tokio::test]
async fn a_post_is_never_retried() {
    for ending in [Ending::Close, Ending::Reset, Ending::Partial] {
        let server = Stale::ending(1, ending).await;
        let client = builder_for(&[server.port], &[]).build().expect("a client");
        client.get(server.url()).send().await.expect("a response").bytes().await.expect("ok");
        let error = client.post(server.url()).body("data").send().await.expect_err("closed");
        assert_eq!(error.kind(), Kind::Protocol, "{error}");
        assert_eq!(server.requests(), 2, "{ending:?}");
    }
}

#[tokio::test]
async fn a_stream_is_never_retried() {
    let server = Stale::start(1).await;
    let client = builder_for(&[server.port], &[]).build().expect("a client");
    client.get(server.url()).send().await.expect("a response").bytes().await.expect("ok");
    let data = futures_util::stream::iter([Ok::<_, std::io::Error>("data".into())]);
    let request = client.put(server.url()).body(Body::from_stream(data));
    let error = request.send().await.expect_err("closed");
    assert_eq!(error.kind(), Kind::Protocol, "{error}");
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn nothing_is_retried_on_a_fresh_connection() {
    let server = Stale::start(0).await;
    let client = builder_for(&[server.port], &[]).build().expect("a client");
    let error = client.get(server.url()).send().await.expect_err("closed");
    assert_eq!(error.kind(), Kind::Protocol, "{error}");
    assert!(error.to_string().contains("tcp 127.0.0.1"), "{error}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn the_error_of_a_request_body_is_its_own_and_ends_the_request() {
    let server = Stale::start(9).await;
    let client = builder_for(&[server.port], &[]).build().expect("a client");
    let broken = futures_util::stream::iter([
        Ok(bytes::Bytes::from("da")),
        Err(std::io::Error::other("disk on fire")),
    ]);
    let request = client.put(server.url()).body(Body::from_stream(broken));
    let error = request.send().await.expect_err("no body");
    assert_eq!(error.kind(), Kind::RequestBody, "{error}");
    assert!(error.to_string().contains("disk on fire"), "{error}");
}
