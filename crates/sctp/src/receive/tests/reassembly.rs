//! Reassembly (RFC 9260 §6.9, RFC 8260 §2.2.3), partial delivery (RFC 6458 §8.1.21), and fragments
//! that contradict each other.

use super::*;
use crate::receive::DataViolation;

fn outcomes(interleaving: bool, chunks: &[DataChunk]) -> Vec<DataOutcome> {
    Side::with(&config(), interleaving, false).packet(chunks)
}

/// Returns whether the last of `chunks`, and only that one, is a protocol violation.
fn last_is_refused(interleaving: bool, chunks: &[DataChunk]) -> bool {
    let outcomes = outcomes(interleaving, chunks);
    let refused = DataOutcome::Violation(DataViolation::Inconsistent);
    let first = outcomes.iter().position(|outcome| *outcome == refused);
    first == Some(chunks.len() - 1)
}

//= rfc9260 §6.9
//# fragments are accepted in any order
#[test]
fn fragments_are_reassembled_in_any_order() {
    let parts = [
        fragment(0, 0, "b", "a"),
        fragment(1, 0, "", "b"),
        fragment(2, 0, "", "c"),
        fragment(3, 0, "e", "d"),
    ];
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1]];
    for order in orders {
        let mut side = Side::data();
        for index in order {
            side.chunk(&parts[index]);
        }
        assert_eq!(side.texts(), ["abcd"], "{order:?}");
        assert_eq!(side.receiver.memory(), 0);
    }
}

#[test]
fn i_data_fragments_of_several_messages_can_be_interleaved() {
    let mut side = Side::with(&config(), true, false);
    side.packet(&[
        i_fragment(0, (0, 0, 0), "b", "a"),
        i_fragment(1, (1, 0, 0), "b", "1"),
        i_fragment(2, (0, 0, 0), "bu", "x"),
        i_fragment(3, (0, 0, 1), "", "b"),
        i_fragment(4, (1, 0, 1), "e", "2"),
        i_fragment(5, (0, 0, 1), "ue", "y"),
        i_fragment(6, (0, 0, 2), "e", "c"),
    ]);
    assert_eq!(side.texts(), ["12", "xy", "abc"]);
    assert_eq!(side.receiver.memory(), 0);
}

#[test]
fn the_first_fragment_of_i_data_carries_the_ppid() {
    let mut side = Side::with(&config(), true, false);
    side.packet(&[i_fragment(1, (0, 0, 1), "e", "b"), i_fragment(0, (0, 0, 0), "b", "a")]);
    assert_eq!(side.receive()[0].ppid, Ppid(7));
}

#[test]
fn contradictions_of_data_are_detected() {
    let cases: [&[DataChunk]; 9] = [
        // No E bit before the next B bit.
        &[fragment(0, 0, "b", "a"), fragment(1, 1, "b", "b")],
        &[fragment(0, 0, "b", "a"), whole(1, 0, "b")],
        // No B bit.
        &[fragment(0, 0, "e", "a")],
        &[whole(0, 0, "a"), fragment(1, 0, "e", "b")],
        // The same, detected when the gap closes or two runs of fragments meet.
        &[fragment(2, 1, "e", "c"), whole(1, 0, "b"), whole(0, 0, "a")],
        &[fragment(2, 1, "b", "c"), fragment(1, 0, "b", "b")],
        &[fragment(1, 0, "e", "b"), fragment(2, 0, "", "c")],
        // Another message.
        &[fragment(0, 0, "b", "a"), fragment(1, 1, "e", "b")],
        &[fragment(0, 0, "b", "a"), fragment(1, 0, "ue", "b")],
    ];
    for (index, case) in cases.iter().enumerate() {
        assert!(last_is_refused(false, case), "case {index}: {:?}", outcomes(false, case));
    }
    let mut other_stream = fragment(1, 0, "e", "b");
    other_stream.stream = StreamId(1);
    assert!(last_is_refused(false, &[fragment(0, 0, "b", "a"), other_stream]));
}

#[test]
fn contradictions_of_i_data_are_detected() {
    let cases: [&[DataChunk]; 9] = [
        // Two B bits, overlap.
        &[i_fragment(0, (0, 0, 0), "b", "a"), i_fragment(1, (0, 0, 0), "b", "a")],
        &[i_fragment(1, (0, 0, 1), "", "b"), i_fragment(2, (0, 0, 1), "", "b")],
        // A fragment after the end, two E bits, an E bit before existing fragments.
        &[i_fragment(1, (0, 0, 1), "e", "b"), i_fragment(2, (0, 0, 2), "", "c")],
        &[i_fragment(1, (0, 0, 1), "e", "b"), i_fragment(2, (0, 0, 3), "e", "c")],
        &[i_fragment(1, (0, 0, 3), "", "d"), i_fragment(2, (0, 0, 2), "e", "c")],
        // The first fragment without a B bit.
        &[i_fragment(0, (0, 0, 0), "", "a")],
        // A missing fragment that would have had to come earlier.
        &[i_fragment(0, (0, 0, 1), "", "b")],
        &[i_fragment(1, (0, 0, 1), "", "b"), i_fragment(0, (1, 0, 0), "b", "a")],
        // Complete and in fragments.
        &[i_fragment(0, (0, 0, 0), "b", "a"), i_fragment(1, (0, 0, 0), "be", "b")],
    ];
    for (index, case) in cases.iter().enumerate() {
        assert!(last_is_refused(true, case), "case {index}: {:?}", outcomes(true, case));
    }
}

#[test]
fn chunks_without_data_or_of_the_wrong_kind_violate_the_protocol() {
    let mut empty = whole(0, 0, "x");
    empty.payload = Bytes::new();
    let refused = |violation| alloc::vec![DataOutcome::Violation(violation)];
    assert_eq!(outcomes(false, &[empty]), refused(DataViolation::NoUserData(tsn(0))));
    assert_eq!(outcomes(true, &[whole(0, 0, "x")]), refused(DataViolation::WrongKind));
    let chunk = i_fragment(0, (0, 0, 0), "be", "x");
    assert_eq!(outcomes(false, &[chunk]), refused(DataViolation::WrongKind));
}

fn in_parts(interleaving: bool) {
    let mut config = config();
    config.partial_delivery_point = Some(4);
    let mut side = Side::with(&config, interleaving, false);
    let part = |offset: u32, marks, text| match interleaving {
        true => i_fragment(offset, (0, 0, offset), marks, text),
        false => fragment(offset, 0, marks, text),
    };
    side.chunk(&part(0, "b", "ab"));
    assert!(!side.receiver.is_readable(), "below the point");
    side.chunk(&part(1, "", "cd"));
    let first = side.receiver.receive().expect("at the point");
    assert_eq!((first.begins, first.ends, first.tsn), (true, false, tsn(0)));
    assert_eq!(first.into_bytes(), "abcd");
    side.packet(&[part(2, "", "e"), part(3, "", "f")]);
    side.chunk(&part(5, "e", "h"));
    let second = side.receiver.receive().expect("one part with everything that arrived meanwhile");
    assert_eq!((second.begins, second.ends, second.tsn), (false, false, tsn(2)));
    assert_eq!(second.into_bytes(), "ef");
    side.chunk(&part(4, "", "g"));
    let last = side.receiver.receive().expect("the end");
    assert_eq!((last.begins, last.ends, last.tsn), (false, true, tsn(4)));
    assert_eq!(last.into_bytes(), "gh");
    let next = match interleaving {
        true => i_fragment(6, (0, 1, 0), "be", "next"),
        false => whole(6, 1, "next"),
    };
    side.chunk(&next);
    assert_eq!(side.texts(), ["next"]);
    assert_eq!(side.receiver.memory(), 0);
}

#[test]
fn a_large_message_is_delivered_in_parts() {
    in_parts(false);
    in_parts(true);
}

#[test]
fn only_the_next_message_is_delivered_in_parts() {
    let mut config = config();
    config.partial_delivery_point = Some(1);
    let mut side = Side::with(&config, false, false);
    side.packet(&[fragment(1, 1, "b", "b"), fragment(2, 1, "", "c")]);
    assert!(!side.receiver.is_readable());
    side.chunk(&whole(0, 0, "a"));
    assert_eq!(side.texts(), ["a"]);
    side.chunk(&fragment(3, 1, "e", "d"));
    assert_eq!(side.texts(), ["bcd"]);
}

#[test]
fn incomplete_messages_that_fill_the_window_do_not_block_each_other() {
    let mut config = config();
    config.receive_buffer = 8000;
    let mut side = Side::with(&config, true, false);
    let text: &'static str = alloc::string::String::from("y").repeat(1000).leak();
    for offset in 0..8 {
        let stream = u16::try_from(offset).expect("small");
        side.chunk(&i_fragment(offset, (stream, 0, 0), "b", text));
    }
    let parts = side.receive();
    assert_eq!(parts.len(), 8, "each is below the point, but the window is used up");
    assert!(parts.iter().all(|part| part.begins && !part.ends));
    assert_eq!(side.receiver.window(), 8000);
}
