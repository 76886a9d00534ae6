//! Options of an association that can be given one by one.

use super::{
    AssociationConfig, BufferSplitting, BurstLimit, ChunkRescheduling, CongestionControlKind,
    CucVersion, FlightCap, LossDetection, MultipathConfig, MultipathProfile, NrSackPolicy,
    PathOrder, RtxPolicy, SackPath, SchedulerKind, StreamMapping,
};

/// Options of an association, as differences from a configuration: what is `None` stays as it is.
/// Commands and plans of experiments name them so.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct AssociationOptions {
    /// What is applied before the other options.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub profile: Option<ProfileName>,
    /// Both the send limit and the advertised window, in bytes.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub buffer: Option<usize>,
    /// Which streams use which paths. A table cannot be serialised.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub mapping: Option<StreamMapping>,
    /// Whether NR-SACK is offered.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub nr_sack: Option<bool>,
    /// Congestion control.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub congestion_control: Option<CongestionControlKind>,
    /// The loss detection.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub loss_detection: Option<LossDetection>,
    /// The stream scheduler.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scheduler: Option<SchedulerKind>,
    /// The sender's buffer splitting.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub sender_splitting: Option<BufferSplitting>,
    /// The receiver's buffer splitting, as performed by the sender.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub receiver_splitting: Option<BufferSplitting>,
    /// The path of retransmissions.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rtx_policy: Option<RtxPolicy>,
    /// The order in which paths are served.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub path_order: Option<PathOrder>,
    /// The path of acknowledgements.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub sack_path: Option<SackPath>,
    /// The limit of data in flight on a path, in percent of bandwidth × shortest round trip; 0 for
    /// none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub flight_cap: Option<u16>,
    /// When the window of a path may grow.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub cuc: Option<CucVersion>,
    /// Whether a chunk counts as missing only if something that was sent later on its path has
    /// arrived.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub split_fast_retransmit: Option<bool>,
    /// Whether gaps are not reported at once, and SACKs state how many packets they cover.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub delayed_ack: Option<bool>,
    /// When a chunk is acknowledged irrevocably.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub nr_sack_policy: Option<NrSackPolicy>,
    /// The burst limit.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub burst: Option<BurstLimit>,
    /// Whether a chunk that blocks all others is sent once more on another path.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rescheduling: Option<ChunkRescheduling>,
    /// Whether I-DATA is offered (RFC 8260); its header is 4 bytes larger than that of DATA.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub interleaving: Option<bool>,
}

/// The source of options that are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ProfileName {
    /// The library's defaults.
    #[default]
    Default,
    /// The choices of [`MultipathProfile::Pfldnet2010`].
    Pfldnet2010,
}

impl AssociationOptions {
    /// Changes what is given. Options of several paths have no effect unless `config` uses them.
    pub fn apply(&self, config: &mut AssociationConfig) {
        if self.profile == Some(ProfileName::Pfldnet2010) {
            MultipathProfile::Pfldnet2010.apply(config);
        }
        if let Some(bytes) = self.buffer {
            config.send_buffer = bytes;
            config.receive_buffer = bytes;
        }
        set_if_some(&mut config.extensions.nr_sack, self.nr_sack);
        set_if_some(&mut config.extensions.interleaving, self.interleaving);
        set_if_some(&mut config.congestion_control, self.congestion_control.map(Into::into));
        set_if_some(&mut config.loss_detection, self.loss_detection);
        set_if_some(&mut config.scheduler, self.scheduler.map(Into::into));
        if let Some(multipath) = config.multipath.as_mut() {
            self.apply_multipath(multipath);
        }
    }

    fn apply_multipath(&self, multipath: &mut MultipathConfig) {
        set_if_some(&mut multipath.mapping, self.mapping.clone());
        set_if_some(&mut multipath.sender_splitting, self.sender_splitting);
        set_if_some(&mut multipath.receiver_splitting, self.receiver_splitting);
        set_if_some(&mut multipath.rtx_policy, self.rtx_policy);
        set_if_some(&mut multipath.path_order, self.path_order);
        set_if_some(&mut multipath.sack_path, self.sack_path);
        set_if_some(&mut multipath.cuc, self.cuc);
        set_if_some(&mut multipath.split_fast_retransmit, self.split_fast_retransmit);
        set_if_some(&mut multipath.delayed_ack, self.delayed_ack);
        set_if_some(&mut multipath.nr_sack, self.nr_sack_policy);
        set_if_some(&mut multipath.burst, self.burst);
        set_if_some(&mut multipath.rescheduling, self.rescheduling);
        if let Some(percent) = self.flight_cap {
            multipath.flight_cap = (percent > 0).then_some(FlightCap { percent });
        }
    }
}

fn set_if_some<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_given_stay() {
        let multipath = Some(MultipathConfig::default());
        let mut config = AssociationConfig { multipath, ..AssociationConfig::default() };
        let before = config.multipath.clone();
        AssociationOptions::default().apply(&mut config);
        assert_eq!(config.multipath, before);
        let options = AssociationOptions {
            buffer: Some(1 << 20),
            mapping: Some(StreamMapping::Modulo),
            flight_cap: Some(0),
            ..AssociationOptions::default()
        };
        options.apply(&mut config);
        assert_eq!((config.send_buffer, config.receive_buffer), (1 << 20, 1 << 20));
        let expected = MultipathConfig {
            mapping: StreamMapping::Modulo,
            flight_cap: None,
            ..before.unwrap_or_default()
        };
        assert_eq!(config.multipath, Some(expected));
    }
}
