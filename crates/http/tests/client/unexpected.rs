//! Tests of unsolicited and endless responses: they are errors over every version, and never
//! treated as complete responses.

use eyas::{ListenParameters, Listener, race::candidate::Transport};
use eyas_http::{Client, Error, Kind, Versions};
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use crate::{
    ports::own_port,
    site::{NAME, Plan, Reply, SOON, builder, builder_for, identity},
};

const EACH: [Versions; 3] = [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3];

/// An HTTP/1.1 server that answers with these octets, repeating the last ones.
struct Octets {
    port: u16,
    _tasks: JoinSet<()>,
}

impl Octets {
    async fn start(once: &'static [u8], repeated: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                serving.spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(once).await;
                    repeat(&mut stream, repeated).await;
                });
            }
        });
        Self { port, _tasks: tasks }
    }

    async fn get(&self, field: Option<(&'static str, &'static str)>) -> Result<String, Error> {
        let client = builder_for(&[self.port], &[]).build().expect("a client");
        get(&client, &format!("http://127.0.0.1:{}/", self.port), field).await
    }
}

/// Writes these octets until the peer stops reading.
async fn repeat(stream: &mut (impl AsyncWrite + Unpin), repeated: &[u8]) {
    let many = repeated.repeat(64);
    while !many.is_empty() && stream.write_all(&many).await.is_ok() {}
}

async fn get(
    client: &Client,
    url: &str,
    field: Option<(&'static str, &'static str)>,
) -> Result<String, Error> {
    let mut request = client.get(url);
    if let Some((name, value)) = field {
        request = request.header(name, value);
    }
    let whole = async { request.send().await?.text().await };
    tokio::time::timeout(SOON, whole).await.expect("an end")
}

fn is_refused(outcome: Result<String, Error>, word: &str) {
    let error = outcome.expect_err(word);
    assert_eq!(error.kind(), Kind::Protocol, "{error}");
    assert!(error.to_string().contains(word), "{word}: {error}");
    assert!(error.candidate().is_some(), "{error}");
}

//= hostile client
//# a 206, 304 or 101 that was not asked for
//= bound: an error, no body
#[tokio::test]
async fn a_partial_response_to_a_full_request_is_an_error() {
    let site = Plan::default().start(|_| Reply { status: 206, ..Reply::text("part") }).await;
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        is_refused(get(&client, &site.url("/"), None).await, "206");
        let part = get(&client, &site.url("/"), Some(("range", "bytes=0-3"))).await;
        assert_eq!(part.expect("a requested response"), "part");
    }
}

#[tokio::test]
async fn not_modified_without_a_condition_is_an_error() {
    let site = Plan::default().start(|_| Reply::status(304)).await;
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        is_refused(get(&client, &site.url("/"), None).await, "304");
        for field in ["if-none-match", "if-modified-since"] {
            let same = get(&client, &site.url("/"), Some((field, "\"x\""))).await;
            assert_eq!(same.expect("a requested response"), "");
        }
    }
}

#[tokio::test]
async fn unrequested_switching_protocols_is_an_error() {
    let switched =
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx";
    let server = Octets::start(switched, b"").await;
    is_refused(server.get(None).await, "101");
    is_refused(server.get(Some(("upgrade", "x"))).await, "101");
}

//= hostile client
//# a transfer coding that was not offered
//= bound: chunked, once
#[tokio::test]
async fn an_unoffered_transfer_coding_is_refused() {
    let codings = [
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n\
          1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, identity\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: \xff\r\n\r\nx",
    ];
    for answer in codings {
        let server = Octets::start(answer, b"").await;
        is_refused(server.get(None).await, "Transfer-Encoding");
    }
    for answer in [
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: , chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\nconnection: close\r\n\r\nx",
    ] {
        let server = Octets::start(answer, b"").await;
        assert_eq!(server.get(None).await.expect("a body"), "x");
    }
}

//= hostile client
//# endless informational responses
//= bound: `MAX_INFORMATIONAL`, `MAX_HEAD_BYTES`, `MAX_COUNTED`
#[tokio::test]
async fn endless_informational_responses_end_over_http_1() {
    for hint in [
        &b"HTTP/1.1 100 Continue\r\n\r\n"[..],
        b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n",
    ] {
        let server = Octets::start(b"", hint).await;
        is_refused(server.get(None).await, "informational");
    }
}

#[tokio::test]
async fn some_informational_responses_are_read_over_http_1() {
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
                  HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
    let server = Octets::start(hints, b"").await;
    assert_eq!(server.get(None).await.expect("a body"), "body");
}

/// Encodes an HTTP/2 frame (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns HEADERS of 103 Early Hints: a literal without indexing, its name in HPACK's static
/// table.
fn early_hints(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, b"\x08\x03103")
}

/// Returns HEADERS of 200 from HPACK's static table.
fn ok(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &[0x88])
}

/// Sends a request over HTTP/2 to a server that sends these octets, repeating the last ones.
async fn over_http_2(once: Vec<u8>, repeated: Vec<u8>) -> Result<String, Error> {
    let (identity, port) = (identity(&[NAME]), own_port());
    let parameters = ListenParameters::new((std::net::Ipv4Addr::LOCALHOST, port).into())
        .transports([Transport::Tcp])
        .with_alpn(["h2"])
        .security(identity.clone());
    let listener = Listener::bind(parameters).await.expect("a free port");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut stream = listener.accept().await.into_stream().expect("a stream");
        let _ = stream.write_all(&frame(SETTINGS, 0, 0, b"")).await;
        // The preface and SETTINGS come before the request.
        let mut read = Vec::new();
        while !read.windows(5).any(|window| window == [HEADERS, 5, 0, 0, 0]) {
            let Ok(1..) = stream.read_buf(&mut read).await else { return };
        }
        let _ = stream.write_all(&once).await;
        repeat(&mut stream, &repeated).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let client = builder_for(&[port], &[&identity]).versions(Versions::HTTP_2).build();
    get(&client.expect("a client"), &format!("https://{NAME}:{port}/"), None).await
}

#[tokio::test]
async fn endless_informational_responses_end_over_http_2() {
    let outcome = over_http_2(vec![], early_hints(1)).await;
    is_refused(outcome, "more than 16 informational responses arrived without a final one");
    // On another stream, which was never opened, they are a separate error.
    let elsewhere = over_http_2(vec![], early_hints(3)).await.expect_err("an error");
    assert_eq!(elsewhere.kind(), Kind::Protocol, "{elsewhere}");
}

#[tokio::test]
async fn some_informational_responses_are_read_over_http_2() {
    let whole = [early_hints(1).repeat(16), ok(1), frame(DATA, END_STREAM, 1, b"body")].concat();
    assert_eq!(over_http_2(whole, vec![]).await.expect("a body"), "body");
}
