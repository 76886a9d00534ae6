//! A peer that violates the protocol.

use crate::data_channels::world::{A, B, World, closed, closing, messages, ms, opened_by_peer};
use eyas_sctp::data_channel::dcep::{DcepMessage, DcepOpen};
use eyas_sctp::data_channel::{ChannelEvent, ChannelOptions, MessageKind};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::MessageReliability;

fn open(label: &str) -> bytes::Bytes {
    DcepMessage::Open(DcepOpen {
        ordered: true,
        reliability: MessageReliability::Reliable,
        priority: 256,
        label: label.into(),
        protocol: String::new(),
    })
    .to_bytes()
}

/// Returns whether A has reset a stream of its own.
fn was_reset(world: &World, stream: u16) -> bool {
    world.hosts[B].events.iter().any(|event| {
        matches!(event, Event::StreamsReset { outgoing: false, streams, .. }
            if streams.contains(&StreamId(stream)))
    })
}

//= rfc8832 §6
//# the DTLS client opens on even streams; others are refused by a reset
#[test]
fn a_channel_on_a_stream_of_ours_is_refused_by_a_reset() {
    let mut world = World::with_raw_peer(|_| {});
    world.send_raw(4, 50, false, open("not yours"));
    world.run_for(ms(100));
    assert_eq!(world.take_events(A), []);
    assert!(was_reset(&world, 4));
    assert_eq!(world.channels(A).counters().refused_channels, 1);
}

//= rfc8832 §6
//# an OPEN on a stream in use closes its channel
#[test]
fn a_channel_opened_twice_is_closed() {
    let mut world = World::with_raw_peer(|_| {});
    world.send_raw(1, 50, false, open("once"));
    world.send_raw(1, 50, false, open("twice"));
    world.run_for(ms(100));
    assert_eq!(world.take_events(A), [opened_by_peer(1), closing(1)]);
    assert!(was_reset(&world, 1));
}

//= rfc8832 §6
//# an error in a message or an unknown PPID (RFC 8831 §6.6) closes the channel
#[test]
fn malformed_messages_close_their_channel() {
    for (ppid, unordered, data) in [
        (50, false, &b"\x03"[..]),
        (50, true, b"\x02"),
        (50, false, b"nonsense"),
        (55, false, b"no such kind"),
        (0, false, b"no kind"),
    ] {
        let mut world = World::with_raw_peer(|_| {});
        world.send_raw(1, 50, false, open("x"));
        world.run_for(ms(50));
        world.send_raw(1, ppid, unordered, data);
        world.run_for(ms(100));
        assert_eq!(world.take_events(A), [opened_by_peer(1), closing(1)], "{ppid} {data:?}");
        assert!(was_reset(&world, 1));
        let association = world.hosts[B].association;
        let now = world.now;
        let streams = [StreamId(1)];
        world.hosts[B]
            .endpoint
            .association_mut(now, association)
            .unwrap()
            .reset_streams(true, &streams)
            .unwrap();
        world.run_for(ms(100));
        assert_eq!(world.take_events(A), [closed(1)]);
    }
}

#[test]
fn data_without_a_channel_is_counted_and_dropped() {
    let mut world = World::with_raw_peer(|_| {});
    world.send_raw(1, 51, false, "nobody listens");
    world.send_raw(2, 50, false, vec![2]);
    world.run_for(ms(100));
    assert_eq!(world.take_events(A), []);
    assert_eq!(world.channels(A).counters().stray_messages, 2);
}

//= rfc8831 §6.6
//# the deprecated 52 and 54 are accepted and never sent
#[test]
fn messages_split_by_an_old_peer_are_reassembled() {
    let mut world = World::with_raw_peer(|settings| settings.max_message_size = 10);
    world.send_raw(1, 50, false, open("old"));
    for (ppid, data) in [(54, "ab"), (54, "cd"), (51, "e"), (51, "f"), (52, "g"), (53, "h")] {
        world.send_raw(1, ppid, false, data);
    }
    // The contents of an empty message are ignored.
    world.send_raw(1, 56, false, "ignored");
    world.run_for(ms(100));
    let events = world.take_events(A);
    assert_eq!(
        messages(&events),
        [
            (1, MessageKind::Text, "abcde".into()),
            (1, MessageKind::Text, "f".into()),
            (1, MessageKind::Binary, "gh".into()),
            (1, MessageKind::Text, "".into()),
        ]
    );
    world.send_raw(1, 52, false, "eleven byt");
    world.send_raw(1, 53, false, "es");
    world.run_for(ms(100));
    assert_eq!(world.take_events(A), [closing(1)]);
    assert_eq!(world.channels(A).counters().oversized_messages, 1);
}

//= rfc8832 §7
//# channels, names and refusals are bounded
#[test]
fn memory_is_bounded_whatever_channels_are_opened() {
    let mut world = World::with_raw_peer(|settings| settings.max_channels = 10);
    for stream in 0..5000 {
        world.send_raw(stream, 50, false, open("flood"));
        if stream % 100 == 0 {
            world.run_for(ms(100));
        }
    }
    world.run_until_quiet();
    assert_eq!(world.channels(A).iter().count(), 10);
    assert_eq!(world.channels(A).counters().refused_channels, 4990);
    // The stream works as before for a correct peer.
    let association = world.hosts[B].association;
    let now = world.now;
    world.hosts[B]
        .endpoint
        .association_mut(now, association)
        .unwrap()
        .reset_streams(true, &[])
        .unwrap();
    world.run_until_quiet();
    assert_eq!(world.channels(A).iter().count(), 0);
    let id = world.open(A, &ChannelOptions::new("mine"));
    world.send_raw(id.0, 50, false, vec![2]);
    world.run_for(ms(100));
    let expected = ChannelEvent::Opened { id, by_peer: false };
    assert_eq!(world.take_events(A).last(), Some(&expected));
}
