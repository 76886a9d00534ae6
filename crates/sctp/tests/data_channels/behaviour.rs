//! Channels opened, used, closed and reopened.

use crate::data_channels::world::{
    A, B, World, closed, closing, messages, ms, opened, opened_by_peer,
};
use eyas_sctp::data_channel::dcep::{DcepMessage, DcepOpen};
use eyas_sctp::data_channel::{
    ChannelError, ChannelEvent, ChannelOptions, ChannelState, MessageKind, ppid,
};
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::MessageReliability;
use std::time::Duration;

//= rfc8831 §6.4, §6.5
//# a channel is two streams with one number, opened by DCEP
#[test]
fn a_channel_is_opened_in_band_and_used_without_waiting() {
    let mut world = World::new();
    let mut options = ChannelOptions::new("chat");
    options.protocol = "p".into();
    options.reliability = MessageReliability::Lifetime(ms(3000));
    let chat = world.open(A, &options);
    assert_eq!(chat, StreamId(0), "the client of DTLS has even numbers");
    world.send(A, chat, MessageKind::Text, "hello").unwrap();
    world.send(A, chat, MessageKind::Text, "").unwrap();
    world.send(A, chat, MessageKind::Binary, vec![0, 1]).unwrap();
    world.send(A, chat, MessageKind::Binary, vec![]).unwrap();
    world.run_for(ms(11));
    let events = world.take_events(B);
    assert_eq!(events[0], opened_by_peer(0));
    assert_eq!(
        messages(&events),
        [
            (0, MessageKind::Text, "hello".into()),
            (0, MessageKind::Text, "".into()),
            (0, MessageKind::Binary, vec![0, 1].into()),
            (0, MessageKind::Binary, "".into()),
        ]
    );
    let there = world.channels(B).get(chat).unwrap();
    assert_eq!((there.label(), there.protocol()), ("chat", "p"));
    assert_eq!(there.reliability(), MessageReliability::Lifetime(ms(3000)));
    assert_eq!((there.is_ordered(), there.priority()), (true, 256));
    world.send(B, chat, MessageKind::Text, "good day").unwrap();
    world.run_for(ms(20));
    let events = world.take_events(A);
    assert_eq!(events[0], opened(0));
    assert_eq!(messages(&events), [(0, MessageKind::Text, "good day".into())]);
    let other = world.open(B, &ChannelOptions::new("other"));
    assert_eq!(other, StreamId(1), "the server of DTLS has odd numbers");
}

//= rfc8832 §6
//# DCEP messages are reliable and ordered; data is ordered until the ACK
#[test]
fn nothing_overtakes_the_open_message_of_an_unordered_channel() {
    let mut world = World::with_raw_peer(|_| {});
    let mut options = ChannelOptions::new("u");
    (options.ordered, options.reliability) = (false, MessageReliability::Retransmissions(3));
    let id = world.open(A, &options);
    world.send(A, id, MessageKind::Binary, "early").unwrap();
    world.run_for(ms(15));
    world.send_raw(0, 50, false, vec![2]);
    world.run_for(ms(15));
    world.send(A, id, MessageKind::Binary, "later").unwrap();
    world.run_for(ms(15));
    let seen: Vec<_> = world.hosts[B].received.iter().map(|m| (m.ppid, m.unordered)).collect();
    assert_eq!(seen, [(ppid::DCEP, false), (ppid::BINARY, false), (ppid::BINARY, true)]);
    let open = DcepMessage::parse(&world.hosts[B].received[0].clone().into_bytes());
    assert_eq!(
        open,
        Some(DcepMessage::Open(DcepOpen {
            ordered: false,
            reliability: MessageReliability::Retransmissions(3),
            priority: 256,
            label: "u".into(),
            protocol: "".into(),
        }))
    );
}

//= rfc8831 §6.5
//# or a channel is negotiated in advance
#[test]
fn a_negotiated_channel_is_open_without_a_message() {
    let mut world = World::new();
    let mut options = ChannelOptions::new("agreed");
    options.negotiated = Some(StreamId(7));
    for side in [A, B] {
        assert_eq!(world.open(side, &options), StreamId(7));
        world.drain_host(side);
        assert_eq!(world.take_events(side), [opened(7)]);
    }
    world.send(A, StreamId(7), MessageKind::Text, "a").unwrap();
    world.send(B, StreamId(7), MessageKind::Text, "b").unwrap();
    world.run_for(ms(15));
    assert_eq!(
        world.take_events(A),
        [ChannelEvent::Message { id: StreamId(7), kind: MessageKind::Text, data: "b".into() }]
    );
    assert_eq!(messages(&world.take_events(B)), [(7, MessageKind::Text, "a".into())]);
    assert_eq!(world.try_open(A, &options), Err(ChannelError::BadStream));
}

//= rfc8831 §6.7
//# closing resets the outgoing stream once its data was sent; the peer resets its own
#[test]
fn queued_data_is_sent_before_a_channel_closes_and_its_number_is_reused() {
    let mut world = World::new();
    let id = world.open(A, &ChannelOptions::new("first"));
    world.run_for(ms(50));
    let large = vec![7; 200_000];
    world.send(A, id, MessageKind::Binary, large.clone()).unwrap();
    world.close(A, id).unwrap();
    assert_eq!(world.channels(A).get(id).unwrap().state(), ChannelState::Closing);
    assert_eq!(world.send(A, id, MessageKind::Text, "late"), Err(ChannelError::NotOpen));
    world.run_for(ms(2000));
    let events = world.take_events(B);
    assert_eq!(messages(&events), [(0, MessageKind::Binary, large.into())]);
    assert_eq!(events[2..], [closing(0), closed(0)]);
    assert_eq!(world.take_events(A), [opened(0), closed(0)]);
    assert_eq!(world.channels(A).iter().count() + world.channels(B).iter().count(), 0);
    let again = world.open(A, &ChannelOptions::new("second"));
    assert_eq!(again, id);
    world.send(A, again, MessageKind::Text, "anew").unwrap();
    world.run_for(ms(50));
    assert_eq!(messages(&world.take_events(B)), [(0, MessageKind::Text, "anew".into())]);
    assert_eq!(world.channels(B).get(id).unwrap().label(), "second");
}

//= rfc8831 §6.7
//# both sides may close a channel at once
#[test]
fn both_sides_may_close_at_once() {
    let mut world = World::new();
    let id = world.open(A, &ChannelOptions::new("x"));
    world.run_for(ms(50));
    world.close(A, id).unwrap();
    world.close(B, id).unwrap();
    world.close(B, id).unwrap();
    world.run_for(ms(3000));
    assert_eq!(world.take_events(A), [opened(0), closed(0)]);
    assert_eq!(world.take_events(B), [opened_by_peer(0), closed(0)]);
}

//= rfc8831 §6.7
//# a number is used again once both are reset and the user knows
#[test]
fn a_stream_is_not_reused_before_its_user_knows_that_it_is_free() {
    let mut world = World::with(|_| {}, |config| config.send_buffer = 1000);
    let filler = world.open(A, &ChannelOptions::new("filler"));
    world.send(A, filler, MessageKind::Binary, vec![0; 900]).unwrap();
    // There is no room for the DATA_CHANNEL_OPEN message, so the channel never existed.
    let long = "l".repeat(400);
    let unannounced = world.open(A, &ChannelOptions::new(&long));
    assert_eq!(world.send(A, unannounced, MessageKind::Text, "?"), Err(ChannelError::Full));
    world.close(A, unannounced).unwrap();
    assert_ne!(world.open(A, &ChannelOptions::new("next")), unannounced);
    world.drain_host(A);
    assert_eq!(world.take_events(A)[0], closed(unannounced.0));
    assert_eq!(world.open(A, &ChannelOptions::new("another")), unannounced);
    world.run_for(ms(500));
    assert_eq!(world.channels(B).iter().count(), 3);
}

#[test]
fn the_end_of_the_association_closes_channels_after_received_data() {
    let mut world = World::new();
    let id = world.open(A, &ChannelOptions::new("x"));
    world.run_for(ms(50));
    world.take_events(B);
    world.send(A, id, MessageKind::Text, "last words").unwrap();
    let association = world.hosts[A].association;
    world.drain_host(A);
    world.hosts[A].endpoint.abort(world.now, association, "enough".into()).unwrap();
    world.run_for(ms(50));
    let events = world.take_events(B);
    assert_eq!(messages(&events), [(0, MessageKind::Text, "last words".into())]);
    assert_eq!(events[1..], [closed(0)]);
    assert!(matches!(
        world.hosts[B].events.last(),
        Some(Event::Lost(LossReason::AbortedByPeer { .. }))
    ));
    assert_eq!(world.take_events(A).last(), Some(&closed(0)));
    assert_eq!(world.try_open(B, &ChannelOptions::new("y")), Err(ChannelError::NotOpen));
}

//= rfc8831 §6.1
//# partial reliability is by time and by retransmissions
#[test]
fn a_message_is_abandoned_after_its_lifetime() {
    let mut world = World::new();
    let mut options = ChannelOptions::new("brief");
    options.reliability = MessageReliability::Lifetime(ms(100));
    let id = world.open(A, &options);
    world.run_for(ms(50));
    world.take_events(B);
    world.network.cut = vec![0];
    world.send(A, id, MessageKind::Text, "too late").unwrap();
    world.run_for(Duration::from_secs(5));
    world.network.cut.clear();
    world.send(A, id, MessageKind::Text, "in time").unwrap();
    world.run_until_quiet();
    assert_eq!(messages(&world.take_events(B)), [(0, MessageKind::Text, "in time".into())]);
}

#[test]
fn reaching_the_threshold_is_reported_once() {
    let mut world = World::new();
    let id = world.open(A, &ChannelOptions::new("bulk"));
    world.run_for(ms(50));
    world.take_events(A);
    let side = &mut world.hosts[A];
    side.channels.as_mut().unwrap().set_low_threshold(&side.endpoint, id, 50_000).unwrap();
    world.send(A, id, MessageKind::Binary, vec![0; 200_000]).unwrap();
    assert_eq!(world.channels(A).buffered_amount(&world.hosts[A].endpoint, id), 200_000);
    world.run_until_quiet();
    assert_eq!(world.take_events(A), [ChannelEvent::BufferedAmountLow { id }]);
    assert_eq!(world.channels(A).buffered_amount(&world.hosts[A].endpoint, id), 0);
}

#[test]
fn while_paused_the_peer_has_to_wait() {
    let mut world = World::with(|_| {}, |config| config.receive_buffer = 100_000);
    let id = world.open(A, &ChannelOptions::new("x"));
    world.run_for(ms(50));
    world.take_events(B);
    world.hosts[B].channels.as_mut().unwrap().pause_receiving(true);
    for _ in 0..50 {
        world.send(A, id, MessageKind::Binary, vec![0; 10_000]).unwrap();
    }
    world.run_for(ms(3000));
    assert_eq!(world.take_events(B), []);
    assert!(world.channels(A).buffered_amount(&world.hosts[A].endpoint, id) > 300_000);
    world.hosts[B].channels.as_mut().unwrap().pause_receiving(false);
    world.run_until_quiet();
    assert_eq!(messages(&world.take_events(B)).len(), 50);
}

#[test]
fn without_stream_resets_a_closed_channels_number_is_not_reused() {
    let mut world = World::with(|_| {}, |config| config.extensions.reconfiguration = false);
    let id = world.open(A, &ChannelOptions::new("x"));
    world.run_for(ms(50));
    world.close(A, id).unwrap();
    world.run_for(ms(50));
    assert_eq!(world.take_events(A), [opened(0), closed(0)]);
    assert_eq!(world.open(A, &ChannelOptions::new("y")), StreamId(2));
}
