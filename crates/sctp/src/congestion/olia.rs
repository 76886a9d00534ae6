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
//! acknowledged between the last two losses or since the last one, whichever is more. Windows are
//! compared in packets, and losses between which nothing arrived are one, as in the code of the
//! authors for Linux (`mptcp_olia.c`). Slow start is that of RFC 9260 §7.2, and a loss halves the
//! window, down to one packet where there are several paths.

use super::linked::{ByteFraction, WindowIncrease};
use super::loss_window::LossWindow;
use super::reno::{RenoController, WindowCoupling};
use super::siblings::PathStanding;
use super::{AcknowledgedData, SiblingPaths};

/// OLIA.
pub(crate) type Olia = RenoController<OpportunisticIncreases>;

/// The increases of OLIA.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpportunisticIncreases {
    grown: ByteFraction,
    shrunk: ByteFraction,
    /// Bytes acknowledged between the last two losses (`l1`).
    between_losses: u64,
    /// Bytes acknowledged since the last loss (`l2`).
    since_loss: u64,
}

impl WindowCoupling for OpportunisticIncreases {
    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize {
        let siblings = &acknowledged.siblings;
        let Some(WindowIncrease { alone, linked }) =
            WindowIncrease::new(window, acknowledged, siblings.own_window_per_rtt_squared)
        else {
            return 0;
        };
        let shared = |others: usize| alone / (siblings.paths.max(1) * others.max(1)) as u128;
        let (growth, shrinkage) = match siblings.standing {
            PathStanding::Collected => (linked.saturating_add(shared(siblings.collected)), 0),
            PathStanding::Largest if siblings.collected > 0 => (linked, shared(siblings.largest)),
            _ => (linked, 0),
        };
        let shrinkage = self.shrunk.whole_bytes(shrinkage);
        window.window = window.window.saturating_sub(shrinkage).max(window.mtu);
        self.grown.whole_bytes(growth)
    }

    fn threshold_after_loss(&self, window: &LossWindow, siblings: &SiblingPaths) -> usize {
        let minimum = if siblings.paths > 1 { window.mtu } else { 4 * window.mtu };
        (window.window / 2).max(minimum)
    }

    fn note_acknowledged(&mut self, bytes: usize) {
        self.since_loss = self.since_loss.saturating_add(bytes as u64);
    }

    /// Losses between which nothing arrived are one.
    fn note_loss(&mut self) {
        if self.since_loss > 0 {
            self.between_losses = core::mem::take(&mut self.since_loss);
        }
    }

    fn loss_interval(&self) -> u64 {
        self.between_losses.max(self.since_loss)
    }
}

#[cfg(test)]
mod tests;
