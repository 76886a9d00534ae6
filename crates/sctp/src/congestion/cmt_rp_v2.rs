//! CMT/RP-SCTP, version 2: resource pooling by bandwidth (Dreibholz et al., *On the Fairness of
//! Transport Protocols in a Multi-Path Environment*, ICC 2012, §III;
//! draft-tuexen-tsvwg-sctp-multipath §4).
//!
//! With `b = (cwnd / rtt) / Σ (cwnd / rtt)`, the path's share of the bandwidth:
//! - slow start: `cwnd += ⌈min(acked, MTU) · b⌉`
//! - avoidance, once for each window: `cwnd += ⌈MTU · b⌉`
//! - loss: `ssthresh = max(cwnd − ⌈β · cwnd⌉, ⌈4 MTU · b⌉, MTU)` with `β = max(½, ½ / b)`.
//!
//! On one path alone this is RFC 9260 §7.2.

use super::loss_window::LossWindow;
use super::reno::{RenoController, WindowCoupling};
use super::{AcknowledgedData, SiblingPaths};

/// CMT/RP, version 2.
pub(crate) type CmtRpV2 = RenoController<PooledByRate>;

/// Shares by bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PooledByRate;

impl WindowCoupling for PooledByRate {
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &AcknowledgedData) -> usize {
        acknowledged.siblings.share_by_rate(acknowledged.bytes.min(window.mtu))
    }

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize {
        if window.has_acknowledged_window(acknowledged) {
            acknowledged.siblings.share_by_rate(window.mtu)
        } else {
            0
        }
    }

    fn threshold_after_loss(&self, window: &LossWindow, siblings: &SiblingPaths) -> usize {
        let (own, all) = match siblings.own_rate {
            0 => (1, siblings.paths.max(1) as u128),
            rate => (u128::from(rate), u128::from(siblings.rates.max(rate))),
        };
        let taken = (window.window as u128).saturating_mul(all).div_ceil(2 * own);
        let rest = window.window.saturating_sub(usize::try_from(taken).unwrap_or(usize::MAX));
        rest.max(siblings.share_by_rate(4 * window.mtu)).max(window.mtu)
    }
}

#[cfg(test)]
mod tests;
