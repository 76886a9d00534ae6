//! Strategies for random multipath configurations.

use eyas_sctp::config::{
    BufferSplitting, BurstLimit, ChunkRescheduling, CucVersion, FlightCap, MultipathConfig,
    NrSackPolicy, PathOrder, RtxPolicy, SackPath, StreamMapping,
};
use eyas_sctp::identifier::StreamId;
use proptest::prelude::*;
use proptest::sample::select;

fn mapping() -> impl Strategy<Value = StreamMapping> {
    prop_oneof![
        Just(StreamMapping::RoundRobin),
        Just(StreamMapping::Modulo),
        Just(StreamMapping::Automatic),
        prop::collection::vec(0..5_usize, 0..5)
            .prop_map(|places| StreamMapping::Table((0..).map(StreamId).zip(places).collect())),
    ]
}

fn splitting() -> impl Strategy<Value = BufferSplitting> {
    select(vec![BufferSplitting::None, BufferSplitting::Queued, BufferSplitting::Outstanding])
}

fn sending() -> impl Strategy<Value = MultipathConfig> {
    let rtx = select(vec![
        RtxPolicy::Same,
        RtxPolicy::Asap,
        RtxPolicy::Cwnd,
        RtxPolicy::Ssthresh,
        RtxPolicy::LossRate,
        RtxPolicy::EarliestArrival,
    ]);
    let order = select(vec![
        PathOrder::InOrder,
        PathOrder::OldestTransmission,
        PathOrder::LowestRtt,
        PathOrder::LargestWindow,
        PathOrder::LargestSlowStartThreshold,
        PathOrder::LargestSpace,
    ]);
    let burst = select(vec![
        BurstLimit::Acknowledged,
        BurstLimit::PerEvent,
        BurstLimit::Total,
        BurstLimit::None,
    ]);
    let rescheduling = select(vec![ChunkRescheduling::None, ChunkRescheduling::Both]);
    let cuc = select(vec![CucVersion::None, CucVersion::V1, CucVersion::V2]);
    let splits = (splitting(), splitting());
    (mapping(), order, splits, (rtx, burst), (cuc, rescheduling), any::<[bool; 2]>()).prop_map(
        |(mapping, order, splits, (rtx, burst), (cuc, rescheduling), [split, capped])| {
            let mut multipath = MultipathConfig::default();
            multipath.mapping = mapping;
            multipath.path_order = order;
            (multipath.sender_splitting, multipath.receiver_splitting) = splits;
            (multipath.rtx_policy, multipath.burst) = (rtx, burst);
            (multipath.cuc, multipath.rescheduling) = (cuc, rescheduling);
            multipath.split_fast_retransmit = split;
            multipath.flight_cap = capped.then(FlightCap::default);
            multipath
        },
    )
}

/// The configuration of one side: one path at a time, or any multipath configuration.
pub(crate) fn multipath() -> impl Strategy<Value = Option<MultipathConfig>> {
    let sack_path = select(vec![
        SackPath::LastArrival,
        SackPath::InTurn,
        SackPath::LowestRtt,
        SackPath::Budgeted,
        SackPath::First,
    ]);
    let several = (sending(), sack_path, any::<[bool; 2]>()).prop_map(
        |(mut multipath, sack_path, [delayed_ack, at_arrival])| {
            multipath.sack_path = sack_path;
            multipath.delayed_ack = delayed_ack;
            let nr_sack = [NrSackPolicy::AtDelivery, NrSackPolicy::AtArrival];
            multipath.nr_sack = nr_sack[usize::from(at_arrival)];
            Some(multipath)
        },
    );
    prop_oneof![1 => Just(None), 1 => Just(Some(MultipathConfig::default())), 3 => several]
}
