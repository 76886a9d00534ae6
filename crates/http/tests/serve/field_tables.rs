//! Requests over HTTP/3 whose fields refer to QPACK's dynamic table (RFC 9204 §3.2), byte for byte as in the example of
//! RFC 9204 appendix B.2.

use std::convert::Infallible;

use eyas_http::{
    Body,
    serve::{RequestBody, Running, Server},
};
use http::{Request, Response};
use tokio::time::timeout;
use tower::service_fn;

use crate::{
    clients::{SOON, quic_to, start},
    wire::{DECODER, ENCODER, Ending, HEADERS, control, frame, send_uni, varint},
};

/// A capacity of 220 bytes, `:authority` with `www.example.com`, and `:path` with `/sample/path`.
const INSTRUCTIONS: &[u8] = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";

/// GET and https of the static table, and the two entries: a required insert count of 2, and a base of 0.
const SECTION: [u8; 6] = [0x03, 0x81, 0xd1, 0xd7, 0x10, 0x11];

/// A server that answers with what it was asked for.
async fn server() -> Running {
    let service = service_fn(async |request: Request<RequestBody>| {
        Ok::<_, Infallible>(Response::new(Body::from(request.uri().to_string())))
    });
    start(Server::builder().service(service)).await
}

async fn connect(running: &Running) -> quinn::Connection {
    let root = running.identity().expect("a server with TLS").certificate();
    quic_to(running.local_addr(), root).await.expect("a QUIC handshake")
}

async fn request(quic: &quinn::Connection) -> quinn::RecvStream {
    let (mut send, recv) = quic.open_bi().await.expect("a stream");
    send.write_all(&frame(HEADERS, &SECTION)).await.expect("written");
    send.finish().expect("open");
    recv
}

async fn assert_answered(mut recv: quinn::RecvStream) {
    let response = timeout(SOON, recv.read_to_end(1 << 16)).await.expect("in time");
    let response = response.expect("a response");
    let expected = b"https://www.example.com/sample/path";
    assert!(response.ends_with(expected), "{:?}", String::from_utf8_lossy(&response));
}

/// Waits for the server to acknowledge the section on this stream (RFC 9204 §4.4.1).
async fn assert_acknowledged(quic: &quinn::Connection, stream: u8) {
    let acknowledged = async {
        // The others must not be stopped.
        let mut others = Vec::new();
        loop {
            let mut uni = quic.accept_uni().await.expect("a stream");
            let mut kind = [0];
            uni.read_exact(&mut kind).await.expect("a type");
            if u64::from(kind[0]) != DECODER {
                others.push(uni);
                continue;
            }
            let mut instructions = Vec::new();
            while !instructions.contains(&(0x80 | stream)) {
                let mut more = [0; 64];
                let count = uni.read(&mut more).await.expect("open").expect("more");
                instructions.extend_from_slice(&more[..count]);
            }
            return;
        }
    };
    timeout(SOON, acknowledged).await.expect("acknowledged in time");
}

#[tokio::test]
async fn a_request_may_refer_to_the_table() {
    let running = server().await;
    let quic = connect(&running).await;
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let instructions = [varint(ENCODER), INSTRUCTIONS.to_vec()].concat();
    let _encoder = send_uni(&quic, &instructions, Ending::Open).await;
    let recv = request(&quic).await;
    assert_answered(recv).await;
    assert_acknowledged(&quic, 0).await;
}

#[tokio::test]
async fn a_request_waits_for_entries_that_are_still_on_their_way() {
    let running = server().await;
    let quic = connect(&running).await;
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let mut encoder = send_uni(&quic, &varint(ENCODER), Ending::Open).await;
    let (first, second) = (request(&quic).await, request(&quic).await);
    // One that does not need the table is not held up.
    let other = frame(HEADERS, b"\x00\x00\xd1\xd7\x50\x0fwww.example.com\x51\x0c/sample/path");
    let (mut send, recv) = quic.open_bi().await.expect("a stream");
    send.write_all(&other).await.expect("written");
    send.finish().expect("open");
    assert_answered(recv).await;
    // Whatever the pieces.
    for byte in INSTRUCTIONS {
        encoder.write_all(&[*byte]).await.expect("written");
    }
    assert_answered(first).await;
    assert_answered(second).await;
}

#[tokio::test]
async fn a_request_that_waits_can_be_given_up() {
    let running = server().await;
    let quic = connect(&running).await;
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let mut encoder = send_uni(&quic, &varint(ENCODER), Ending::Open).await;
    let (mut send, mut recv) = quic.open_bi().await.expect("a stream");
    send.write_all(&frame(HEADERS, &SECTION)).await.expect("written");
    send.reset(0x10c_u32.into()).expect("open");
    let given_up = timeout(SOON, recv.read_to_end(100)).await.expect("in time");
    assert!(given_up.is_err(), "{given_up:?}");
    encoder.write_all(INSTRUCTIONS).await.expect("written");
    assert_answered(request(&quic).await).await;
    assert_eq!(quic.close_reason(), None);
}
