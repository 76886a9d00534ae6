//! The end of a session, and what was said before.

use super::*;

/// What the client says on a channel, whether the server has ended it at once, and how much of each stream
/// is under way in each turn.
type Upload = (Vec<u8>, bool);

/// Hands over what there is of one stream, whether the session goes on or not.
fn pass(from: &mut Party, to: &mut Party, lane: Lane, most: usize) {
    let wire = from.wires.entry(lane).or_default();
    let length = wire.len().min(most);
    let piece: Vec<u8> = wire.drain(..length).collect();
    to.session.handle_bytes(NOW, lane, &piece);
    to.events();
}

/// One turn: the server ends what it is to end, and reads; so much of each stream arrives.
fn turn(pair: &mut Pair, uploads: &[Upload], most: [usize; 3]) {
    let [client, server] = &mut pair.parties;
    client.send();
    for (lane, most) in LANES.into_iter().zip(most) {
        pass(client, server, lane, most);
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
        pass(server, client, lane, usize::MAX);
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
            pair.act(0, Act::Open);
            pair.act(0, Act::Write(place, bytes.clone()));
            pair.act(0, Act::Finish(place));
        }
        for most in early {
            turn(&mut pair, &uploads, most);
        }
        // The client stops: what it has read to the end ends well, and the rest is cut.
        let client = &mut pair.parties[0];
        let well: Vec<u32> =
            client.open.iter().copied().filter(|id| client.ended.get(id) == Some(&Read::End)).collect();
        client.open.iter().for_each(|id| client.session.release(*id));
        let mut turns = late.iter().cycle();
        for number in 0.. {
            if pair.parties[0].session.is_drained() {
                break;
            }
            prop_assert!(number < 1_000, "it waits for ever");
            turn(&mut pair, &uploads, *turns.next().expect("a circle"));
        }
        let [client, server] = &mut pair.parties;
        client.session.goodbye("enough");
        client.send();
        // It overtakes whatever is on the other streams.
        pass(client, server, Lane::FIRST, usize::MAX);
        prop_assert_eq!(server.session.end(), Some(&End::Told("enough".to_owned())));
        for id in well {
            let none = Vec::new();
            let said = client.wrote.get(&id).unwrap_or(&none);
            prop_assert_eq!(server.read.get(&id).unwrap_or(&none), said, "channel {}", id);
        }
    }
}

#[test]
fn an_end_is_delivered_once_it_was_read_and_not_before() {
    let mut peer = Hostile::new(Side::Server);
    peer.says(1, &Frame::Open(somewhere()));
    peer.session.accept(1, 0);
    peer.says(1, &Frame::Data(Bytes::from_static(b"all")));
    peer.says(1, &Frame::Finish);
    let delivered = (1, Frame::Delivered);
    assert!(!peer.hears().contains(&delivered));
    assert_eq!(peer.session.read(1, &mut [0; 9]), Read::Bytes(3));
    assert!(!peer.hears().contains(&delivered), "it may be on its way to a program");
    assert_eq!(peer.session.read(1, &mut [0; 9]), Read::End);
    assert_eq!(peer.session.read(1, &mut [0; 9]), Read::End);
    assert_eq!(peer.hears(), [delivered], "once");
    peer.session.finish(1);
    peer.session.release(1);
    assert_eq!(peer.hears(), [(1, Frame::Finish)]);
    assert!(!peer.session.is_drained());
    peer.says(1, &Frame::Delivered);
    assert!(peer.session.is_drained());
    assert_eq!(peer.session.channels(), 0);
}

#[test]
fn closing_without_reading_to_the_end_resets() {
    let mut peer = Hostile::new(Side::Server);
    peer.says(1, &Frame::Open(somewhere()));
    peer.session.accept(1, 0);
    peer.says(1, &Frame::Data(Bytes::from_static(b"all")));
    peer.says(1, &Frame::Finish);
    peer.session.finish(1);
    peer.session.release(1);
    assert_eq!(peer.hears().last(), Some(&(1, Frame::Reset)));
    assert!(peer.session.is_drained(), "a reset waits for nobody");
}

#[test]
fn a_delivery_report_for_an_open_channel_is_a_protocol_error() {
    for finishes in [false, true] {
        let mut peer = Hostile::new(Side::Server);
        peer.says(1, &Frame::Open(somewhere()));
        peer.session.accept(1, 0);
        if finishes {
            peer.session.finish(1);
            peer.hears();
            peer.says(1, &Frame::Delivered);
            assert_eq!(peer.session.end(), None);
        }
        peer.says(1, &Frame::Delivered);
        assert!(matches!(peer.session.end(), Some(End::Broken(_))), "{finishes}");
    }
}
