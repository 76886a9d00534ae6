//! CUBIC (RFC 9438), in whole numbers.
//!
//! After a loss the window grows as a cubic function of the time since: quickly back to where it
//! was, flat around there, then faster and faster. Windows are in bytes, times in milliseconds.

use core::time::Duration;

use super::slow_start::{Growth, SlowStart};
use super::{
    Acknowledged, CongestionControl, CongestionEvent, CongestionKind, Lost, Sent, initial_window,
    nanoseconds,
};

/// `β_cubic` is 0.7 (RFC 9438 §4.6): what is left of the window after a loss, in tenths.
const BETA: usize = 7;

/// `α_cubic` is 3 (1 - β) / (1 + β) = 9/17 (RFC 9438 §4.3).
const ALPHA: (u64, u64) = (9, 17);

/// The constant `C` is 0.4 segments a second cubed (RFC 9438 §4.1.1, §5). In milliseconds and
/// tenths this is what to divide by: 4 / 10^10.
const SCALE: u64 = 10_000_000_000;

/// The longest time that the cubic function is followed for, in milliseconds: its cube is still a
/// number of 64 bits, and the window has long been larger than any.
const MAX_TIME: u64 = 1 << 21;

/// RFC 9438.
#[derive(Clone, Debug)]
pub struct Cubic {
    mtu: usize,
    window: usize,
    threshold: usize,
    slow_start: SlowStart,
    in_recovery: bool,
    /// Whether the next epoch follows a timeout.
    after_timeout: bool,
    /// The window before the last reduction, or less (`W_max`).
    w_max: usize,
    /// The window at the last reduction (`cwnd_prior`).
    prior: usize,
    epoch: Option<Epoch>,
    /// When the last acknowledgement came, in milliseconds.
    last: u64,
    smoothed_rtt: u64,
    idle: bool,
    before: Option<(usize, usize, usize, Option<Epoch>)>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, in milliseconds; moves on while the window is not used.
    start: u64,
    /// When the window reaches its maximum again, in milliseconds after the start (`K`).
    k: u64,
    /// The maximum that the cubic function is flat at.
    origin: usize,
    /// What Reno's window would be (`W_est`): bytes, and a fraction of 16 bits.
    estimate: u64,
}

impl Cubic {
    /// For a path whose MTU is this, in bytes of IP packet.
    #[must_use]
    pub fn new(mtu: usize) -> Self {
        Self {
            mtu,
            window: initial_window(mtu),
            threshold: usize::MAX,
            slow_start: SlowStart::new(),
            in_recovery: false,
            after_timeout: false,
            w_max: 0,
            prior: 0,
            epoch: None,
            last: 0,
            smoothed_rtt: 0,
            idle: false,
            before: None,
        }
    }

    /// Reduces the threshold and remembers where the window was (RFC 9438 §4.6, §4.7).
    fn reduce(&mut self) {
        self.before = Some((self.window, self.threshold, self.w_max, self.epoch));
        self.prior = self.window;
        // Fast convergence: who lost twice below the same maximum leaves room to newcomers.
        self.w_max = if self.window < self.w_max {
            self.window / 20 * (10 + BETA) + self.window % 20 * (10 + BETA) / 20
        } else {
            self.window
        };
        self.threshold = (self.window / 10 * BETA + self.window % 10 * BETA / 10).max(4 * self.mtu);
        self.epoch = None;
        self.slow_start = SlowStart::new();
    }

    fn begin(&self, now: u64) -> Epoch {
        let estimate = (self.window as u64) << 16;
        if self.after_timeout || self.w_max <= self.window {
            // RFC 9438 §4.8, and a slow start that ended without a loss.
            return Epoch { start: now, k: 0, origin: self.window, estimate };
        }
        let short = (self.w_max - self.window) as u128;
        let k = cube_root(short * u128::from(SCALE) / (4 * self.mtu as u128));
        Epoch { start: now, k, origin: self.w_max, estimate }
    }

    fn avoid_congestion(&mut self, now: u64, acknowledged: &Acknowledged) {
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
        if cubic(&epoch, self.mtu, time) < friendly {
            self.window = self.window.max(friendly);
            return;
        }
        let target = cubic(&epoch, self.mtu, time.saturating_add(self.smoothed_rtt));
        let target = target.clamp(self.window, self.window + self.window / 2);
        let growth = (target - self.window).saturating_mul(acknowledged.bytes);
        self.window += growth / self.window.max(1);
    }

    /// By how much Reno's window grows for these bytes (RFC 9438 §4.3), with 16 bits of fraction.
    fn friendly_growth(&self, bytes: usize) -> u64 {
        let one = (bytes as u64).saturating_mul(self.mtu as u64) << 16;
        let growth = one / self.window.max(1) as u64;
        let estimate = self.epoch.map_or(0, |epoch| epoch.estimate >> 16);
        if estimate >= self.prior as u64 { growth } else { growth * ALPHA.0 / ALPHA.1 }
    }
}

/// `W_cubic(time)` (RFC 9438 §4.2), in bytes.
fn cubic(epoch: &Epoch, mtu: usize, time: u64) -> usize {
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

/// The whole part of the cube root.
fn cube_root(number: u128) -> u64 {
    let (mut root, mut rest) = (0_u128, number.min(u128::from(u64::MAX)));
    // One binary digit of the root after the other (Warren, Hacker's Delight, §11-2).
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
        self.window
    }

    fn slow_start_threshold(&self) -> usize {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<u64> {
        // Below a grain of the timers, pacing only costs.
        if self.smoothed_rtt == 0 {
            return None;
        }
        let rate = self.window as u64 * 1000 / self.smoothed_rtt;
        Some(if self.window < self.threshold { 2 * rate } else { rate + rate / 4 })
    }

    fn on_sent(&mut self, _sent: &Sent) {
        self.idle = false;
    }

    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        let now = milliseconds(acknowledged.now);
        self.smoothed_rtt = acknowledged.smoothed_rtt.map_or(0, milliseconds);
        let grows = acknowledged.cumulative_advanced && !self.in_recovery;
        if grows && self.window < self.threshold {
            let Acknowledged { bytes, outstanding, rtt, .. } = *acknowledged;
            // Paced, half of the window in use is as much as there can be.
            let used = acknowledged.window_was_full || 2 * (outstanding + bytes) >= self.window;
            match self.slow_start.on_acknowledged(bytes, outstanding, rtt) {
                Growth::By(bytes) if used => {
                    self.window = self.window.saturating_add(bytes).min(self.threshold);
                }
                Growth::By(_) => {}
                Growth::Ends => self.threshold = self.window,
            }
        } else if !self.in_recovery {
            self.avoid_congestion(now, acknowledged);
        }
        self.last = now;
    }

    fn on_lost(&mut self, _lost: &Lost) {}

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.reduce();
        self.window = self.threshold;
        self.in_recovery = event.kind == CongestionKind::Loss;
        self.after_timeout = false;
    }

    fn on_recovered(&mut self, _now: Duration) {
        self.in_recovery = false;
    }

    fn on_timeout(&mut self, _event: &CongestionEvent) {
        self.reduce();
        self.window = self.mtu;
        self.in_recovery = false;
        self.after_timeout = true;
    }

    fn on_spurious(&mut self, _now: Duration) {
        if let Some((window, threshold, w_max, epoch)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = threshold;
            self.w_max = w_max;
            self.epoch = epoch;
            self.in_recovery = false;
            self.after_timeout = false;
        }
    }

    fn on_idle(&mut self, _now: Duration) {
        if !self.idle {
            self.idle = true;
            self.threshold = self.window;
        }
        self.window = self.window.min((self.window / 2).max(4 * self.mtu));
        self.epoch = None;
    }

    fn on_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }
}

fn milliseconds(duration: Duration) -> u64 {
    nanoseconds(duration) / 1_000_000
}

#[cfg(test)]
mod tests;
