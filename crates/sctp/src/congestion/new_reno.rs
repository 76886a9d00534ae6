//! Congestion control of RFC 9260 §7.2: slow start, congestion avoidance by `partial_bytes_acked`, one
//! reduction per recovery. Other paths have no effect.

use super::Acknowledged;
use super::loss_window::LossWindow;
use super::reno::{Coupling, Reno};

/// RFC 9260 §7.2.
pub(crate) type NewReno = Reno<Uncoupled>;

/// No coupling between the paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uncoupled;

impl Coupling for Uncoupled {
    const IS_COUPLED: bool = false;

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &Acknowledged) -> usize {
        if window.has_acknowledged_window(acknowledged) { window.mtu } else { 0 }
    }
}

#[cfg(test)]
mod tests;
