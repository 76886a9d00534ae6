use serde::de::DeserializeOwned;

use super::*;

/// Holds the names that plans use to the choices that they mean, both ways.
fn held<T>(names: &[(&str, T)])
where
    T: Copy + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned,
{
    for (name, choice) in names {
        let value = toml::Value::String((*name).to_owned());
        assert_eq!(toml::Value::try_from(choice).as_ref(), Ok(&value));
        assert_eq!(value.try_into::<T>().as_ref(), Ok(choice));
    }
}

#[test]
fn choices_keep_their_names_in_plans() {
    held(&CongestionControlKind::ALL.map(|kind| (kind.name(), kind)));
    held(&[("classic", LossDetection::Classic), ("rack", LossDetection::Rack)]);
    held(&[
        ("fcfs", SchedulerKind::Fcfs),
        ("round-robin", SchedulerKind::RoundRobin),
        ("round-robin-packet", SchedulerKind::RoundRobinPacket),
        ("fair-bandwidth", SchedulerKind::FairBandwidth),
    ]);
    held(&[
        ("none", BufferSplitting::None),
        ("queued", BufferSplitting::Queued),
        ("outstanding", BufferSplitting::Outstanding),
    ]);
    held(&[
        ("same", RtxPolicy::Same),
        ("asap", RtxPolicy::Asap),
        ("cwnd", RtxPolicy::Cwnd),
        ("ssthresh", RtxPolicy::Ssthresh),
        ("loss-rate", RtxPolicy::LossRate),
    ]);
    held(&[
        ("earliest-arrival", PathOrder::EarliestArrival),
        ("oldest-transmission", PathOrder::OldestTransmission),
        ("lowest-rtt", PathOrder::LowestRtt),
        ("largest-window", PathOrder::LargestWindow),
        ("largest-slow-start-threshold", PathOrder::LargestSlowStartThreshold),
        ("largest-space", PathOrder::LargestSpace),
        ("in-order", PathOrder::InOrder),
    ]);
    held(&[
        ("last-arrival", SackPath::LastArrival),
        ("in-turn", SackPath::InTurn),
        ("lowest-rtt", SackPath::LowestRtt),
        ("first", SackPath::First),
    ]);
    held(&[("none", Cuc::None), ("v1", Cuc::V1), ("v2", Cuc::V2)]);
    held(&[("at-delivery", NrSackPolicy::AtDelivery), ("at-arrival", NrSackPolicy::AtArrival)]);
    held(&[
        ("acknowledged", BurstLimit::Acknowledged),
        ("per-event", BurstLimit::PerEvent),
        ("total", BurstLimit::Total),
        ("none", BurstLimit::None),
    ]);
    held(&[
        ("none", ChunkRescheduling::None),
        ("sender", ChunkRescheduling::Sender),
        ("receiver", ChunkRescheduling::Receiver),
        ("both", ChunkRescheduling::Both),
    ]);
}

#[test]
fn a_scheduler_that_a_plan_cannot_set_up_is_refused() {
    let check = |text: &str| toml::from_str::<AssociationSetup>(text).unwrap().check();
    assert_eq!(check("scheduler = 'fair-bandwidth'"), Ok(()));
    for name in ["priority", "weighted-fair-queueing"] {
        let error = check(&format!("scheduler = '{name}'")).unwrap_err();
        assert!(error.contains("association.scheduler"), "{error}");
    }
}
