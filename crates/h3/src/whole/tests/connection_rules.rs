//! One row for each rule of RFC 9114 about connections and their control streams, and for each violation that
//! h3spec tries: what a peer sends, and the code that ends the connection or the stream.

use super::wire::Reaction::{Connection, Fine};
use super::wire::*;
use crate::code::ErrorCode as Code;
use crate::stream::Role;
use crate::whole::Output;

//= rfc9114 §6.2.1
//# SETTINGS is first, else H3_MISSING_SETTINGS; a second is H3_FRAME_UNEXPECTED
#[test]
fn control_streams_begin_with_settings_and_have_no_others() {
    let missing = Connection(Code::MissingSettings);
    let first = |frame: Vec<u8>| vec![Step::Send(CLIENT_CONTROL, [vec![0], frame].concat())];
    check(
        Role::Server,
        vec![
            ("GOAWAY is first", first(frame(GOAWAY, b"\0")), missing),
            ("a reserved frame is first", first(frame(0x21, b"")), missing),
            ("DATA is first", first(frame(DATA, b"")), missing),
            (
                "a second SETTINGS",
                client_says(&[frame(SETTINGS, b"")]),
                Connection(Code::FrameUnexpected),
            ),
        ],
    );
    check(
        Role::Client,
        vec![
            (
                "GOAWAY is first",
                vec![Step::Send(SERVER_CONTROL, b"\x00\x07\x01\x00".to_vec())],
                missing,
            ),
            (
                "a second SETTINGS",
                server_says(&[frame(SETTINGS, b"")]),
                Connection(Code::FrameUnexpected),
            ),
        ],
    );
}

//= rfc9297 §2.1.1
//# a setting other than 0 and 1 MUST be H3_SETTINGS_ERROR
//= rfc9114 §7.2.4, §7.2.4.1
//# settings there once, none of HTTP/2, Booleans 0 or 1
#[test]
fn settings_are_valid_and_there_once() {
    let settings = |payload: &[u8]| {
        vec![Step::Send(CLIENT_CONTROL, [vec![0], frame(SETTINGS, payload)].concat())]
    };
    let error = Connection(Code::SettingsError);
    let mut rows = vec![
        ("known ones", settings(b"\x01\x10\x06\x20\x07\x02\x08\x01\x33\x01"), Fine),
        ("unknown and reserved ones are ignored", settings(b"\x21\x01\x3f\x05\x40\x40\x00"), Fine),
        ("one that is there twice", settings(b"\x06\x20\x06\x20"), error),
        ("an unknown one that is there twice", settings(b"\x21\x01\x21\x02"), error),
        ("SETTINGS_ENABLE_CONNECT_PROTOCOL is 0 or 1", settings(b"\x08\x02"), error),
        ("SETTINGS_H3_DATAGRAM is 0 or 1", settings(b"\x33\x02"), error),
    ];
    for setting in [0x00, 0x02, 0x03, 0x04, 0x05] {
        rows.push(("a setting of HTTP/2", settings(&[setting, 0]), error));
    }
    let many: Vec<u8> =
        (0..65_u64).flat_map(|at| [integer(0x1000 + at), vec![0]].concat()).collect();
    rows.push(("more than are accepted", settings(&many), Connection(Code::ExcessiveLoad)));
    check(Role::Server, rows);
}

//= rfc9114 §6.2.1
//# one control stream, which MUST NOT close; RFC 9204 §4.2 for the other two
#[test]
fn critical_streams_are_there_once_and_stay_open() {
    let closed = Connection(Code::ClosedCriticalStream);
    let repeated = Connection(Code::StreamCreationError);
    let second = |kind: u8, rest: &[u8]| Step::Send(6, [&[kind], rest].concat());
    check(
        Role::Server,
        vec![
            (
                "a second control stream",
                [client_says(&[]), vec![second(0, b"")]].concat(),
                repeated,
            ),
            ("a second encoder stream", vec![Step::Send(2, vec![2]), second(2, b"")], repeated),
            ("a second decoder stream", vec![Step::Send(2, vec![3]), second(3, b"")], repeated),
            ("the control stream ends", vec![Step::End(2, control(&[]))], closed),
            ("the control stream ends at once", vec![Step::End(2, vec![0])], closed),
            ("the encoder stream ends", vec![Step::End(2, vec![2])], closed),
            ("the decoder stream ends", vec![Step::End(2, vec![3])], closed),
            (
                "the control stream is reset",
                vec![Step::Send(2, control(&[])), Step::Reset(2)],
                closed,
            ),
            ("the encoder stream is reset", vec![Step::Send(2, vec![2]), Step::Reset(2)], closed),
            ("the decoder stream is reset", vec![Step::Send(2, vec![3]), Step::Reset(2)], closed),
            ("our control stream is not read", vec![Step::Stop(SERVER_CONTROL)], closed),
            ("our encoder stream is not read", vec![Step::Stop(7)], closed),
            ("our decoder stream is not read", vec![Step::Stop(11)], closed),
        ],
    );
    check(
        Role::Client,
        vec![
            ("the control stream ends", vec![Step::End(3, control(&[]))], closed),
            (
                "a second control stream",
                [server_says(&[]), vec![Step::Send(7, vec![0])]].concat(),
                repeated,
            ),
        ],
    );
}

//= rfc9114 §6.2
//# unknown streams are not read; a stream may end before its type
#[test]
fn other_unidirectional_streams_are_not_read() {
    for kind in [0x21, 0x21 + 0x1f * 9, 0x22, 0x41] {
        let mut connection = begin(Role::Server, config(), &[]);
        let steps = [Step::Send(6, [integer(kind), vec![1; 50]].concat()), Step::Send(6, vec![1])];
        let (reaction, outputs) = react(&mut connection, &steps, false);
        assert_eq!(reaction, Fine, "{kind:#x}");
        let code = Code::StreamCreationError;
        let stream = crate::stream::StreamId(6);
        assert_eq!(outputs, [Output::StopSending { stream, code }]);
    }
    let undetermined: Vec<Step> = (0..17).map(|at| Step::Send(2 + 4 * at, vec![0x40])).collect();
    check(
        Role::Server,
        vec![
            ("an unknown one may end at once", vec![Step::End(2, vec![0x21])], Fine),
            (
                "one may end before its type",
                vec![Step::End(2, vec![]), Step::End(6, vec![0x40])],
                Fine,
            ),
            ("or be reset before it", vec![Step::Send(2, vec![0x40]), Step::Reset(2)], Fine),
            ("too many without a type", undetermined, Connection(Code::ExcessiveLoad)),
        ],
    );
}

//= rfc9114 §6.1, §6.2.2
//# streams that only the other end may open
#[test]
fn nobody_opens_what_only_the_other_end_may_open() {
    check(
        Role::Server,
        vec![(
            "a push stream from a client",
            vec![Step::Send(2, vec![1])],
            Connection(Code::StreamCreationError),
        )],
    );
    check(
        Role::Client,
        vec![
            (
                "a bidirectional stream",
                vec![Step::Send(1, vec![0])],
                Connection(Code::StreamCreationError),
            ),
            (
                "a push without MAX_PUSH_ID",
                vec![Step::Send(3, vec![1, 0])],
                Connection(Code::IdError),
            ),
        ],
    );
}

//= rfc9114 §4.6, §7.2.3, §7.2.5
//# pushes that were not allowed MUST be H3_ID_ERROR
//= rfc9114 §7.2.7
//# MAX_PUSH_ID MUST NOT fall
#[test]
fn nothing_is_pushed_that_was_not_allowed() {
    let error = Connection(Code::IdError);
    check(
        Role::Server,
        vec![
            ("CANCEL_PUSH without a promise", client_says(&[frame(CANCEL_PUSH, b"\x00")]), error),
            (
                "MAX_PUSH_ID",
                client_says(&[frame(MAX_PUSH_ID, b"\x05"), frame(MAX_PUSH_ID, b"\x05")]),
                Fine,
            ),
            (
                "MAX_PUSH_ID falls",
                client_says(&[frame(MAX_PUSH_ID, b"\x05"), frame(MAX_PUSH_ID, b"\x04")]),
                error,
            ),
            (
                "a priority of a push",
                client_says(&[frame(PRIORITY_UPDATE_OF_PUSH, b"\x00u=1")]),
                error,
            ),
        ],
    );
    check(
        Role::Client,
        vec![
            ("CANCEL_PUSH", server_says(&[frame(CANCEL_PUSH, b"\x00")]), error),
            ("PUSH_PROMISE", vec![send(REQUEST, &[frame(PUSH_PROMISE, b"\x00\x00\x00")])], error),
            (
                "PUSH_PROMISE after the head",
                vec![send(REQUEST, &[response("200", &[]), frame(PUSH_PROMISE, b"\x00\x00\x00")])],
                error,
            ),
        ],
    );
}

//= rfc9114 §5.2, §7.2.6
//# an identifier that grows, or is no request's, MUST be H3_ID_ERROR
#[test]
fn the_identifier_of_goaway_is_a_requests_and_does_not_grow() {
    let goaway = |id: u64| frame(GOAWAY, &integer(id));
    let error = Connection(Code::IdError);
    check(
        Role::Client,
        vec![
            (
                "the same twice, then a lower one",
                server_says(&[goaway(8), goaway(8), goaway(4)]),
                Fine,
            ),
            ("a growing one", server_says(&[goaway(4), goaway(8)]), error),
            ("a server's stream", server_says(&[goaway(1)]), error),
            ("a unidirectional stream", server_says(&[goaway(2)]), error),
        ],
    );
    check(
        Role::Server,
        vec![
            ("any push ID, then a lower one", client_says(&[goaway(3), goaway(1)]), Fine),
            ("a growing one", client_says(&[goaway(1), goaway(2)]), error),
        ],
    );
}

#[test]
fn priorities_are_of_requests_and_can_be_parsed() {
    let update = |payload: &[u8]| client_says(&[frame(PRIORITY_UPDATE, payload)]);
    check(
        Role::Server,
        vec![
            ("of a request to come", update(b"\x08u=1, i"), Fine),
            ("with the defaults", update(b"\x08"), Fine),
            ("of a server's stream", update(b"\x01u=1"), Connection(Code::IdError)),
            ("of a unidirectional stream", update(b"\x02u=1"), Connection(Code::IdError)),
            ("that is no dictionary", update(b"\x00u=="), Connection(Code::GeneralProtocolError)),
        ],
    );
}

//= rfc9114 §10.5
//# frames that are kept are bounded
#[test]
fn long_control_frames_are_refused_before_they_are_read() {
    let begin = |kind: u8| [&[kind][..], &[0x80, 0x01, 0, 0]].concat();
    check(
        Role::Server,
        vec![
            ("SETTINGS", vec![send(2, &[vec![0], begin(4)])], Connection(Code::ExcessiveLoad)),
            ("GOAWAY", client_says(&[begin(7)]), Connection(Code::ExcessiveLoad)),
            ("an unknown frame is skipped", client_says(&[begin(0x21)]), Fine),
        ],
    );
}

#[test]
fn datagrams_belong_to_requests() {
    check(
        Role::Server,
        vec![
            (
                "a request's",
                vec![Step::Send(0, get()), Step::Datagram(b"\x00hello".to_vec())],
                Fine,
            ),
            (
                "without a stream",
                vec![Step::Datagram(b"\x40".to_vec())],
                Connection(Code::DatagramError),
            ),
            (
                "beyond all streams",
                vec![Step::Datagram(integer(1 << 60))],
                Connection(Code::DatagramError),
            ),
        ],
    );
}
