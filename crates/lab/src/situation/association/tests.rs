use serde::de::DeserializeOwned;

use super::*;

/// Checks that each choice and its name in plans are converted into each other.
fn assert_names<T>(names: &[(&str, T)])
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
    assert_names(&CongestionControlKind::ALL.map(|kind| (kind.name(), kind)));
    assert_names(&[("classic", LossDetection::Classic), ("rack", LossDetection::Rack)]);
    assert_names(&[
        ("fcfs", SchedulerKind::Fcfs),
        ("round-robin", SchedulerKind::RoundRobin),
        ("round-robin-packet", SchedulerKind::RoundRobinPacket),
        ("fair-bandwidth", SchedulerKind::FairBandwidth),
    ]);
    assert_names(&[
        ("none", BufferSplitting::None),
        ("queued", BufferSplitting::Queued),
        ("outstanding", BufferSplitting::Outstanding),
    ]);
    assert_names(&[
        ("same", RtxPolicy::Same),
        ("asap", RtxPolicy::Asap),
        ("cwnd", RtxPolicy::Cwnd),
        ("ssthresh", RtxPolicy::Ssthresh),
        ("loss-rate", RtxPolicy::LossRate),
        ("earliest-arrival", RtxPolicy::EarliestArrival),
    ]);
    assert_names(&[
        ("earliest-arrival", PathOrder::EarliestArrival),
        ("oldest-transmission", PathOrder::OldestTransmission),
        ("lowest-rtt", PathOrder::LowestRtt),
        ("largest-window", PathOrder::LargestWindow),
        ("largest-slow-start-threshold", PathOrder::LargestSlowStartThreshold),
        ("largest-space", PathOrder::LargestSpace),
        ("in-order", PathOrder::InOrder),
    ]);
    assert_names(&[
        ("last-arrival", SackPath::LastArrival),
        ("in-turn", SackPath::InTurn),
        ("lowest-rtt", SackPath::LowestRtt),
        ("budgeted", SackPath::Budgeted),
        ("first", SackPath::First),
    ]);
    assert_names(&[("none", CucVersion::None), ("v1", CucVersion::V1), ("v2", CucVersion::V2)]);
    assert_names(&[
        ("at-delivery", NrSackPolicy::AtDelivery),
        ("at-arrival", NrSackPolicy::AtArrival),
    ]);
    assert_names(&[
        ("acknowledged", BurstLimit::Acknowledged),
        ("per-event", BurstLimit::PerEvent),
        ("total", BurstLimit::Total),
        ("none", BurstLimit::None),
    ]);
    assert_names(&[
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
        assert!(error.to_string().contains("association.scheduler"), "{error}");
    }
}
