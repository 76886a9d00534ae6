//! What LIA and OLIA have in common: windows that grow with every SACK, by less than a byte on slow
//! paths, and in view of the rates of all paths.

use super::Acknowledged;
use super::loss_window::LossWindow;

/// Bits of the fraction of a byte that growth is counted in.
pub(super) const FRACTION: u32 = 16;

/// What a SACK in congestion avoidance is worth, in bytes with a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Increase {
    /// `acked · MTU / cwnd`: what the path would grow by if it were alone.
    pub(super) alone: u128,
    /// `acked · MTU · urge / (Σ cwnd / rtt)²`; an equal share of `alone` while round trips are
    /// unknown.
    pub(super) linked: u128,
}

impl Increase {
    /// For an `urge` of `cwnd / rtt²`, of the path or of another one. None if the window was not in
    /// full use.
    pub(super) fn of(window: &LossWindow, acknowledged: &Acknowledged, urge: u128) -> Option<Self> {
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
            product.saturating_mul(urge) / rates.saturating_mul(rates)
        };
        Some(Self { alone, linked })
    }
}

/// Growth, or shrinkage, that is no whole byte yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fraction(u64);

impl Fraction {
    /// Adds to it, and takes the whole bytes out.
    pub(super) fn whole_bytes(&mut self, more: u128) -> usize {
        let sum = u128::from(self.0).saturating_add(more);
        self.0 = (sum & ((1 << FRACTION) - 1)) as u64;
        usize::try_from(sum >> FRACTION).unwrap_or(usize::MAX)
    }
}
