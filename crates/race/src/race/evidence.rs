//! Processes the progress of attempts and produces evidence.

use alloc::string::String;
use core::time::Duration;

use super::winner::index;
use super::{Attempt, AttemptState, Purpose, Race, Stage, attempt::Completion};
use crate::candidate::Alpn;
use crate::evidence::{Cause, Doubt, Evidence, Failure, Level};
use crate::io::{AttemptId, Output};

/// A caller who is done ends the race early. What has been silent for so many round trips of the
/// winner by then is remembered as silent...
const SILENT_ROUND_TRIPS: u32 = 4;
/// ...if it has been silent for at least this long.
const SILENT_LEAST: Duration = Duration::from_millis(40);

impl Race {
    pub(super) fn note_progress(&mut self, id: AttemptId, level: Level, rtt: Option<Duration>) {
        let now = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        let is_news = level > attempt.level;
        match &attempt.state {
            AttemptState::UnderWay(_) | AttemptState::Complete(_) => {
                attempt.rtt = rtt.or(attempt.rtt);
                if is_news {
                    attempt.level = level;
                    attempt.progress_at = now;
                    attempt.heard(now);
                }
            }
            AttemptState::Usable(_) | AttemptState::Better(_) if is_news => {
                attempt.level = level;
                // The round trip of the handshake has been learnt already.
                self.learn(index(id), None, None);
            }
            _ => {}
        }
    }

    pub(super) fn note_ready(
        &mut self,
        id: AttemptId,
        alpn: Option<Alpn>,
        rtt: Option<Duration>,
        fell_back: bool,
    ) {
        let at = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        if !attempt.is_under_way() {
            return;
        }
        attempt.level = attempt.level.max(attempt.complete_at());
        attempt.progress_at = at;
        attempt.heard(at);
        attempt.rtt = rtt.or(attempt.rtt);
        attempt.state = AttemptState::Complete(Completion { at, alpn, fell_back });
        let rtt = attempt.rtt;
        let sent_again = self.sent_again(&self.attempts[index(id)]);
        let evidence = self.evidence(index(id), None, rtt);
        self.outbox.push_back(Output::Learn(Evidence { sent_again, ..evidence }));
    }

    pub(super) fn note_failure(&mut self, id: AttemptId, failure: Failure) {
        let at = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        match attempt.state {
            AttemptState::UnderWay(_) | AttemptState::Complete(_) => {
                attempt.level = attempt.level.max(failure.reached);
                attempt.state = AttemptState::Failed { at, failure: failure.clone() };
            }
            // A connection that breaks before the application heard a byte did not work.
            AttemptState::Usable(_) | AttemptState::Better(_)
                if attempt.level < Level::FirstByte => {}
            _ => return,
        }
        let attempt = &self.attempts[index(id)];
        if failure.cause != Cause::Silent || !self.is_outdone(attempt) {
            self.learn(index(id), Some(failure), None);
        }
        if self.stage == Stage::Elected(id) {
            self.reopen();
        }
    }

    /// The elected attempt failed or stalled: everything else may win again.
    pub(super) fn reopen(&mut self) {
        self.stage = Stage::Racing;
        self.heard_from = Level::Answered;
        self.lookup.invalidate_plan();
        for attempt in &mut self.attempts {
            if attempt.is_under_way() {
                attempt.state = AttemptState::UnderWay(Purpose::Win);
            }
        }
    }

    /// Remembers that this attempt, still under way, has gone nowhere by now.
    pub(super) fn learn_stuck(&mut self, index: usize) {
        let attempt = &self.attempts[index];
        if !attempt.is_answered() && self.is_outdone(attempt) {
            return;
        }
        let cause = if attempt.is_answered() { Cause::Deadline } else { Cause::Silent };
        let failure = Failure { cause, reached: attempt.level, detail: String::new() };
        self.learn(index, Some(failure), None);
    }

    /// As [`Race::learn_stuck`] for an attempt that is ended from outside: only if it had the time
    /// of the second retransmission of a first packet.
    pub(super) fn learn_stuck_if_long(&mut self, index: usize) {
        let ran = self.now.saturating_sub(self.attempts[index].started);
        if ran >= self.setup.policy.late_switch_for {
            self.learn_stuck(index);
        }
    }

    /// Remembers that the caller was done before this attempt, still under way, had an answer.
    pub(super) fn learn_silent_so_far(&mut self, index: usize) {
        let attempt = &self.attempts[index];
        if !attempt.is_cut_short(self.now) {
            return self.learn_stuck(index);
        }
        let failure =
            Failure { cause: Cause::Silent, reached: attempt.level, detail: String::new() };
        self.learn_in_doubt(index, failure, Doubt::CutShort);
    }

    /// Remembers a failure that says less than it seems to.
    pub(super) fn learn_in_doubt(&mut self, index: usize, failure: Failure, doubt: Doubt) {
        let evidence = self.evidence(index, Some(failure), None);
        self.outbox.push_back(Output::Learn(Evidence { doubt: Some(doubt), ..evidence }));
    }

    /// Whether an early end leaves this attempt, still under way, as silent: it was meant to
    /// become the better one, or to be re-tested, and heard nothing while the winner was heard
    /// several times over.
    pub(super) fn is_silent_beside_winner(&self, attempt: &Attempt) -> bool {
        let Stage::Won { best, .. } = self.stage else { return false };
        let meant_to_tell = matches!(
            attempt.purpose(),
            Some(Purpose::Upgrade(_) | Purpose::Retest(_) | Purpose::Silence(_))
        );
        let winner = &self.attempts[index(best)];
        let round_trip = winner
            .rtt
            .unwrap_or_else(|| winner.ended().unwrap_or(self.now).saturating_sub(winner.started));
        let patience = round_trip.saturating_mul(SILENT_ROUND_TRIPS).max(SILENT_LEAST);
        let waited = self.now.saturating_sub(attempt.started);
        meant_to_tell && !self.is_heard(attempt) && !self.is_outdone(attempt) && waited >= patience
    }

    fn learn(&mut self, index: usize, failure: Option<Failure>, rtt: Option<Duration>) {
        let evidence = self.evidence(index, failure, rtt);
        self.outbox.push_back(Output::Learn(evidence));
    }

    fn evidence(&self, index: usize, failure: Option<Failure>, rtt: Option<Duration>) -> Evidence {
        let attempt = &self.attempts[index];
        Evidence {
            at: self.now,
            network: self.setup.network.id.clone(),
            host: self.setup.target.host.clone(),
            candidate: attempt.candidate.clone(),
            level: attempt.level,
            failure,
            doubt: None,
            rtt,
            sent_again: None,
        }
    }
}
