//! Reno and its coupled variants: slow start, congestion avoidance, one reduction per recovery (RFC
//! 9260 §7.2). What differs is a [`WindowCoupling`].

use core::{fmt::Debug, time::Duration};

use super::loss_window::{LossWindow, WindowRules};
use super::{AcknowledgedData, CongestionControl, CongestionEvent, SentData, SiblingPaths};

/// The growth of a path's window and its reduction after a loss, in view of the other paths.
pub(crate) trait WindowCoupling: Clone + Debug + Default + Send + Sync + 'static {
    /// Whether it depends on the other paths.
    const IS_COUPLED: bool = true;

    /// Returns the growth of the window for a SACK in slow start: the acknowledged bytes, at most a
    /// packet (RFC 9260 §7.2.1).
    fn slow_start(&mut self, window: &LossWindow, acknowledged: &AcknowledgedData) -> usize {
        acknowledged.bytes.min(window.mtu)
    }

    /// Returns the growth of the window for a SACK in congestion avoidance.
    fn avoidance(&mut self, window: &mut LossWindow, acknowledged: &AcknowledgedData) -> usize;

    /// Returns the slow-start threshold after a loss in bytes, to which the window is reduced: half
    /// of the window, at least four packets (RFC 9260 §7.2.3).
    fn threshold_after_loss(&self, window: &LossWindow, _siblings: &SiblingPaths) -> usize {
        (window.window / 2).max(4 * window.mtu)
    }

    /// Records acknowledged bytes.
    fn note_acknowledged(&mut self, _bytes: usize) {}

    /// Records a loss.
    fn note_loss(&mut self) {}

    /// Returns the bytes acknowledged between two losses, if counted (OLIA).
    fn loss_interval(&self) -> u64 {
        0
    }
}

/// A controller of the family.
#[derive(Clone, Debug)]
pub(crate) struct RenoController<C> {
    pub(super) base: LossWindow,
    pub(super) coupling: C,
}

impl<C: WindowCoupling> RenoController<C> {
    /// Creates the controller for a path with this MTU, in bytes of IP packet.
    #[must_use]
    pub(crate) fn new(mtu: usize, rules: WindowRules) -> Self {
        Self { base: LossWindow::new(mtu, rules), coupling: C::default() }
    }
}

impl<C: WindowCoupling> CongestionControl for RenoController<C> {
    fn window(&self) -> usize {
        self.base.window
    }

    fn slow_start_threshold(&self) -> usize {
        self.base.threshold
    }

    fn on_sent(&mut self, _sent: &SentData) {
        self.base.on_sent();
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedData) {
        let base = &mut self.base;
        self.coupling.note_acknowledged(acknowledged.bytes);
        if base.window <= base.threshold {
            if base.may_start(acknowledged) {
                let growth = self.coupling.slow_start(base, acknowledged);
                base.grow(growth);
            }
        } else if !base.in_recovery {
            let growth = self.coupling.avoidance(base, acknowledged);
            base.grow(growth);
        }
        if acknowledged.outstanding == 0 {
            base.partial_bytes_acked = 0;
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let threshold = self.coupling.threshold_after_loss(&self.base, &event.siblings);
        self.coupling.note_loss();
        self.base.on_congestion(threshold, event.kind);
    }

    fn on_recovered(&mut self, _now: Duration) {
        self.base.in_recovery = false;
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        let threshold = self.coupling.threshold_after_loss(&self.base, &event.siblings);
        self.coupling.note_loss();
        self.base.on_timeout(threshold);
    }

    fn on_spurious(&mut self, _now: Duration) {
        self.base.restore();
    }

    fn on_idle(&mut self, _now: Duration) {
        self.base.on_idle();
    }

    fn on_mtu(&mut self, mtu: usize) {
        self.base.mtu = mtu;
    }

    fn begin_with_threshold(&mut self, bytes: usize) {
        self.base.begin_with_threshold(bytes);
    }

    fn is_coupled(&self) -> bool {
        C::IS_COUPLED
    }

    fn loss_interval(&self) -> u64 {
        self.coupling.loss_interval()
    }
}
