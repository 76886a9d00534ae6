//! The order in which messages are read ([`ReceiveOrder`]).

use super::*;
use crate::config::ReceiveOrder;

/// A receiver with this order that has 8 messages of stream 2, then one of stream 1 and one of
/// stream 0.
fn loaded(receive_order: ReceiveOrder) -> Side {
    let config = AssociationConfig { receive_order, ..config() };
    let mut side = Side::with(&config, false, false);
    for (tsn, stream, number) in (0..8).map(|n| (n, 2, n as u16)).chain([(8, 1, 0), (9, 0, 0)]) {
        let mut chunk = whole(tsn, number, "x");
        chunk.stream = StreamId(stream);
        side.chunk(&chunk);
    }
    side
}

/// The number of messages before the first one of each stream, by stream.
fn waits(side: &mut Side) -> [usize; 3] {
    let taken = side.receive();
    assert_eq!(taken.len(), 10, "all arrive, whatever the order");
    let of_two = taken.iter().filter(|message| message.stream == StreamId(2));
    let numbers: Vec<u32> = of_two.map(|message| message.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7], "a stream keeps its order");
    [0, 1, 2].map(|stream| {
        let is_of = |message: &Message| message.stream == StreamId(stream);
        taken.iter().position(is_of).expect("it arrived")
    })
}

#[test]
fn messages_are_delivered_in_order_of_arrival() {
    assert_eq!(waits(&mut loaded(ReceiveOrder::Arrival)), [9, 8, 0]);
}

#[test]
fn streams_take_turns() {
    assert_eq!(waits(&mut loaded(ReceiveOrder::RoundRobin)), [0, 1, 2]);
    let mut side = loaded(ReceiveOrder::RoundRobin);
    let first: Vec<u16> =
        (0..4).filter_map(|_| side.receiver.receive()).map(|message| message.stream.0).collect();
    assert_eq!(first, [0, 1, 2, 2]);
    // A message that arrives in between is served before the other streams' next ones.
    let mut chunk = whole(10, 1, "late");
    chunk.stream = StreamId(1);
    side.chunk(&chunk);
    assert_eq!(side.receiver.receive().expect("there are some").stream, StreamId(1));
}

#[test]
fn the_lowest_value_is_delivered_first() {
    let values = alloc::vec![(StreamId(2), 5), (StreamId(0), 3), (StreamId(1), 1)];
    assert_eq!(waits(&mut loaded(ReceiveOrder::Priority(values))), [1, 0, 2]);
    let none = ReceiveOrder::Priority(Vec::new());
    assert_eq!(waits(&mut loaded(none)), [9, 8, 0], "equals in the order of arrival");
}

#[test]
fn reading_immediately_shows_no_difference() {
    for order in [ReceiveOrder::RoundRobin, ReceiveOrder::Priority(alloc::vec![(StreamId(2), 9)])] {
        let config = AssociationConfig { receive_order: order, ..config() };
        let mut side = Side::with(&config, false, false);
        for tsn in 0..6_u32 {
            let mut chunk = whole(tsn, (tsn / 3) as u16, "x");
            chunk.stream = StreamId(2 - (tsn % 3) as u16);
            side.chunk(&chunk);
            let streams: Vec<StreamId> =
                side.receive().iter().map(|message| message.stream).collect();
            assert_eq!(streams, [chunk.stream]);
        }
    }
}
