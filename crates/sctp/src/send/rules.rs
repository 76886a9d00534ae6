//! What the sending half takes from the configuration as it is.

use core::time::Duration;

use crate::config::{AssociationConfig, LossDetection, RttSampling};

/// The least bytes of a chunk's data that a user can ask for.
const LEAST_SEGMENT: u16 = 4;

/// Choices of the user. Nothing is counted here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether little data waits for more (Nagle's rule).
    pub(super) nagle: bool,
    /// Bytes of a chunk's data at most; more than any holds where nothing was said.
    pub(super) max_segment: u16,
    /// How long the peer may wait with a SACK.
    pub(super) sack_delay: Duration,
    /// How losses are found.
    pub(super) detection: LossDetection,
    /// Which SACKs measure a round trip.
    pub(super) rtt_sampling: RttSampling,
    /// Whether a path that has fallen silent is doubted before T3 runs out.
    pub(super) suspects_silence: bool,
    /// Whether what is under way on paths that failed does not wait for T3 once a path works again.
    pub(super) returns_at_once: bool,
    /// Whether the peer is asked for SACKs at once (RFC 7053).
    pub(super) asks_for_sacks: bool,
}

impl Rules {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        Self {
            nagle: config.nagle,
            max_segment: config.max_segment.map_or(u16::MAX, |most| most.max(LEAST_SEGMENT)),
            sack_delay: config.sack_delay,
            detection: config.loss_detection,
            rtt_sampling: config.rtt_sampling,
            suspects_silence: config.suspect_silent_paths,
            returns_at_once: config.max_probe_interval.is_some(),
            asks_for_sacks: config.ask_for_sacks,
        }
    }

    /// Takes over what can be changed while an association runs.
    pub(super) fn configure(&mut self, config: &AssociationConfig) {
        let new = Self::new(config);
        (self.nagle, self.max_segment) = (new.nagle, new.max_segment);
        self.sack_delay = new.sack_delay;
        self.returns_at_once = new.returns_at_once;
    }
}
