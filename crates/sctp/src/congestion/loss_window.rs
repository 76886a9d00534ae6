//! The common part of all loss-based controllers: the window and its threshold, slow start,
//! recovery, idle times, and the undo of spurious losses.

use super::{AcknowledgedData, CongestionKind};
use crate::config::{AssociationConfig, IdleWindow, InitialWindow};

/// The rules in which standards differ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowRules {
    /// The initial window.
    pub initial: InitialWindow,
    /// The window after a pause.
    pub idle: IdleWindow,
}

impl WindowRules {
    /// Returns the rules of a configuration.
    #[must_use]
    pub(crate) fn from_config(config: &AssociationConfig) -> Self {
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
    /// Creates the window for a path with this MTU, in bytes of IP packet.
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

    /// Records that something is sent: the path is no longer idle.
    pub(super) fn on_sent(&mut self) {
        self.idle = false;
    }

    /// Returns whether this SACK lets the window grow in slow start: only if the window was full,
    /// and never within a recovery (RFC 9260 §7.2.1).
    pub(super) fn may_start(&self, acknowledged: &AcknowledgedData) -> bool {
        acknowledged.cumulative_advanced && acknowledged.window_was_full && !self.in_recovery
    }

    /// Counts acknowledged bytes in congestion avoidance (RFC 9260 §7.2.2). Returns whether a whole
    /// window was acknowledged, so that the window may grow.
    pub(super) fn has_acknowledged_window(&mut self, acknowledged: &AcknowledgedData) -> bool {
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

    /// Handles congestion: reduces the window to the new threshold.
    pub(super) fn on_congestion(&mut self, threshold: usize, kind: CongestionKind) {
        self.reduce(threshold);
        self.window = self.threshold;
        self.in_recovery = kind == CongestionKind::Loss;
    }

    /// Handles the expiry of T3: reduces the window to one packet (RFC 9260 §7.2.3).
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

    /// Undoes the reduction for a spurious loss. Returns whether there was one.
    pub(super) fn restore(&mut self) -> bool {
        let Some((window, threshold)) = self.before.take() else { return false };
        self.window = self.window.max(window);
        self.threshold = threshold;
        self.in_recovery = false;
        true
    }

    /// Sets the slow-start threshold, if nothing is known of the path.
    pub(super) fn begin_with_threshold(&mut self, bytes: usize) {
        if self.threshold == usize::MAX && self.before.is_none() {
            self.threshold = bytes;
        }
    }

    /// Handles another timeout in which nothing was sent: halves the window, down to four packets,
    /// while the threshold keeps the previous value (RFC 9260 §7.2.1); or resets it.
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
