//! Congestion control by a model of the path: its bandwidth and its RTT, with pacing
//! (draft-ietf-ccwg-bbr, BBRv3).
//!
//! | module | purpose | section of the draft |
//! | --- | --- | --- |
//! | `startup` | doubling until the path is full, then draining the queue | 5.3.1, 5.3.2 |
//! | `probe_bandwidth` | the cycle of down, cruise, refill, up | 5.3.3 |
//! | `probe_rtt` | the minimum RTT, probed every five seconds | 5.3.4 |
//! | `model` | bandwidth, rounds, aggregation, losses | 5.5 |
//! | `control` | from the model to window and pacing rate | 5.6 |
//!
//! Names follow the draft. Rates are in bytes per second, times in nanoseconds, volumes in bytes of
//! user data. The draft's infinity is the largest number.

use core::time::Duration;

use super::{
    AcknowledgedData, CongestionControl, CongestionEvent, CongestionKind, DeliveryRate, LostData,
    SentData, initial_window, nanoseconds,
};

mod control;
mod model;
mod probe_bandwidth;
mod probe_rtt;
mod startup;

use model::{ExtraAcked, MaxBandwidth};

const SECOND: u64 = 1_000_000_000;

/// The state of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BbrState {
    /// Doubling the rate each round until the path is full.
    Startup,
    /// Draining the queue that startup built.
    Drain,
    /// Slower than the delivery rate, to leave headroom.
    ProbeBandwidthDown,
    /// At the delivery rate.
    ProbeBandwidthCruise,
    /// Refilling the pipe before probing for more.
    ProbeBandwidthRefill,
    /// Probing for more bandwidth.
    ProbeBandwidthUp,
    /// At half of the BDP, to measure the RTT without a queue.
    ProbeRtt,
}

/// The effect of acknowledgements on bandwidth probing (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The content of an acknowledgement, in the terms of the draft (`RS` and a part of `C`).
#[derive(Clone, Copy, Debug)]
struct RateSample {
    now: u64,
    newly_acked: usize,
    in_flight: usize,
    is_window_limited: bool,
    rtt: Option<u64>,
    /// The following fields are from the delivery rate sample; zero if there was none.
    delivery: Option<DeliveryRate>,
    /// Bytes per second; 0 if the interval was too short.
    rate: u64,
    app_limited: bool,
}

/// draft-ietf-ccwg-bbr.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mtu: usize,
    pub(super) state: BbrState,
    window: usize,
    pacing_rate: u64,
    /// In percent.
    pacing_gain: u64,
    /// In percent.
    window_gain: u64,
    smoothed_rtt: u64,

    max_bandwidth: MaxBandwidth,
    bandwidth_short_term: u64,
    bandwidth: u64,
    min_rtt: u64,
    min_rtt_stamp: u64,
    extra_acked: ExtraAcked,
    inflight_long_term: usize,
    inflight_short_term: usize,

    delivered: u64,
    next_round_delivered: u64,
    round_count: u64,
    round_start: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    is_mark_in_round: bool,
    losses_in_round: u32,
    last_lost_sent: u64,
    bandwidth_latest: u64,
    inflight_latest: usize,

    full_bandwidth: u64,
    full_bandwidth_count: u32,
    full_bandwidth_now: bool,
    full_bandwidth_reached: bool,
    drain_start_round: u64,

    ack_phase: AckPhase,
    is_probe_sample: bool,
    probe_up_acked: usize,
    probe_up_acked_per_increase: usize,
    probe_up_rounds: u32,
    rounds_since_probe_up: u64,
    probe_wait: u64,
    cycle_stamp: u64,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    probe_rtt_min_delay: u64,
    probe_rtt_min_stamp: u64,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    /// Samples of packets sent before this much was delivered are limited by ProbeRTT.
    low_rate_until: u64,

    in_recovery: bool,
    prior_window: usize,
    idle_restart: bool,
    app_limited: bool,
    undo: BbrUndo,
}

/// The state to restore after a spurious loss.
#[derive(Clone, Copy, Debug)]
struct BbrUndo {
    state: Option<BbrState>,
    bandwidth_short_term: u64,
    inflight_short_term: usize,
    inflight_long_term: usize,
}

impl Bbr {
    /// Creates the controller for a path with this MTU, in bytes of IP packet.
    #[must_use]
    pub(crate) fn new(mtu: usize) -> Self {
        let window = initial_window(mtu);
        Self {
            mtu,
            state: BbrState::Startup,
            window,
            pacing_rate: startup::PACING_GAIN * (window as u64 * 1000) / 100,
            pacing_gain: startup::PACING_GAIN,
            window_gain: control::WINDOW_GAIN,
            smoothed_rtt: 0,
            max_bandwidth: MaxBandwidth::default(),
            bandwidth_short_term: u64::MAX,
            bandwidth: 0,
            min_rtt: u64::MAX,
            min_rtt_stamp: 0,
            extra_acked: ExtraAcked::default(),
            inflight_long_term: usize::MAX,
            inflight_short_term: usize::MAX,
            delivered: 0,
            next_round_delivered: 0,
            round_count: 0,
            round_start: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            is_mark_in_round: false,
            losses_in_round: 0,
            last_lost_sent: 0,
            bandwidth_latest: 0,
            inflight_latest: 0,
            full_bandwidth: 0,
            full_bandwidth_count: 0,
            full_bandwidth_now: false,
            full_bandwidth_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            probe_up_acked: 0,
            probe_up_acked_per_increase: usize::MAX,
            probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            probe_wait: 0,
            cycle_stamp: 0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_min_delay: u64::MAX,
            probe_rtt_min_stamp: 0,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            low_rate_until: 0,
            in_recovery: false,
            prior_window: 0,
            idle_restart: false,
            app_limited: false,
            undo: BbrUndo {
                state: None,
                bandwidth_short_term: u64::MAX,
                inflight_short_term: usize::MAX,
                inflight_long_term: usize::MAX,
            },
        }
    }

    fn sample(&self, acknowledged: &AcknowledgedData) -> RateSample {
        let delivery = acknowledged.delivery;
        let low = |delivery: &DeliveryRate| {
            delivery.sent.app_limited || delivery.sent.delivered < self.low_rate_until
        };
        RateSample {
            now: nanoseconds(acknowledged.now),
            newly_acked: acknowledged.bytes,
            in_flight: acknowledged.outstanding,
            is_window_limited: acknowledged.window_was_full,
            rtt: acknowledged.rtt.map(nanoseconds),
            delivery,
            rate: delivery.filter(|delivery| !delivery.too_short).map_or(0, |it| it.rate()),
            app_limited: delivery.as_ref().is_some_and(low),
        }
    }
}

// Idle times need no handling: the model ages by its own clock, and restarts are paced.
impl CongestionControl for Bbr {
    fn window(&self) -> usize {
        self.window
    }

    fn slow_start_threshold(&self) -> usize {
        self.inflight_long_term
    }

    fn pacing_rate(&self) -> Option<u64> {
        (self.smoothed_rtt != 0).then_some(self.pacing_rate)
    }

    fn on_sent(&mut self, sent: &SentData) {
        if sent.outstanding == sent.bytes && self.app_limited {
            self.restart_from_idle(nanoseconds(sent.now));
        }
        self.app_limited = sent.app_limited;
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedData) {
        let sample = self.sample(acknowledged);
        if self.smoothed_rtt == 0
            && let Some(rtt) = acknowledged.smoothed_rtt
        {
            self.init_pacing_rate(nanoseconds(rtt));
        }
        self.smoothed_rtt = acknowledged.smoothed_rtt.map_or(0, nanoseconds);
        self.update_latest_delivery_signals(&sample);
        self.update_congestion_signals(&sample);
        self.update_ack_aggregation(&sample);
        self.check_full_bandwidth_reached(&sample);
        self.check_startup_done();
        self.check_drain_done(&sample);
        self.update_probe_bandwidth_cycle(&sample);
        self.update_min_rtt(&sample);
        self.check_probe_rtt(&sample);
        self.advance_latest_delivery_signals(&sample);
        self.bandwidth = self.max_bandwidth.get().min(self.bandwidth_short_term);
        self.set_pacing_rate(self.pacing_gain);
        self.set_window(&sample);
    }

    fn on_lost(&mut self, lost: &LostData) {
        self.handle_lost_packet(lost);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            CongestionKind::Loss => {
                self.save_window();
                self.save_state_upon_loss();
                self.in_recovery = true;
            }
            CongestionKind::Ecn => self.note_mark(),
        }
    }

    fn on_recovered(&mut self, _now: Duration) {
        if core::mem::take(&mut self.in_recovery) {
            self.window = self.window.max(self.prior_window);
        }
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.save_window();
        self.save_state_upon_loss();
        self.in_recovery = false;
        self.window = event.outstanding.saturating_add(self.mtu);
    }

    fn on_spurious(&mut self, _now: Duration) {
        self.in_recovery = false;
        self.handle_spurious_loss();
    }

    fn on_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }
}

#[cfg(test)]
mod tests;
