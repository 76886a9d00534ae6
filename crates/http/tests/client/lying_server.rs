//! What a server over HTTP/3 may get wrong, and the error code with which the client answers it (RFC 9114 §8.1, RFC 9204
//! §6). The server writes every byte itself.

use eyas_http::Kind;
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

use crate::{
    hostile_peer::{Peer, panics},
    site::SOON,
    wire::{
        CANCEL_PUSH, CLOSED_CRITICAL_STREAM, CONTROL, DATA, DECODER, DECODER_STREAM_ERROR,
        DECOMPRESSION_FAILED, ENCODER, ENCODER_STREAM_ERROR, Ending, FRAME_ERROR, FRAME_UNEXPECTED,
        GOAWAY, HEADERS, ID_ERROR, MAX_PUSH_ID, MESSAGE_ERROR, MISSING_SETTINGS, PUSH,
        PUSH_PROMISE, RESERVED, SETTINGS_ERROR, STREAM_CREATION_ERROR, close_code, control, frame,
        head, send_uni, settings, varint,
    },
};

/// What a server sends to each connection, and to its first request.
#[derive(Clone, Default)]
struct Lie {
    streams: Vec<(Vec<u8>, Ending)>,
    answer: Vec<u8>,
    finishes: bool,
    opens_bidirectional: bool,
}

/// The code with which the client closes the connection, or stops the response.
#[derive(Debug, PartialEq, Eq)]
enum Code {
    Closed(Option<u64>),
    Stopped(u64),
}

impl Lie {
    fn on_control(frames: &[u8]) -> Self {
        Self::stream(control(frames), Ending::Open)
    }

    fn stream(bytes: Vec<u8>, end: Ending) -> Self {
        Self { streams: vec![(bytes, end)], ..Self::default() }
    }

    /// On a stream of this type, beside a control stream.
    fn on(kind: u64, bytes: &[u8]) -> Self {
        let stream = [varint(kind), bytes.to_vec()].concat();
        Self {
            streams: vec![(control(&[]), Ending::Open), (stream, Ending::Open)],
            ..Self::default()
        }
    }

    fn answer(bytes: Vec<u8>) -> Self {
        let streams = vec![(control(&[]), Ending::Open)];
        Self { streams, answer: bytes, ..Self::default() }
    }

    fn finished(self) -> Self {
        Self { finishes: true, ..self }
    }

    /// Tells it to a client, and returns the code and the kind of the client's error.
    async fn told(self, name: &str) -> (Code, Kind) {
        let (report, mut reports) = unbounded_channel();
        let peer = Peer::start(move |quic| {
            let (lie, report) = (self.clone(), report.clone());
            async move {
                // The request comes first, so that it is this one that fails.
                let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
                let mut open = Vec::new();
                for (bytes, end) in &lie.streams {
                    open.push(send_uni(&quic, bytes, *end).await);
                }
                if lie.opens_bidirectional
                    && let Ok((mut send, _)) = quic.open_bi().await
                {
                    let _ = send.write_all(&head(&[(":method", "GET")])).await;
                    quic.closed().await;
                }
                let _ = send.write_all(&lie.answer).await;
                if lie.finishes {
                    let _ = send.finish();
                }
                let code = tokio::select! {
                    biased;
                    code = close_code(&quic) => Code::Closed(code),
                    stopped = send.stopped(), if !lie.finishes => match stopped {
                        Ok(Some(code)) => Code::Stopped(code.into_inner()),
                        _ => Code::Closed(close_code(&quic).await),
                    },
                };
                let _ = report.send(code);
                quic.closed().await;
            }
        });
        let client = peer.client().build().expect("a client");
        let whole = async { client.get(peer.url()).send().await?.bytes().await };
        let ended = timeout(SOON, whole).await;
        let error = ended.unwrap_or_else(|_| panic!("{name}: no end")).expect_err(name);
        let code = timeout(SOON * 2, reports.recv()).await.ok().flatten();
        let code = code.unwrap_or_else(|| panic!("{name}: no code"));
        (code, error.kind())
    }
}

fn ok_with(fields: &[(&str, &str)]) -> Vec<u8> {
    head(&[&[(":status", "200")], fields].concat())
}

/// What is wrong, how the server does it, and the error code.
type Row = (&'static str, Lie, u64);

fn id(kind: u64, id: u64) -> Vec<u8> {
    frame(kind, &varint(id))
}

fn two(kind: u64) -> Lie {
    let streams = vec![(varint(kind), Ending::Open), (varint(kind), Ending::Open)];
    Lie { streams, ..Lie::default() }
}

fn setting(pairs: &[(u64, u64)]) -> Lie {
    Lie::stream([varint(CONTROL), settings(pairs)].concat(), Ending::Open)
}

fn after_head(rest: Vec<u8>) -> Lie {
    Lie::answer([ok_with(&[]), rest].concat())
}

/// Streams that must not be, or must not end, pushes, and GOAWAY.
fn stream_errors() -> Vec<Row> {
    let bidirectional = Lie { opens_bidirectional: true, ..Lie::on_control(&[]) };
    vec![
        // RFC 9114 §6.
        ("a bidirectional stream", bidirectional, STREAM_CREATION_ERROR),
        (
            "GOAWAY before SETTINGS",
            Lie::stream([varint(CONTROL), id(GOAWAY, 0)].concat(), Ending::Open),
            MISSING_SETTINGS,
        ),
        ("two control streams", two(CONTROL), STREAM_CREATION_ERROR),
        (
            "a control stream that ends",
            Lie::stream(control(&[]), Ending::Finish),
            CLOSED_CRITICAL_STREAM,
        ),
        (
            "a control stream that is reset",
            Lie::stream(control(&[]), Ending::Reset),
            CLOSED_CRITICAL_STREAM,
        ),
        // §4.6: the client allowed no push.
        ("a push stream", Lie::on(PUSH, &varint(0)), ID_ERROR),
        ("PUSH_PROMISE", Lie::answer(frame(PUSH_PROMISE, &[0, 0, 0, 0xd1])), ID_ERROR),
        ("CANCEL_PUSH", Lie::on_control(&id(CANCEL_PUSH, 0)), ID_ERROR),
        ("MAX_PUSH_ID of a server", Lie::on_control(&id(MAX_PUSH_ID, 0)), FRAME_UNEXPECTED),
        // §5.2.
        ("GOAWAY of a stream that is no request", Lie::on_control(&id(GOAWAY, 3)), ID_ERROR),
        ("a greater GOAWAY", Lie::on_control(&[id(GOAWAY, 4), id(GOAWAY, 8)].concat()), ID_ERROR),
    ]
}

/// SETTINGS, and other frames of the control stream.
fn control_errors() -> Vec<Row> {
    vec![
        // §7.2.4.
        ("two SETTINGS", Lie::on_control(&settings(&[])), FRAME_UNEXPECTED),
        ("a setting twice", setting(&[(0x06, 9), (0x06, 9)]), SETTINGS_ERROR),
        ("a setting of HTTP/2", setting(&[(0x04, 9)]), SETTINGS_ERROR),
        ("datagrams of 2", setting(&[(0x33, 2)]), SETTINGS_ERROR),
        (
            "SETTINGS that are cut off",
            Lie::stream([varint(CONTROL), frame(0x04, &[0x06])].concat(), Ending::Open),
            FRAME_ERROR,
        ),
        ("GOAWAY with too much", Lie::on_control(&frame(GOAWAY, &[0, 0])), FRAME_ERROR),
        ("DATA on the control stream", Lie::on_control(&frame(DATA, b"x")), FRAME_UNEXPECTED),
        ("HEADERS on the control stream", Lie::on_control(&ok_with(&[])), FRAME_UNEXPECTED),
        ("PING of HTTP/2", Lie::on_control(&frame(0x06, &[0; 8])), FRAME_UNEXPECTED),
    ]
}

/// The frames of a response, and QPACK.
fn response_and_qpack_errors() -> Vec<Row> {
    vec![
        // §4.1.
        ("DATA before HEADERS", Lie::answer(frame(DATA, b"x")), FRAME_UNEXPECTED),
        (
            "DATA after an interim response",
            Lie::answer([head(&[(":status", "103")]), frame(DATA, b"x")].concat()),
            FRAME_UNEXPECTED,
        ),
        ("SETTINGS in a response", after_head(settings(&[])), FRAME_UNEXPECTED),
        (
            "DATA after trailers",
            after_head([head(&[("x", "y")]), frame(DATA, b"x")].concat()),
            FRAME_UNEXPECTED,
        ),
        ("DATA that is cut off", after_head(vec![0x00, 9, b'x']).finished(), FRAME_ERROR),
        ("HEADERS that are cut off", Lie::answer(vec![0x01, 9, 0]).finished(), FRAME_ERROR),
        // RFC 9204 §2.2, §4.2 to §4.4.
        (
            "a static entry that is none",
            Lie::answer(frame(HEADERS, &[0, 0, 0xff, 36])),
            DECOMPRESSION_FAILED,
        ),
        (
            "a dynamic entry of none",
            Lie::answer(frame(HEADERS, &[0, 0, 0x80])),
            DECOMPRESSION_FAILED,
        ),
        ("two encoder streams", two(ENCODER), STREAM_CREATION_ERROR),
        ("two decoder streams", two(DECODER), STREAM_CREATION_ERROR),
        (
            "an encoder stream that ends",
            Lie::stream(varint(ENCODER), Ending::Finish),
            CLOSED_CRITICAL_STREAM,
        ),
        (
            "a decoder stream that ends",
            Lie::stream(varint(DECODER), Ending::Finish),
            CLOSED_CRITICAL_STREAM,
        ),
        (
            "a capacity above the limit",
            Lie::on(ENCODER, &[0x3f, 0xe2, 0xff, 0xff, 0xff, 0x07]),
            ENCODER_STREAM_ERROR,
        ),
        ("an acknowledgment of nothing", Lie::on(DECODER, &[0x84]), DECODER_STREAM_ERROR),
        ("an increment of 0", Lie::on(DECODER, &[0x00]), DECODER_STREAM_ERROR),
        ("an increment of too much", Lie::on(DECODER, &[0x3f, 0xff, 0x7f]), DECODER_STREAM_ERROR),
    ]
}

#[tokio::test]
async fn errors_of_the_server_close_the_connection() {
    let before = panics();
    let rows = [stream_errors(), control_errors(), response_and_qpack_errors()].concat();
    for (name, lie, code) in rows {
        let (found, kind) = lie.told(name).await;
        assert_eq!(found, Code::Closed(Some(code)), "{name}");
        let kinds = [Kind::Protocol, Kind::BodyReset, Kind::BodyTruncated];
        assert!(kinds.contains(&kind), "{name}: {kind:?}");
    }
    assert_eq!(panics(), before);
}

#[tokio::test]
async fn malformed_responses_concern_only_their_stream() {
    let before = panics();
    let rows: Vec<(&str, Vec<u8>)> = vec![
        // RFC 9114 §4.3.2.
        ("no :status", head(&[("server", "x")])),
        ("two :status", ok_with(&[(":status", "200")])),
        (":status of two digits", head(&[(":status", "20")])),
        (":status of letters", head(&[(":status", "abc")])),
        ("a pseudo-field of requests", ok_with(&[(":path", "/")])),
        ("an unknown pseudo-field", ok_with(&[(":unknown", "/")])),
        ("a pseudo-field after a field", head(&[("x", "y"), (":status", "200")])),
        ("a pseudo-field in trailers", [ok_with(&[]), head(&[(":status", "200")])].concat()),
        // §4.5.
        ("101", head(&[(":status", "101")])),
        // §4.2, §10.3.
        ("upper case", ok_with(&[("X-Upper", "1")])),
        ("a NUL in a value", ok_with(&[("x", "a\0b")])),
        ("a line end in a value", ok_with(&[("x", "a\r\nb: c")])),
        ("a name with a space", ok_with(&[("x y", "1")])),
        // §4.1.2.
        ("more than announced", [ok_with(&[("content-length", "1")]), frame(DATA, b"xy")].concat()),
    ];
    for (name, answer) in rows {
        let (found, kind) = Lie::answer(answer).told(name).await;
        assert_eq!(found, Code::Stopped(MESSAGE_ERROR), "{name}");
        assert!([Kind::Protocol, Kind::BodyLength].contains(&kind), "{name}: {kind:?}");
    }
    assert_eq!(panics(), before);
}

#[tokio::test]
async fn what_must_be_ignored_is_ignored() {
    let reserved = || frame(RESERVED, &[7; 300]);
    let peer = Peer::start(move |quic| async move {
        let own = [varint(CONTROL), settings(&[(RESERVED, 1), (0x4242, 7)]), reserved()].concat();
        let _control = send_uni(&quic, &own, Ending::Open).await;
        for (bytes, ending) in [
            ([varint(RESERVED), b"anything".to_vec()].concat(), Ending::Finish),
            ([varint(0x1234), b"anything".to_vec()].concat(), Ending::Open),
            (vec![], Ending::Finish),
            (vec![0x40], Ending::Finish),
        ] {
            send_uni(&quic, &bytes, ending).await;
        }
        let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
        let answer = [
            reserved(),
            head(&[(":status", "103")]),
            reserved(),
            ok_with(&[("content-length", "4")]),
            reserved(),
            frame(DATA, b"bo"),
            reserved(),
            frame(DATA, b"dy"),
            head(&[("x", "y")]),
            reserved(),
        ];
        let _ = send.write_all(&answer.concat()).await;
        let _ = send.finish();
        quic.closed().await;
    });
    let client = peer.client().build().expect("a client");
    let whole = async { client.get(peer.url()).send().await?.bytes().await };
    let body = timeout(SOON, whole).await.expect("an end").expect("a body");
    assert_eq!(body, "body");
}
