//! What all controllers by loss share: the window and its threshold, slow start or not, recovery,
//! idle times, and the way back if a loss was none.

use super::{Acknowledged, CongestionKind};
use crate::config::{AssociationConfig, IdleWindow, InitialWindow};

/// Where standards differ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowRules {
    /// The window to begin with.
    pub initial: InitialWindow,
    /// The window after a pause.
    pub idle: IdleWindow,
}

impl WindowRules {
    /// As the association is configured.
    #[must_use]
    pub(crate) fn of(config: &AssociationConfig) -> Self {
        Self { initial: config.initial_window, idle: config.idle_window }
    }
}

/// A congestion window that losses reduce.
#[derive(Clone, Debug)]
pub(crate) struct LossWindow {
    pub(super) mtu: usize,
    /// `cwnd`.
    pub(super) window: usize,
    /// `ssthresh`; `usize::MAX` while there is none.
    pub(super) threshold: usize,
    pub(super) partial_bytes_acked: usize,
    pub(super) in_recovery: bool,
    idle: bool,
    rules: WindowRules,
    /// Window and threshold before the last reduction.
    before: Option<(usize, usize)>,
}

impl LossWindow {
    /// For a path whose MTU is this, in bytes of IP packet.
    pub(super) fn new(mtu: usize, rules: WindowRules) -> Self {
        Self {
            mtu,
            window: rules.initial.bytes(mtu),
            threshold: usize::MAX,
            partial_bytes_acked: 0,
            in_recovery: false,
            idle: false,
            rules,
            before: None,
        }
    }

    /// Something is sent: the path is idle no more.
    pub(super) fn on_sent(&mut self) {
        self.idle = false;
    }

    /// Whether this SACK lets the window grow in slow start: only if the window was in use, and
    /// never within a recovery (RFC 9260 §7.2.1).
    pub(super) fn may_start(&self, acknowledged: &Acknowledged) -> bool {
        acknowledged.cumulative_advanced && acknowledged.window_was_full && !self.in_recovery
    }

    /// Counts what was acknowledged in congestion avoidance (RFC 9260 §7.2.2). Says whether a whole
    /// window was: then it may take its step.
    pub(super) fn was_acknowledged_whole(&mut self, acknowledged: &Acknowledged) -> bool {
        self.partial_bytes_acked = self.partial_bytes_acked.saturating_add(acknowledged.bytes);
        if self.partial_bytes_acked < self.window {
            return false;
        }
        if !acknowledged.window_was_full {
            self.partial_bytes_acked = self.window;
            return false;
        }
        self.partial_bytes_acked -= self.window;
        true
    }

    pub(super) fn grow(&mut self, bytes: usize) {
        self.window = self.window.saturating_add(bytes);
    }

    /// The path is congested: the window falls to the new threshold.
    pub(super) fn on_congestion(&mut self, threshold: usize, kind: CongestionKind) {
        self.reduce(threshold);
        self.window = self.threshold;
        self.in_recovery = kind == CongestionKind::Loss;
    }

    /// T3 ran out: one packet is left of the window (RFC 9260 §7.2.3).
    pub(super) fn on_timeout(&mut self, threshold: usize) {
        self.reduce(threshold);
        self.window = self.mtu;
        self.in_recovery = false;
    }

    fn reduce(&mut self, threshold: usize) {
        self.before = Some((self.window, self.threshold));
        self.threshold = threshold;
        self.partial_bytes_acked = 0;
    }

    /// The last loss was none. Says whether there was one to take back.
    pub(super) fn restore(&mut self) -> bool {
        let Some((window, threshold)) = self.before.take() else { return false };
        self.window = self.window.max(window);
        self.threshold = threshold;
        self.in_recovery = false;
        true
    }

    /// Slow start is to end here at the latest, if nothing is known of the path.
    pub(super) fn begin_with_threshold(&mut self, bytes: usize) {
        if self.threshold == usize::MAX && self.before.is_none() {
            self.threshold = bytes;
        }
    }

    /// Nothing was sent for one more timeout: the window halves, down to four packets, and the
    /// threshold remembers where it was (RFC 9260 §7.2.1); or it begins anew.
    pub(super) fn on_idle(&mut self) {
        match self.rules.idle {
            IdleWindow::Halved => {
                if !self.idle {
                    self.idle = true;
                    self.threshold = self.window;
                }
                self.window = self.window.min((self.window / 2).max(4 * self.mtu));
            }
            IdleWindow::Initial => {
                self.window = self.window.min(self.rules.initial.bytes(self.mtu));
            }
        }
    }
}
