//! Over random paths, with random multipath configurations: every message arrives once and in order
//! (the world's user checks this), buffers stay within their bounds, and nothing stalls forever.

use std::time::Duration;

use eyas_netem::link::{LinkConfig, LossConfig, ReorderingMode};
use eyas_sctp::config::{
    AssociationConfig, BufferSplitting, BurstLimit, ChunkRescheduling, CongestionControlKind,
    CucVersion, FlightCap, LossDetection, MultipathConfig, MultipathProfile, NrSackPolicy,
    PathOrder, RttSampling, RtxPolicy, SackPath, SchedulerKind, StreamMapping,
};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::StreamId;
use proptest::prelude::*;

use crate::multipath::world::{User, World, link};
use crate::network::{A, B, ms};

/// How long the user sends.
const SENDING: Duration = Duration::from_secs(3);
/// By then everything must have arrived. A dead path may give back two chunks per minute (RTO.Max)
/// and stay active all the while, as an acknowledgement of data that was sent on several paths is
/// credited to the last one (RFC 9260 §8.2): a full buffer then takes two hours.
const TIME_LIMIT: Duration = Duration::from_hours(4);

fn a_link() -> impl Strategy<Value = LinkConfig> {
    (1_u64..=20, 1_u64..=100, 0_u64..50_000, 0_u64..20).prop_map(|(rate, delay, loss, jitter)| {
        LinkConfig {
            loss: LossConfig::Probability(loss as f64 / 1e6),
            jitter: ms(jitter),
            reordering: ReorderingMode::ByJitter,
            ..link(rate, delay)
        }
    })
}

fn mapping() -> impl Strategy<Value = StreamMapping> {
    prop_oneof![
        Just(StreamMapping::RoundRobin),
        Just(StreamMapping::Modulo),
        Just(StreamMapping::Automatic),
        proptest::collection::vec(0_usize..5, 0..4)
            .prop_map(|places| { StreamMapping::Table((0..).map(StreamId).zip(places).collect()) }),
    ]
}

fn splitting() -> impl Strategy<Value = BufferSplitting> {
    use BufferSplitting::{None, Outstanding, Queued};
    prop_oneof![Just(None), Just(Queued), Just(Outstanding)]
}

fn rtx_policy() -> impl Strategy<Value = RtxPolicy> {
    use RtxPolicy::*;
    prop_oneof![
        Just(Same),
        Just(Asap),
        Just(Cwnd),
        Just(Ssthresh),
        Just(LossRate),
        Just(EarliestArrival)
    ]
}

fn path_order() -> impl Strategy<Value = PathOrder> {
    use PathOrder::*;
    prop_oneof![
        Just(InOrder),
        Just(OldestTransmission),
        Just(LowestRtt),
        Just(LargestWindow),
        Just(LargestSlowStartThreshold),
        Just(LargestSpace)
    ]
}

prop_compose! {
    fn sending()(
        mapping in mapping(),
        path_order in path_order(),
        sender_splitting in splitting(),
        receiver_splitting in splitting(),
        cuc in prop_oneof![Just(CucVersion::None), Just(CucVersion::V1), Just(CucVersion::V2)],
        rtx_policy in rtx_policy(),
        burst in prop_oneof![
            Just(BurstLimit::Acknowledged),
            Just(BurstLimit::PerEvent),
            Just(BurstLimit::Total),
            Just(BurstLimit::None)
        ],
        flags in any::<[bool; 4]>(),
    ) -> MultipathConfig {
        let mut multipath = MultipathConfig::default();
        multipath.mapping = mapping;
        multipath.path_order = path_order;
        multipath.sender_splitting = sender_splitting;
        multipath.receiver_splitting = receiver_splitting;
        multipath.cuc = cuc;
        multipath.rtx_policy = rtx_policy;
        multipath.burst = burst;
        multipath.split_fast_retransmit = flags[0];
        multipath.delayed_ack = flags[1];
        multipath.flight_cap = flags[2].then(FlightCap::default);
        multipath.rescheduling =
            if flags[3] { ChunkRescheduling::Both } else { ChunkRescheduling::None };
        multipath
    }
}

prop_compose! {
    fn configuration()(
        mut multipath in sending(),
        sack_path in prop_oneof![
            Just(SackPath::LastArrival),
            Just(SackPath::InTurn),
            Just(SackPath::LowestRtt),
            Just(SackPath::Budgeted),
            Just(SackPath::First)
        ],
        control in prop_oneof![
            Just(CongestionControlKind::NewReno),
            Just(CongestionControlKind::Cubic),
            Just(CongestionControlKind::Bbr),
            Just(CongestionControlKind::CmtRpV2),
            Just(CongestionControlKind::Olia)
        ],
        scheduler in prop_oneof![
            Just(SchedulerKind::Fcfs),
            Just(SchedulerKind::RoundRobin),
            Just(SchedulerKind::RoundRobinPacket)
        ],
        flags in any::<[bool; 6]>(),
        kib in 16_usize..300,
    ) -> AssociationConfig {
        let mut config = AssociationConfig::default();
        if flags[0] {
            MultipathProfile::Pfldnet2010.apply(&mut config);
        }
        multipath.sack_path = sack_path;
        multipath.nr_sack =
            if flags[1] { NrSackPolicy::AtDelivery } else { NrSackPolicy::AtArrival };
        config.multipath = Some(multipath);
        config.congestion_control = control.into();
        config.scheduler = scheduler.into();
        config.loss_detection = if flags[2] { LossDetection::Rack } else { LossDetection::Classic };
        config.rtt_sampling = if flags[3] { RttSampling::AnyPath } else { RttSampling::SackPath };
        config.extensions.nr_sack = flags[4];
        config.extensions.interleaving = flags[5];
        (config.send_buffer, config.receive_buffer) = (kib << 10, kib << 10);
        config.max_probe_interval = (kib % 2 == 0).then_some(Duration::from_millis(500));
        // Paths may fail and recover; the association must not fail.
        config.association_max_retrans = 1000;
        config
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 60, ..Default::default() })]

    #[test]
    fn every_message_arrives_once_and_in_order(
        config in configuration(),
        links in proptest::collection::vec(a_link(), 1..4),
        streams in 1_usize..5,
        by_queue in any::<bool>(),
        cuts in proptest::collection::vec((0_u8..3, 0_u64..3000), 0..4),
        seed in any::<u8>(),
    ) {
        let user = if by_queue { User::ByQueueInfo } else { User::InTurn };
        let mut world = World::multipath(&config, &links, streams, seed, user);
        let mut cuts: Vec<(u8, u64)> =
            cuts.into_iter().filter(|(path, _)| usize::from(*path) + 1 < links.len()).collect();
        cuts.sort_by_key(|(_, at)| *at);
        // A handshake on a disconnected path fails as it should: that is tested elsewhere.
        while world.status().state != AssociationState::Established {
            world.run_to(world.now + Duration::from_millis(50));
        }
        let start = world.now;
        // Each time disconnects or reconnects a path; the last path stays connected.
        for (path, at) in cuts {
            world.run_to(start + Duration::from_millis(at));
            let cut = &mut world.network.cut;
            match cut.iter().position(|other| *other == path) {
                Some(at) => _ = cut.remove(at),
                None => cut.push(path),
            }
        }
        world.run_to(start + SENDING);
        let status = world.status();
        prop_assert!(status.queued <= config.send_buffer);
        world.hosts[A].user = User::Silent;
        world.run_to(start + TIME_LIMIT);
        let is_lost = |(_, event): &(Duration, Event)| matches!(event, Event::Lost(_));
        let events = &world.hosts[A].events;
        prop_assert!(!events.iter().any(is_lost), "{:?}", events);
        prop_assert_eq!(&world.hosts[B].delivered, &world.hosts[A].queued);
        let id = world.id();
        prop_assert_eq!(world.hosts[A].endpoint.queue_info(id).map(|info| info.queued), Some(0));
    }
}
