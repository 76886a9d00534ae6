//! What a client over HTTP/3 may get wrong, and the error code with which the server answers it (RFC 9114 §8.1, RFC
//! 9204 §6). The client writes every byte itself.

use std::convert::Infallible;

use eyas_http::{
    Body,
    serve::{RequestBody, Running, Server},
};
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::service_fn;

use crate::{
    clients::{SOON, quic_to, start},
    wire::{
        CANCEL_PUSH, CLOSED_CRITICAL_STREAM, CONTROL, DATA, DECODER, DECODER_STREAM_ERROR,
        DECOMPRESSION_FAILED, ENCODER, ENCODER_STREAM_ERROR, Ending, FRAME_ERROR, FRAME_UNEXPECTED,
        GOAWAY, HEADERS, ID_ERROR, MAX_PUSH_ID, MESSAGE_ERROR, MISSING_SETTINGS, PUSH,
        PUSH_PROMISE, RESERVED, SETTINGS, SETTINGS_ERROR, STREAM_CREATION_ERROR, close_code,
        control, frame, head, send_uni, settings, varint,
    },
};

/// RFC 9114 §8.1.
const REQUEST_INCOMPLETE: u64 = 0x10d;

/// A server whose service reads all of a request and answers 200.
async fn server() -> Running {
    let service = service_fn(async |request: Request<RequestBody>| {
        let mut response = Response::new(Body::empty());
        if request.into_body().collect().await.is_err() {
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        }
        Ok::<_, Infallible>(response)
    });
    start(Server::builder().service(service)).await
}

async fn connect(running: &Running) -> quinn::Connection {
    let root = running.identity().expect("a server with TLS").certificate();
    quic_to(running.local_addr(), root).await.expect("a QUIC handshake")
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/")];

/// Returns the head of a GET with further fields.
fn get_with(fields: &[(&str, &str)]) -> Vec<u8> {
    head(&[&GET[..], fields].concat())
}

/// Returns the head of a GET without one of its pseudo-fields.
fn get_without(name: &str) -> Vec<u8> {
    head(&GET.into_iter().filter(|(pseudo, _)| *pseudo != name).collect::<Vec<_>>())
}

fn with_type(kind: u64, rest: &[u8]) -> Vec<u8> {
    [varint(kind), rest.to_vec()].concat()
}

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Status(Vec<u8>),
    Reset(u64),
    Closed(u64),
}

/// Sends a request, and returns how the server answered.
async fn exchange(quic: &quinn::Connection, bytes: &[u8], ending: Ending) -> Answer {
    let (mut send, mut recv) = quic.open_bi().await.expect("a stream");
    let _ = send.write_all(bytes).await;
    ending.apply(&mut send);
    match timeout(SOON, recv.read_to_end(1 << 16)).await.expect("an answer in time") {
        Ok(response) => Answer::Status(response),
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
            Answer::Reset(code.into_inner())
        }
        Err(error) => match quic.close_reason() {
            Some(quinn::ConnectionError::ApplicationClosed(close)) => {
                Answer::Closed(close.error_code.into_inner())
            }
            _ => panic!("{error}"),
        },
    }
}

/// Returns whether a response begins with HEADERS of the static table's entry for this status (RFC 9204 appendix A).
fn is_status(response: &[u8], status: u16) -> bool {
    let entry = match status {
        200 => 25,
        400 => 67,
        _ => unreachable!("not expected of this server"),
    };
    let indexed = if entry < 63 { vec![0xc0 | entry] } else { vec![0xff, entry - 63] };
    // The type, a length of one byte or two, and the prefix of a section.
    (2..=3).any(|at| response.get(at + 2..).is_some_and(|fields| fields.starts_with(&indexed)))
}

/// Asserts that the connection still serves requests.
async fn assert_serves(quic: &quinn::Connection, after: &str) {
    match exchange(quic, &get_with(&[]), Ending::Finish).await {
        Answer::Status(response) => assert!(is_status(&response, 200), "{after}: {response:?}"),
        other => panic!("{after}: {other:?}"),
    }
}

/// What is wrong, the unidirectional streams of the client, and the error code.
type Row = (&'static str, Vec<(Vec<u8>, Ending)>, u64);

fn one(bytes: Vec<u8>, ending: Ending) -> Vec<(Vec<u8>, Ending)> {
    vec![(bytes, ending)]
}

fn twice(kind: u64) -> Vec<(Vec<u8>, Ending)> {
    vec![(with_type(kind, &[]), Ending::Open), (with_type(kind, &[]), Ending::Open)]
}

fn on_control(frames: Vec<u8>) -> Vec<(Vec<u8>, Ending)> {
    one(control(&frames), Ending::Open)
}

/// On a stream of this type, beside a control stream.
fn on(kind: u64, bytes: &[u8]) -> Vec<(Vec<u8>, Ending)> {
    vec![(control(&[]), Ending::Open), (with_type(kind, bytes), Ending::Open)]
}

fn setting(pairs: &[(u64, u64)]) -> Vec<(Vec<u8>, Ending)> {
    one(with_type(CONTROL, &settings(pairs)), Ending::Open)
}

fn raw_settings(payload: &[u8]) -> Vec<(Vec<u8>, Ending)> {
    one(with_type(CONTROL, &frame(SETTINGS, payload)), Ending::Open)
}

fn id(kind: u64, id: u64) -> Vec<u8> {
    frame(kind, &varint(id))
}

/// Streams that must not be, or must not end, and SETTINGS.
fn stream_and_settings_errors() -> Vec<Row> {
    use Ending::{Finish, Open, Reset};
    vec![
        // RFC 9114 §6.2.1.
        ("GOAWAY before SETTINGS", one(with_type(CONTROL, &id(GOAWAY, 0)), Open), MISSING_SETTINGS),
        (
            "a reserved frame before SETTINGS",
            one(with_type(CONTROL, &frame(RESERVED, b"x")), Open),
            MISSING_SETTINGS,
        ),
        (
            "two control streams",
            vec![(control(&[]), Open), (control(&[]), Open)],
            STREAM_CREATION_ERROR,
        ),
        ("a control stream that ends", one(control(&[]), Finish), CLOSED_CRITICAL_STREAM),
        ("a control stream that is reset", one(control(&[]), Reset), CLOSED_CRITICAL_STREAM),
        // §6.2.2.
        ("a push stream", on(PUSH, &varint(0)), STREAM_CREATION_ERROR),
        // §7.2.4.
        ("two SETTINGS", on_control(settings(&[])), FRAME_UNEXPECTED),
        ("a setting twice", setting(&[(0x06, 9), (0x06, 9)]), SETTINGS_ERROR),
        ("a reserved setting twice", setting(&[(RESERVED, 9), (RESERVED, 8)]), SETTINGS_ERROR),
        // §7.2.4.1.
        ("ENABLE_PUSH of HTTP/2", setting(&[(0x02, 0)]), SETTINGS_ERROR),
        ("MAX_CONCURRENT_STREAMS of HTTP/2", setting(&[(0x03, 1)]), SETTINGS_ERROR),
        ("INITIAL_WINDOW_SIZE of HTTP/2", setting(&[(0x04, 1)]), SETTINGS_ERROR),
        ("MAX_FRAME_SIZE of HTTP/2", setting(&[(0x05, 1)]), SETTINGS_ERROR),
        // RFC 9220 §3 with RFC 8441 §3, RFC 9297 §2.1.1.
        ("datagrams of 2", setting(&[(0x33, 2)]), SETTINGS_ERROR),
    ]
}

/// Frames of the control stream.
fn control_frame_errors() -> Vec<Row> {
    vec![
        // §7.1.
        ("SETTINGS that end in an identifier", raw_settings(&[0x40]), FRAME_ERROR),
        ("SETTINGS that end before a value", raw_settings(&[0x06]), FRAME_ERROR),
        ("SETTINGS that end in a value", raw_settings(&[0x06, 0x80, 1]), FRAME_ERROR),
        ("GOAWAY without an identifier", on_control(frame(GOAWAY, &[])), FRAME_ERROR),
        ("GOAWAY with more than one", on_control(frame(GOAWAY, &[0, 0])), FRAME_ERROR),
        ("MAX_PUSH_ID that is cut off", on_control(frame(MAX_PUSH_ID, &[0x40])), FRAME_ERROR),
        ("CANCEL_PUSH with too much", on_control(frame(CANCEL_PUSH, &[0, 1])), FRAME_ERROR),
        // §7.2.1 to §7.2.8.
        ("DATA on the control stream", on_control(frame(DATA, b"x")), FRAME_UNEXPECTED),
        ("HEADERS on the control stream", on_control(get_with(&[])), FRAME_UNEXPECTED),
        ("PUSH_PROMISE on it", on_control(frame(PUSH_PROMISE, &[0, 0, 0])), FRAME_UNEXPECTED),
        ("PRIORITY of HTTP/2", on_control(frame(0x02, &[0; 5])), FRAME_UNEXPECTED),
        ("PING of HTTP/2", on_control(frame(0x06, &[0; 8])), FRAME_UNEXPECTED),
        ("WINDOW_UPDATE of HTTP/2", on_control(frame(0x08, &[0; 4])), FRAME_UNEXPECTED),
        ("CONTINUATION of HTTP/2", on_control(frame(0x09, &[])), FRAME_UNEXPECTED),
        ("CANCEL_PUSH of no promise", on_control(id(CANCEL_PUSH, 0)), ID_ERROR),
        (
            "a smaller MAX_PUSH_ID",
            on_control([id(MAX_PUSH_ID, 9), id(MAX_PUSH_ID, 8)].concat()),
            ID_ERROR,
        ),
        // §5.2.
        ("a greater GOAWAY", on_control([id(GOAWAY, 1), id(GOAWAY, 2)].concat()), ID_ERROR),
    ]
}

/// The streams of QPACK.
fn qpack_errors() -> Vec<Row> {
    use Ending::{Finish, Reset};
    vec![
        // RFC 9204 §4.2.
        ("two encoder streams", twice(ENCODER), STREAM_CREATION_ERROR),
        ("two decoder streams", twice(DECODER), STREAM_CREATION_ERROR),
        (
            "an encoder stream that ends",
            one(with_type(ENCODER, &[]), Finish),
            CLOSED_CRITICAL_STREAM,
        ),
        (
            "a decoder stream that ends",
            one(with_type(DECODER, &[]), Finish),
            CLOSED_CRITICAL_STREAM,
        ),
        (
            "an encoder stream that is reset",
            one(with_type(ENCODER, &[]), Reset),
            CLOSED_CRITICAL_STREAM,
        ),
        // §4.3.1: above 2^30, which no limit allows.
        (
            "a capacity above the limit",
            on(ENCODER, &[0x3f, 0xe2, 0xff, 0xff, 0xff, 0x07]),
            ENCODER_STREAM_ERROR,
        ),
        // §4.3.2: entry 99 of the static table, which has 99.
        ("an insertion with no name", on(ENCODER, &[0xff, 0x24, 1, b'x']), ENCODER_STREAM_ERROR),
        // §4.3.4.
        ("a duplicate of nothing", on(ENCODER, &[0x00]), ENCODER_STREAM_ERROR),
        // §4.4.1, §4.4.3.
        ("an acknowledgment of nothing", on(DECODER, &[0x80]), DECODER_STREAM_ERROR),
        ("an increment of 0", on(DECODER, &[0x00]), DECODER_STREAM_ERROR),
        ("an increment of too much", on(DECODER, &[0x3f, 0xff, 0x7f]), DECODER_STREAM_ERROR),
        ("an endless integer", on(DECODER, &[0xff; 40]), DECODER_STREAM_ERROR),
    ]
}

#[tokio::test]
async fn errors_on_unidirectional_streams_close_the_connection() {
    let running = server().await;
    let rows = [stream_and_settings_errors(), control_frame_errors(), qpack_errors()].concat();
    for (name, streams, code) in rows {
        let quic = connect(&running).await;
        let mut open = Vec::new();
        for (bytes, ending) in &streams {
            open.push(send_uni(&quic, bytes, *ending).await);
        }
        assert_eq!(close_code(&quic).await, Some(code), "{name}");
    }
    assert_serves(&connect(&running).await, "all of these").await;
}

/// RFC 9114 §6.2.1, RFC 9204 §4.2: those of the server, in any order.
#[tokio::test]
async fn a_critical_stream_that_the_client_stops_closes_the_connection() {
    let running = server().await;
    for stopped in 0..3 {
        let quic = connect(&running).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(quic.accept_uni().await.expect("a stream of the server"));
        }
        streams[stopped].stop(0_u32.into()).expect("open");
        assert_eq!(close_code(&quic).await, Some(CLOSED_CRITICAL_STREAM), "stream {stopped}");
    }
}

#[tokio::test]
async fn errors_in_the_frames_of_a_request_close_the_connection() {
    use Ending::{Finish, Open};
    let running = server().await;
    let after_head = |rest: Vec<u8>| [get_with(&[]), rest].concat();
    let trailers = || head(&[("x", "y")]);
    let section = |bytes: &[u8]| frame(HEADERS, bytes);
    let rows: Vec<(&str, Vec<u8>, Ending, u64)> = vec![
        // RFC 9114 §4.1.
        ("DATA before HEADERS", frame(DATA, b"x"), Open, FRAME_UNEXPECTED),
        ("empty DATA before HEADERS", frame(DATA, b""), Open, FRAME_UNEXPECTED),
        (
            "DATA after trailers",
            after_head([trailers(), frame(DATA, b"x")].concat()),
            Open,
            FRAME_UNEXPECTED,
        ),
        (
            "HEADERS after trailers",
            after_head([trailers(), trailers()].concat()),
            Open,
            FRAME_UNEXPECTED,
        ),
        // §7.2.
        ("SETTINGS", settings(&[]), Open, FRAME_UNEXPECTED),
        ("SETTINGS after HEADERS", after_head(settings(&[])), Open, FRAME_UNEXPECTED),
        ("GOAWAY", after_head(frame(GOAWAY, &[0])), Open, FRAME_UNEXPECTED),
        ("MAX_PUSH_ID", after_head(frame(MAX_PUSH_ID, &[0])), Open, FRAME_UNEXPECTED),
        ("CANCEL_PUSH", after_head(frame(CANCEL_PUSH, &[0])), Open, FRAME_UNEXPECTED),
        ("PUSH_PROMISE", after_head(frame(PUSH_PROMISE, &[0, 0, 0])), Open, FRAME_UNEXPECTED),
        ("PRIORITY of HTTP/2", after_head(frame(0x02, &[0; 5])), Open, FRAME_UNEXPECTED),
        ("PING of HTTP/2", after_head(frame(0x06, &[0; 8])), Open, FRAME_UNEXPECTED),
        ("WINDOW_UPDATE of HTTP/2", after_head(frame(0x08, &[0; 4])), Open, FRAME_UNEXPECTED),
        ("CONTINUATION of HTTP/2", after_head(frame(0x09, &[])), Open, FRAME_UNEXPECTED),
        // §7.1.
        ("HEADERS that are cut off", vec![0x01, 9, 0, 0], Finish, FRAME_ERROR),
        ("DATA that is cut off", after_head(vec![0x00, 9, b'x']), Finish, FRAME_ERROR),
        ("a frame without its length", after_head(vec![0x00]), Finish, FRAME_ERROR),
        // RFC 9204 §2.2, §4.5: entry 99 of the static table, entries of an empty dynamic one, and no fields at all.
        ("a static entry that is none", section(&[0, 0, 0xff, 36]), Open, DECOMPRESSION_FAILED),
        ("a dynamic entry of none", section(&[0, 0, 0x80]), Open, DECOMPRESSION_FAILED),
        ("a section without a prefix", section(&[]), Open, DECOMPRESSION_FAILED),
        ("a section cut off", section(&[0, 0, 0x51, 5, b'/']), Open, DECOMPRESSION_FAILED),
        ("an invalid base", section(&[0, 0x81, 0xd1]), Open, DECOMPRESSION_FAILED),
        (
            "Huffman code that ends in zeros",
            section(&[0, 0, 0x51, 0x81, 0]),
            Open,
            DECOMPRESSION_FAILED,
        ),
    ];
    for (name, bytes, ending, code) in rows {
        let quic = connect(&running).await;
        let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
        let (mut send, _recv) = quic.open_bi().await.expect("a stream");
        send.write_all(&bytes).await.expect("written");
        ending.apply(&mut send);
        assert_eq!(close_code(&quic).await, Some(code), "{name}");
    }
    assert_serves(&connect(&running).await, "all of these").await;
}

#[tokio::test]
async fn malformed_requests_concern_only_their_stream() {
    let running = server().await;
    let quic = connect(&running).await;
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    let whole = |trailers: &[(&str, &str)]| [get_with(&[]), head(trailers)].concat();
    let connect_to =
        |fields: &[(&str, &str)]| head(&[&[(":method", "CONNECT")][..], fields].concat());
    let rows: Vec<(&str, Vec<u8>)> = vec![
        // RFC 9114 §4.3.
        ("two :path", get_with(&[(":path", "/b")])),
        ("two :method", get_with(&[(":method", "GET")])),
        ("two :scheme", get_with(&[(":scheme", "https")])),
        ("two :authority", get_with(&[(":authority", "localhost")])),
        (":status in a request", get_with(&[(":status", "200")])),
        ("an unknown pseudo-field", get_with(&[(":unknown", "x")])),
        ("a pseudo-field without a name", get_with(&[(":", "x")])),
        ("a pseudo-field after a field", head(&[GET[0], GET[1], GET[2], ("x", "y"), GET[3]])),
        ("a pseudo-field in trailers", whole(&[(":path", "/")])),
        (":status in trailers", whole(&[("x", "y"), (":status", "200")])),
        // §4.3.1.
        ("no :method", get_without(":method")),
        ("no :scheme", get_without(":scheme")),
        ("no :path", get_without(":path")),
        ("neither :authority nor Host", get_without(":authority")),
        ("an empty :path", head(&[GET[0], GET[1], GET[2], (":path", "")])),
        ("an empty :authority", head(&[GET[0], GET[1], (":authority", ""), GET[3]])),
        ("Host and :authority", get_with(&[("host", "other")])),
        ("user information", head(&[GET[0], GET[1], (":authority", "u@localhost"), GET[3]])),
        ("a :method with a space", head(&[(":method", "G T"), GET[1], GET[2], GET[3]])),
        // §4.4.
        ("CONNECT with :path", connect_to(&[(":authority", "a:1"), (":path", "/")])),
        ("CONNECT with :scheme", connect_to(&[(":authority", "a:1"), (":scheme", "https")])),
        ("CONNECT to nothing", connect_to(&[])),
        // §4.2.
        ("upper case", get_with(&[("X-Upper", "1")])),
        ("Connection", get_with(&[("connection", "close")])),
        ("Transfer-Encoding", get_with(&[("transfer-encoding", "chunked")])),
        ("TE that is not trailers", get_with(&[("te", "gzip")])),
        // §10.3.
        ("a name with a space", get_with(&[("x y", "1")])),
        ("no name", get_with(&[("", "1")])),
        ("a NUL in a value", get_with(&[("x", "a\0b")])),
        ("a line end in a value", get_with(&[("x", "a\r\nb: c")])),
        ("a line end in a trailer", whole(&[("x", "a\nb")])),
        // §4.1.2.
        (
            "more than announced",
            [get_with(&[("content-length", "1")]), frame(DATA, b"xy")].concat(),
        ),
        (
            "less than announced",
            [get_with(&[("content-length", "3")]), frame(DATA, b"xy")].concat(),
        ),
        ("two lengths", get_with(&[("content-length", "1"), ("content-length", "2")])),
        ("a length that is no number", get_with(&[("content-length", "+1")])),
    ];
    for (name, bytes) in rows {
        match exchange(&quic, &bytes, Ending::Finish).await {
            Answer::Status(response) => assert!(is_status(&response, 400), "{name}: {response:?}"),
            other => assert_eq!(other, Answer::Reset(MESSAGE_ERROR), "{name}"),
        }
        assert_serves(&quic, name).await;
    }
    for (name, bytes) in [("nothing", vec![]), ("only a reserved frame", frame(RESERVED, b"x"))] {
        let answer = exchange(&quic, &bytes, Ending::Finish).await;
        assert_eq!(answer, Answer::Reset(REQUEST_INCOMPLETE), "{name}");
        assert_serves(&quic, name).await;
    }
}

#[tokio::test]
async fn what_must_be_ignored_is_ignored() {
    let running = server().await;
    let quic = connect(&running).await;
    let reserved = || frame(RESERVED, &[7; 300]);
    let own = [varint(CONTROL), settings(&[(RESERVED, 1), (0x4242, 7)]), reserved()].concat();
    let _control = send_uni(&quic, &own, Ending::Open).await;
    // RFC 9114 §6.2: of an unknown type, and ended or reset before their type.
    for (bytes, ending) in [
        (with_type(RESERVED, b"anything"), Ending::Finish),
        (with_type(0x1234, b"anything"), Ending::Open),
        (vec![], Ending::Finish),
        (vec![0x40], Ending::Finish),
        (vec![], Ending::Reset),
    ] {
        send_uni(&quic, &bytes, ending).await;
    }
    let request = [reserved(), get_with(&[]), reserved(), frame(DATA, b"x"), reserved()].concat();
    let trailers = [head(&[("x", "y")]), reserved()].concat();
    let answer = exchange(&quic, &[request, trailers].concat(), Ending::Finish).await;
    let Answer::Status(response) = answer else { panic!("{answer:?}") };
    assert!(is_status(&response, 200), "{response:?}");
    assert_eq!(quic.close_reason(), None);
}

/// RFC 9114 §6.2.
#[tokio::test]
async fn a_stream_of_an_unknown_type_is_stopped() {
    let running = server().await;
    let quic = connect(&running).await;
    let stream = send_uni(&quic, &with_type(0x1234, b"anything"), Ending::Open).await;
    let stopped = timeout(SOON, stream.stopped()).await.expect("in time").expect("no loss");
    assert_eq!(stopped.map(u64::from), Some(STREAM_CREATION_ERROR));
    assert_serves(&quic, "a stream of an unknown type").await;
}

/// Longer than the window, and than what is read in one turn.
#[tokio::test]
async fn a_long_control_stream_is_read_on() {
    let running = server().await;
    let quic = connect(&running).await;
    let mut stream = send_uni(&quic, &control(&[]), Ending::Open).await;
    let frames = frame(RESERVED, &[7; 300]).repeat(10_000);
    timeout(SOON, stream.write_all(&frames)).await.expect("in time").expect("no loss");
    assert_serves(&quic, "a long control stream").await;
}

/// A request whose section waits for the dynamic table, if the server offers one, or is an error at once.
#[tokio::test]
async fn a_section_that_refers_to_what_is_not_there_is_an_error() {
    let running = server().await;
    let quic = connect(&running).await;
    let _control = send_uni(&quic, &control(&[]), Ending::Open).await;
    // A required insert count whose encoding exceeds twice the most entries of any table (RFC 9204 §4.5.1.1).
    let section = frame(HEADERS, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0x80]);
    let (mut send, _recv) = quic.open_bi().await.expect("a stream");
    send.write_all(&section).await.expect("written");
    assert_eq!(close_code(&quic).await, Some(DECOMPRESSION_FAILED));
}
