//! Limits for the local user and for the peer.

use crate::data_channels::world::{A, B, World, closing, messages, ms, opened};
use eyas_sctp::data_channel::{ChannelError, ChannelOptions, MessageKind};
use eyas_sctp::identifier::StreamId;

//= rfc8831 §6.6
//# messages are no larger than the peer accepts
#[test]
fn exceeded_limits_are_reported_to_the_user() {
    let mut world = World::with(
        |settings| {
            settings.max_channels = 2;
            settings.peer_max_message_size = 1000;
        },
        |config| config.outbound_streams = 10,
    );
    let mut options = ChannelOptions::new(&"l".repeat(65_536));
    assert_eq!(world.try_open(A, &options), Err(ChannelError::NameTooLong));
    options.label = String::new();
    options.negotiated = Some(StreamId(10));
    assert_eq!(world.try_open(A, &options), Err(ChannelError::BadStream));
    let id = world.open(A, &ChannelOptions::new("a"));
    world.open(A, &ChannelOptions::new("b"));
    let third = world.try_open(A, &ChannelOptions::new("c"));
    assert_eq!(third, Err(ChannelError::TooManyChannels));
    let large = world.send(A, id, MessageKind::Binary, vec![0; 1001]);
    assert_eq!(large, Err(ChannelError::MessageTooLarge { limit: 1000 }));
    world.send(A, id, MessageKind::Binary, vec![0; 1000]).unwrap();
    let nowhere = world.send(A, StreamId(99), MessageKind::Text, "?");
    assert_eq!(nowhere, Err(ChannelError::NoChannel));
}

#[test]
fn without_a_peer_limit_any_message_that_fits_the_buffer_is_sent() {
    let mut world = World::with(
        |settings| {
            settings.max_message_size = 3 << 20;
            settings.peer_max_message_size = 0;
        },
        |_| {},
    );
    let id = world.open(A, &ChannelOptions::new("large"));
    world.send(A, id, MessageKind::Binary, vec![1; 3 << 20]).unwrap();
    world.run_until_quiet();
    let events = world.take_events(B);
    assert_eq!(messages(&events)[0].2.len(), 3 << 20);
}

#[test]
fn a_message_larger_than_the_buffer_is_reassembled() {
    let mut world = World::with(|_| {}, |config| config.receive_buffer = 64 << 10);
    let id = world.open(A, &ChannelOptions::new("x"));
    let data: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    world.send(A, id, MessageKind::Binary, data.clone()).unwrap();
    world.send(A, id, MessageKind::Text, "after").unwrap();
    world.run_until_quiet();
    let events = world.take_events(B);
    assert_eq!(
        messages(&events),
        [(0, MessageKind::Binary, data.into()), (0, MessageKind::Text, "after".into())]
    );
}

//= rfc8831 §6.6
//# a channel with larger messages than we accept is closed
#[test]
fn a_channel_with_a_message_that_is_too_large_is_closed() {
    for receive_buffer in [64 << 10, 1 << 20] {
        let mut world = World::with(
            |settings| {
                settings.max_message_size = 100_000;
                settings.peer_max_message_size = 0;
            },
            |config| config.receive_buffer = receive_buffer,
        );
        let id = world.open(A, &ChannelOptions::new("x"));
        world.send(A, id, MessageKind::Binary, vec![0; 100_000]).unwrap();
        world.send(A, id, MessageKind::Binary, vec![0; 100_001]).unwrap();
        world.run_until_quiet();
        let events = world.take_events(B);
        assert_eq!(messages(&events).len(), 1);
        assert!(events.contains(&closing(0)));
        assert_eq!(world.channels(B).counters().oversized_messages, 1);
        assert_eq!(world.channels(B).iter().count(), 0, "it is closed");
        assert!(world.take_events(A).contains(&closing(0)));
    }
}

#[test]
fn channels_of_the_peer_beyond_the_limit_are_refused() {
    let mut world = World::new();
    world.hosts[B].channels = {
        let side = &world.hosts[B];
        let mut settings = eyas_sctp::data_channel::ChannelSettings::new(
            eyas_sctp::data_channel::DtlsRole::Server,
        );
        (settings.max_channels, settings.max_names) = (2, 10);
        let channels =
            eyas_sctp::data_channel::DataChannels::new(&side.endpoint, side.association, settings);
        Some(channels)
    };
    for label in ["long name", "too long with that", "short"] {
        world.open(A, &ChannelOptions::new(label));
    }
    world.run_until_quiet();
    assert_eq!(world.channels(B).counters().refused_channels, 2);
    assert_eq!(world.channels(B).iter().count(), 1);
    let events = world.take_events(A);
    for id in [2, 4] {
        assert!(events.contains(&closing(id)), "{events:?}");
    }
    assert!(events.contains(&opened(0)));
    world.run_for(ms(10));
    assert_eq!(world.channels(A).iter().count(), 1);
}
