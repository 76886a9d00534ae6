//! The model of the path: bandwidth, rounds, aggregation and losses (draft-ietf-ccwg-bbr §5.5).

use super::{AckPhase, Bbr, BbrState, BbrUndo, RateSample, SECOND};
use crate::congestion::{LostData, nanoseconds};

/// `LossThresh`: the reciprocal of the loss rate that is too high.
const LOSS_THRESHOLD: usize = 50;
/// The number of lost packets in a round that is insignificant, whatever its share.
const CHANCE_LOSSES: usize = 2;
/// `Beta`, in tenths.
const BETA: u64 = 7;
/// `ExtraAckedFilterLen`, halved: two halves are stored.
const EXTRA_ACKED_HALF: u64 = 5;

/// The largest delivery rate of this and the last cycle of probing (`max_bw_filter`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    last: u64,
    current: u64,
}

impl MaxBandwidth {
    pub(super) fn get(self) -> u64 {
        self.last.max(self.current)
    }

    pub(super) fn update(&mut self, rate: u64) {
        self.current = self.current.max(rate);
    }

    /// Starts a new cycle; one without a sample does not count.
    pub(super) fn advance(&mut self) {
        if self.current != 0 {
            self.last = core::mem::take(&mut self.current);
        }
    }
}

/// The excess of data acknowledged at a time over the expected amount (`extra_acked`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    last: usize,
    current: usize,
    since_round: u64,
    interval_start: u64,
    delivered: u64,
}

impl ExtraAcked {
    pub(super) fn get(self) -> usize {
        self.last.max(self.current)
    }

    pub(super) fn restart(&mut self, now: u64) {
        self.interval_start = now;
        self.delivered = 0;
    }
}

impl Bbr {
    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        self.loss_round_start = false;
        let Some(delivery) = sample.delivery else { return };
        self.delivered = delivery.total_delivered;
        self.bandwidth_latest = self.bandwidth_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(volume(delivery.bytes));
        if delivery.sent.delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &RateSample) {
        if self.loss_round_start
            && let Some(delivery) = sample.delivery
        {
            self.bandwidth_latest = sample.rate;
            self.inflight_latest = volume(delivery.bytes);
        }
    }

    /// `UpdateCongestionSignals`: once in each round with a loss, the short-term model adapts.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        self.update_round(sample);
        if sample.rate > 0 && (sample.rate >= self.max_bandwidth.get() || !sample.app_limited) {
            self.max_bandwidth.update(sample.rate);
        }
        if !self.loss_round_start {
            return;
        }
        self.check_startup_high_loss(sample);
        // The draft reacts to each loss here; on a long path, single losses then cost a tenth of
        // the rate. What is tolerated while probing is no sign of congestion otherwise either.
        let too_high = sample.delivery.is_some_and(|delivery| {
            self.is_inflight_too_high(volume(delivery.lost), delivery.sent.in_flight)
        });
        let is_loss = self.is_loss_in_round && too_high;
        if (is_loss || self.is_mark_in_round) && !self.is_probing_bandwidth() {
            self.adapt_lower_bounds();
        }
        self.is_loss_in_round = false;
        self.is_mark_in_round = false;
        self.losses_in_round = 0;
    }

    fn update_round(&mut self, sample: &RateSample) {
        let sent = sample.delivery.map(|delivery| delivery.sent.delivered);
        self.round_start = sent.is_some_and(|sent| sent >= self.next_round_delivered);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// `InitLowerBounds` and `LossLowerBounds`.
    fn adapt_lower_bounds(&mut self) {
        if self.bandwidth_short_term == u64::MAX {
            self.bandwidth_short_term = self.max_bandwidth.get();
        }
        if self.inflight_short_term == usize::MAX {
            self.inflight_short_term = self.window;
        }
        let bandwidth = scale(self.bandwidth_short_term, BETA, 10);
        self.bandwidth_short_term = self.bandwidth_latest.max(bandwidth);
        let inflight = volume(scale(self.inflight_short_term as u64, BETA, 10));
        self.inflight_short_term = self.inflight_latest.max(inflight);
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.is_mark_in_round = false;
        self.losses_in_round = 0;
        self.bandwidth_latest = 0;
        self.inflight_latest = 0;
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bandwidth_short_term = u64::MAX;
        self.inflight_short_term = usize::MAX;
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_ack_aggregation(&mut self, sample: &RateSample) {
        let half = if self.full_bandwidth_reached { EXTRA_ACKED_HALF } else { 1 };
        let extra_acked = &mut self.extra_acked;
        let interval = sample.now.saturating_sub(extra_acked.interval_start);
        let mut expected = scale(self.bandwidth, interval, SECOND);
        if extra_acked.delivered <= expected {
            extra_acked.restart(sample.now);
            expected = 0;
        }
        extra_acked.delivered += sample.newly_acked as u64;
        let extra = volume(extra_acked.delivered - expected).min(self.window);
        if self.round_count >= extra_acked.since_round + half {
            extra_acked.since_round = self.round_count;
            extra_acked.last = core::mem::take(&mut extra_acked.current);
        }
        extra_acked.current = extra_acked.current.max(extra);
    }

    /// Handles a packet marked by a router. The draft leaves ECN open; a mark counts as a round
    /// with too many losses.
    pub(super) fn note_mark(&mut self) {
        if !self.is_loss_in_round && !self.is_mark_in_round {
            self.loss_round_delivered = self.delivered;
        }
        self.is_mark_in_round = true;
    }

    /// `NoteLoss`.
    fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_window();
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostData) {
        self.delivered = self.delivered.max(lost.total_delivered);
        self.note_loss();
        let Some(sent) = lost.sent else { return };
        if self.losses_in_round == 0 || sent.sent != self.last_lost_sent {
            self.losses_in_round += 1;
            self.last_lost_sent = sent.sent;
        }
        if !self.is_probe_sample {
            return;
        }
        let total = volume(lost.total_lost.saturating_sub(sent.lost));
        if self.is_inflight_too_high(total, sent.in_flight) {
            let inflight = inflight_at_loss(sent.in_flight, total, lost.bytes);
            let app_limited = sent.app_limited || sent.delivered < self.low_rate_until;
            self.handle_inflight_too_high(nanoseconds(lost.now), inflight, app_limited);
        }
    }

    /// `IsInflightTooHigh`. In a small flight, two random losses are a large percentage.
    pub(super) fn is_inflight_too_high(&self, lost: usize, in_flight: usize) -> bool {
        lost > (in_flight / LOSS_THRESHOLD).max(CHANCE_LOSSES * self.mtu)
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, now: u64, inflight: usize, app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !app_limited {
            let minimum = volume(scale(self.target_inflight() as u64, BETA, 10));
            self.inflight_long_term = inflight.max(minimum);
        }
        if self.state == BbrState::ProbeBandwidthUp {
            self.undo.state = Some(BbrState::ProbeBandwidthUp);
            self.start_probe_down(now);
        }
    }

    /// `SaveCwnd`.
    pub(super) fn save_window(&mut self) {
        self.prior_window = if self.in_recovery || self.state == BbrState::ProbeRtt {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// `SaveStateUponLoss`, without the window.
    pub(super) fn save_state_upon_loss(&mut self) {
        self.undo = BbrUndo {
            state: None,
            bandwidth_short_term: self.bandwidth_short_term,
            inflight_short_term: self.inflight_short_term,
            inflight_long_term: self.inflight_long_term,
        };
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.window = self.window.max(self.prior_window);
        self.is_loss_in_round = false;
        self.reset_full_bandwidth();
        let undo = self.undo;
        self.bandwidth_short_term = self.bandwidth_short_term.max(undo.bandwidth_short_term);
        self.inflight_short_term = self.inflight_short_term.max(undo.inflight_short_term);
        self.inflight_long_term = self.inflight_long_term.max(undo.inflight_long_term);
        self.undo.state = None;
        if undo.state == Some(self.state) {
            return;
        }
        if undo.state == Some(BbrState::Startup) {
            self.full_bandwidth_reached = false;
        }
        match undo.state {
            _ if self.state == BbrState::ProbeRtt => {}
            Some(BbrState::Startup) => self.enter_startup(),
            Some(BbrState::ProbeBandwidthUp) => self.start_probe_refill(),
            _ => {}
        }
    }

    /// `AdvanceMaxBwFilter` and the rest of `AdaptLongTermModel` that follows losses or their
    /// absence. Returns whether it decided on a state.
    pub(super) fn adapt_long_term_model(&mut self, sample: &RateSample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_probe_bandwidth() {
                if !sample.app_limited {
                    self.max_bandwidth.advance();
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_probe_refill();
                    return true;
                }
            }
        }
        let Some(delivery) = sample.delivery else { return false };
        let in_flight = delivery.sent.in_flight;
        let too_high = self.is_inflight_too_high(volume(delivery.lost), in_flight);
        if !too_high && self.inflight_long_term != usize::MAX {
            self.inflight_long_term = self.inflight_long_term.max(in_flight);
            if self.state == BbrState::ProbeBandwidthUp {
                self.probe_inflight_upward(sample);
            }
        }
        false
    }
}

/// `InflightAtLoss`: at what volume in flight the losses crossed the threshold.
fn inflight_at_loss(in_flight: usize, lost: usize, size: usize) -> usize {
    let before = in_flight.saturating_sub(size);
    let lost_before = lost.saturating_sub(size);
    // (LossThresh × before − lost_before) / (1 − LossThresh), with LossThresh = 1/50.
    let prefix = before.saturating_sub(lost_before * LOSS_THRESHOLD) / (LOSS_THRESHOLD - 1);
    before + prefix
}

/// `value × factor / divisor`, saturated.
pub(super) fn scale(value: u64, factor: u64, divisor: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(factor) / u128::from(divisor.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A count of bytes as a volume in flight, saturated.
pub(super) fn volume(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
