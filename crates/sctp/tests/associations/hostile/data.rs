//! Data that contradicts itself, or for which there is no room (RFC 9260 §6.2, §6.9).

use super::*;

/// The cause "protocol violation".
const VIOLATION: Option<u16> = Some(13);

//= hostile sctp-lies
//# overlapping fragments
//= bound: ABORT
#[test]
fn contradictory_fragments_end_the_association() {
    let cases: [fn(&HostilePeer) -> Vec<Chunk>; 4] = [
        |peer| vec![peer.data(0, 0, "b", "a"), peer.data(1, 1, "b", "b")],
        |peer| vec![peer.data(0, 0, "b", "a"), peer.data(1, 7, "e", "b")],
        |peer| vec![peer.data(0, 0, "e", "a")],
        |peer| vec![peer.data(2, 0, "", "c"), peer.data(1, 0, "e", "b")],
    ];
    for case in cases {
        let mut peer = HostilePeer::plain();
        let chunks = case(&peer);
        peer.send(&chunks);
        assert_eq!(peer.aborted_with(), VIOLATION);
        assert_eq!(peer.answers(), ["ABORT"]);
        assert_eq!(peer.counters().inconsistent_data, 1);
    }
}

#[test]
fn overlapping_fragments_of_i_data_end_the_association() {
    let cases: [fn(&HostilePeer) -> Vec<Chunk>; 4] = [
        |peer| vec![peer.i_data(0, (0, 0), "b", "a"), peer.i_data(1, (0, 0), "b", "b")],
        |peer| vec![peer.i_data(1, (0, 3), "", "a"), peer.i_data(2, (0, 3), "", "b")],
        |peer| vec![peer.i_data(1, (0, 3), "e", "a"), peer.i_data(2, (0, 4), "", "b")],
        |peer| vec![peer.i_data(0, (0, 5), "", "a")],
    ];
    for case in cases {
        let mut peer = HostilePeer::new(|_| {});
        let chunks = case(&peer);
        peer.send(&chunks);
        assert_eq!(peer.aborted_with(), VIOLATION);
        assert_eq!(peer.counters().inconsistent_data, 1);
    }
}

//= rfc8260 §2.1, §2.2.3
//# I-DATA without user data, or the kind of DATA that was not negotiated: ABORT
//= rfc9260 §6.2
//# DATA without user data: ABORT, No User Data
#[test]
fn empty_data_and_the_wrong_kind_end_the_association() {
    let mut peer = HostilePeer::new(|_| {});
    peer.send(&[peer.i_data(0, (0, 0), "be", "")]);
    assert_eq!(peer.aborted_with(), Some(9));
    let mut peer = HostilePeer::new(|_| {});
    peer.send(&[peer.data(0, 0, "be", "x")]);
    assert_eq!(peer.aborted_with(), VIOLATION);
    let mut peer = HostilePeer::plain();
    peer.send(&[peer.i_data(0, (0, 0), "be", "x")]);
    assert_eq!(peer.aborted_with(), VIOLATION);
}

//= rfc9260 §6.2
//# data beyond a closed window is dropped; data that fills a gap is accepted within bounds
#[test]
fn the_window_is_not_overrun() {
    let mut peer = HostilePeer::new(|config| config.receive_buffer = 20_000);
    peer.world.hosts[B].reads = false;
    for n in 0..1000 {
        peer.send(&[peer.i_data(n, (n, 0), "ube", vec![7; 1000])]);
    }
    assert!(peer.is_up());
    assert_eq!(peer.counters().data_over_window, 980);
    let sack = peer.sack();
    assert_eq!((sack.a_rwnd, sack.cumulative_tsn), (0, peer.next.plus(19)));
    let now = peer.world.now;
    peer.world.hosts[B].read(now);
    assert_eq!(peer.world.hosts[B].received_bytes(), 20_000);
}

#[test]
fn tiny_fragments_fill_the_window_by_their_memory() {
    for interleaving in [false, true] {
        let mut peer = HostilePeer::new(|config| {
            config.receive_buffer = 100_000;
            config.extensions.interleaving = interleaving;
        });
        let per_packet = 50;
        for packet in 0..2000 {
            let chunks: Vec<Chunk> = (0..per_packet)
                .map(|n| 1 + packet * per_packet + n)
                .map(|ahead| match interleaving {
                    true => peer.i_data(ahead, (0, ahead), "", "x"),
                    false => peer.data(ahead, 0, "", "x"),
                })
                .collect();
            peer.send(&chunks);
        }
        assert!(peer.is_up());
        let taken = 100_000 - peer.counters().data_over_window;
        assert!(taken < 2000, "{taken} fragments of one byte are held");
        assert_eq!(peer.sack().a_rwnd, 0);
    }
}

//= rfc9260 §6.5
//# DATA for a missing stream: SACK and ERROR
#[test]
fn missing_streams_are_refused_individually() {
    let mut peer = HostilePeer::new(|config| config.max_inbound_streams = 10);
    for n in 0..100 {
        let mut data = peer.fragment(n, DataOrder::Mid { mid: Mid(0), fsn: 0 }, "be", "x".into());
        data.stream = StreamId(10 + n as u16);
        peer.send(&[Chunk::Data(data)]);
    }
    assert_eq!(peer.sack().cumulative_tsn, peer.next.plus(99));
    assert!(peer.is_up());
    assert_eq!(peer.counters().inconsistent_data, 100);
    assert!(peer.answers().iter().any(|answer| answer.contains("ERROR")));
}

//= hostile sctp-lies
//# TSNs far ahead
//= bound: `MAX_TSNS_AHEAD`
#[test]
fn data_far_ahead_is_dropped() {
    let mut peer = HostilePeer::new(|_| {});
    for ahead in [70_000, 1 << 20, 1 << 30] {
        peer.send(&[peer.i_data(ahead, (0, 0), "ube", "x")]);
    }
    assert_eq!(peer.counters().data_over_window, 3);
    peer.check_data();
}
