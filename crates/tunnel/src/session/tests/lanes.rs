//! Several streams below one session.

use super::*;

#[test]
fn a_stalled_stream_blocks_only_its_own_channels() {
    let mut pair = Pair::new();
    (0..2).for_each(|_| pair.perform(0, Action::Open));
    let ids = pair.endpoints[0].open.clone();
    let lanes: Vec<_> = ids.iter().map(|id| pair.endpoints[0].session.lane_of(*id)).collect();
    assert_eq!(
        lanes,
        [Some(TunnelLane(1)), Some(TunnelLane(2))],
        "each has a stream while there are some"
    );
    for _ in 0..50 {
        (0..2).for_each(|index| pair.perform(0, Action::Write(index, vec![7; 30])));
        for who in [0, 1] {
            pair.perform(who, Action::Send);
            pair.perform(who, Action::Deliver(0, usize::MAX));
            pair.perform(who, Action::Deliver(2, usize::MAX));
        }
        while let ReadResult::Bytes(_) = pair.endpoints[1].read(ids[1], 100) {}
    }
    assert_eq!(
        pair.endpoints[1].read(ids[0], 100),
        ReadResult::Gone,
        "it is not even requested yet"
    );
    assert!(pair.endpoints[1].read[&ids[1]].len() > 1000, "{:?}", pair.endpoints[1].read);
}

#[test]
fn streams_are_wanted_while_all_are_in_use_and_are_used_again() {
    let mut pair = Pair::new();
    let client = &mut pair.endpoints[0].session;
    let ids: Vec<_> = (0..4).filter_map(|_| client.open(connect_purpose())).collect();
    let lanes: Vec<_> = ids.iter().map(|id| client.lane_of(*id)).collect();
    assert_eq!(lanes, [1, 2, 0, 1].map(|lane| Some(TunnelLane(lane))), "then they share them");
    let listen = ChannelPurpose::Listen { bind: String::new(), port: 0 };
    let mut other = TunnelSession::new(SessionSide::Client, limits(), NOW);
    assert!(!other.wants_lane(), "before it is up");
    let mut wire = BytesMut::new();
    encode(0, &TunnelFrame::Hello { version: VERSION, window: 9 }, &mut wire);
    other.handle_bytes(NOW, TunnelLane::FIRST, &wire);
    assert!(other.wants_lane() && other.add_lane(TunnelLane(1)) && !other.wants_lane());
    let early = other.open(connect_purpose()).expect("a channel");
    assert_eq!(
        other.lane_of(early),
        Some(TunnelLane::FIRST),
        "the other end may not accept the stream"
    );
    other.handle_bytes(NOW, TunnelLane(1), &wire);
    let listens = other.open(listen).expect("a channel");
    assert_eq!(other.lane_of(listens), Some(TunnelLane::FIRST), "it carries nothing");
    let id = other.open(connect_purpose()).expect("a channel");
    assert!(other.wants_lane() && other.add_lane(TunnelLane(2)) && !other.wants_lane());
    other.release(id);
    other.poll_transmit(TunnelLane(1), &mut BytesMut::new());
    let next = other.open(connect_purpose()).expect("a channel");
    assert_eq!(other.lane_of(next), Some(TunnelLane(1)));
    other.handle_bytes(NOW, TunnelLane(2), &wire);
    other.open(connect_purpose()).expect("a channel");
    assert!(!other.wants_lane(), "it may have no more");
}

/// The transport may still be delivering data of a channel that has just ended.
#[test]
fn the_stream_that_became_free_first_is_used_first() {
    let mut session = TunnelSession::new(SessionSide::Client, limits(), NOW);
    let mut hello = BytesMut::new();
    encode(0, &TunnelFrame::Hello { version: VERSION, window: 9 }, &mut hello);
    for lane in [TunnelLane::FIRST, TunnelLane(1), TunnelLane(2)] {
        assert!(lane == TunnelLane::FIRST || session.add_lane(lane));
        session.handle_bytes(NOW, lane, &hello);
    }
    let open = |session: &mut TunnelSession| {
        let id = session.open(connect_purpose()).expect("a channel");
        (id, session.lane_of(id).expect("a stream"))
    };
    let end = |session: &mut TunnelSession, (id, lane)| {
        session.release(id);
        session.poll_transmit(lane, &mut BytesMut::new());
        assert_eq!(session.lane_of(id), None);
    };
    let both = [open(&mut session), open(&mut session)];
    assert_eq!(both.map(|(_, lane)| lane), [TunnelLane(1), TunnelLane(2)]);
    end(&mut session, both[1]);
    end(&mut session, both[0]);
    for lane in [2, 1, 2] {
        let next = open(&mut session);
        assert_eq!(next.1, TunnelLane(lane));
        end(&mut session, next);
    }
}

#[test]
fn a_protocol_error_on_a_further_stream_ends_the_session() {
    let hello = |window| TunnelFrame::Hello { version: VERSION, window };
    let broken: [(&str, Vec<(u32, TunnelFrame)>); 5] = [
        ("a frame before HELLO", vec![(7, TunnelFrame::Open(connect_purpose()))]),
        ("a different HELLO", vec![(0, hello(101))]),
        ("on a further stream", vec![(0, hello(100)), (0, TunnelFrame::Ping(1))]),
        (
            "another stream than that of its channel",
            vec![
                (0, hello(100)),
                (9, TunnelFrame::Open(connect_purpose())),
                (5, TunnelFrame::Finish),
            ],
        ),
        ("an invalid number", vec![(0, hello(100)), (5, TunnelFrame::Open(connect_purpose()))]),
    ];
    for (expected, frames) in broken {
        let mut peer = ScriptedPeer::new(SessionSide::Server);
        peer.sends(5, &TunnelFrame::Open(connect_purpose()));
        assert!(peer.session.add_lane(TunnelLane(1)));
        for (channel, frame) in frames {
            peer.sends_on(TunnelLane(1), channel, &frame);
        }
        let Some(SessionEnd::Violation(ProtocolViolation(reason))) = peer.session.end() else {
            panic!("{expected}")
        };
        assert!(reason.contains(expected), "{reason}, not {expected}");
    }
}

/// A stream may be far ahead of another one with the RESETs of channels that the peer opened before.
#[test]
fn channels_that_are_to_be_refused_are_limited_on_each_stream() {
    let mut peer = ScriptedPeer::new(SessionSide::Server);
    let hello = TunnelFrame::Hello { version: VERSION, window: 100 };
    assert!(peer.session.add_lane(TunnelLane(1)));
    peer.sends_on(TunnelLane(1), 0, &hello);
    let mut ids = (1..).step_by(2);
    let mut opens = |peer: &mut ScriptedPeer, lane, count| {
        ids.by_ref()
            .take(count)
            .for_each(|id| peer.sends_on(lane, id, &TunnelFrame::Open(connect_purpose())));
    };
    opens(&mut peer, TunnelLane::FIRST, limits().channels);
    opens(&mut peer, TunnelLane::FIRST, limits().channels);
    opens(&mut peer, TunnelLane(1), limits().channels);
    assert_eq!(peer.session.end(), None);
    opens(&mut peer, TunnelLane(1), 1);
    assert!(
        matches!(peer.session.end(), Some(SessionEnd::Violation(_))),
        "{:?}",
        peer.session.end()
    );
}

/// Returns after how many turns a keystroke arrives that is sent during a bulk copy, if in these turns the
/// packets of the copy's stream are lost. A lost packet arrives three turns later, and delays those after it on
/// the same stream. Without further streams both channels are on the first one.
fn turns_until_a_keystroke(has_streams: bool, lost: &[bool]) -> usize {
    let mut pair = Pair::new();
    let purpose = |listens| match listens {
        // Such channels stay on the first stream.
        true => ChannelPurpose::Listen { bind: String::new(), port: 0 },
        false => connect_purpose(),
    };
    let [client, server] = &mut pair.endpoints;
    let ids = [0, 1].map(|_| client.session.open(purpose(!has_streams)).expect("a channel"));
    let lane = client.session.lane_of(ids[0]).expect("a stream");
    client.send();
    for lane in LANES {
        let wire: Vec<u8> = client.wires.entry(lane).or_default().drain(..).collect();
        server.session.handle_bytes(NOW, lane, &wire);
    }
    while let Some(event) = server.session.poll_event() {
        if let SessionEvent::Requested(id, _) = event {
            server.session.accept(id, 0);
        }
    }
    client.write(ids[0], &[7; 60]);
    let mut blocked_until = 0;
    for turn in 0..1_000 {
        client.write(ids[0], &[7; 10]);
        if turn == 5 {
            client.write(ids[1], b"k");
        }
        client.send();
        if lost.get(turn).is_some_and(|lost| *lost) {
            blocked_until = blocked_until.max(turn + 3);
        }
        for one in LANES.into_iter().filter(|one| *one != lane || turn >= blocked_until) {
            deliver(client, server, one, usize::MAX);
        }
        while let ReadResult::Bytes(_) = server.read(ids[0], 100) {}
        if server.read(ids[1], 1) == ReadResult::Bytes(1) {
            return turn;
        }
        server.send();
        for lane in LANES {
            deliver(server, client, lane, usize::MAX);
        }
    }
    panic!("it never arrives")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_loss_in_a_bulk_copy_does_not_delay_keystrokes(lost in prop::collection::vec(any::<bool>(), 0..30)) {
        prop_assert_eq!(turns_until_a_keystroke(true, &lost), 5);
    }
}

#[test]
fn a_loss_delays_everything_on_the_same_stream() {
    let lost = [false, false, false, false, false, true];
    assert_eq!(turns_until_a_keystroke(false, &[]), 5);
    assert_eq!(turns_until_a_keystroke(false, &lost), 8);
}
