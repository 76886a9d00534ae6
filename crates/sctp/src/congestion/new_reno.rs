//! Congestion control as RFC 9260 §7.2 has it: slow start, congestion avoidance by
//! `partial_bytes_acked`, halving once for each recovery. What other paths do does not matter.

use super::loss_window::LossWindow;
use super::reno::{Coupling, Reno};
use super::{Acknowledged, Siblings};

/// RFC 9260 §7.2.
pub type NewReno = Reno<Uncoupled>;

/// No coupling: each path for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoupled;

/// Half of the window, and four packets at least (RFC 9260 §7.2.3).
pub(super) fn half(window: &LossWindow) -> usize {
    (window.window / 2).max(4 * window.mtu)
}

impl Coupling for Uncoupled {
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &Acknowledged) -> usize {
        acknowledged.bytes.min(window.mtu)
    }

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &Acknowledged) -> usize {
        if window.was_acknowledged_whole(acknowledged) { window.mtu } else { 0 }
    }

    fn threshold_after_loss(&self, window: &LossWindow, _siblings: &Siblings) -> usize {
        half(window)
    }
}

#[cfg(test)]
mod tests;
