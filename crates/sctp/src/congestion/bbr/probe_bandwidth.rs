//! The bandwidth probing cycle: down, cruise, refill, up (draft-ietf-ccwg-bbr §5.3.3).

use super::model::{scale, volume};
use super::{AckPhase, Bbr, BbrState, RateSample, SECOND, control};

/// Pacing gains of the four states, in percent.
const DOWN_PACING_GAIN: u64 = 90;
const CRUISE_PACING_GAIN: u64 = 100;
const UP_PACING_GAIN: u64 = 125;
/// Window gain while probing upwards, in percent.
const UP_WINDOW_GAIN: u64 = 225;
/// `Headroom`, in percent.
const HEADROOM: usize = 15;
/// The minimum time between probes in nanoseconds; up to a second is added at random.
const PROBE_WAIT: u64 = 2 * SECOND;
/// The maximum number of rounds between probes, for the sake of flows that grow by a packet a
/// round.
const RENO_ROUNDS: u64 = 63;
/// The maximum number of doublings of the growth of `inflight_long_term`.
const MAX_UP_ROUNDS: u32 = 30;

impl Bbr {
    /// `IsInAProbeBWState`.
    pub(super) fn is_in_probe_bandwidth(&self) -> bool {
        matches!(
            self.state,
            BbrState::ProbeBandwidthDown
                | BbrState::ProbeBandwidthCruise
                | BbrState::ProbeBandwidthRefill
                | BbrState::ProbeBandwidthUp
        )
    }

    /// `IsProbingBW`.
    pub(super) fn is_probing_bandwidth(&self) -> bool {
        matches!(
            self.state,
            BbrState::Startup | BbrState::ProbeBandwidthRefill | BbrState::ProbeBandwidthUp
        )
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_probe_down(&mut self, now: u64) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_increase = usize::MAX;
        self.pick_probe_wait(now);
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.enter(BbrState::ProbeBandwidthDown, DOWN_PACING_GAIN, control::WINDOW_GAIN);
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_probe_cruise(&mut self) {
        self.enter(BbrState::ProbeBandwidthCruise, CRUISE_PACING_GAIN, control::WINDOW_GAIN);
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_probe_refill(&mut self) {
        self.reset_short_term_model();
        self.probe_up_rounds = 0;
        self.probe_up_acked = 0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(BbrState::ProbeBandwidthRefill, CRUISE_PACING_GAIN, control::WINDOW_GAIN);
    }

    /// `StartProbeBW_UP`.
    fn start_probe_up(&mut self, sample: &RateSample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bandwidth();
        self.full_bandwidth = sample.rate;
        self.enter(BbrState::ProbeBandwidthUp, UP_PACING_GAIN, UP_WINDOW_GAIN);
        self.raise_inflight_slope();
    }

    fn enter(&mut self, state: BbrState, pacing_gain: u64, window_gain: u64) {
        self.state = state;
        self.pacing_gain = pacing_gain;
        self.window_gain = window_gain;
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bandwidth_cycle(&mut self, sample: &RateSample) {
        if !self.full_bandwidth_reached || self.adapt_long_term_model(sample) {
            return;
        }
        match self.state {
            BbrState::ProbeBandwidthDown | BbrState::ProbeBandwidthCruise
                if self.is_time_to_probe(sample.now) =>
            {
                self.start_probe_refill();
            }
            BbrState::ProbeBandwidthDown if self.is_time_to_cruise(sample) => {
                self.start_probe_cruise();
            }
            BbrState::ProbeBandwidthRefill if self.round_start => {
                self.is_probe_sample = true;
                self.start_probe_up(sample);
            }
            BbrState::ProbeBandwidthUp => self.check_time_to_go_down(sample),
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe(&self, now: u64) -> bool {
        let elapsed = now > self.cycle_stamp.saturating_add(self.probe_wait);
        let packets = (self.target_inflight() / self.mtu.max(1)) as u64;
        elapsed || self.rounds_since_probe_up >= packets.min(RENO_ROUNDS)
    }

    /// `PickProbeWait`. Randomness comes from the time in nanoseconds, well mixed: what matters is
    /// that flows do not probe in step.
    fn pick_probe_wait(&mut self, now: u64) {
        let mut mixed = now.wrapping_add(self.delivered).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^= mixed >> 32;
        self.rounds_since_probe_up = mixed & 1;
        self.probe_wait = PROBE_WAIT + (mixed >> 1) % SECOND;
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        sample.in_flight <= self.inflight_with_headroom()
            && sample.in_flight <= self.inflight_at(self.max_bandwidth.get(), 100)
    }

    /// `IsTimeToGoDown`, and what follows.
    fn check_time_to_go_down(&mut self, sample: &RateSample) {
        if self.prev_probe_too_high && sample.in_flight >= self.inflight_long_term {
            self.prev_probe_precautionary = true;
        } else if sample.is_window_limited && self.window >= self.inflight_long_term {
            // The bound is what limits the bandwidth.
            self.reset_full_bandwidth();
            self.full_bandwidth = sample.rate;
            return;
        } else if !self.full_bandwidth_now {
            return;
        }
        self.prev_probe_too_high = false;
        self.start_probe_down(sample.now);
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> usize {
        if self.inflight_long_term == usize::MAX {
            return usize::MAX;
        }
        let headroom = volume(scale(self.inflight_long_term as u64, HEADROOM as u64, 100));
        let left = self.inflight_long_term.saturating_sub(headroom.max(self.mtu));
        left.max(self.min_pipe_window())
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_inflight_slope(&mut self) {
        let growth = 1_usize << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(MAX_UP_ROUNDS);
        self.probe_up_acked_per_increase = (self.window / growth).max(self.mtu);
    }

    /// `ProbeInflightLongtermUpward`.
    pub(super) fn probe_inflight_upward(&mut self, sample: &RateSample) {
        if !sample.is_window_limited || self.window < self.inflight_long_term {
            return;
        }
        self.probe_up_acked = self.probe_up_acked.saturating_add(sample.newly_acked);
        let increases = self.probe_up_acked / self.probe_up_acked_per_increase.max(1);
        self.probe_up_acked -= increases * self.probe_up_acked_per_increase;
        self.inflight_long_term =
            self.inflight_long_term.saturating_add(increases.saturating_mul(self.mtu));
        if self.round_start {
            self.raise_inflight_slope();
        }
    }
}
