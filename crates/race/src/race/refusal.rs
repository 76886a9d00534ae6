//! Attempts that remain unanswered, at a host that refuses or cannot be trusted.

use alloc::format;
use core::time::Duration;

use super::attempt::ROUND_TRIPS_WITH_RETRANSMISSION;
use super::{AttemptState, Race, RaceAttempt, RaceStage};
use crate::candidate::Transport;
use crate::evidence::{AttemptFailure, FailureCause, FailureDoubt};
use crate::io::{CloseReason, RaceOutput};

/// How long to wait for an unanswered attempt beside a certificate that was not accepted, beyond
/// the time in which the certificate arrived: a server presents the same one over every transport,
/// so only a busy server is waited for, not a lost packet.
const PATIENCE_BESIDE_CERTIFICATE: Duration = Duration::from_millis(200);

/// A refusal by the host, or a certificate of it that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostRefusal {
    /// The transport that was refused, or over which the certificate was presented.
    transport: Transport,
    /// Whether a certificate was not accepted.
    is_certificate: bool,
    /// When it occurred.
    at: Duration,
    /// The time since the start of that attempt: a round trip to this host.
    after: Duration,
}

impl Race {
    /// Fails attempts that have been silent beside a refusal for long enough.
    pub(super) fn give_up_beside_refusals(&mut self) {
        for index in self.first_on_network..self.attempts.len() {
            let Some((refusal, end)) = self.give_up_time(&self.attempts[index]) else { continue };
            if end <= self.now {
                self.give_up(index, refusal);
            }
        }
    }

    /// Returns when the next attempt is given up beside a refusal.
    pub(super) fn next_give_up(&self) -> Option<Duration> {
        if !self.only_unanswered_left() {
            return None;
        }
        let here = self.attempts[self.first_on_network..].iter();
        here.filter_map(|attempt| Some(self.give_up_time(attempt)?.1)).min()
    }

    /// Returns whether every candidate has been tried, and nothing in progress has been answered.
    fn only_unanswered_left(&self) -> bool {
        self.stage == RaceStage::Racing
            && self.lookup.is_complete()
            && !self.waiting.has_untried()
            && !self.runs(RaceAttempt::is_answered)
    }

    /// Returns the refusal because of which this attempt is given up first, and when.
    fn give_up_time(&self, attempt: &RaceAttempt) -> Option<(HostRefusal, Duration)> {
        if !attempt.is_under_way() {
            return None;
        }
        let second_try =
            attempt.initial_rtt.map(|rtt| rtt.saturating_mul(ROUND_TRIPS_WITH_RETRANSMISSION));
        let patience = self.setup.policy.refused_host_patience.max(second_try.unwrap_or_default());
        let ends = self.refusals_beside(attempt).map(|refusal| {
            let patience = match refusal.is_certificate {
                // A long remembered round-trip time is not a lost packet.
                true => patience
                    .min(PATIENCE_BESIDE_CERTIFICATE.max(attempt.initial_rtt.unwrap_or_default())),
                false => patience,
            };
            let could_have_answered = attempt.started.saturating_add(refusal.after);
            (refusal, refusal.at.max(could_have_answered).saturating_add(patience))
        });
        ends.min_by_key(|(_, end)| *end)
    }

    /// Returns the refusals by the same address in this race, on this network.
    fn refusals_beside(&self, attempt: &RaceAttempt) -> impl Iterator<Item = HostRefusal> {
        let ip = attempt.candidate.address.ip();
        self.attempts[self.first_on_network..].iter().filter_map(move |other| match &other.state {
            AttemptState::Failed { at, failure }
                if matches!(failure.cause, FailureCause::Refused | FailureCause::Certificate)
                    && other.candidate.address.ip() == ip =>
            {
                let is_certificate = failure.cause == FailureCause::Certificate;
                let after = at.saturating_sub(other.started);
                let transport = other.candidate.transport;
                Some(HostRefusal { transport, is_certificate, at: *at, after })
            }
            _ => None,
        })
    }

    fn give_up(&mut self, index: usize, refusal: HostRefusal) {
        let at = self.now;
        let attempt = &mut self.attempts[index];
        let waited = at.saturating_sub(attempt.started).as_millis();
        let transport = refusal.transport;
        // An attempt cut short by a certificate says nothing about the path: with the right roots,
        // another race may well be answered.
        let is_inconclusive = refusal.is_certificate && attempt.is_cut_short(at);
        let meanwhile = match refusal.is_certificate {
            true => format!(
                "the certificate that the same host presented over {transport} is not accepted"
            ),
            false => format!("the same host refused {transport}"),
        };
        let detail = format!("no answer in {waited} ms, while {meanwhile}");
        let failure = AttemptFailure::new(FailureCause::Silent, attempt.level, detail);
        attempt.state = AttemptState::Failed { at, failure: failure.clone() };
        let id = attempt.id;
        if !is_inconclusive && !self.is_superseded(&self.attempts[index]) {
            self.learn_doubtful(index, failure, FailureDoubt::HostRefused);
        }
        self.outbox.push_back(RaceOutput::Close { id, why: CloseReason::Silent });
    }
}
