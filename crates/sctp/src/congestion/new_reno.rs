//! Congestion control of RFC 9260 §7.2: slow start, congestion avoidance by `partial_bytes_acked`, one
//! reduction per recovery. Other paths have no effect.

use super::AcknowledgedData;
use super::loss_window::LossWindow;
use super::reno::{RenoController, WindowCoupling};

/// RFC 9260 §7.2.
pub(crate) type NewReno = RenoController<UncoupledWindows>;

/// No coupling between the paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UncoupledWindows;

impl WindowCoupling for UncoupledWindows {
    const IS_COUPLED: bool = false;

    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize {
        if window.has_acknowledged_window(acknowledged) { window.mtu } else { 0 }
    }
}

#[cfg(test)]
mod tests;
