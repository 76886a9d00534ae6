//! Attempts that remain unanswered, at a host that refuses or cannot be trusted.

use alloc::format;
use core::time::Duration;

use super::attempt::ROUND_TRIPS_OF_SECOND_TRY;
use super::{Attempt, AttemptState, Race, Stage};
use crate::candidate::Transport;
use crate::evidence::{Cause, Doubt, Failure};
use crate::io::{CloseReason, Output};

/// What silence is given beside a certificate that was not accepted, beyond the time in which the
/// certificate came: a server shows the same one whatever the transport, so nobody is made to wait
/// for a lost packet, only for a server that has work to do.
const PATIENCE_BESIDE_CERTIFICATE: Duration = Duration::from_millis(200);

/// A host's explicit no, or a certificate of it that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    /// The transport that was refused, or that the certificate came over.
    transport: Transport,
    /// Whether it was the certificate.
    is_certificate: bool,
    /// When.
    at: Duration,
    /// How long after the start of the attempt: a round trip of this host.
    after: Duration,
}

impl Race {
    /// Fails what has been silent beside a refusal for long enough.
    pub(super) fn give_up_on_refusing_hosts(&mut self) {
        for index in self.first_here..self.attempts.len() {
            let Some((refusal, end)) = self.giving_up(&self.attempts[index]) else { continue };
            if end <= self.now {
                self.give_up(index, refusal);
            }
        }
    }

    /// When the next attempt is given up beside a refusal.
    pub(super) fn next_giving_up(&self) -> Option<Duration> {
        if !self.only_silence_is_left() {
            return None;
        }
        let here = self.attempts[self.first_here..].iter();
        here.filter_map(|attempt| Some(self.giving_up(attempt)?.1)).min()
    }

    /// Whether every candidate has been tried, and what is under way has heard nothing.
    fn only_silence_is_left(&self) -> bool {
        self.stage == Stage::Racing
            && self.lookup.is_complete()
            && !self.is_anything_untried()
            && !self.runs(Attempt::is_answered)
    }

    /// The refusal beside which this attempt is given up first, and when.
    fn giving_up(&self, attempt: &Attempt) -> Option<(Refusal, Duration)> {
        if !attempt.is_under_way() {
            return None;
        }
        let second_try =
            attempt.initial_rtt.map(|rtt| rtt.saturating_mul(ROUND_TRIPS_OF_SECOND_TRY));
        let patience = self.setup.policy.refused_host_patience.max(second_try.unwrap_or_default());
        let ends = self.refusals_beside(attempt).map(|refusal| {
            let patience = match refusal.is_certificate {
                // A remembered round trip is no lost packet.
                true => patience
                    .min(PATIENCE_BESIDE_CERTIFICATE.max(attempt.initial_rtt.unwrap_or_default())),
                false => patience,
            };
            let could_have_answered = attempt.started.saturating_add(refusal.after);
            (refusal, refusal.at.max(could_have_answered).saturating_add(patience))
        });
        ends.min_by_key(|(_, end)| *end)
    }

    /// What the same address refused in this race, on this network.
    fn refusals_beside(&self, attempt: &Attempt) -> impl Iterator<Item = Refusal> {
        let ip = attempt.candidate.address.ip();
        self.attempts[self.first_here..].iter().filter_map(move |other| match &other.state {
            AttemptState::Failed { at, failure }
                if matches!(failure.cause, Cause::Refused | Cause::Certificate)
                    && other.candidate.address.ip() == ip =>
            {
                let is_certificate = failure.cause == Cause::Certificate;
                let after = at.saturating_sub(other.started);
                let transport = other.candidate.transport;
                Some(Refusal { transport, is_certificate, at: *at, after })
            }
            _ => None,
        })
    }

    fn give_up(&mut self, index: usize, refusal: Refusal) {
        let at = self.now;
        let attempt = &mut self.attempts[index];
        let waited = at.saturating_sub(attempt.started).as_millis();
        let transport = refusal.transport;
        // What a certificate cut short says nothing of the path: given the right roots, another race
        // may well be answered there.
        let says_nothing = refusal.is_certificate && attempt.is_cut_short(at);
        let meanwhile = match refusal.is_certificate {
            true => format!(
                "the certificate that the same host showed over {transport} is not accepted"
            ),
            false => format!("the same host refused {transport}"),
        };
        let detail = format!("no answer in {waited} ms, while {meanwhile}");
        let failure = Failure { cause: Cause::Silent, reached: attempt.level, detail };
        attempt.state = AttemptState::Failed { at, failure: failure.clone() };
        let id = attempt.id;
        if !says_nothing && !self.is_outdone(&self.attempts[index]) {
            self.learn_in_doubt(index, failure, Doubt::HostRefused);
        }
        self.outbox.push_back(Output::Close { id, why: CloseReason::Silent });
    }
}
