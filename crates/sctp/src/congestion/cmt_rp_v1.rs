//! CMT/RP-SCTP, version 1: resource pooling by slow-start thresholds (Dreibholz et al., *Applying
//! TCP-Friendly Congestion Control to Concurrent Multipath Transfer*, AINA 2010, §III;
//! draft-tuexen-tsvwg-sctp-multipath §4).
//!
//! With `ŝ = ssthresh / Σ ssthresh`, the path's share of the capacity:
//! - slow start: `cwnd += ⌈min(acked, MTU) · ŝ⌉`
//! - avoidance, once for each window: `cwnd += ⌈MTU · ŝ⌉`
//! - loss: `ssthresh = max(cwnd − ½ Σ cwnd, ⌈4 MTU · ŝ⌉, MTU)`: half of *all* windows is taken from
//!   the path that lost.
//!
//! On one path alone this is RFC 9260 §7.2.

use super::loss_window::LossWindow;
use super::reno::{RenoController, WindowCoupling};
use super::{AcknowledgedData, SiblingPaths};

/// CMT/RP, version 1.
pub(crate) type CmtRpV1 = RenoController<PooledByThreshold>;

/// Shares by slow-start threshold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PooledByThreshold;

impl WindowCoupling for PooledByThreshold {
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &AcknowledgedData) -> usize {
        acknowledged.siblings.share_by_threshold(acknowledged.bytes.min(window.mtu))
    }

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize {
        if window.has_acknowledged_window(acknowledged) {
            acknowledged.siblings.share_by_threshold(window.mtu)
        } else {
            0
        }
    }

    fn threshold_after_loss(&self, window: &LossWindow, siblings: &SiblingPaths) -> usize {
        let total = siblings.windows.max(window.window);
        let rest = window.window.saturating_sub(total.div_ceil(2));
        rest.max(siblings.share_by_threshold(4 * window.mtu)).max(window.mtu)
    }
}

#[cfg(test)]
mod tests;
