//! A whole connection of HTTP/3, whose peer says anything on any stream and whose user does anything: no
//! panic, at most one error, which has a code, and nothing after it; memory is bounded; and without a user
//! what comes of it does not depend on how the streams were split.
#![no_main]

use std::alloc::System;
use std::time::Duration;

use bytes::Bytes;
use eyas_h3::connection::{self, ConnectionConfig, ConnectionSetup, Shutdown};
use eyas_h3::fault::{ConnectionFault, StreamFault};
use eyas_h3::priority::Priority;
use eyas_h3::qpack::Sensitivity;
use eyas_h3::stream::{Role, StreamId};
use eyas_h3::whole::{Event, Failure, Input, MAX_OPEN_STREAMS, Output, WholeConnection};
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

mod reach;

use reach::Reach;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Duration = Duration::ZERO;
/// What a connection may hold beside the bytes that it was given, in bytes.
const MAX_HELD: usize = 1024 * 1024;

static REACH: Reach<13> = Reach::new([
    "the peer's settings",
    "the head of a message",
    "content",
    "trailers",
    "the end of a message",
    "a malformed message",
    "a section that waited for its table",
    "a GOAWAY",
    "a priority",
    "origins",
    "a datagram",
    "a stream that is not read",
    "the end of the connection",
]);

/// A step of the peer or of the user: what it is, the stream, and data.
struct Step<'a> {
    kind: u8,
    stream: StreamId,
    data: &'a [u8],
}

/// Reads steps: a byte each for the kind, the stream and the length, then data.
fn steps(mut input: &[u8]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    while let &[kind, stream, length, ref rest @ ..] = input {
        let (data, after) = rest.split_at(rest.len().min(length.into()));
        steps.push(Step { kind, stream: StreamId(stream.into()), data });
        input = after;
    }
    steps
}

impl Step<'_> {
    const KINDS: u8 = 12;

    /// Returns what the peer does, in parts of these sizes; `None` if it is the user's step.
    fn inputs(&self, cut: usize) -> Option<Vec<Input>> {
        let stream = self.stream;
        let code = 0x100 + u64::from(self.data.first().copied().unwrap_or_default());
        let data = Bytes::copy_from_slice(self.data);
        Some(match self.kind % Self::KINDS {
            kind @ 0..=3 => {
                let part = |part: &[u8], fin| Input::Stream {
                    stream,
                    data: Bytes::copy_from_slice(part),
                    fin,
                };
                let mut inputs: Vec<_> =
                    self.data.chunks(cut.max(1)).map(|bytes| part(bytes, false)).collect();
                if kind == 3 {
                    inputs.push(part(b"", true));
                }
                inputs
            }
            4 => vec![Input::Reset { stream, code }],
            5 => vec![Input::Stopped { stream, code }],
            6 => vec![Input::Datagram(data)],
            _ => return None,
        })
    }

    /// Does what the user does; what the connection refuses is no error here.
    fn act(&self, connection: &mut WholeConnection, role: Role) {
        let value: &[u8] = if self.data.is_ascii() { self.data } else { b"a" };
        let end = self.data.is_empty();
        let stream = self.stream;
        let _ = match (self.kind % Self::KINDS, role) {
            (7, Role::Client) => {
                let fields = [
                    field(":method", b"POST"),
                    field(":scheme", b"https"),
                    field(":authority", b"a.test"),
                    field(":path", b"/"),
                    field("x", value),
                ];
                connection.send_request(fields.into_iter(), end).map(|_| ())
            }
            (7, Role::Server) => {
                let fields = [field(":status", b"200"), field("x", value)];
                connection.send_response(stream, fields.into_iter(), end)
            }
            (8, _) => connection.send_data(stream, Bytes::copy_from_slice(self.data), end),
            (9, _) => connection.send_trailers(stream, [field("x", value)].into_iter()),
            (10, _) => {
                let shutdown = if end { Shutdown::Announce } else { Shutdown::Refuse };
                connection.shut_down(shutdown);
                connection.update_priority(stream, Priority::default())
            }
            _ => {
                connection.reset(stream, eyas_h3::ErrorCode::RequestCancelled);
                connection.send_datagram(stream, self.data)
            }
        };
    }
}

fn field<'a>(name: &'a str, value: &'a [u8]) -> (&'a [u8], &'a [u8], Sensitivity) {
    (name.as_bytes(), value, Sensitivity::Ordinary)
}

fn begin(role: Role) -> WholeConnection {
    let config = ConnectionConfig {
        max_field_section_size: 1000,
        extended_connect: true,
        datagrams: true,
        qpack_encoder_blocked_streams: 4,
        ..ConnectionConfig::default()
    };
    let mut connection =
        WholeConnection::new(ConnectionSetup { role, config, seed: 9114, remembered: None }, NOW);
    if role == Role::Client {
        for method in [&b"GET"[..], b"HEAD"] {
            let fields = [
                field(":method", method),
                field(":scheme", b"https"),
                field(":authority", b"a.test"),
                field(":path", b"/"),
            ];
            connection.send_request(fields.into_iter(), true).expect("a valid request");
        }
    }
    connection
}

/// Takes the outputs; contents are joined, and what depends on the splits is left out.
fn drain(connection: &mut WholeConnection, joined: &mut Vec<Output>) {
    loop {
        let output = connection.poll_output(NOW);
        if let Output::Timeout(_) = output {
            return;
        }
        assert!(!matches!(joined.last(), Some(Output::Close(_))), "nothing follows: {output:?}");
        count(&output);
        match (joined.last_mut(), output) {
            (_, Output::Write { .. } | Output::Open(_)) => {}
            (_, Output::StopSending { stream, .. }) if stream.is_unidirectional() => {}
            (
                Some(Output::Event(Event::Data { stream, data })),
                Output::Event(Event::Data { stream: next, data: more }),
            ) if *stream == next => *data = [&data[..], &more].concat().into(),
            (_, output) => joined.push(output),
        }
    }
}

fn count(output: &Output) {
    REACH.hit(match output {
        Output::Close(fault) => {
            assert_ne!(fault.code(), eyas_h3::ErrorCode::NoError);
            assert!(!fault.to_string().is_empty());
            "the end of the connection"
        }
        Output::StopSending { stream, .. } if stream.is_unidirectional() => {
            "a stream that is not read"
        }
        Output::Event(Event::Head { .. }) => "the head of a message",
        Output::Event(Event::Data { .. }) => "content",
        Output::Event(Event::Trailers { .. }) => "trailers",
        Output::Event(Event::End { .. }) => "the end of a message",
        Output::Event(Event::Failed {
            failure: Failure::Fault(StreamFault::Message(_)), ..
        }) => "a malformed message",
        Output::Event(Event::Connection(event)) => match event {
            connection::Event::Settings(_) => "the peer's settings",
            connection::Event::GoAway { .. } => "a GOAWAY",
            connection::Event::Priority { .. } => "a priority",
            connection::Event::Origins(_) => "origins",
            connection::Event::Datagram { .. } => "a datagram",
            _ => return,
        },
        _ => return,
    });
}

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Runs the steps and returns what came of them.
fn run(role: Role, steps: &[Step<'_>], cut: usize) -> Vec<Output> {
    let before = held();
    let mut connection = begin(role);
    let mut joined = Vec::new();
    let mut sent = 0;
    let mut had_table = false;
    for step in steps {
        match step.inputs(cut) {
            Some(inputs) => {
                for input in inputs {
                    let heads = joined.len();
                    let is_encoder = matches!(&input, Input::Stream { stream, .. }
                        if stream.is_unidirectional());
                    connection.handle_input(NOW, input);
                    drain(&mut connection, &mut joined);
                    let is_head =
                        |output: &Output| matches!(output, Output::Event(Event::Head { .. }));
                    had_table |=
                        is_encoder && joined[heads.min(joined.len())..].iter().any(is_head);
                }
            }
            None => step.act(&mut connection, role),
        }
        drain(&mut connection, &mut joined);
        sent += step.data.len();
        assert!(connection.open_requests() <= MAX_OPEN_STREAMS + steps.len());
        assert!(held() - before <= MAX_HELD + 200 * sent, "it holds too much");
    }
    if had_table {
        REACH.hit("a section that waited for its table");
    }
    joined
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let &[kind, cut, ref rest @ ..] = input else { return };
    let role = if kind & 1 == 0 { Role::Server } else { Role::Client };
    let steps = steps(rest);
    let whole = run(role, &steps, usize::MAX);
    if steps.iter().all(|step| step.inputs(1).is_some()) {
        let split = run(role, &steps, usize::from(cut));
        // A section that waits is decoded between two instructions or after both.
        let is_qpack = |outputs: &[Output]| {
            matches!(outputs.last(), Some(Output::Close(ConnectionFault::Qpack(_))))
        };
        assert!(whole == split || is_qpack(&whole) || is_qpack(&split), "{whole:?}, {split:?}");
    }
});
