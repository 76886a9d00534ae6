//! From the model to the window and the pacing rate (draft-ietf-ccwg-bbr §5.6), and the restart
//! from idle (§5.4).

use super::model::{scale, volume};
use super::{Bbr, BbrState, RateSample, SECOND, startup};
use crate::congestion::initial_window;

/// `DefaultCwndGain`, in percent.
pub(super) const WINDOW_GAIN: u64 = 200;
/// 100 less `PacingMarginPercent`.
const PACING_MARGIN: u64 = 99;
/// The maximum number of bytes sent together (`C.send_quantum`).
const MAX_QUANTUM: u64 = 64 * 1024;

impl Bbr {
    /// `InitPacingRate`, once an RTT has been measured.
    pub(super) fn init_pacing_rate(&mut self, smoothed_rtt: u64) {
        let nominal = scale(initial_window(self.mtu) as u64, SECOND, smoothed_rtt);
        self.pacing_rate = scale(nominal, startup::PACING_GAIN, 100);
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_pacing_rate(&mut self, gain: u64) {
        let rate = scale(self.bandwidth, gain * PACING_MARGIN, 100 * 100);
        if self.full_bandwidth_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `HandleRestartFromIdle`.
    pub(super) fn restart_from_idle(&mut self, now: u64) {
        self.idle_restart = true;
        self.extra_acked.restart(now);
        if self.is_in_probe_bandwidth() {
            self.set_pacing_rate(100);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    /// `BDPMultiple`, with a gain in percent.
    pub(super) fn bdp(&self, gain: u64) -> usize {
        self.bdp_at(self.bandwidth, gain)
    }

    fn bdp_at(&self, bandwidth: u64, gain: u64) -> usize {
        if self.min_rtt == u64::MAX {
            return initial_window(self.mtu);
        }
        volume(scale(scale(bandwidth, self.min_rtt, SECOND), gain, 100))
    }

    /// `Inflight`, with a gain in percent.
    pub(super) fn inflight(&self, gain: u64) -> usize {
        self.inflight_at(self.bandwidth, gain)
    }

    pub(super) fn inflight_at(&self, bandwidth: u64, gain: u64) -> usize {
        self.with_quantization(self.bdp_at(bandwidth, gain))
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self) -> usize {
        self.bdp(100).min(self.window)
    }

    /// `MinPipeCwnd`.
    pub(super) fn min_pipe_window(&self) -> usize {
        4 * self.mtu
    }

    /// `QuantizationBudget`.
    fn with_quantization(&self, volume: usize) -> usize {
        let quantum = (self.pacing_rate / 1000).min(MAX_QUANTUM) as usize;
        let capped = volume.max(quantum.max(2 * self.mtu)).max(self.min_pipe_window());
        if self.state == BbrState::ProbeBandwidthUp { capped + 2 * self.mtu } else { capped }
    }

    /// `SetCwnd`.
    pub(super) fn set_window(&mut self, sample: &RateSample) {
        let wanted = self.bdp(self.window_gain).saturating_add(self.extra_acked.get());
        let max_inflight = self.with_quantization(wanted);
        let grown = self.window.saturating_add(sample.newly_acked);
        if self.full_bandwidth_reached {
            self.window = grown.min(max_inflight);
        } else if self.window < max_inflight || self.delivered < initial_window(self.mtu) as u64 {
            self.window = grown;
        }
        self.window = self.window.max(self.min_pipe_window());
        if self.state == BbrState::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window_for_model();
    }

    /// `BoundCwndForModel`.
    fn bound_window_for_model(&mut self) {
        let cap = match self.state {
            BbrState::Startup | BbrState::Drain => usize::MAX,
            BbrState::ProbeRtt | BbrState::ProbeBandwidthCruise => self.inflight_with_headroom(),
            BbrState::ProbeBandwidthDown
            | BbrState::ProbeBandwidthRefill
            | BbrState::ProbeBandwidthUp => self.inflight_long_term,
        };
        let cap = cap.min(self.inflight_short_term).max(self.min_pipe_window());
        self.window = self.window.min(cap);
    }
}
