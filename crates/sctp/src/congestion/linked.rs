//! The common part of LIA and OLIA: windows that grow with every SACK, by less than a byte on slow
//! paths, depending on the rates of all paths.

use super::AcknowledgedData;
use super::loss_window::LossWindow;

/// The number of fractional bits in which growth is counted.
pub(super) const FRACTION: u32 = 16;

/// The increase for a SACK in congestion avoidance, in bytes with a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowIncrease {
    /// `acked · MTU / cwnd`: the growth if the path were alone.
    pub(super) alone: u128,
    /// `acked · MTU · (cwnd / rtt²) / (Σ cwnd / rtt)²`; an equal share of `alone` while round trips
    /// are unknown.
    pub(super) linked: u128,
}

impl WindowIncrease {
    /// Computes the increase for the `cwnd / rtt²` of the path or of another one. `None`
    /// if the window was not full.
    pub(super) fn new(
        window: &LossWindow,
        acknowledged: &AcknowledgedData,
        window_per_rtt_squared: u128,
    ) -> Option<Self> {
        if !acknowledged.window_was_full {
            return None;
        }
        let siblings = &acknowledged.siblings;
        let product = ((acknowledged.bytes as u128) * window.mtu as u128) << FRACTION;
        let alone = product / window.window.max(1) as u128;
        let rates = u128::from(siblings.rates);
        let linked = if siblings.own_rate == 0 || rates == 0 {
            alone / siblings.paths.max(1) as u128
        } else {
            product.saturating_mul(window_per_rtt_squared) / rates.saturating_mul(rates)
        };
        Some(Self { alone, linked })
    }
}

/// Growth, or shrinkage, of less than a whole byte.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteFraction(u64);

impl ByteFraction {
    /// Adds to it, and removes and returns the whole bytes.
    pub(super) fn whole_bytes(&mut self, more: u128) -> usize {
        let sum = u128::from(self.0).saturating_add(more);
        self.0 = (sum & ((1 << FRACTION) - 1)) as u64;
        usize::try_from(sum >> FRACTION).unwrap_or(usize::MAX)
    }
}
