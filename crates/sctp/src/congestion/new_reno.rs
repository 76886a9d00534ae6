//! Congestion control as RFC 9260 §7.2 has it: slow start, congestion avoidance by
//! `partial_bytes_acked`, halving once for each recovery.

use core::time::Duration;

use super::{
    Acknowledged, CongestionControl, CongestionEvent, CongestionKind, Lost, Sent, initial_window,
};

/// RFC 9260 §7.2.
#[derive(Clone, Debug)]
pub struct NewReno {
    mtu: usize,
    window: usize,
    threshold: usize,
    partial_bytes_acked: usize,
    in_recovery: bool,
    idle: bool,
    before: Option<(usize, usize)>,
}

impl NewReno {
    /// For a path whose MTU is this, in bytes of IP packet.
    #[must_use]
    pub fn new(mtu: usize) -> Self {
        Self {
            mtu,
            window: initial_window(mtu),
            threshold: usize::MAX,
            partial_bytes_acked: 0,
            in_recovery: false,
            idle: false,
            before: None,
        }
    }

    fn halve(&mut self) {
        self.before = Some((self.window, self.threshold));
        self.threshold = (self.window / 2).max(4 * self.mtu);
        self.partial_bytes_acked = 0;
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> usize {
        self.window
    }

    fn slow_start_threshold(&self) -> usize {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    fn on_sent(&mut self, _sent: &Sent) {
        self.idle = false;
    }

    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        if self.window <= self.threshold {
            // RFC 9260 §7.2.1: only if the window was in use, and never within a recovery.
            if acknowledged.cumulative_advanced && acknowledged.window_was_full && !self.in_recovery
            {
                self.window = self.window.saturating_add(acknowledged.bytes.min(self.mtu));
            }
        } else if !self.in_recovery {
            // RFC 9260 §7.2.2.
            self.partial_bytes_acked = self.partial_bytes_acked.saturating_add(acknowledged.bytes);
            if self.partial_bytes_acked >= self.window {
                if acknowledged.window_was_full {
                    self.partial_bytes_acked -= self.window;
                    self.window = self.window.saturating_add(self.mtu);
                } else {
                    self.partial_bytes_acked = self.window;
                }
            }
        }
        if acknowledged.outstanding == 0 {
            self.partial_bytes_acked = 0;
        }
    }

    fn on_lost(&mut self, _lost: &Lost) {}

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.halve();
        self.window = self.threshold;
        self.in_recovery = event.kind == CongestionKind::Loss;
    }

    fn on_recovered(&mut self, _now: Duration) {
        self.in_recovery = false;
    }

    fn on_timeout(&mut self, _event: &CongestionEvent) {
        self.halve();
        self.window = self.mtu;
        self.in_recovery = false;
    }

    fn on_spurious(&mut self, _now: Duration) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = threshold;
            self.in_recovery = false;
        }
    }

    fn on_idle(&mut self, _now: Duration) {
        if !self.idle {
            self.idle = true;
            self.threshold = self.window;
        }
        self.window = self.window.min((self.window / 2).max(4 * self.mtu));
    }

    fn on_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }
}

#[cfg(test)]
mod tests;
