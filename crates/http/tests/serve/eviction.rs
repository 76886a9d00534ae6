//! What a client is told whose connection has given its place to another: what it had sent was not processed.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use eyas_http::{
    Body,
    serve::{Limits, Running, Server},
};
use http::{Response, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::{JoinHandle, yield_now},
    time::timeout,
};
use tower::service_fn;

use crate::{
    clients::{SOON, Speak, fetch, get, quic_to, start},
    wire::{CONTROL, Ending, GOAWAY, HEADERS, close_code, control, frame, send_uni, varint},
};

/// The length of the response's body, which exceeds what a stream buffers.
const BODY: usize = 2_000_000;

/// A server with one place, and the number of requests that its service has seen.
struct OnePlace {
    running: Running,
    seen: Arc<AtomicUsize>,
}

/// What became of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Served,
    Refused,
}

impl OnePlace {
    async fn start(status: StatusCode) -> Self {
        let seen = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&seen);
        let service = service_fn(move |_| {
            counter.fetch_add(1, SeqCst);
            let mut response = Response::new(Body::from(vec![b'.'; BODY]));
            *response.status_mut() = status;
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let limits = Limits { connections: 1, ..Limits::default() };
        let running = start(Server::builder().plain().service(service).limits(limits)).await;
        Self { running, seen }
    }

    /// Opens a connection that sends this, which the server has read then.
    async fn connect(&self, sent: &[u8]) -> (DuplexStream, JoinHandle<()>) {
        let (mut client, stream) = duplex(1 << 16);
        let streams = self.running.streams();
        let serving = tokio::spawn(async move { streams.serve(stream, peer(1), None).await });
        client.write_all(sent).await.expect("room");
        for _ in 0..100 {
            yield_now().await;
        }
        (client, serving)
    }

    /// Opens a connection without letting any other task run.
    fn admit(&self) -> Admission {
        let before = self.running.stats().connections_refused;
        let (_client, stream) = duplex(1);
        let streams = self.running.streams();
        let mut serving = pin!(streams.serve(stream, peer(2), None));
        let _ = futures_util::FutureExt::now_or_never(poll_fn(|cx| serving.as_mut().poll(cx)));
        match self.running.stats().connections_refused - before {
            0 => Admission::Served,
            _ => Admission::Refused,
        }
    }
}

fn peer(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 1))
}

async fn read_to_end(client: &mut DuplexStream) -> Vec<u8> {
    let mut received = Vec::new();
    let reading = client.read_to_end(&mut received);
    timeout(SOON, reading).await.expect("an end").expect("a stream");
    received
}

/// Returns what a client receives that sends this before, and in the moment in which another one gets its place.
async fn evicted(before: &[u8], moment: &[u8]) -> Vec<u8> {
    let server = OnePlace::start(StatusCode::OK).await;
    let (mut client, _serving) = server.connect(before).await;
    client.write_all(moment).await.expect("room");
    assert_eq!(server.admit(), Admission::Served);
    let received = read_to_end(&mut client).await;
    assert_eq!(server.seen.load(SeqCst), 0, "nothing is processed");
    received
}

#[tokio::test]
async fn over_http1_a_request_gets_503_and_silence_the_end() {
    let get: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf";
    for (before, moment) in [(&b""[..], get), (b"", post), (&get[..9], &get[9..])] {
        let answer = evicted(before, moment).await;
        let answer = String::from_utf8_lossy(&answer).to_lowercase();
        assert!(answer.starts_with("http/1.1 503 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    for before in [&b""[..], &get[..9]] {
        assert_eq!(evicted(before, b"").await, b"");
    }
}

/// RFC 9113 §3.4, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// HEADERS of `GET http://a/` on stream 1, with entries of the static table (RFC 7541 appendix A).
const HTTP2_GET: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a";

/// Returns the type, the stream and the payload of each frame.
fn http2_frames(mut bytes: &[u8]) -> Vec<(u8, u8, &[u8])> {
    let mut frames = Vec::new();
    while let [_, high, low, kind, _, _, _, _, stream, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        frames.push((*kind, *stream, &rest[..length]));
        bytes = &rest[length..];
    }
    frames
}

/// RFC 9113 §6.8: GOAWAY with the last stream comes before the connection closes.
#[tokio::test]
async fn over_http2_a_request_is_refused_and_the_connection_goes_away() {
    const RST_STREAM: u8 = 3;
    const GOAWAY: u8 = 7;
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    let answer = evicted(PREFACE, HTTP2_GET).await;
    let frames = http2_frames(&answer);
    assert!(frames.contains(&(RST_STREAM, 1, &REFUSED_STREAM)), "{frames:?}");
    assert!(frames.contains(&(GOAWAY, 0, &[0, 0, 0, 1, 0, 0, 0, 0])), "{frames:?}");
    let answer = evicted(PREFACE, b"").await;
    let frames = http2_frames(&answer);
    assert!(frames.contains(&(GOAWAY, 0, &[0; 8])), "{frames:?}");
}

#[tokio::test]
async fn a_client_that_is_asked_for_credentials_keeps_its_place_until_it_has_the_answer() {
    for (status, afterwards) in [
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Admission::Served),
        (StatusCode::OK, Admission::Refused),
    ] {
        let server = OnePlace::start(status).await;
        let (mut client, _serving) = server.connect(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(server.seen.load(SeqCst), 1);
        assert_eq!(server.admit(), Admission::Refused, "{status}");
        let (mut received, mut left) = (Vec::new(), BODY);
        while left > 0 {
            let mut chunk = [0; 4096];
            let read = timeout(SOON, client.read(&mut chunk)).await.expect("in time");
            let read = read.expect("a stream");
            assert_ne!(read, 0, "{status}: cut off");
            left -= chunk[..read].iter().filter(|byte| **byte == b'.').count().min(left);
            received.extend_from_slice(&chunk[..read]);
        }
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(server.admit(), afterwards, "{status}");
    }
}

/// RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;
const REQUEST_REJECTED: u64 = 0x10b;

//= rfc9114 §5.2
//# GOAWAY before the connection closes, and H3_REQUEST_REJECTED for what was not processed
#[tokio::test]
async fn over_http3_the_begin_of_a_request_keeps_no_place() {
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Body::empty())));
    let limits = Limits { connections: 1, ..Limits::default() };
    let running = start(Server::builder().service(service).limits(limits)).await;
    let root = running.identity().expect("a server with TLS").certificate();
    let quic = quic_to(running.local_addr(), root).await.expect("a QUIC handshake");
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let (mut send, mut recv) = quic.open_bi().await.expect("a stream");
    send.write_all(&varint(HEADERS)).await.expect("room");
    // What it has sent is acknowledged once the server's streams are there.
    let mut server_control = loop {
        let mut stream = timeout(SOON, quic.accept_uni()).await.expect("in time").expect("open");
        let mut kind = [0];
        stream.read_exact(&mut kind).await.expect("a type");
        if u64::from(kind[0]) == CONTROL {
            break stream;
        }
    };
    let answer = fetch(&running, Speak::Http1, get("/")).await;
    assert_eq!(answer.status(), StatusCode::OK, "it gets the place");
    let rejected = timeout(SOON, recv.read_to_end(1)).await.expect("an end");
    let Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) = rejected else {
        panic!("{rejected:?}");
    };
    assert_eq!(code.into_inner(), REQUEST_REJECTED);
    let mut frames = Vec::new();
    while let Ok(Some(chunk)) = server_control.read_chunk(1 << 10, true).await {
        frames.extend_from_slice(&chunk.bytes);
    }
    let goaway = [0, 4].map(|id| frame(GOAWAY, &varint(id)));
    assert!(goaway.iter().any(|goaway| frames.ends_with(goaway)), "{frames:?}");
    assert_eq!(close_code(&quic).await, Some(NO_ERROR));
}
