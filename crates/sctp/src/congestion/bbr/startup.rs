//! Startup and Drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use super::model::volume;
use super::{Bbr, BbrState, RateSample, control};

/// `StartupPacingGain`, in percent.
pub(super) const PACING_GAIN: u64 = 277;
/// `DrainPacingGain`, in percent.
const DRAIN_PACING_GAIN: u64 = 50;
/// `BBRStartupFullLossCnt`.
const FULL_LOSS_COUNT: u32 = 6;
/// The number of rounds without growth after which the path counts as full.
const FULL_BANDWIDTH_ROUNDS: u32 = 3;
/// The number of rounds after which draining ends in any case.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    /// `EnterStartup`.
    pub(super) fn enter_startup(&mut self) {
        self.state = BbrState::Startup;
        self.pacing_gain = PACING_GAIN;
        self.window_gain = control::WINDOW_GAIN;
    }

    /// `ResetFullBW`.
    pub(super) fn reset_full_bandwidth(&mut self) {
        self.full_bandwidth = 0;
        self.full_bandwidth_count = 0;
        self.full_bandwidth_now = false;
    }

    /// `CheckFullBWReached`: three rounds in which the delivery rate grew by less than a quarter.
    pub(super) fn check_full_bandwidth_reached(&mut self, sample: &RateSample) {
        if self.full_bandwidth_now || !self.round_start || sample.app_limited {
            return;
        }
        if sample.rate >= self.full_bandwidth.saturating_add(self.full_bandwidth / 4) {
            self.reset_full_bandwidth();
            self.full_bandwidth = sample.rate;
            return;
        }
        self.full_bandwidth_count += 1;
        self.full_bandwidth_now = self.full_bandwidth_count >= FULL_BANDWIDTH_ROUNDS;
        self.full_bandwidth_reached |= self.full_bandwidth_now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self) {
        if self.state == BbrState::Startup && self.full_bandwidth_reached {
            self.state = BbrState::Drain;
            self.pacing_gain = DRAIN_PACING_GAIN;
            self.window_gain = control::WINDOW_GAIN;
            self.drain_start_round = self.round_count;
        }
    }

    /// `CheckStartupHighLoss`, at the end of a round with losses.
    pub(super) fn check_startup_high_loss(&mut self, sample: &RateSample) {
        let Some(delivery) = sample.delivery else { return };
        if self.state == BbrState::Startup
            && !self.full_bandwidth_reached
            && self.in_recovery
            && self.losses_in_round >= FULL_LOSS_COUNT
            && self.is_inflight_too_high(volume(delivery.lost), delivery.sent.in_flight)
        {
            self.undo.state = Some(BbrState::Startup);
            self.full_bandwidth_reached = true;
            self.inflight_long_term = self.bdp(100).max(self.inflight_latest);
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, sample: &RateSample) {
        if self.state == BbrState::Drain
            && (sample.in_flight <= self.inflight(100)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.window_gain = control::WINDOW_GAIN;
            self.start_probe_down(sample.now);
        }
    }
}
