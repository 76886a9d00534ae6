//! The codes with which a client over HTTP/3 gives up what is under way (RFC 9114 §4.1.1, §8.1), in both directions of a
//! request's stream.

use std::io;

use bytes::Bytes;
use eyas_http::Body;
use futures_util::{StreamExt, stream};
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

use crate::{
    hostile_peer::Peer,
    site::SOON,
    wire::{DATA, Ending, HEADERS, MESSAGE_ERROR, control, frame, head, send_uni, varint},
};

/// RFC 9114 §8.1.
const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_CANCELLED: u64 = 0x10c;

/// What the client does once the server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// It gives the request up, whose response may not have begun.
    DropRequest,
    /// It drops the response after a part of its body.
    DropBody,
    /// It reads the response to its end, or to what is wrong with it.
    Read,
    /// The source of its request's body fails.
    FailUpload,
}

/// What the server receives: the code of RESET_STREAM for the upload, and that of STOP_SENDING for the response unless it
/// is complete.
#[derive(Debug, PartialEq, Eq)]
struct Codes {
    upload: Option<u64>,
    response: Option<u64>,
}

/// Answers an upload that does not end with these bytes, and returns the codes.
async fn codes(answer: Vec<u8>, is_whole: bool, act: Act) -> Codes {
    let ((report, mut reports), (begin, mut begun)) = (unbounded_channel(), unbounded_channel());
    let peer = Peer::start(move |quic| {
        let (report, begin, answer) = (report.clone(), begin.clone(), answer.clone());
        async move {
            let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
            let Ok((mut send, mut recv)) = quic.accept_bi().await else { return };
            let _ = send.write_all(&answer).await;
            if is_whole {
                send.finish().expect("open");
            }
            let _ = begin.send(());
            let (upload, response) = tokio::join!(recv.read_to_end(1 << 16), send.stopped());
            let upload = match upload {
                Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                    Some(code.into_inner())
                }
                _ => None,
            };
            let response = response.ok().flatten().map(quinn::VarInt::into_inner);
            let _ = report.send(Codes { upload, response });
            quic.closed().await;
        }
    });
    let client = peer.client().build().expect("a client");
    let first = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"begun"))]);
    let body = match act {
        Act::FailUpload => {
            let failure = stream::iter([Err(io::Error::other("the source fails"))]);
            Body::from_stream(first.chain(failure))
        }
        _ => Body::from_stream(first.chain(stream::pending())),
    };
    let request = client.post(peer.url()).body(body);
    let mut exchange = tokio::spawn(async move {
        let mut body = request.send().await?.into_body();
        while let Some(_chunk) = body.chunk().await? {
            if act == Act::DropBody {
                return Ok(());
            }
        }
        Ok::<_, eyas_http::Error>(())
    });
    timeout(SOON, begun.recv()).await.expect("in time").expect("a request");
    if act == Act::DropRequest {
        exchange.abort();
    }
    let report = timeout(SOON, reports.recv()).await;
    let _ = timeout(SOON, &mut exchange).await.expect("an end");
    report.expect("in time").expect("codes")
}

//= rfc9114 §4.1.1
//# a client cancels with H3_REQUEST_CANCELLED; what is wrong has a code of its own
#[tokio::test]
async fn each_reason_to_give_up_has_its_code() {
    let ok = || head(&[(":status", "200")]);
    let part = || [ok(), frame(DATA, b"part")].concat();
    let huge = [varint(HEADERS), varint(1 << 30)].concat();
    let cancelled = Some(REQUEST_CANCELLED);
    for (what, answer, is_whole, act, response) in [
        ("no response", vec![], false, Act::DropRequest, cancelled),
        ("an interim response", head(&[(":status", "103")]), false, Act::DropRequest, cancelled),
        ("a part of the body", part(), false, Act::DropBody, cancelled),
        ("all of it, and no end", part(), false, Act::DropRequest, cancelled),
        ("a whole response", part(), true, Act::Read, None),
        ("a failed upload", vec![], false, Act::FailUpload, cancelled),
        ("no status", head(&[("x", "y")]), false, Act::Read, Some(MESSAGE_ERROR)),
        (
            "an upper case name",
            head(&[(":status", "200"), ("X", "y")]),
            false,
            Act::Read,
            Some(MESSAGE_ERROR),
        ),
        (
            "malformed trailers",
            [ok(), head(&[(":status", "200")])].concat(),
            false,
            Act::Read,
            Some(MESSAGE_ERROR),
        ),
        ("a huge head", huge, false, Act::Read, Some(EXCESSIVE_LOAD)),
    ] {
        let codes = codes(answer, is_whole, act).await;
        assert_eq!(codes, Codes { upload: cancelled, response }, "{what}");
    }
}
