//! More of everything than anybody needs: few answers, and the association goes on.

use super::*;
use eyas_sctp::wire::parameter::AddStreams;
use eyas_sctp::wire::{
    Causes, ErrorChunk, ForwardTsnChunk, HeartbeatChunk, IForwardTsnChunk, Parameter,
    ReconfigChunk, SackBuilder, SkippedMid,
};

#[test]
fn heartbeats_are_echoed_once_each_and_not_without_bound() {
    let mut liar = Liar::new(|_| {});
    let heartbeat = Chunk::Heartbeat(HeartbeatChunk { info: Bytes::from_static(&[1; 40]) });
    liar.says(&vec![heartbeat; 1000]);
    let withheld = liar.counters().answers_withheld;
    assert!(withheld > 900, "{withheld}");
    // Nothing larger comes back than what came: no amplifier.
    let large = Chunk::Heartbeat(HeartbeatChunk { info: vec![1; 9000].into() });
    liar.answers();
    liar.says(&[large]);
    assert_eq!(liar.answers(), Vec::<String>::new());
    liar.works();
}

#[test]
fn answers_to_unsent_heartbeats_are_ignored() {
    let mut liar = Liar::new(|_| {});
    for length in [0_usize, 1, 8, 40, 200] {
        let info = Bytes::from(vec![9; length]);
        liar.says(&[Chunk::HeartbeatAck(HeartbeatChunk { info })]);
    }
    assert_eq!(liar.counters().unexpected_chunks, 5);
    assert!(liar.is_up());
}

#[test]
fn endless_errors_raise_few_events() {
    let mut liar = Liar::new(|_| {});
    // A hundred causes in each.
    let causes = Causes::from_bytes([0, 99, 0, 4].repeat(100).into());
    for _ in 0..1000 {
        let error = Chunk::Error(ErrorChunk { causes: causes.clone() });
        liar.says(&[error]);
    }
    let told = liar.world.hosts[B].said().len();
    assert!(told < 20_000, "{told} events");
    assert_eq!(liar.counters().errors_in, 1000);
    liar.works();
}

#[test]
fn reconfigurations_without_end_are_refused() {
    let mut liar = Liar::new(|config| config.max_inbound_streams = 2000);
    let first = liar.next.0;
    let mut answers = 0;
    for n in 0..1000_u32 {
        let request = eyas_sctp::serial::ReconfigurationNumber(first.wrapping_add(n));
        let add = Parameter::AddOutgoingStreams(AddStreams { request, count: 1000 });
        let parameters = [add].into_iter().collect();
        liar.says(&[Chunk::Reconfig(ReconfigChunk { parameters })]);
        answers += liar.answers().len();
    }
    assert!(answers <= 1001, "one answer each at most");
    assert_eq!(liar.counters().reconfigurations_in, 1000);
    let b = liar.world.hosts[B].only();
    assert!(liar.world.hosts[B].status(b).inbound_streams <= 2000);
    liar.works();
}

#[test]
fn skips_of_missing_messages_are_cheap() {
    let mut liar = Liar::new(|_| {});
    for _ in 0..50 {
        let skipped: Vec<SkippedMid> = (0..2000)
            .map(|stream| SkippedMid { stream: StreamId(stream), unordered: false, mid: Mid(7) })
            .collect();
        let to = liar.next;
        liar.next = to.next();
        liar.says(&[Chunk::IForwardTsn(IForwardTsnChunk::new(to, &skipped))]);
    }
    assert!(liar.is_up());
    assert_eq!(liar.sack().cumulative_tsn, liar.next.previous());
    // Streams beyond those agreed on are counted.
    assert_eq!(liar.counters().inconsistent_data, 50 * (2000 - 1024));
    liar.says(&[Chunk::ForwardTsn(ForwardTsnChunk::new(liar.next, &[]))]);
    assert_eq!(liar.aborted_with(), Some(13), "it is the other kind");
}

/// RFC 3758 §3.3.1.
#[test]
fn an_unnegotiated_skip_is_reported_and_not_executed() {
    let mut liar = Liar::new(|config| {
        config.extensions.partial_reliability = false;
        config.extensions.interleaving = false;
    });
    let skip = Chunk::ForwardTsn(ForwardTsnChunk::new(liar.next.plus(5), &[]));
    liar.says(&[skip]);
    assert_eq!(liar.answers(), ["ERROR"]);
    assert_eq!(liar.counters().unexpected_chunks, 1);
    let data = liar.data(0, 1, "be", "as if nothing had been");
    liar.says(&[data]);
    assert_eq!(liar.sack().cumulative_tsn, liar.next);
}

#[test]
fn an_unnegotiated_nr_sack_acknowledges_nothing() {
    let mut liar = Liar::new(|_| {});
    let b = liar.world.hosts[B].only();
    liar.world.tap.wiretap = Some(crate::associations::world::Wiretap::default());
    liar.world.send(B, b, 0, "not yet");
    liar.world.drain();
    let cumulative_tsn = liar.world.tap.wiretap.as_ref().map(|wiretap| wiretap.tsn_of(B)).unwrap();
    for is_nr in [true, false] {
        let builder = SackBuilder { cumulative_tsn, a_rwnd: 9000, is_nr, ..Default::default() };
        liar.says(&[Chunk::Sack(builder.build())]);
        assert_eq!(liar.world.hosts[B].status(b).queued == 0, !is_nr);
    }
    assert_eq!(liar.counters().unexpected_chunks, 1);
}

#[test]
fn duplicates_are_answered_packet_by_packet_at_most() {
    let mut liar = Liar::new(|_| {});
    liar.works();
    liar.answers();
    let last = liar.next.previous();
    let mut data = liar.fragment(0, Order::Mid { mid: Mid(0), fsn: 0 }, "ube", "x".into());
    data.tsn = last;
    for _ in 0..100 {
        liar.says(&vec![Chunk::Data(data.clone()); 100]);
    }
    assert_eq!(liar.counters().duplicate_data, 10_000);
    assert_eq!(liar.answers().len(), 100);
    assert!(liar.sack().duplicates().count() <= 64);
}
