//! Order within streams, and delivery to the application (RFC 9260 §6.5, §6.6).

use super::*;
use crate::event::Event;

#[test]
fn messages_are_delivered_in_the_order_of_their_stream() {
    let mut side = Side::data();
    side.chunk(&whole(2, 2, "c"));
    side.chunk(&whole(1, 1, "b"));
    assert!(!side.receiver.is_readable());
    side.chunk(&whole(0, 0, "a"));
    assert_eq!(side.texts(), ["a", "b", "c"]);
}

#[test]
fn streams_are_independent() {
    let mut side = Side::data();
    let mut other = whole(1, 0, "other");
    other.stream = StreamId(5);
    side.chunk(&other);
    assert_eq!(side.texts(), ["other"]);
    side.chunk(&whole(0, 0, "first"));
    assert_eq!(side.texts(), ["first"]);
}

#[test]
fn unordered_messages_overtake() {
    let mut side = Side::data();
    side.chunk(&fragment(1, 0, "bue", "late"));
    assert_eq!(side.texts(), ["late"]);
    side.chunk(&whole(0, 0, "early"));
    assert_eq!(side.texts(), ["early"]);
}

#[test]
fn numbers_of_messages_wrap() {
    let mut side = Side::data();
    for offset in 0..70_000 {
        assert_eq!(side.chunk(&whole(offset, offset as u16, "x")), DataOutcome::Accepted);
        let message = side.receiver.receive().expect("one by one");
        assert_eq!(message.number, offset % 65_536);
    }
}

#[test]
fn metadata_stays_with_its_message() {
    let mut side = Side::data();
    let mut chunk = whole(0, 0, "hello");
    chunk.stream = StreamId(3);
    side.chunk(&chunk);
    let message = side.receiver.receive().expect("it arrived");
    assert_eq!((message.stream, message.ppid, message.tsn), (StreamId(3), Ppid(7), tsn(0)));
    assert!(message.begins && message.ends && !message.unordered);
    assert_eq!(message.into_bytes(), "hello");
}

#[test]
fn readability_is_reported_once() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "a"));
    side.chunk(&whole(1, 1, "b"));
    assert_eq!(side.receiver.poll_event(), Some(Event::Readable));
    assert_eq!(side.receiver.poll_event(), None);
    assert_eq!(side.receive().len(), 2);
    side.chunk(&whole(2, 2, "c"));
    assert_eq!(side.receiver.poll_event(), Some(Event::Readable));
}

#[test]
fn data_on_a_missing_stream_is_acknowledged_and_refused() {
    let mut side = Side::data();
    let mut chunk = whole(0, 0, "x");
    chunk.stream = StreamId(16);
    assert_eq!(side.chunk(&chunk), DataOutcome::InvalidStream(StreamId(16)));
    assert_eq!(side.sack().cumulative_tsn, tsn(0));
    assert_eq!(side.receiver.memory(), 0);
    side.receiver.set_inbound_streams(17);
    chunk.tsn = tsn(1);
    assert_eq!(side.chunk(&chunk), DataOutcome::Accepted);
}

#[test]
fn a_reset_stream_restarts_at_zero() {
    let mut side = Side::data();
    let mut other = whole(2, 0, "other");
    other.stream = StreamId(1);
    side.packet(&[whole(0, 0, "a"), whole(1, 1, "b"), other.clone()]);
    side.receiver.reset_streams(&[StreamId(0)]);
    other.tsn = tsn(3);
    side.packet(&[whole(4, 0, "c"), other]);
    assert_eq!(side.texts(), ["a", "b", "other", "c"]);
    side.receiver.reset_streams(&[]);
    let mut again = whole(5, 0, "other again");
    again.stream = StreamId(1);
    side.packet(&[again, whole(6, 0, "d")]);
    assert_eq!(side.texts(), ["other again", "d"]);
}

#[test]
fn reset_tsns_restart() {
    let mut side = Side::data();
    side.packet(&[whole(0, 0, "a"), whole(2, 2, "lost"), fragment(4, 3, "b", "lost too")]);
    side.receiver.reset_tsns(Tsn(5000));
    assert_eq!(side.receiver.cumulative_tsn(), Tsn(4999));
    let mut chunk = whole(0, 0, "b");
    chunk.tsn = Tsn(5000);
    assert_eq!(side.chunk(&chunk), DataOutcome::Accepted);
    assert_eq!(side.texts(), ["a", "b"]);
    assert_eq!(side.receiver.memory(), 0);
}

#[test]
fn unread_messages_survive_a_restart() {
    let mut side = Side::data();
    side.packet(&[whole(0, 0, "a"), whole(2, 2, "lost")]);
    side.receiver.restart(Tsn(77), 4, true, false);
    let mut chunk = i_fragment(0, (3, 0, 0), "be", "b");
    chunk.tsn = Tsn(77);
    assert_eq!(side.chunk(&chunk), DataOutcome::Accepted);
    chunk.stream = StreamId(4);
    chunk.tsn = Tsn(78);
    assert_eq!(side.chunk(&chunk), DataOutcome::InvalidStream(StreamId(4)));
    assert_eq!(side.texts(), ["a", "b"]);
    assert_eq!(side.receiver.memory(), 0);
}
