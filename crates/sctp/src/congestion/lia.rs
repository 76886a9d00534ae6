//! Linked increases (RFC 6356): the paths together take no more than one flow would on the best of
//! them.
//!
//! In congestion avoidance the window grows for each SACK by
//! `min(alpha · acked · MTU / Σ cwnd, acked · MTU / cwnd)` with
//! `alpha = Σ cwnd · max(cwnd / rtt²) / (Σ cwnd / rtt)²` (RFC 6356 §3, §4). Slow start and losses
//! are those of RFC 9260 §7.2.

use super::AcknowledgedData;
use super::linked::{ByteFraction, WindowIncrease};
use super::loss_window::LossWindow;
use super::reno::{RenoController, WindowCoupling};

/// RFC 6356.
pub(crate) type Lia = RenoController<LinkedIncreases>;

/// The increases of RFC 6356.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkedIncreases {
    grown: ByteFraction,
}

impl WindowCoupling for LinkedIncreases {
    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize {
        // Σ cwnd is above and below the line of alpha / Σ cwnd.
        let window_per_rtt_squared = acknowledged.siblings.largest_window_per_rtt_squared;
        WindowIncrease::new(window, acknowledged, window_per_rtt_squared)
            .map_or(0, |increase| self.grown.whole_bytes(increase.linked.min(increase.alone)))
    }
}

#[cfg(test)]
mod tests;
