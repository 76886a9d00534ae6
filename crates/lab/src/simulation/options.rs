//! Converts the association of a plan to the options of `eyas-sctp`.

use eyas_sctp::config::{
    AssociationConfig, AssociationOptions, MultipathConfig, ReceiveOrder, StreamMapping,
    StreamPreference,
};
use eyas_sctp::identifier::StreamId;

use crate::situation::{AssociationSetup, MappingSetup, ReceiveOrderName};

/// Returns the configuration of an association over these paths, which are numbered in this order.
pub(crate) fn config(setup: &AssociationSetup, streams: u16, paths: &[&str]) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.outbound_streams = streams;
    config.multipath = Some(MultipathConfig::default());
    apply(setup, &mut config, streams, paths);
    if setup.multipath == Some(false) {
        config.multipath = None;
    }
    config
}

fn apply(setup: &AssociationSetup, config: &mut AssociationConfig, streams: u16, paths: &[&str]) {
    options(setup).apply(config);
    if let Some(name) = setup.receive_order {
        config.receive_order = receive_order(name, &setup.priorities);
    }
    if let Some(multipath) = config.multipath.as_mut() {
        multipath.preferences = preferences(setup);
        if let Some(mapping) = &setup.mapping {
            multipath.mapping = stream_mapping(mapping, streams, paths);
        }
    }
}

/// Returns the options that need no names of paths and no values of streams.
fn options(setup: &AssociationSetup) -> AssociationOptions {
    AssociationOptions {
        profile: Some(setup.profile),
        buffer: setup.buffer.map(|buffer| buffer.0),
        mapping: None,
        nr_sack: setup.nr_sack,
        congestion_control: setup.congestion_control,
        loss_detection: setup.loss_detection,
        scheduler: setup.scheduler,
        sender_splitting: setup.sender_splitting,
        receiver_splitting: setup.receiver_splitting,
        rtx_policy: setup.rtx_policy,
        path_order: setup.path_order,
        sack_path: setup.sack_path,
        flight_cap: setup.flight_cap,
        cuc: setup.cuc,
        split_fast_retransmit: setup.split_fast_retransmit,
        delayed_ack: setup.delayed_ack,
        nr_sack_policy: setup.nr_sack_policy,
        burst: setup.burst,
        rescheduling: setup.rescheduling,
        interleaving: setup.interleaving,
    }
}

/// Returns the preferences of the streams, in the order of their numbers.
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

/// Returns the mapping. Paths are identified by their index; a table that is shorter than the
/// number of streams repeats.
fn stream_mapping(mapping: &MappingSetup, streams: u16, paths: &[&str]) -> StreamMapping {
    match mapping {
        MappingSetup::RoundRobin => StreamMapping::RoundRobin,
        MappingSetup::Modulo => StreamMapping::Modulo,
        MappingSetup::Automatic => StreamMapping::Automatic,
        MappingSetup::Table(names) => {
            let index = |name: &String| paths.iter().position(|path| path == name);
            let rows = (0..streams).zip(names.iter().cycle());
            StreamMapping::Table(
                rows.filter_map(|(stream, name)| Some((StreamId(stream), index(name)?))).collect(),
            )
        }
    }
}
