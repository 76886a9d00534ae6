//! The end of a session, and the data that was sent before.

use super::*;

/// The data that the client sends on a channel, and whether the server ends it at once.
type Upload = (Vec<u8>, bool);

/// Delivers the data in transit on one stream, whether or not the session is over.
fn deliver_regardless(from: &mut Endpoint, to: &mut Endpoint, lane: TunnelLane, most: usize) {
    let wire = from.wires.entry(lane).or_default();
    let length = wire.len().min(most);
    let piece: Vec<u8> = wire.drain(..length).collect();
    to.session.handle_bytes(NOW, lane, &piece);
    to.events();
}

/// Runs one turn, in which this much of each stream arrives; the server reads, and ends the channels that it is
/// to end.
fn turn(pair: &mut Pair, uploads: &[Upload], most: [usize; 3]) {
    let [client, server] = &mut pair.endpoints;
    client.send();
    for (lane, most) in LANES.into_iter().zip(most) {
        deliver_regardless(client, server, lane, most);
    }
    for id in server.open.clone() {
        let place = client.open.iter().position(|one| *one == id);
        if place.is_some_and(|place| uploads[place].1) {
            server.session.finish(id);
        }
        server.read(id, 7);
    }
    server.send();
    for lane in LANES {
        deliver_regardless(server, client, lane, usize::MAX);
    }
    for id in client.open.clone() {
        client.read(id, 7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn channels_that_ended_before_the_goodbye_are_read_completely(
        uploads in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), any::<bool>()), 1..5),
        early in prop::collection::vec(prop::array::uniform3(0..60_usize), 0..8),
        late in prop::collection::vec(prop::array::uniform3(1..60_usize), 1..8),
    ) {
        let mut pair = Pair::new();
        for (place, (bytes, _)) in uploads.iter().enumerate() {
            pair.perform(0, Action::Open);
            pair.perform(0, Action::Write(place, bytes.clone()));
            pair.perform(0, Action::Finish(place));
        }
        for most in early {
            turn(&mut pair, &uploads, most);
        }
        // The client stops: the channels that it has read completely end cleanly, and the others are reset.
        let client = &mut pair.endpoints[0];
        let well: Vec<u32> =
            client.open.iter().copied().filter(|id| client.ended.get(id) == Some(&ReadResult::End)).collect();
        client.open.iter().for_each(|id| client.session.release(*id));
        let mut turns = late.iter().cycle();
        for number in 0.. {
            if pair.endpoints[0].session.is_drained() {
                break;
            }
            prop_assert!(number < 1_000, "it waits forever");
            turn(&mut pair, &uploads, *turns.next().expect("a cycle"));
        }
        let [client, server] = &mut pair.endpoints;
        client.session.goodbye("enough");
        client.send();
        // It overtakes the data on the other streams.
        deliver_regardless(client, server, TunnelLane::FIRST, usize::MAX);
        prop_assert_eq!(server.session.end(), Some(&SessionEnd::Goodbye("enough".to_owned())));
        for id in well {
            let none = Vec::new();
            let written = client.written.get(&id).unwrap_or(&none);
            prop_assert_eq!(server.read.get(&id).unwrap_or(&none), written, "channel {}", id);
        }
    }
}

#[test]
fn an_end_is_confirmed_once_it_was_read_and_not_before() {
    let mut peer = ScriptedPeer::new(SessionSide::Server);
    peer.sends(1, &TunnelFrame::Open(connect_purpose()));
    peer.session.accept(1, 0);
    peer.sends(1, &TunnelFrame::Data(Bytes::from_static(b"all")));
    peer.sends(1, &TunnelFrame::Finish);
    let delivered = (1, TunnelFrame::Delivered);
    assert!(!peer.receives().contains(&delivered));
    assert_eq!(peer.session.read(1, &mut [0; 9]), ReadResult::Bytes(3));
    assert!(!peer.receives().contains(&delivered), "it may be on its way to a program");
    assert_eq!(peer.session.read(1, &mut [0; 9]), ReadResult::End);
    assert_eq!(peer.session.read(1, &mut [0; 9]), ReadResult::End);
    assert_eq!(peer.receives(), [delivered], "once");
    peer.session.finish(1);
    peer.session.release(1);
    assert_eq!(peer.receives(), [(1, TunnelFrame::Finish)]);
    assert!(!peer.session.is_drained());
    peer.sends(1, &TunnelFrame::Delivered);
    assert!(peer.session.is_drained());
    assert_eq!(peer.session.channels(), 0);
}

#[test]
fn closing_without_reading_to_the_end_resets() {
    let mut peer = ScriptedPeer::new(SessionSide::Server);
    peer.sends(1, &TunnelFrame::Open(connect_purpose()));
    peer.session.accept(1, 0);
    peer.sends(1, &TunnelFrame::Data(Bytes::from_static(b"all")));
    peer.sends(1, &TunnelFrame::Finish);
    peer.session.finish(1);
    peer.session.release(1);
    assert_eq!(peer.receives().last(), Some(&(1, TunnelFrame::Reset)));
    assert!(peer.session.is_drained(), "a reset is not waited for");
}

#[test]
fn a_delivery_report_for_an_open_channel_is_a_protocol_error() {
    for finishes in [false, true] {
        let mut peer = ScriptedPeer::new(SessionSide::Server);
        peer.sends(1, &TunnelFrame::Open(connect_purpose()));
        peer.session.accept(1, 0);
        if finishes {
            peer.session.finish(1);
            peer.receives();
            peer.sends(1, &TunnelFrame::Delivered);
            assert_eq!(peer.session.end(), None);
        }
        peer.sends(1, &TunnelFrame::Delivered);
        assert!(matches!(peer.session.end(), Some(SessionEnd::Violation(_))), "{finishes}");
    }
}
