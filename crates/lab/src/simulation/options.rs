//! What a plan says of an association, as `eyas-sctp` names it.

use eyas_sctp::config::{
    AssociationConfig, BufferSplitting, BurstLimit, ChunkRescheduling, Cuc, FlightCap,
    LossDetection, Multipath, NrSackPolicy, PathOrder, Profile, ReceiveOrder, RtxPolicy, SackPath,
    SchedulerKind, StreamMapping, StreamPreference,
};
use eyas_sctp::identifier::StreamId;

use crate::situation::{
    AssociationSetup, BurstName, CucName, LossDetectionName, Mapping, NrSackPolicyName,
    PathOrderName, ProfileName, ReceiveOrderName, ReschedulingName, RtxPolicyName, SackPathName,
    SchedulerName, SplittingName,
};

/// The configuration of an association over these paths, which are numbered in this order.
pub(crate) fn config(setup: &AssociationSetup, streams: u16, paths: &[&str]) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.outbound_streams = streams;
    config.multipath = Some(Multipath::default());
    if setup.profile == ProfileName::Pfldnet2010 {
        Profile::Pfldnet2010.apply(&mut config);
    }
    if let Some(buffer) = setup.buffer {
        config.send_buffer = buffer.0;
        config.receive_buffer = buffer.0;
    }
    if let Some(offered) = setup.nr_sack {
        config.extensions.nr_sack = offered;
    }
    if let Some(offered) = setup.interleaving {
        config.extensions.interleaving = offered;
    }
    if let Some(name) = setup.congestion_control {
        config.congestion_control = name.0;
    }
    if let Some(name) = setup.loss_detection {
        config.loss_detection = match name {
            LossDetectionName::Classic => LossDetection::Classic,
            LossDetectionName::Rack => LossDetection::Rack,
        };
    }
    if let Some(name) = setup.scheduler {
        config.scheduler = scheduler(name);
    }
    if let Some(name) = setup.receive_order {
        config.receive_order = receive_order(name, &setup.priorities);
    }
    if let Some(multipath) = config.multipath.as_mut() {
        multipath.preferences = preferences(setup);
        choose(multipath, setup, streams, paths);
    }
    if setup.multipath == Some(false) {
        config.multipath = None;
    }
    config
}

fn choose(multipath: &mut Multipath, setup: &AssociationSetup, streams: u16, paths: &[&str]) {
    let put = |splitting: &mut BufferSplitting, name: Option<SplittingName>| {
        if let Some(name) = name {
            *splitting = splitting_of(name);
        }
    };
    put(&mut multipath.sender_splitting, setup.sender_splitting);
    put(&mut multipath.receiver_splitting, setup.receiver_splitting);
    if let Some(mapping) = &setup.mapping {
        multipath.mapping = stream_mapping(mapping, streams, paths);
    }
    if let Some(name) = setup.rtx_policy {
        multipath.rtx_policy = rtx_policy(name);
    }
    if let Some(name) = setup.path_order {
        multipath.path_order = path_order(name);
    }
    if let Some(name) = setup.sack_path {
        multipath.sack_path = sack_path(name);
    }
    if let Some(name) = setup.cuc {
        multipath.cuc = match name {
            CucName::None => Cuc::None,
            CucName::V1 => Cuc::V1,
            CucName::V2 => Cuc::V2,
        };
    }
    if let Some(on) = setup.split_fast_retransmit {
        multipath.split_fast_retransmit = on;
    }
    if let Some(on) = setup.delayed_ack {
        multipath.delayed_ack = on;
    }
    if let Some(name) = setup.nr_sack_policy {
        multipath.nr_sack = match name {
            NrSackPolicyName::AtDelivery => NrSackPolicy::AtDelivery,
            NrSackPolicyName::AtArrival => NrSackPolicy::AtArrival,
        };
    }
    if let Some(percent) = setup.flight_cap {
        multipath.flight_cap = (percent > 0).then_some(FlightCap { percent });
    }
    if let Some(name) = setup.burst {
        multipath.burst = burst(name);
    }
    if let Some(name) = setup.rescheduling {
        multipath.rescheduling = rescheduling(name);
    }
}

/// What streams ask for, in the order of their numbers.
fn preferences(setup: &AssociationSetup) -> Vec<(StreamId, StreamPreference)> {
    let count = setup.priorities.len().max(setup.deadlines.len());
    let preference = |stream: usize| StreamPreference {
        priority: setup.priorities.get(stream).copied().unwrap_or(0),
        deadline: setup.deadlines.get(stream).map(|time| time.0).filter(|time| !time.is_zero()),
    };
    (0..count).map(|stream| (StreamId(stream as u16), preference(stream))).collect()
}

fn receive_order(name: ReceiveOrderName, priorities: &[u16]) -> ReceiveOrder {
    match name {
        ReceiveOrderName::Arrival => ReceiveOrder::Arrival,
        ReceiveOrderName::RoundRobin => ReceiveOrder::RoundRobin,
        ReceiveOrderName::Priority => {
            let values = (0..).map(StreamId).zip(priorities.iter().copied());
            ReceiveOrder::Priority(values.collect())
        }
    }
}

/// Paths are told by their place; a table shorter than the streams begins again at its front.
fn stream_mapping(mapping: &Mapping, streams: u16, paths: &[&str]) -> StreamMapping {
    match mapping {
        Mapping::RoundRobin => StreamMapping::RoundRobin,
        Mapping::Modulo => StreamMapping::Modulo,
        Mapping::Automatic => StreamMapping::Automatic,
        Mapping::Table(names) => {
            let place = |name: &String| paths.iter().position(|path| path == name);
            let rows = (0..streams).zip(names.iter().cycle());
            StreamMapping::Table(
                rows.filter_map(|(stream, name)| Some((StreamId(stream), place(name)?))).collect(),
            )
        }
    }
}

const fn scheduler(name: SchedulerName) -> SchedulerKind {
    match name {
        SchedulerName::Fcfs => SchedulerKind::Fcfs,
        SchedulerName::RoundRobin => SchedulerKind::RoundRobin,
        SchedulerName::RoundRobinPacket => SchedulerKind::RoundRobinPacket,
        SchedulerName::FairBandwidth => SchedulerKind::FairBandwidth,
    }
}

const fn splitting_of(name: SplittingName) -> BufferSplitting {
    match name {
        SplittingName::None => BufferSplitting::None,
        SplittingName::Queued => BufferSplitting::Queued,
        SplittingName::Outstanding => BufferSplitting::Outstanding,
    }
}

const fn rtx_policy(name: RtxPolicyName) -> RtxPolicy {
    match name {
        RtxPolicyName::Same => RtxPolicy::Same,
        RtxPolicyName::Asap => RtxPolicy::Asap,
        RtxPolicyName::Cwnd => RtxPolicy::Cwnd,
        RtxPolicyName::Ssthresh => RtxPolicy::Ssthresh,
        RtxPolicyName::LossRate => RtxPolicy::LossRate,
    }
}

const fn path_order(name: PathOrderName) -> PathOrder {
    match name {
        PathOrderName::EarliestArrival => PathOrder::EarliestArrival,
        PathOrderName::OldestTransmission => PathOrder::OldestTransmission,
        PathOrderName::LowestRtt => PathOrder::LowestRtt,
        PathOrderName::LargestWindow => PathOrder::LargestWindow,
        PathOrderName::LargestSlowStartThreshold => PathOrder::LargestSlowStartThreshold,
        PathOrderName::LargestSpace => PathOrder::LargestSpace,
        PathOrderName::InOrder => PathOrder::InOrder,
    }
}

const fn sack_path(name: SackPathName) -> SackPath {
    match name {
        SackPathName::LastArrival => SackPath::LastArrival,
        SackPathName::InTurn => SackPath::InTurn,
        SackPathName::LowestRtt => SackPath::LowestRtt,
        SackPathName::First => SackPath::First,
    }
}

const fn burst(name: BurstName) -> BurstLimit {
    match name {
        BurstName::Acknowledged => BurstLimit::Acknowledged,
        BurstName::PerEvent => BurstLimit::PerEvent,
        BurstName::Total => BurstLimit::Total,
        BurstName::None => BurstLimit::None,
    }
}

const fn rescheduling(name: ReschedulingName) -> ChunkRescheduling {
    match name {
        ReschedulingName::None => ChunkRescheduling::None,
        ReschedulingName::Sender => ChunkRescheduling::Sender,
        ReschedulingName::Receiver => ChunkRescheduling::Receiver,
        ReschedulingName::Both => ChunkRescheduling::Both,
    }
}
