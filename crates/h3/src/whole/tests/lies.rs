//! An honest end whose peer sends anything: no panic, at most one error, which has a code, and nothing
//! after it. What comes of it does not depend on how the streams were cut.

use proptest::prelude::*;

use super::wire::{self, NOW, Step};
use crate::connection::ConnectionConfig;
use crate::stream::{Role, StreamId};
use crate::whole::{Event, Input, MAX_OPEN_STREAMS, Output};

/// A frame, most often of a type that means something, with a payload that is perhaps right.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        8 => proptest::sample::select(vec![
            wire::DATA, wire::HEADERS, wire::CANCEL_PUSH, wire::SETTINGS, wire::PUSH_PROMISE,
            wire::GOAWAY, wire::ORIGIN, wire::MAX_PUSH_ID, wire::PRIORITY_UPDATE,
            wire::PRIORITY_UPDATE_OF_PUSH, 0x02, 0x21,
        ]),
        1 => 0..0x100_u64,
    ];
    let payload = prop_oneof![
        (0..20_u64).prop_map(wire::integer),
        (0..20_u64).prop_map(|id| [wire::integer(id), b"u=1, i".to_vec()].concat()),
        Just(b"\0\0\xd1\xd7\xc1\x50\x01a".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    prop_oneof![
        4 => (kind, payload).prop_map(|(kind, payload)| wire::frame(kind, &payload)),
        2 => Just(wire::get()),
        2 => Just(wire::response("200", &[("content-length", "3")])),
        1 => Just(wire::response("103", &[])),
        1 => Just(wire::headers(&[("a", "b")])),
        1 => Just(wire::frame(wire::DATA, b"abc")),
        1 => Just(vec![]),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ]
}

/// The beginning of a unidirectional stream, or nothing.
fn stream_type() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(vec![]),
        2 => Just(vec![0, wire::SETTINGS as u8, 0]),
        1 => Just(vec![0, wire::SETTINGS as u8, 4, 1, 0x20, 7, 1]),
        3 => (0..4_u8).prop_map(|kind| vec![kind]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn step(role: Role) -> impl Strategy<Value = Step> {
    let uni = if role == Role::Client { 3 } else { 2 };
    let request = (0..3_u64).prop_map(|index| 4 * index);
    let other = (0..4_u64).prop_map(move |index| uni + 4 * index);
    let stream = prop_oneof![6 => request, 6 => other, 1 => 0..20_u64, 1 => any::<u64>().prop_map(|id| id >> 2)];
    let frames = proptest::collection::vec(frame(), 0..4).prop_map(|frames| frames.concat());
    let data = (stream_type(), frames);
    (stream, data, 0..20_u8).prop_map(move |(stream, (kind, frames), choice)| {
        let is_request = stream & 2 == 0;
        let data = if is_request { frames } else { [kind, frames].concat() };
        match choice {
            0 => Step::Reset(stream),
            1 => Step::Stop(stream),
            2 => Step::Datagram(data),
            3 | 4 => Step::End(stream, data),
            _ => Step::Send(stream, data),
        }
    })
}

fn config() -> ConnectionConfig {
    ConnectionConfig { extended_connect: true, ..wire::config() }
}

/// Returns what has come of the steps, without what depends on the cuts: contents are joined, and what
/// the connection says on its own streams is left out.
fn outcome(role: Role, steps: &[Step], cuts: &[u8]) -> Vec<Output> {
    let methods: &[&str] = if role == Role::Client { &["GET", "HEAD", "CONNECT"] } else { &[] };
    let mut connection = wire::begin(role, config(), methods);
    let mut joined: Vec<Output> = Vec::new();
    let mut cuts = cuts.iter().cycle();
    for step in steps {
        for input in
            inputs(step, &mut || cuts.next().map_or(usize::MAX, |cut| usize::from(*cut) + 1))
        {
            connection.handle_input(NOW, input);
            for output in wire::drain(&mut connection) {
                assert!(
                    !matches!(joined.last(), Some(Output::Close(_))),
                    "nothing follows: {output:?}"
                );
                match (joined.last_mut(), output) {
                    (_, Output::Write { stream, .. }) => {
                        assert!(stream.is_unidirectional(), "nobody has asked for it");
                    }
                    // A stream that ends with the bytes that tell its type needs none.
                    (_, Output::StopSending { stream, .. }) if stream.is_unidirectional() => {}
                    (
                        Some(Output::Event(Event::Data { stream, data })),
                        Output::Event(Event::Data { stream: next, data: more }),
                    ) if *stream == next => *data = [&data[..], &more].concat().into(),
                    (_, output) => joined.push(output),
                }
            }
            assert!(connection.open_requests() <= MAX_OPEN_STREAMS);
        }
    }
    joined
}

/// Returns the inputs of a step, whose bytes are cut into parts of these sizes.
fn inputs(step: &Step, size: &mut dyn FnMut() -> usize) -> Vec<Input> {
    let (stream, data, end) = match step {
        Step::Send(stream, data) => (StreamId(*stream), data, false),
        Step::End(stream, data) => (StreamId(*stream), data, true),
        other => return vec![other.clone().into_input()],
    };
    let mut inputs = Vec::new();
    let mut rest = &data[..];
    loop {
        let (part, after) = rest.split_at(size().min(rest.len()));
        rest = after;
        let (data, fin) = (part.to_vec().into(), end && rest.is_empty());
        inputs.push(Input::Stream { stream, data, fin });
        if rest.is_empty() {
            return inputs;
        }
    }
}

fn steps() -> impl Strategy<Value = (Role, Vec<Step>)> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
        .prop_flat_map(|role| (Just(role), proptest::collection::vec(step(role), 0..9)))
}

proptest! {
    #[test]
    fn lies_have_one_outcome_however_they_are_cut(
        (role, steps) in steps(),
        cuts in proptest::collection::vec(0..20_u8, 1..10),
    ) {
        let whole = outcome(role, &steps, &[]);
        prop_assert_eq!(&whole, &outcome(role, &steps, &cuts));
    }
}
