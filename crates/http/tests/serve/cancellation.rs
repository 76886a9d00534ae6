//! The codes with which a server over HTTP/3 ends what is under way (RFC 9114 §4.1, §4.1.1, §8.1), in both directions of a
//! request's stream.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use eyas_http::{
    Body,
    serve::{Limits, RequestBody, Server},
};
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use tokio::time::timeout;
use tower::service_fn;

use crate::{
    clients::{SOON, quic_to, start},
    wire::{DATA, Ending, HEADERS, MESSAGE_ERROR, control, frame, head, send_uni, varint},
};

/// RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;
const INTERNAL_ERROR: u64 = 0x102;
const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_REJECTED: u64 = 0x10b;
const REQUEST_CANCELLED: u64 = 0x10c;
const REQUEST_INCOMPLETE: u64 = 0x10d;

/// Answers before it has read the request, without an end, with one that fails, or never.
async fn answer(request: Request<RequestBody>) -> Result<Response<Body>, Infallible> {
    let first = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"begun"))]);
    Ok(Response::new(match request.uri().path() {
        "/early" => Body::from("at once"),
        "/broken" => {
            Body::from_stream(first.chain(stream::iter([Err(io::Error::other("no luck"))])))
        }
        "/never" => std::future::pending().await,
        _ => unreachable!("not requested"),
    }))
}

/// What the client receives: the code of RESET_STREAM for the response, unless it is complete, and that of STOP_SENDING
/// for its upload.
#[derive(Debug, PartialEq, Eq)]
struct Codes {
    response: Option<u64>,
    upload: Option<u64>,
}

/// Sends a request that does not end, and returns the codes. With `cancels` the client wants no response.
async fn codes(quic: &quinn::Connection, bytes: &[u8], cancels: bool) -> Codes {
    let (mut send, mut recv) = quic.open_bi().await.expect("a stream");
    let _ = send.write_all(bytes).await;
    if cancels {
        // The service has the request.
        tokio::time::sleep(Duration::from_millis(50)).await;
        recv.stop((REQUEST_CANCELLED as u32).into()).expect("open");
    }
    let response = async {
        match recv.read_to_end(1 << 16).await {
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                Some(code.into_inner())
            }
            _ => None,
        }
    };
    let (response, upload) =
        timeout(SOON, async { tokio::join!(response, send.stopped()) }).await.expect("an end");
    Codes { response, upload: upload.expect("open").map(quinn::VarInt::into_inner) }
}

fn post(path: &str) -> Vec<u8> {
    let pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", "a"), (":path", path)];
    [head(&pseudo), frame(DATA, b"begun")].concat()
}

//= rfc9114 §4.1
//# a server that needs no more of a request stops it with H3_NO_ERROR
//= rfc9114 §4.1.1
//# what was not processed is rejected; a response that fails, or an incomplete request, has a code of its own
#[tokio::test]
async fn each_reason_to_end_a_request_has_its_code() {
    let limits = Limits { header_read_time: Duration::from_millis(300), ..Limits::default() };
    let running = start(Server::builder().service(service_fn(answer)).limits(limits)).await;
    let root = running.identity().expect("a server with TLS").certificate();
    let quic = quic_to(running.local_addr(), root).await.expect("a QUIC handshake");
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let malformed = head(&[(":method", "POST"), (":path", "/")]);
    let huge = [varint(HEADERS), varint(1 << 30)].concat();
    for (what, bytes, cancels, response, upload) in [
        ("an early response", post("/early"), false, None, NO_ERROR),
        ("a response that fails", post("/broken"), false, Some(INTERNAL_ERROR), NO_ERROR),
        ("a response that nobody wants", post("/never"), true, None, NO_ERROR),
        ("a malformed head", malformed, false, Some(MESSAGE_ERROR), MESSAGE_ERROR),
        ("a huge head", huge, false, Some(EXCESSIVE_LOAD), EXCESSIVE_LOAD),
        ("half a head", post("/early")[..9].to_vec(), false, Some(REQUEST_INCOMPLETE), NO_ERROR),
    ] {
        let codes = codes(&quic, &bytes, cancels).await;
        assert_eq!(codes, Codes { response, upload: Some(upload) }, "{what}");
    }

    // One request of each connection is always allowed.
    let limits = Limits { requests: 0, ..Limits::default() };
    let running = start(Server::builder().service(service_fn(answer)).limits(limits)).await;
    let root = running.identity().expect("a server with TLS").certificate();
    let quic = quic_to(running.local_addr(), root).await.expect("a QUIC handshake");
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let (mut first, _response) = quic.open_bi().await.expect("a stream");
    first.write_all(&post("/never")).await.expect("room");
    let rejected = codes(&quic, &post("/early"), false).await;
    let code = Some(REQUEST_REJECTED);
    assert_eq!(rejected, Codes { response: code, upload: code }, "too many requests");
}
