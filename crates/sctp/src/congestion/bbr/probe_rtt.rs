//! The minimum RTT, and the state in which it is measured (draft-ietf-ccwg-bbr §5.3.4).

use super::{AckPhase, Bbr, BbrState, RateSample, SECOND};

/// `MinRTTFilterLen`, in nanoseconds.
const MIN_RTT_FILTER: u64 = 10 * SECOND;
/// `ProbeRTTInterval`, in nanoseconds.
const INTERVAL: u64 = 5 * SECOND;
/// `ProbeRTTDuration`, in nanoseconds.
const DURATION: u64 = SECOND / 5;
/// `ProbeRTTCwndGain`, in percent.
const WINDOW_GAIN: u64 = 50;

impl Bbr {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        self.probe_rtt_expired = self.probe_rtt_min_delay != u64::MAX
            && now > self.probe_rtt_min_stamp.saturating_add(INTERVAL);
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp.saturating_add(MIN_RTT_FILTER);
        if self.probe_rtt_min_delay < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min_delay.max(1);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, sample: &RateSample) {
        if self.state != BbrState::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_window();
            self.state = BbrState::ProbeRtt;
            self.pacing_gain = 100;
            self.window_gain = WINDOW_GAIN;
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivery.is_some() {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, sample: &RateSample) {
        // Data sent now says nothing about the bandwidth of the path.
        self.low_rate_until = self.delivered.saturating_add(sample.in_flight as u64);
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(sample.now);
            }
        } else if sample.in_flight <= self.probe_rtt_window() {
            self.probe_rtt_done = Some(sample.now.saturating_add(DURATION));
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone`.
    pub(super) fn check_probe_rtt_done(&mut self, now: u64) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.window = self.window.max(self.prior_window);
        self.reset_short_term_model();
        if self.full_bandwidth_reached {
            self.start_probe_down(now);
            self.start_probe_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_window(&self) -> usize {
        self.bdp(WINDOW_GAIN).max(self.min_pipe_window())
    }
}
