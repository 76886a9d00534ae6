//! One row for each rule of RFC 9114 about request streams and messages, and for each violation that
//! h3spec tries: what a peer sends, and the code that ends the connection or the stream.

use super::wire::Reaction::{Connection, Fine, Stream};
use super::wire::*;
use crate::code::ErrorCode as Code;
use crate::stream::Role;
use crate::whole::{Event, Failure, Output};

//= rfc9114 §4.1
//# DATA or HEADERS out of order MUST be H3_FRAME_UNEXPECTED
#[test]
fn frames_of_requests_are_in_order() {
    let trailers = headers(&[("a", "b")]);
    let data = frame(DATA, b"x");
    check(
        Role::Server,
        vec![
            ("a request may have no content", client_asks(&[get()]), Fine),
            (
                "and content and trailers",
                client_asks(&[get(), data.clone(), trailers.clone()]),
                Fine,
            ),
            (
                "DATA before HEADERS",
                client_asks(&[frame(DATA, b"")]),
                Connection(Code::FrameUnexpected),
            ),
            (
                "DATA after trailers",
                client_asks(&[get(), trailers.clone(), data.clone()]),
                Connection(Code::FrameUnexpected),
            ),
            (
                "HEADERS after trailers",
                client_asks(&[get(), trailers.clone(), trailers.clone()]),
                Connection(Code::FrameUnexpected),
            ),
            (
                "the stream ends before the request",
                client_asks(&[]),
                Stream(Code::RequestIncomplete),
            ),
            (
                "the stream ends after an ignored frame",
                client_asks(&[frame(0x21, b"x")]),
                Stream(Code::RequestIncomplete),
            ),
        ],
    );
}

//= rfc9114 §4.1
//# interim responses come before the final one, without content; at most 64
#[test]
fn frames_of_responses_are_in_order() {
    let ok = response("200", &[]);
    let data = frame(DATA, b"x");
    check(
        Role::Client,
        vec![
            (
                "interim responses come first",
                vec![end(
                    REQUEST,
                    &[response("103", &[]), response("103", &[]), ok.clone(), data.clone()],
                )],
                Fine,
            ),
            (
                "DATA before HEADERS",
                vec![send(REQUEST, &[data.clone(), ok.clone()])],
                Connection(Code::FrameUnexpected),
            ),
            (
                "DATA between an interim and the final response",
                vec![send(REQUEST, &[response("103", &[]), data.clone()])],
                Connection(Code::FrameUnexpected),
            ),
            (
                "the stream ends after an interim response",
                vec![end(REQUEST, &[response("103", &[])])],
                Stream(Code::MessageError),
            ),
            (
                "the stream ends before a response",
                vec![end(REQUEST, &[])],
                Stream(Code::MessageError),
            ),
            (
                "more interim responses than are accepted",
                vec![send(REQUEST, &vec![response("103", &[]); 66])],
                Stream(Code::ExcessiveLoad),
            ),
        ],
    );
}

//= rfc9114 §7.2
//# the table of frames and streams
#[test]
fn frames_stand_where_the_table_says() {
    let integer = integer(0);
    let unexpected = Connection(Code::FrameUnexpected);
    for (kind, payload) in [
        (CANCEL_PUSH, &integer[..]),
        (SETTINGS, b""),
        (GOAWAY, &integer),
        (MAX_PUSH_ID, &integer),
        (ORIGIN, b""),
        (PRIORITY_UPDATE, b"\x00u=1"),
        (PRIORITY_UPDATE_OF_PUSH, b"\x00u=1"),
        (PUSH_PROMISE, b"\x00\x00\x00"),
    ] {
        check(
            Role::Server,
            vec![
                ("on a request stream", client_asks(&[get(), frame(kind, payload)]), unexpected),
                ("before the head", client_asks(&[frame(kind, payload)]), unexpected),
            ],
        );
        if kind != PUSH_PROMISE {
            let steps = vec![send(REQUEST, &[response("200", &[]), frame(kind, payload)])];
            check(Role::Client, vec![("on a response", steps, unexpected)]);
        }
    }
    for kind in [DATA, HEADERS, PUSH_PROMISE] {
        check(Role::Server, vec![("control", client_says(&[frame(kind, b"\0\0")]), unexpected)]);
        check(Role::Client, vec![("control", server_says(&[frame(kind, b"\0\0")]), unexpected)]);
    }
    for kind in [MAX_PUSH_ID, PRIORITY_UPDATE, PRIORITY_UPDATE_OF_PUSH] {
        check(
            Role::Client,
            vec![("from a server", server_says(&[frame(kind, b"\0")]), unexpected)],
        );
    }
    check(Role::Server, vec![("from a client", client_says(&[frame(ORIGIN, b"")]), unexpected)]);
}

//= rfc9114 §7.2.8
//# types of HTTP/2 MUST be H3_FRAME_UNEXPECTED
#[test]
fn frames_of_http2_are_refused_everywhere() {
    for kind in [0x02, 0x06, 0x08, 0x09] {
        let unexpected = Connection(Code::FrameUnexpected);
        let bad = frame(kind, b"12345678");
        check(
            Role::Server,
            vec![
                ("on a request", client_asks(&[get(), bad.clone()]), unexpected),
                ("first on a request", client_asks(core::slice::from_ref(&bad)), unexpected),
                ("on a control stream", client_says(core::slice::from_ref(&bad)), unexpected),
            ],
        );
        check(
            Role::Client,
            vec![
                ("on a response", vec![send(REQUEST, core::slice::from_ref(&bad))], unexpected),
                ("on a control stream", server_says(core::slice::from_ref(&bad)), unexpected),
            ],
        );
    }
}

//= rfc9114 §9
//# unknown frames MUST be ignored; above 64 KiB they are H3_EXCESSIVE_LOAD (§10.5)
#[test]
fn unknown_and_reserved_frames_are_ignored() {
    for kind in [0x21, 0x21 + 0x1f * 5, 0x0a, 0x4_0000] {
        let ignored = frame(kind, &[7; 300]);
        let empty = frame(kind, b"");
        let head = [ignored.clone(), get(), empty.clone(), frame(DATA, b"x"), ignored.clone()];
        check(
            Role::Server,
            vec![
                ("on a request", client_asks(&head), Fine),
                ("on a control stream", client_says(&[ignored.clone(), empty.clone()]), Fine),
            ],
        );
        check(
            Role::Client,
            vec![
                (
                    "on a response",
                    vec![end(REQUEST, &[ignored.clone(), response("200", &[])])],
                    Fine,
                ),
                ("on a control stream", server_says(&[ignored, empty]), Fine),
            ],
        );
    }
}

//= rfc9114 §7.1
//# truncated frames, and payloads that do not fit: H3_FRAME_ERROR
#[test]
fn frames_are_whole_and_have_the_length_of_their_fields() {
    let error = Connection(Code::FrameError);
    let whole = frame(DATA, b"four");
    let mut rows = vec![
        ("GOAWAY without a field", client_says(&[frame(GOAWAY, b"")]), error),
        ("GOAWAY with a cut field", client_says(&[frame(GOAWAY, b"\x40")]), error),
        ("GOAWAY with more", client_says(&[frame(GOAWAY, b"\x00\x00")]), error),
        ("MAX_PUSH_ID without a field", client_says(&[frame(MAX_PUSH_ID, b"")]), error),
        ("MAX_PUSH_ID with more", client_says(&[frame(MAX_PUSH_ID, b"\x01\x01")]), error),
        ("CANCEL_PUSH with more", client_says(&[frame(CANCEL_PUSH, b"\x01\x01")]), error),
        ("PRIORITY_UPDATE without a field", client_says(&[frame(PRIORITY_UPDATE, b"")]), error),
        ("SETTINGS without a value", vec![Step::Send(2, b"\x00\x04\x01\x06".to_vec())], error),
        ("SETTINGS with a cut value", vec![Step::Send(2, b"\x00\x04\x02\x06\x40".to_vec())], error),
        ("a stream ends within SETTINGS", vec![Step::End(2, b"\x00\x04\x02\x06".to_vec())], error),
    ];
    for cut in 1..whole.len() {
        let steps = client_asks(&[get(), whole[..cut].to_vec()]);
        rows.push(("a stream ends within DATA", steps, error));
    }
    let head = get();
    for cut in 1..head.len() {
        let steps = client_asks(&[head[..cut].to_vec()]);
        rows.push(("a stream ends within HEADERS", steps, error));
    }
    rows.push(("a stream ends within an unknown frame", client_asks(&[vec![0x21, 2, 0]]), error));
    check(Role::Server, rows);
    let origin = |payload: &[u8]| server_says(&[frame(ORIGIN, payload)]);
    check(
        Role::Client,
        vec![
            ("ORIGIN with a cut length", origin(b"\x00"), error),
            ("ORIGIN with a cut entry", origin(b"\x00\x02a"), error),
            ("ORIGIN with entries", origin(b"\x00\x0fhttps://a.test\x2f\x00\x00"), Fine),
        ],
    );
}

#[test]
fn field_sections_that_cannot_be_decoded_end_the_connection() {
    let failed = Connection(Code::QpackDecompressionFailed);
    check(
        Role::Server,
        vec![
            ("without a prefix", client_asks(&[frame(HEADERS, b"")]), failed),
            ("with a cut line", client_asks(&[frame(HEADERS, b"\0\0\x27")]), failed),
        ],
    );
}

//= rfc9114 §4.1.2
//# a malformed request MUST be a stream error, H3_MESSAGE_ERROR
#[test]
fn malformed_requests_end_their_stream() {
    let error = Stream(Code::MessageError);
    let with = |further: &[(&str, &str)]| client_asks(&[request("GET", further)]);
    let data = |bytes: &[u8]| frame(DATA, bytes);
    let length = |length: &str| request("POST", &[("content-length", length)]);
    let path = |path: &str| {
        let fields =
            [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", path)];
        client_asks(&[headers(&fields)])
    };
    check(
        Role::Server,
        vec![
            ("two :path", client_asks(&[request("GET", &[(":path", "/")])]), error),
            (":status in a request", client_asks(&[request("GET", &[(":status", "200")])]), error),
            ("an unknown pseudo-header field", with(&[(":foo", "a")]), error),
            ("a pseudo-header field after others", with(&[("a", "b"), (":foo", "c")]), error),
            (
                "no :path",
                client_asks(&[headers(&[(":method", "GET"), (":scheme", "https")])]),
                error,
            ),
            ("an upper-case name", with(&[("Accept", "a")]), error),
            ("a connection-specific field", with(&[("connection", "close")]), error),
            ("an invalid name", with(&[("a b", "c")]), error),
            ("an invalid value", with(&[("a", "b\r\nc: d")]), error),
            ("an empty path", path(""), error),
            (
                "content of the announced length",
                client_asks(&[length("3"), data(b"ab"), data(b"c")]),
                Fine,
            ),
            ("more content", client_asks(&[length("3"), data(b"abcd")]), error),
            ("less content", client_asks(&[length("3"), data(b"ab")]), error),
            (
                "less content before trailers",
                client_asks(&[length("3"), data(b"ab"), headers(&[("a", "b")])]),
                error,
            ),
            (
                "a pseudo-header field in trailers",
                client_asks(&[get(), data(b"x"), headers(&[(":path", "/")])]),
                error,
            ),
            (
                "extended CONNECT that was not allowed",
                client_asks(&[request("CONNECT", &[(":protocol", "websocket")])]),
                error,
            ),
            ("fields larger than the limit", with(&[("a", &"b".repeat(960))]), error),
            ("a section longer than the limit", vec![Step::Send(0, vec![1, 0x44, 0x20])], error),
        ],
    );
}

//= rfc9114 §4.1.2
//# so MUST a malformed response, and a client MUST NOT accept it
#[test]
fn malformed_responses_end_their_stream() {
    let error = Stream(Code::MessageError);
    let data = |bytes: &[u8]| frame(DATA, bytes);
    check(
        Role::Client,
        vec![
            (":path in a response", vec![send(0, &[response("200", &[(":path", "/")])])], error),
            ("no :status", vec![send(0, &[headers(&[("a", "b")])])], error),
            ("101", vec![send(0, &[response("101", &[])])], error),
            ("204 with content", vec![send(0, &[response("204", &[]), data(b"x")])], error),
            (
                "304 with Content-Length",
                vec![end(0, &[response("304", &[("content-length", "5")]), data(b"")])],
                Fine,
            ),
        ],
    );
    check_after(
        Role::Client,
        &["HEAD"],
        vec![
            (
                "HEAD has no content",
                vec![end(0, &[response("200", &[("content-length", "5")])])],
                Fine,
            ),
            ("HEAD with content", vec![send(0, &[response("200", &[]), data(b"x")])], error),
        ],
    );
}

//= rfc9114 §4.4
//# then only DATA: other known frames MUST be H3_FRAME_UNEXPECTED
#[test]
fn a_tunnel_carries_only_data() {
    let unexpected = Connection(Code::FrameUnexpected);
    let connect = headers(&[(":method", "CONNECT"), (":authority", "a.test:443")]);
    let ok = response("200", &[]);
    check(
        Role::Server,
        vec![
            ("DATA", client_asks(&[connect.clone(), frame(DATA, b"x"), frame(0x21, b"x")]), Fine),
            ("HEADERS", client_asks(&[connect.clone(), headers(&[("a", "b")])]), unexpected),
        ],
    );
    check_after(
        Role::Client,
        &["CONNECT"],
        vec![
            ("DATA", vec![send(0, &[ok.clone(), frame(DATA, b"x")])], Fine),
            ("HEADERS", vec![send(0, &[ok.clone(), headers(&[("a", "b")])])], unexpected),
            ("PUSH_PROMISE", vec![send(0, &[ok.clone(), frame(PUSH_PROMISE, b"\0")])], unexpected),
            (
                "a refusal has content and trailers",
                vec![end(0, &[response("403", &[]), frame(DATA, b"x"), headers(&[("a", "b")])])],
                Fine,
            ),
        ],
    );
}

#[test]
fn both_directions_of_a_malformed_message_are_given_up() {
    let mut connection = begin(Role::Client, config(), &["GET"]);
    let (_, outputs) = react(&mut connection, &[Step::Send(0, response("101", &[]))], false);
    let stream = crate::stream::StreamId(0);
    assert!(outputs.contains(&Output::StopSending { stream, code: Code::MessageError }));
    assert!(
        !outputs.iter().any(|output| matches!(output, Output::Reset { .. })),
        "it has been sent"
    );
    assert_eq!(connection.open_requests(), 0);
    let (reaction, outputs) = react(&mut connection, &[Step::End(0, vec![1])], false);
    assert_eq!((reaction, outputs), (Fine, vec![]), "what still arrives is dropped");
}

#[test]
fn resets_and_stops_of_the_peer_end_what_they_concern() {
    let mut connection = begin(Role::Server, config(), &[]);
    let steps = [Step::Send(0, get()), Step::Reset(0), Step::Stop(0)];
    let (reaction, outputs) = react(&mut connection, &steps, false);
    assert_eq!(reaction, Fine);
    let stream = crate::stream::StreamId(0);
    let code = Code::RequestCancelled;
    for failure in [Failure::Reset(code), Failure::Stopped(code)] {
        assert!(outputs.contains(&Output::Event(Event::Failed { stream, failure })), "{outputs:?}");
    }
    assert_eq!(connection.open_requests(), 0);
}

#[test]
fn nothing_is_read_after_a_reset() {
    let mut connection = begin(Role::Server, config(), &[]);
    react(&mut connection, &[Step::Send(0, get()), Step::Reset(0)], false);
    let (reaction, outputs) = react(&mut connection, &[Step::Send(0, frame(DATA, b"x"))], false);
    assert_eq!((reaction, outputs), (Fine, vec![]));
}
