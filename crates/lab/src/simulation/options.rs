//! Converts the association of a plan to the options of `eyas-sctp`.

use eyas_sctp::config::{
    AssociationConfig, FlightCap, MultipathConfig, MultipathProfile, ReceiveOrder, StreamMapping,
    StreamPreference,
};
use eyas_sctp::identifier::StreamId;

use crate::situation::{AssociationSetup, MappingSetup, ProfileName, ReceiveOrderName};

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

impl AssociationSetup {
    /// Changes the options that are given; all paths are used if those of `config` are. A mapping by
    /// a table needs the names of paths, and `only` is left to the caller.
    pub fn apply(&self, config: &mut AssociationConfig) {
        apply(self, config, config.outbound_streams, &[]);
    }
}

fn apply(setup: &AssociationSetup, config: &mut AssociationConfig, streams: u16, paths: &[&str]) {
    if setup.profile == ProfileName::Pfldnet2010 {
        MultipathProfile::Pfldnet2010.apply(config);
    }
    if let Some(buffer) = setup.buffer {
        config.send_buffer = buffer.0;
        config.receive_buffer = buffer.0;
    }
    set_if_some(&mut config.extensions.nr_sack, setup.nr_sack);
    set_if_some(&mut config.extensions.interleaving, setup.interleaving);
    set_if_some(&mut config.congestion_control, setup.congestion_control.map(Into::into));
    set_if_some(&mut config.loss_detection, setup.loss_detection);
    set_if_some(&mut config.scheduler, setup.scheduler.map(Into::into));
    if let Some(name) = setup.receive_order {
        config.receive_order = receive_order(name, &setup.priorities);
    }
    if let Some(multipath) = config.multipath.as_mut() {
        multipath.preferences = preferences(setup);
        apply_multipath(multipath, setup, streams, paths);
    }
}

fn apply_multipath(
    multipath: &mut MultipathConfig,
    setup: &AssociationSetup,
    streams: u16,
    paths: &[&str],
) {
    if let Some(mapping) = &setup.mapping {
        multipath.mapping = stream_mapping(mapping, streams, paths);
    }
    set_if_some(&mut multipath.sender_splitting, setup.sender_splitting);
    set_if_some(&mut multipath.receiver_splitting, setup.receiver_splitting);
    set_if_some(&mut multipath.rtx_policy, setup.rtx_policy);
    set_if_some(&mut multipath.path_order, setup.path_order);
    set_if_some(&mut multipath.sack_path, setup.sack_path);
    set_if_some(&mut multipath.cuc, setup.cuc);
    set_if_some(&mut multipath.split_fast_retransmit, setup.split_fast_retransmit);
    set_if_some(&mut multipath.delayed_ack, setup.delayed_ack);
    set_if_some(&mut multipath.nr_sack, setup.nr_sack_policy);
    set_if_some(&mut multipath.burst, setup.burst);
    set_if_some(&mut multipath.rescheduling, setup.rescheduling);
    if let Some(percent) = setup.flight_cap {
        multipath.flight_cap = (percent > 0).then_some(FlightCap { percent });
    }
}

/// Sets an option, unless the plan leaves it open.
fn set_if_some<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
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
