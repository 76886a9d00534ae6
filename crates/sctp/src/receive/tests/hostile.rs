//! Floods, each with the bound that limits it (RFC 9260 §6.2; no correct peer sends any of this).

use super::*;
use crate::receive::borrowing::MAX_BORROWED_FRAGMENTS;
use crate::receive::tracking::{MAX_RANGES, MAX_TSNS_AHEAD};
use crate::receive::window::{CHUNK_OVERHEAD, MEMORY_FACTOR, MESSAGE_OVERHEAD};

//= hostile sctp-lies
//# millions of tiny fragments
//= bound: `receive_buffer`, with `CHUNK_OVERHEAD` and `MESSAGE_OVERHEAD`
#[test]
fn a_million_tiny_fragments_take_bounded_memory() {
    for interleaving in [false, true] {
        let mut side = Side::with(&config(), interleaving, false);
        let bound = config().receive_buffer * MEMORY_FACTOR * 2;
        let mut most = 0;
        for offset in 0..1_000_000 {
            let marks = if offset == 0 { "b" } else { "" };
            // The first chunk never arrives, so nothing can be delivered.
            let chunk = match interleaving {
                true => i_fragment(offset + 1, (0, 0, offset + 1), "", "x"),
                false => fragment(offset + 1, 0, marks, "x"),
            };
            side.chunk(&chunk);
            most = most.max(side.receiver.memory());
        }
        assert!(most <= bound, "{most}");
        assert!(side.counters.data_over_window > 900_000);
    }
}

//= hostile sctp-lies
//# endless messages, or some behind one that never comes
//= bound: `receive_buffer`
#[test]
fn a_million_unfinished_messages_take_bounded_memory() {
    let mut side = Side::with(&config(), true, false);
    for offset in 0..200_000 {
        side.chunk(&i_fragment(offset, ((offset % 16) as u16, offset / 16, 0), "ub", "x"));
        // The application does not read the partially delivered message.
        assert!(side.receiver.memory() <= config().receive_buffer * MEMORY_FACTOR * 2);
    }
    assert!(side.counters.data_over_window > 0);
}

#[test]
fn messages_behind_a_missing_one_take_bounded_memory() {
    let mut side = Side::data();
    for offset in 1..60_000 {
        side.chunk(&whole(offset, offset as u16, "x"));
    }
    assert!(side.receiver.memory() <= config().receive_buffer * MEMORY_FACTOR + CHUNK_OVERHEAD + 1);
    assert_eq!(side.chunk(&whole(0, 0, "x")), DataOutcome::Accepted, "the chunk that frees them");
    assert!(side.texts().len() > 5000);
    assert_eq!(side.receiver.memory(), 0);
}

/// The space beyond the window is not used up by chunks that release nothing.
#[test]
fn the_chunk_that_frees_the_others_is_accepted_however_many_gaps_were_filled() {
    let mut side = Side::data();
    let ssn = |offset: u32| offset as u16;
    let (mut refused, mut gap) = (false, 1..30_000);
    for offset in 30_000..60_000 {
        refused |= side.chunk(&whole(offset, ssn(offset), "x")) == DataOutcome::OverWindow;
    }
    assert!(refused, "the window is full");
    let accepted =
        |offset: &u32| side.chunk(&whole(*offset, ssn(*offset), "x")) == DataOutcome::Accepted;
    assert!(gap.by_ref().take_while(accepted).count() > 100, "gaps are filled beyond the window");
    assert!(gap.next().is_some(), "within bounds");
    assert_eq!(side.chunk(&whole(0, 0, "x")), DataOutcome::Accepted);
    assert!(side.texts().len() > 100);
}

#[test]
fn data_that_cannot_be_reported_is_dropped() {
    let mut side = Side::data();
    let furthest = u32::try_from(MAX_TSNS_AHEAD).expect("16 bits") - 1;
    assert_eq!(side.chunk(&whole(furthest, 1, "x")), DataOutcome::Accepted);
    assert_eq!(side.chunk(&whole(furthest + 1, 1, "x")), DataOutcome::OverWindow);
    assert_eq!(gaps(&side.sack()), [(65_535, 65_535)]);
    assert_eq!(side.chunk(&whole(1 << 30, 1, "x")), DataOutcome::OverWindow);
    assert_eq!(side.chunk(&whole(3 << 30, 1, "x")), DataOutcome::Duplicate);
}

//= hostile sctp-lies
//# endless gaps
//= bound: `MAX_RANGES`
#[test]
fn gaps_are_bounded() {
    let mut side = Side::data();
    let ranges = u32::try_from(MAX_RANGES).expect("small");
    for range in 0..ranges {
        assert_eq!(side.chunk(&fragment(range * 2 + 1, 0, "ube", "x")), DataOutcome::Accepted);
    }
    let one_more = ranges * 2 + 1;
    assert_eq!(side.chunk(&fragment(one_more, 0, "ube", "x")), DataOutcome::OverWindow);
    assert_eq!(side.chunk(&fragment(one_more - 1, 0, "ube", "x")), DataOutcome::Accepted);
    assert_eq!(side.chunk(&fragment(0, 0, "ube", "x")), DataOutcome::Accepted);
}

#[test]
fn fragments_do_not_keep_their_packets_alive() {
    let mut side = Side::with(&config(), true, false);
    let packet = Bytes::from(alloc::vec![b'x'; 65_000]);
    let mut kept = 0;
    for offset in 0..2000 {
        let mut chunk = i_fragment(offset, ((offset % 16) as u16, offset / 16, 0), "ub", "x");
        let train = Bytes::copy_from_slice(&packet);
        chunk.payload = train.slice(100..101);
        side.receiver.handle_data(&mut chunk, &mut side.counters);
        side.receiver.end_of_packet(side.now, (PATH, None), 65_000, false);
        kept += usize::from(!train.is_unique());
    }
    assert!(kept < MAX_BORROWED_FRAGMENTS, "{kept} packets are kept for one byte each");
    assert_eq!(side.receiver.memory(), 2000 * (1 + CHUNK_OVERHEAD + MESSAGE_OVERHEAD));
}

#[test]
fn using_all_streams_takes_little_memory() {
    let mut config = config();
    config.max_inbound_streams = u16::MAX;
    let mut side = Side::with(&config, false, false);
    side.receiver.set_inbound_streams(u16::MAX);
    for offset in 0..u32::from(u16::MAX) {
        let mut chunk = whole(offset, 0, "x");
        chunk.stream = StreamId(offset as u16);
        assert_eq!(side.chunk(&chunk), DataOutcome::Accepted);
        side.receiver.receive();
    }
    assert_eq!(side.receiver.memory(), 0);
}
