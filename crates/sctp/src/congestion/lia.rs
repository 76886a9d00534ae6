//! Linked increases (RFC 6356): the paths together take no more than one flow would on the best of
//! them.
//!
//! In congestion avoidance the window grows for each SACK by
//! `min(alpha · acked · MTU / Σ cwnd, acked · MTU / cwnd)` with
//! `alpha = Σ cwnd · max(cwnd / rtt²) / (Σ cwnd / rtt)²` (RFC 6356 §3, §4). Slow start and losses
//! are those of RFC 9260 §7.2.

use super::loss_window::LossWindow;
use super::new_reno::half;
use super::reno::{Coupling, Reno};
use super::{Acknowledged, Siblings};

/// RFC 6356.
pub type Lia = Reno<LinkedIncreases>;

/// Bits of the fraction of a byte that growth is counted in: the windows of slow paths grow by less
/// than a byte for a SACK.
pub(super) const FRACTION: u32 = 16;

/// The increases of RFC 6356.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkedIncreases {
    /// What was grown and is no whole byte yet.
    rest: u64,
}

/// Takes the whole bytes out of a growth.
pub(super) fn whole_bytes(rest: &mut u64, growth: u128) -> usize {
    let sum = u128::from(*rest).saturating_add(growth);
    *rest = (sum & ((1 << FRACTION) - 1)) as u64;
    usize::try_from(sum >> FRACTION).unwrap_or(usize::MAX)
}

/// `acked · MTU`, with a fraction.
pub(super) fn product(window: &LossWindow, acknowledged: &Acknowledged) -> u128 {
    ((acknowledged.bytes as u128) * window.mtu as u128) << FRACTION
}

impl Coupling for LinkedIncreases {
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &Acknowledged) -> usize {
        acknowledged.bytes.min(window.mtu)
    }

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &Acknowledged) -> usize {
        if !acknowledged.window_was_full {
            return 0;
        }
        let siblings = &acknowledged.siblings;
        let product = product(window, acknowledged);
        let alone = product / window.window.max(1) as u128;
        let rates = u128::from(siblings.rates);
        let linked = if siblings.own_rate == 0 || rates == 0 {
            alone / siblings.paths.max(1) as u128
        } else {
            // Σ cwnd is above and below the line.
            product.saturating_mul(siblings.largest_urge) / rates.saturating_mul(rates)
        };
        whole_bytes(&mut self.rest, linked.min(alone))
    }

    fn threshold_after_loss(&self, window: &LossWindow, _siblings: &Siblings) -> usize {
        half(window)
    }
}

#[cfg(test)]
mod tests;
