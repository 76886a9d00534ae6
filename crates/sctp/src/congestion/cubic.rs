//! CUBIC (RFC 9438), in integer arithmetic.
//!
//! After a loss the window grows as a cubic function of the time since: quickly back to where it
//! was, flat around there, then faster and faster. Windows are in bytes, times in milliseconds.

use core::time::Duration;

use super::loss_window::{LossWindow, WindowRules};
use super::slow_start::{SlowStart, SlowStartGrowth};
use super::{AcknowledgedData, CongestionControl, CongestionEvent, SentData, nanoseconds};

/// `β_cubic` is 0.7 (RFC 9438 §4.6): what is left of the window after a loss, in tenths.
const BETA: usize = 7;

/// `α_cubic` is 3 (1 - β) / (1 + β) = 9/17 (RFC 9438 §4.3).
const ALPHA: (u64, u64) = (9, 17);

/// The constant `C` is 0.4 segments per second cubed (RFC 9438 §4.1.1, §5). In milliseconds and
/// tenths this is the divisor: 4 / 10^10.
const SCALE: u64 = 10_000_000_000;

/// The maximum time for which the cubic function is evaluated, in milliseconds: its cube fits 64
/// bits, and the window has long exceeded any limit.
const MAX_TIME: u64 = 1 << 21;

/// RFC 9438.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    pub(super) base: LossWindow,
    slow_start: SlowStart,
    /// Whether the next epoch follows a timeout.
    after_timeout: bool,
    /// The window before the last reduction, or less (`W_max`).
    w_max: usize,
    /// The window at the last reduction (`cwnd_prior`).
    prior: usize,
    epoch: Option<CubicEpoch>,
    /// The time of the last acknowledgement, in milliseconds.
    last: u64,
    smoothed_rtt: u64,
    /// `w_max` and the epoch before the last reduction.
    before: Option<(usize, Option<CubicEpoch>)>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct CubicEpoch {
    /// Its start, in milliseconds; moves on while the window is not used.
    start: u64,
    /// When the window reaches its maximum again, in milliseconds after the start (`K`).
    k: u64,
    /// The maximum that the cubic function is flat at.
    origin: usize,
    /// What Reno's window would be (`W_est`): bytes, and a fraction of 16 bits.
    estimate: u64,
}

impl Cubic {
    /// Creates the controller for a path with this MTU, in bytes of IP packet.
    #[must_use]
    pub(crate) fn new(mtu: usize, rules: WindowRules) -> Self {
        Self {
            base: LossWindow::new(mtu, rules),
            slow_start: SlowStart::new(),
            after_timeout: false,
            w_max: 0,
            prior: 0,
            epoch: None,
            last: 0,
            smoothed_rtt: 0,
            before: None,
        }
    }

    /// Records the window, and returns the threshold after a loss (RFC 9438 §4.6, §4.7).
    fn reduce(&mut self) -> usize {
        let window = self.base.window;
        self.before = Some((self.w_max, self.epoch));
        self.prior = window;
        // Fast convergence: a flow with two losses below the same maximum leaves room for new
        // flows.
        self.w_max = if window < self.w_max {
            window / 20 * (10 + BETA) + window % 20 * (10 + BETA) / 20
        } else {
            window
        };
        self.epoch = None;
        self.slow_start = SlowStart::new();
        (window / 10 * BETA + window % 10 * BETA / 10).max(4 * self.base.mtu)
    }

    fn begin(&self, now: u64) -> CubicEpoch {
        let estimate = (self.base.window as u64) << 16;
        if self.after_timeout || self.w_max <= self.base.window {
            // RFC 9438 §4.8, and a slow start that ended without a loss.
            return CubicEpoch { start: now, k: 0, origin: self.base.window, estimate };
        }
        let short = (self.w_max - self.base.window) as u128;
        let k = cube_root(short * u128::from(SCALE) / (4 * self.base.mtu as u128));
        CubicEpoch { start: now, k, origin: self.w_max, estimate }
    }

    fn avoid_congestion(&mut self, now: u64, acknowledged: &AcknowledgedData) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now),
        };
        if !acknowledged.window_was_full {
            // RFC 9438 §5.8: time in which the window was not used does not count.
            epoch.start += now.saturating_sub(self.last.max(epoch.start));
            self.epoch = Some(epoch);
            return;
        }
        let time = now.saturating_sub(epoch.start);
        epoch.estimate = epoch.estimate.saturating_add(self.friendly_growth(acknowledged.bytes));
        self.epoch = Some(epoch);
        let friendly = usize::try_from(epoch.estimate >> 16).unwrap_or(usize::MAX);
        if cubic(&epoch, self.base.mtu, time) < friendly {
            self.base.window = self.base.window.max(friendly);
            return;
        }
        let target = cubic(&epoch, self.base.mtu, time.saturating_add(self.smoothed_rtt));
        let target = target.clamp(self.base.window, self.base.window + self.base.window / 2);
        let growth = (target - self.base.window).saturating_mul(acknowledged.bytes);
        self.base.window += growth / self.base.window.max(1);
    }

    /// Returns the growth of Reno's window for these bytes (RFC 9438 §4.3), with 16 fractional
    /// bits.
    fn friendly_growth(&self, bytes: usize) -> u64 {
        let one = (bytes as u64).saturating_mul(self.base.mtu as u64) << 16;
        let growth = one / self.base.window.max(1) as u64;
        let estimate = self.epoch.map_or(0, |epoch| epoch.estimate >> 16);
        if estimate >= self.prior as u64 { growth } else { growth * ALPHA.0 / ALPHA.1 }
    }
}

/// Returns `W_cubic(time)` (RFC 9438 §4.2) in bytes.
fn cubic(epoch: &CubicEpoch, mtu: usize, time: u64) -> usize {
    let time = time.min(MAX_TIME);
    let distance = time.abs_diff(epoch.k.min(MAX_TIME)).min(MAX_TIME);
    let change = distance.pow(3) / (SCALE / (4 * mtu as u64).max(1)).max(1);
    let change = usize::try_from(change).unwrap_or(usize::MAX);
    if time < epoch.k {
        epoch.origin.saturating_sub(change)
    } else {
        epoch.origin.saturating_add(change)
    }
}

/// Returns the integer part of the cube root.
fn cube_root(number: u128) -> u64 {
    let (mut root, mut rest) = (0_u128, number.min(u128::from(u64::MAX)));
    // One bit of the root at a time (Warren, Hacker's Delight, §11-2).
    let mut shift = 63;
    loop {
        root *= 2;
        let digit = 3 * root * (root + 1) + 1;
        if rest >> shift >= digit {
            rest -= digit << shift;
            root += 1;
        }
        if shift == 0 {
            return u64::try_from(root).unwrap_or(u64::MAX);
        }
        shift -= 3;
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> usize {
        self.base.window
    }

    fn slow_start_threshold(&self) -> usize {
        self.base.threshold
    }

    fn pacing_rate(&self) -> Option<u64> {
        // Below the timer granularity, pacing has no benefit.
        if self.smoothed_rtt == 0 {
            return None;
        }
        let rate = self.base.window as u64 * 1000 / self.smoothed_rtt;
        Some(if self.base.window < self.base.threshold { 2 * rate } else { rate + rate / 4 })
    }

    fn on_sent(&mut self, _sent: &SentData) {
        self.base.on_sent();
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedData) {
        let now = milliseconds(acknowledged.now);
        self.smoothed_rtt = acknowledged.smoothed_rtt.map_or(0, milliseconds);
        let grows = acknowledged.cumulative_advanced && !self.base.in_recovery;
        if grows && self.base.window < self.base.threshold {
            let AcknowledgedData { bytes, outstanding, rtt, .. } = *acknowledged;
            // With pacing, at most half of the window is in use.
            let used =
                acknowledged.window_was_full || 2 * (outstanding + bytes) >= self.base.window;
            match self.slow_start.on_acknowledged(bytes, outstanding, rtt) {
                SlowStartGrowth::By(bytes) if used => {
                    self.base.window =
                        self.base.window.saturating_add(bytes).min(self.base.threshold);
                }
                SlowStartGrowth::By(_) => {}
                SlowStartGrowth::Ends => self.base.threshold = self.base.window,
            }
        } else if !self.base.in_recovery {
            self.avoid_congestion(now, acknowledged);
        }
        self.last = now;
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let threshold = self.reduce();
        self.base.on_congestion(threshold, event.kind);
        self.after_timeout = false;
    }

    fn on_recovered(&mut self, _now: Duration) {
        self.base.in_recovery = false;
    }

    fn on_timeout(&mut self, _event: &CongestionEvent) {
        let threshold = self.reduce();
        self.base.on_timeout(threshold);
        self.after_timeout = true;
    }

    fn on_spurious(&mut self, _now: Duration) {
        if self.base.restore()
            && let Some((w_max, epoch)) = self.before.take()
        {
            self.w_max = w_max;
            self.epoch = epoch;
            self.after_timeout = false;
        }
    }

    fn on_idle(&mut self, _now: Duration) {
        self.base.on_idle();
        self.epoch = None;
    }

    fn on_mtu(&mut self, mtu: usize) {
        self.base.mtu = mtu;
    }

    fn begin_with_threshold(&mut self, bytes: usize) {
        self.base.begin_with_threshold(bytes);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    nanoseconds(duration) / 1_000_000
}

#[cfg(test)]
mod tests;
