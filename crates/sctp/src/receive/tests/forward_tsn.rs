//! FORWARD-TSN and I-FORWARD-TSN (RFC 3758 §3.6, RFC 8260 §2.3.1).

use super::*;
use crate::event::Event;
use crate::receive::DataViolation;
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, SkippedMid, SkippedSsn};

impl Side {
    fn forward(&mut self, offset: u32, skipped: &[(u16, u16)]) -> Result<(), DataViolation> {
        let skipped: Vec<SkippedSsn> = skipped
            .iter()
            .map(|(stream, ssn)| SkippedSsn { stream: StreamId(*stream), ssn: Ssn(*ssn) })
            .collect();
        let chunk = ForwardTsnChunk::new(tsn(offset), &skipped);
        let result = self.receiver.handle_forward_tsn(&chunk, &mut self.counters);
        self.receiver.end_of_packet(self.now, (PATH, None), 100, false);
        result
    }

    fn i_forward(
        &mut self,
        offset: u32,
        skipped: &[(u16, bool, u32)],
    ) -> Result<(), DataViolation> {
        let skipped: Vec<SkippedMid> = skipped
            .iter()
            .map(|&(stream, unordered, mid)| SkippedMid {
                stream: StreamId(stream),
                unordered,
                mid: Mid(mid),
            })
            .collect();
        let chunk = IForwardTsnChunk::new(tsn(offset), &skipped);
        let result = self.receiver.handle_i_forward_tsn(&chunk, &mut self.counters);
        self.receiver.end_of_packet(self.now, (PATH, None), 100, false);
        result
    }
}

//= rfc3758 §3.2
//# TSNs up to the new cumulative one count as received
#[test]
fn a_missing_message_is_skipped() {
    let mut side = Side::data();
    side.packet(&[whole(0, 0, "a"), whole(2, 2, "c"), whole(4, 4, "e")]);
    assert_eq!(side.texts(), ["a"]);
    side.sack();
    assert_eq!(side.forward(1, &[(0, 1)]), Ok(()));
    assert!(side.wants_sack());
    assert_eq!(side.texts(), ["c"]);
    let sack = side.sack();
    assert_eq!((sack.cumulative_tsn, gaps(&sack)), (tsn(2), alloc::vec![(2, 2)]));
    assert_eq!(side.forward(3, &[(0, 3)]), Ok(()));
    assert_eq!(side.texts(), ["e"]);
}

//= rfc3758 §3.6
//# messages of listed streams become available
#[test]
fn complete_messages_before_the_skip_are_delivered() {
    let mut side = Side::data();
    side.packet(&[whole(1, 1, "b"), whole(3, 3, "d"), whole(4, 4, "e")]);
    side.forward(3, &[(0, 2)]).expect("in order");
    assert_eq!(side.texts(), ["b", "d", "e"]);
}

//= rfc3758 §3.6
//# a FORWARD TSN at or before the cumulative TSN is answered with a SACK
#[test]
fn a_late_forward_tsn_is_acknowledged_again() {
    let mut side = Side::data();
    side.packet(&[whole(0, 0, "a"), whole(1, 1, "b")]);
    side.sack();
    side.forward(1, &[(0, 7)]).expect("in order");
    assert!(side.wants_sack());
    side.chunk(&whole(2, 2, "c"));
    assert_eq!(side.texts(), ["a", "b", "c"], "its list is ignored");
}

//= rfc3758 §3.6
//# streams missing from the list of a FORWARD TSN continue
#[test]
fn streams_missing_from_the_list_continue() {
    let mut side = Side::data();
    side.packet(&[whole(1, 1, "b"), whole(2, 2, "c")]);
    side.forward(0, &[]).expect("in order");
    assert_eq!(side.texts(), ["b", "c"]);
}

//= rfc3758 §3.6
//# fragments of skipped messages MUST be removed
#[test]
fn fragments_of_skipped_messages_are_freed() {
    let mut side = Side::data();
    side.packet(&[
        fragment(0, 0, "b", "gone"),
        fragment(2, 0, "", "gone"),
        fragment(3, 0, "", "gone"),
        fragment(5, 0, "e", "gone"),
        fragment(6, 1, "b", "stays"),
    ]);
    side.forward(3, &[(0, 0)]).expect("in order");
    side.chunk(&fragment(4, 0, "", "gone"));
    side.chunk(&fragment(7, 1, "e", "!"));
    assert_eq!(side.texts(), ["stays!"]);
    assert_eq!((side.receiver.memory(), side.receiver.cumulative_tsn()), (0, tsn(7)));
}

#[test]
fn a_fragment_without_a_beginning_is_allowed_only_after_a_skip() {
    let mut side = Side::data();
    side.forward(0, &[]).expect("in order");
    side.packet(&[fragment(1, 0, "e", "gone"), whole(2, 1, "b")]);
    let outcome = side.chunk(&fragment(3, 2, "e", "broken"));
    assert_eq!(outcome, DataOutcome::Violation(DataViolation::Inconsistent));
}

#[test]
fn unordered_messages_are_skipped_by_their_tsns() {
    let mut side = Side::data();
    side.packet(&[fragment(0, 0, "ub", "gone"), fragment(2, 0, "ub", "x")]);
    side.forward(1, &[]).expect("in order");
    side.chunk(&fragment(3, 0, "ue", "y"));
    assert_eq!(side.texts(), ["xy"]);
    assert_eq!(side.receiver.memory(), 0);
}

//= rfc3758 §3.6
//# the user is told that a partial delivery will not be completed
#[test]
fn an_aborted_partial_delivery_is_reported() {
    let mut config = config();
    config.partial_delivery_point = Some(1);
    let mut side = Side::with(&config, false, false);
    side.packet(&[fragment(0, 0, "b", "part"), fragment(2, 0, "e", "rest")]);
    assert_eq!(side.texts(), ["part"]);
    assert_eq!(side.receiver.poll_event(), Some(Event::Readable));
    side.forward(1, &[(0, 0)]).expect("in order");
    let aborted = Event::PartialDeliveryAborted { stream: StreamId(0) };
    assert_eq!(side.receiver.poll_event(), Some(aborted));
    side.chunk(&whole(3, 1, "next"));
    assert_eq!(side.texts(), ["next"]);
}

#[test]
fn an_unread_part_is_withdrawn() {
    let mut config = config();
    config.partial_delivery_point = Some(1);
    let mut side = Side::with(&config, false, false);
    side.packet(&[fragment(0, 0, "b", "part"), fragment(2, 0, "e", "rest")]);
    side.forward(2, &[(0, 0)]).expect("in order");
    assert_eq!(side.texts(), Vec::<&str>::new());
    assert_eq!(side.receiver.memory(), 0);
    let aborted = Event::PartialDeliveryAborted { stream: StreamId(0) };
    assert!(core::iter::from_fn(|| side.receiver.poll_event()).all(|event| event != aborted));
}

//= rfc8260 §2.3.1
//# I-FORWARD-TSN instead of FORWARD-TSN
#[test]
fn i_data_messages_are_skipped_by_their_numbers() {
    let mut side = Side::with(&config(), true, false);
    side.packet(&[
        i_fragment(0, (0, 0, 0), "b", "gone"),
        i_fragment(1, (1, 0, 0), "b", "stays"),
        i_fragment(3, (0, 1, 0), "be", "next"),
        i_fragment(4, (2, 9, 0), "ub", "gone"),
        i_fragment(5, (2, 10, 0), "ub", "unordered"),
    ]);
    side.i_forward(2, &[(0, false, 0), (2, true, 9)]).expect("in order");
    assert_eq!(side.texts(), ["next"]);
    side.packet(&[
        i_fragment(6, (1, 0, 1), "e", "!"),
        i_fragment(7, (0, 0, 2), "e", "stranded"),
        i_fragment(8, (2, 10, 1), "ue", "!"),
    ]);
    assert_eq!(side.texts(), ["stays!", "unordered!"]);
    assert_eq!(side.receiver.memory(), 0);
}

#[test]
fn late_fragments_of_skipped_messages_are_freed() {
    let mut side = Side::with(&config(), true, false);
    side.i_forward(0, &[(2, true, 3)]).expect("in order");
    side.chunk(&i_fragment(2, (2, 3, 5), "u", "stranded"));
    assert!(side.receiver.memory() > 0);
    assert_eq!(side.chunk(&i_fragment(1, (0, 0, 0), "be", "x")), DataOutcome::Accepted);
    assert_eq!(side.texts(), ["x"]);
    assert_eq!((side.receiver.memory(), side.counters.inconsistent_data), (0, 1));
}

#[test]
fn numbers_of_unordered_messages_are_skipped_across_their_wrap() {
    let mut side = Side::with(&config(), true, false);
    side.packet(&[
        i_fragment(1, (0, u32::MAX, 0), "ub", "gone"),
        i_fragment(2, (0, 1, 0), "ub", "gone"),
        i_fragment(3, (0, 2, 0), "ub", "stays"),
    ]);
    side.i_forward(0, &[(0, true, 1)]).expect("in order");
    side.chunk(&i_fragment(4, (0, 2, 1), "ue", "!"));
    assert_eq!(side.texts(), ["stays!"]);
    assert_eq!(side.receiver.memory(), 0);
}

//= rfc8260 §2.3.1
//# the wrong kind of FORWARD-TSN MUST end the association
#[test]
fn the_wrong_kind_of_forward_tsn_violates_the_protocol() {
    assert_eq!(Side::data().i_forward(0, &[]), Err(DataViolation::WrongKind));
    let mut side = Side::with(&config(), true, false);
    assert_eq!(side.forward(0, &[]), Err(DataViolation::WrongKind));
}

#[test]
fn missing_streams_are_not_skipped() {
    let mut side = Side::data();
    side.forward(0, &[(16, 3), (65_535, 3)]).expect("in order");
    assert_eq!(side.counters.inconsistent_data, 2);
}
