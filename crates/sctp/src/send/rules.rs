//! The sender's settings, as configured.

use core::time::Duration;

use crate::config::{AssociationConfig, LossDetection, RttSampling};

/// The minimum configurable length of a chunk's data in bytes.
const MIN_SEGMENT: u16 = 4;

/// The user's settings. Nothing is counted here.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderRules {
    /// Whether small amounts of data wait for more (Nagle's algorithm).
    pub(super) nagle: bool,
    /// The maximum length of a chunk's data; more than any chunk holds if not configured.
    pub(super) max_segment: u16,
    /// How long the peer may delay a SACK.
    pub(super) sack_delay: Duration,
    /// How losses are detected.
    pub(super) detection: LossDetection,
    /// Which SACKs measure the RTT.
    pub(super) rtt_sampling: RttSampling,
    /// Whether a silent path is doubted before T3 expires.
    pub(super) suspects_silence: bool,
    /// Whether data in flight on failed paths does not wait for T3 once a path works again.
    pub(super) recovers_immediately: bool,
    /// Whether the peer is asked for immediate SACKs (RFC 7053).
    pub(super) requests_immediate_sacks: bool,
}

impl SenderRules {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        Self {
            nagle: config.nagle,
            max_segment: config.max_segment.map_or(u16::MAX, |limit| limit.max(MIN_SEGMENT)),
            sack_delay: config.sack_delay,
            detection: config.loss_detection,
            rtt_sampling: config.rtt_sampling,
            suspects_silence: config.suspect_silent_paths,
            recovers_immediately: config.max_probe_interval.is_some(),
            requests_immediate_sacks: config.ask_for_sacks,
        }
    }

    /// Applies the settings that can change while the association exists.
    pub(super) fn configure(&mut self, config: &AssociationConfig) {
        let new = Self::new(config);
        (self.nagle, self.max_segment) = (new.nagle, new.max_segment);
        self.sack_delay = new.sack_delay;
        self.recovers_immediately = new.recovers_immediately;
    }
}
