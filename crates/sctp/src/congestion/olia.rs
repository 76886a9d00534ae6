//! Opportunistic linked increases (Khalili, Gast, Popovic, Le Boudec, *MPTCP Is Not
//! Pareto-Optimal*, CoNEXT 2012, §IV; draft-khalili-mptcp-congestion-control).
//!
//! In congestion avoidance the window grows for each SACK by
//! `((cwnd / rtt²) / (Σ cwnd / rtt)² + a / cwnd) · acked · MTU`, where, with `n` paths,
//! - `a = 1 / (n · |collected|)` on a path that is among the best and whose window is not among the
//!   largest,
//! - `a = −1 / (n · |largest|)` on a path with the largest window while there are collected paths,
//! - `a = 0` on all others.
//!
//! The best paths are those with the largest `l / rtt²`, where `l` is how many bytes were
//! acknowledged between the last two losses or since the last one, whichever is more. Slow start is
//! that of RFC 9260 §7.2, and a loss halves the window, down to one packet where there are several
//! paths.

use super::loss_window::LossWindow;
use super::new_reno::half;
use super::reno::{Coupling, Reno};
use super::siblings::Standing;
use super::{Acknowledged, Siblings, lia};

/// OLIA.
pub type Olia = Reno<OpportunisticIncreases>;

/// The increases of OLIA.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpportunisticIncreases {
    /// What was grown and is no whole byte yet.
    rest: u64,
    /// What was shrunk and is no whole byte yet.
    debt: u64,
    /// Bytes acknowledged between the last two losses (`l1`).
    between_losses: u64,
    /// Bytes acknowledged since the last loss (`l2`).
    since_loss: u64,
}

impl Coupling for OpportunisticIncreases {
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &Acknowledged) -> usize {
        acknowledged.bytes.min(window.mtu)
    }

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &Acknowledged) -> usize {
        if !acknowledged.window_was_full {
            return 0;
        }
        let siblings = &acknowledged.siblings;
        let product = lia::product(window, acknowledged);
        let paths = siblings.paths.max(1) as u128;
        let size = window.window.max(1) as u128;
        let rates = u128::from(siblings.rates);
        let linked = if siblings.own_rate == 0 || rates == 0 {
            product / size / paths
        } else {
            product.saturating_mul(siblings.own_urge) / rates.saturating_mul(rates)
        };
        let (growth, shrinkage) = match siblings.standing {
            Standing::Collected => {
                (linked + product / (size * paths * siblings.collected.max(1) as u128), 0)
            }
            Standing::Largest if siblings.collected > 0 => {
                (linked, product / (size * paths * siblings.largest.max(1) as u128))
            }
            _ => (linked, 0),
        };
        let shrinkage = lia::whole_bytes(&mut self.debt, shrinkage);
        window.window = window.window.saturating_sub(shrinkage).max(window.mtu);
        lia::whole_bytes(&mut self.rest, growth)
    }

    fn threshold_after_loss(&self, window: &LossWindow, siblings: &Siblings) -> usize {
        if siblings.paths > 1 { (window.window / 2).max(window.mtu) } else { half(window) }
    }

    fn note_acknowledged(&mut self, bytes: usize) {
        self.since_loss = self.since_loss.saturating_add(bytes as u64);
    }

    fn note_loss(&mut self) {
        self.between_losses = core::mem::take(&mut self.since_loss);
    }

    fn loss_interval(&self) -> u64 {
        self.between_losses.max(self.since_loss)
    }
}

#[cfg(test)]
mod tests;
