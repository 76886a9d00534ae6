//! Floods of every kind: there are few replies, and the association survives.

use super::*;
use eyas_sctp::wire::parameter::AddStreams;
use eyas_sctp::wire::{
    Causes, ErrorChunk, ForwardTsnChunk, HeartbeatChunk, IForwardTsnChunk, Parameter,
    ReconfigChunk, SackBuilder, SkippedMid, SkippedSsn,
};

//= rfc9260 §8.3
//# HEARTBEATs are answered unchanged from COOKIE-ECHOED on, up to 1,024 bytes
#[test]
fn heartbeats_are_echoed_once_each_and_bounded() {
    let mut peer = HostilePeer::new(|_| {});
    let heartbeat = Chunk::Heartbeat(HeartbeatChunk { info: Bytes::from_static(&[1; 40]) });
    peer.send(&vec![heartbeat; 1000]);
    let withheld = peer.counters().answers_withheld;
    assert!(withheld > 900, "{withheld}");
    // The reply is no larger than the request: no amplification.
    let large = Chunk::Heartbeat(HeartbeatChunk { info: vec![1; 9000].into() });
    peer.answers();
    peer.send(&[large]);
    assert_eq!(peer.answers(), Vec::<String>::new());
    peer.check_data();
}

#[test]
fn responses_to_unsent_heartbeats_are_ignored() {
    let mut peer = HostilePeer::new(|_| {});
    for length in [0_usize, 1, 8, 40, 200] {
        let info = Bytes::from(vec![9; length]);
        peer.send(&[Chunk::HeartbeatAck(HeartbeatChunk { info })]);
    }
    assert_eq!(peer.counters().unexpected_chunks, 5);
    assert!(peer.is_up());
}

//= rfc9260 §3.3.10
//# ERROR is reported and ends nothing; sixteen causes per chunk
#[test]
fn endless_errors_raise_few_events() {
    let mut peer = HostilePeer::new(|_| {});
    // A hundred causes in each.
    let causes = Causes::from_bytes([0, 99, 0, 4].repeat(100).into());
    for _ in 0..1000 {
        let error = Chunk::Error(ErrorChunk { causes: causes.clone() });
        peer.send(&[error]);
    }
    let event_count = peer.world.hosts[B].events().len();
    assert!(event_count < 20_000, "{event_count} events");
    assert_eq!(peer.counters().errors_in, 1000);
    peer.check_data();
}

//= hostile sctp-floods
//# endless RE-CONFIGs
//= bound: `MAX_ANSWERS`, `max_inbound_streams`
#[test]
fn endless_reconfigurations_are_refused() {
    let mut peer = HostilePeer::new(|config| config.max_inbound_streams = 2000);
    let first = peer.next.0;
    let mut answers = 0;
    for n in 0..1000_u32 {
        let request = eyas_sctp::serial::ReconfigurationNumber(first.wrapping_add(n));
        let add = Parameter::AddOutgoingStreams(AddStreams { request, count: 1000 });
        let parameters = [add].into_iter().collect();
        peer.send(&[Chunk::Reconfig(ReconfigChunk { parameters })]);
        answers += peer.answers().len();
    }
    assert!(answers <= 1001, "one answer each at most");
    assert_eq!(peer.counters().reconfigurations_in, 1000);
    let b = peer.world.hosts[B].only();
    assert!(peer.world.hosts[B].status(b).inbound_streams <= 2000);
    peer.check_data();
}

//= hostile sctp-lies
//# skips of data that never existed, over any distance
//= bound: no state for an unused stream
#[test]
fn forward_tsns_for_missing_messages_are_cheap() {
    let mut peer = HostilePeer::new(|_| {});
    for _ in 0..50 {
        let skipped: Vec<SkippedMid> = (0..2000)
            .map(|stream| SkippedMid { stream: StreamId(stream), unordered: false, mid: Mid(7) })
            .collect();
        let to = peer.next;
        peer.next = to.next();
        peer.send(&[Chunk::IForwardTsn(IForwardTsnChunk::new(to, &skipped))]);
    }
    assert!(peer.is_up());
    assert_eq!(peer.sack().cumulative_tsn, peer.next.previous());
    // Streams beyond the negotiated number are counted.
    assert_eq!(peer.counters().inconsistent_data, 50 * (2000 - 1024));
    peer.send(&[Chunk::ForwardTsn(ForwardTsnChunk::new(peer.next, &[]))]);
    assert_eq!(peer.aborted_with(), Some(13), "it is the other kind");
}

/// A peer may abandon as much as it likes (RFC 3758 §3.5): its association stays, even if the rest
/// of a message that it has begun never gets a TSN that could be skipped.
#[test]
fn hundreds_of_skips_of_any_distance_leave_the_association_up() {
    for distance in [1, 2, 100, 65_535, 1 << 20, (1 << 31) - 1] {
        for (interleaving, begins, gap) in (0..8).map(|bits| (bits & 1, bits & 2, bits & 4)) {
            // What comes beyond would contradict what is begun next.
            if begins != 0 && gap != 0 {
                continue;
            }
            let mut peer = HostilePeer::new(|config| {
                config.extensions.interleaving = interleaving != 0;
            });
            for count in 0..200 {
                if begins != 0 {
                    let begun = match interleaving {
                        0 => peer.data(0, count as u16, "b", "begun"),
                        _ => peer.i_data(0, (count, 0), "b", "begun"),
                    };
                    peer.send(&[begun]);
                }
                if gap != 0 {
                    let beyond = match interleaving {
                        0 => peer.data(distance + 1, 0, "ube", "beyond"),
                        _ => peer.i_data(distance + 1, (count, 0), "ube", "beyond"),
                    };
                    peer.send(&[beyond]);
                }
                let to = peer.next.plus(distance - 1);
                peer.next = to.next();
                let chunk = match interleaving {
                    0 => Chunk::ForwardTsn(ForwardTsnChunk::new(
                        to,
                        &[SkippedSsn { stream: StreamId(1), ssn: Ssn(count as u16) }],
                    )),
                    _ => Chunk::IForwardTsn(IForwardTsnChunk::new(
                        to,
                        &[SkippedMid { stream: StreamId(1), unordered: false, mid: Mid(count) }],
                    )),
                };
                peer.send(&[chunk]);
                peer.world.run_for(ms(20));
                let what = (distance, interleaving, begins, gap, count);
                assert!(peer.is_up(), "{what:?} {:?}", peer.aborted_with());
            }
        }
    }
}

//= rfc3758 §3.3.1, §3.3.2
//# without Forward-TSN-Supported, FORWARD TSN is unknown: ERROR, and nothing is skipped
/// RFC 3758 §3.3.1.
#[test]
fn an_unnegotiated_forward_tsn_is_reported_and_not_executed() {
    let mut peer = HostilePeer::new(|config| {
        config.extensions.partial_reliability = false;
        config.extensions.interleaving = false;
    });
    let skip = Chunk::ForwardTsn(ForwardTsnChunk::new(peer.next.plus(5), &[]));
    peer.send(&[skip]);
    assert_eq!(peer.answers(), ["ERROR"]);
    assert_eq!(peer.counters().unexpected_chunks, 1);
    let data = peer.data(0, 1, "be", "as if nothing had been");
    peer.send(&[data]);
    assert_eq!(peer.sack().cumulative_tsn, peer.next);
}

#[test]
fn an_unnegotiated_nr_sack_acknowledges_nothing() {
    let mut peer = HostilePeer::new(|_| {});
    let b = peer.world.hosts[B].only();
    peer.world.tap.wiretap = Some(crate::associations::world::Wiretap::default());
    peer.world.send(B, b, 0, "not yet");
    peer.world.drain();
    let cumulative_tsn = peer.world.tap.wiretap.as_ref().map(|wiretap| wiretap.tsn_of(B)).unwrap();
    for is_nr in [true, false] {
        let builder = SackBuilder { cumulative_tsn, a_rwnd: 9000, is_nr, ..Default::default() };
        peer.send(&[Chunk::Sack(builder.build())]);
        assert_eq!(peer.world.hosts[B].status(b).queued == 0, !is_nr);
    }
    assert_eq!(peer.counters().unexpected_chunks, 1);
}

//= rfc9260 §6.2
//# duplicates are reported at once, up to 64; one SACK per packet
#[test]
fn duplicates_are_answered_at_most_once_per_packet() {
    let mut peer = HostilePeer::new(|_| {});
    peer.check_data();
    peer.answers();
    let last = peer.next.previous();
    let mut data = peer.fragment(0, DataOrder::Mid { mid: Mid(0), fsn: 0 }, "ube", "x".into());
    data.tsn = last;
    for _ in 0..100 {
        peer.send(&vec![Chunk::Data(data.clone()); 100]);
    }
    assert_eq!(peer.counters().duplicate_data, 10_000);
    assert_eq!(peer.answers().len(), 100);
    assert!(peer.sack().duplicates().count() <= 64);
}
