//! Processes the progress of attempts and produces evidence.

use alloc::string::String;
use core::time::Duration;

use super::winner::index;
use super::{
    AttemptPurpose, AttemptState, Race, RaceAttempt, RaceStage, attempt::AttemptCompletion,
};
use crate::candidate::{AlpnName, Candidate};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt};
use crate::io::{AttemptId, RaceOutput};

/// If the caller ends the race early, an attempt that has been silent for this many round trips of
/// the winner is remembered as silent...
const SILENT_ROUND_TRIPS: u32 = 4;
/// ...if it has been silent for at least this long.
const MIN_SILENCE: Duration = Duration::from_millis(40);

impl Race {
    pub(super) fn handle_progress(
        &mut self,
        id: AttemptId,
        level: EvidenceLevel,
        rtt: Option<Duration>,
    ) {
        let now = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        let is_further = level > attempt.level;
        match &attempt.state {
            AttemptState::UnderWay(_) | AttemptState::Complete(_) => {
                attempt.rtt = rtt.or(attempt.rtt);
                if is_further {
                    attempt.level = level;
                    attempt.progress_at = now;
                    attempt.record_answer(now);
                }
            }
            AttemptState::Usable(_) | AttemptState::Better(_) if is_further => {
                attempt.level = level;
                // The round-trip time of the handshake has been learnt already.
                self.learn(index(id), None, None);
            }
            _ => {}
        }
    }

    pub(super) fn handle_ready(
        &mut self,
        id: AttemptId,
        alpn: Option<AlpnName>,
        rtt: Option<Duration>,
    ) {
        let at = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        if !attempt.is_under_way() {
            return;
        }
        attempt.level = attempt.level.max(attempt.complete_at());
        attempt.progress_at = at;
        attempt.record_answer(at);
        attempt.rtt = rtt.or(attempt.rtt);
        attempt.state = AttemptState::Complete(AttemptCompletion { at, alpn });
        let rtt = attempt.rtt;
        let sent_again = self.shows_retransmission(&self.attempts[index(id)]);
        let evidence = self.evidence(index(id), None, rtt);
        self.outbox.push_back(RaceOutput::Learn(Evidence { sent_again, ..evidence }));
    }

    /// Handles a fallback from MPTCP to TCP: it is evidence against MPTCP, and whatever the attempt
    /// shows from now on is evidence about TCP ([`Race::evidence`]).
    pub(super) fn handle_fallback(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        let is_open = attempt.is_under_way() || attempt.completion().is_some();
        if attempt.fell_back || !is_open || attempt.candidate.transport.falls_back_to().is_none() {
            return;
        }
        let failure = AttemptFailure::new(
            FailureCause::FellBack,
            EvidenceLevel::Answered,
            String::from("the peer or a device on the path does not support MPTCP"),
        );
        let evidence = self.evidence(index(id), Some(failure), None);
        // The connection went on, but not as MPTCP.
        self.outbox
            .push_back(RaceOutput::Learn(Evidence { level: EvidenceLevel::Answered, ..evidence }));
        self.attempts[index(id)].fell_back = true;
    }

    /// Handles a ClientHello of two packets that did not get through where one of one packet did. The peer is heard:
    /// this is evidence about the length alone.
    pub(super) fn handle_long_hello(&mut self, id: AttemptId, detail: String) {
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        if attempt.short_hello || !attempt.is_under_way() || !attempt.candidate.has_client_hello() {
            return;
        }
        let reached = attempt.level.max(EvidenceLevel::Answered);
        let failure = AttemptFailure::new(FailureCause::LongClientHello, reached, detail);
        attempt.short_hello = true;
        attempt.long_hello_failure = Some(failure.clone());
        self.learn(index(id), Some(failure), None);
    }

    pub(super) fn handle_failure(&mut self, id: AttemptId, failure: AttemptFailure) {
        let at = self.now;
        let Some(attempt) = self.attempts.get_mut(index(id)) else { return };
        match attempt.state {
            AttemptState::UnderWay(_) | AttemptState::Complete(_) => {
                attempt.level = attempt.level.max(failure.reached);
                attempt.state = AttemptState::Failed { at, failure: failure.clone() };
            }
            // A connection that fails before the application received a byte did not work.
            AttemptState::Usable(_) | AttemptState::Better(_)
                if attempt.level < EvidenceLevel::FirstByte => {}
            _ => return,
        }
        let attempt = &self.attempts[index(id)];
        if failure.cause != FailureCause::Silent || !self.is_superseded(attempt) {
            self.learn(index(id), Some(failure), None);
        }
        if self.stage == RaceStage::Elected(id) {
            self.reopen();
        }
    }

    /// Lets all attempts win again, because the elected one failed or stalled.
    pub(super) fn reopen(&mut self) {
        self.stage = RaceStage::Racing;
        self.heard_level = EvidenceLevel::Answered;
        self.lookup.invalidate_plan();
        for attempt in &mut self.attempts {
            if attempt.is_under_way() {
                attempt.state = AttemptState::UnderWay(AttemptPurpose::Win);
            }
        }
    }

    /// Remembers that this attempt, still in progress, has stalled.
    pub(super) fn learn_stalled(&mut self, index: usize) {
        let attempt = &self.attempts[index];
        if !attempt.is_answered() && self.is_superseded(attempt) {
            return;
        }
        let cause =
            if attempt.is_answered() { FailureCause::Deadline } else { FailureCause::Silent };
        let failure = AttemptFailure::new(cause, attempt.level, "");
        self.learn(index, Some(failure), None);
    }

    /// Like [`Race::learn_stalled`], but only if the attempt ran for at least the time of the
    /// second retransmission of a first packet: for attempts that are ended early.
    pub(super) fn learn_stalled_if_long(&mut self, index: usize) {
        let age = self.now.saturating_sub(self.attempts[index].started);
        if age >= self.setup.policy.late_switch_for {
            self.learn_stalled(index);
        }
    }

    /// Remembers that the caller ended the race before this attempt, still in progress, was
    /// answered.
    pub(super) fn learn_silent_so_far(&mut self, index: usize) {
        let attempt = &self.attempts[index];
        if !attempt.is_cut_short(self.now) {
            return self.learn_stalled(index);
        }
        let failure = AttemptFailure::new(FailureCause::Silent, attempt.level, "");
        self.learn_doubtful(index, failure, FailureDoubt::CutShort);
    }

    /// Remembers a failure of limited significance.
    pub(super) fn learn_doubtful(
        &mut self,
        index: usize,
        failure: AttemptFailure,
        doubt: FailureDoubt,
    ) {
        let evidence = self.evidence(index, Some(failure), None);
        self.outbox.push_back(RaceOutput::Learn(Evidence { doubt: Some(doubt), ..evidence }));
    }

    /// Returns whether an early end counts this attempt, still in progress, as silent: it was to
    /// become the better one or to be re-tested, and received nothing during several round trips of
    /// the winner.
    pub(super) fn is_silent_beside_winner(&self, attempt: &RaceAttempt) -> bool {
        let RaceStage::Won { best, .. } = self.stage else { return false };
        let gathers_evidence = matches!(
            attempt.purpose(),
            Some(
                AttemptPurpose::Upgrade(_) | AttemptPurpose::Retest(_) | AttemptPurpose::Silence(_)
            )
        );
        let winner = &self.attempts[index(best)];
        let round_trip = winner
            .rtt
            .unwrap_or_else(|| winner.ended().unwrap_or(self.now).saturating_sub(winner.started));
        let patience = round_trip.saturating_mul(SILENT_ROUND_TRIPS).max(MIN_SILENCE);
        let waited = self.now.saturating_sub(attempt.started);
        gathers_evidence
            && !self.is_heard(attempt)
            && !self.is_superseded(attempt)
            && waited >= patience
    }

    fn learn(&mut self, index: usize, failure: Option<AttemptFailure>, rtt: Option<Duration>) {
        let evidence = self.evidence(index, failure, rtt);
        self.outbox.push_back(RaceOutput::Learn(evidence));
    }

    /// Returns evidence about this attempt, over the transport that it uses: a connection that fell
    /// back to TCP says nothing in favour of MPTCP.
    fn evidence(
        &self,
        index: usize,
        failure: Option<AttemptFailure>,
        rtt: Option<Duration>,
    ) -> Evidence {
        let attempt = &self.attempts[index];
        Evidence {
            at: self.now,
            network: self.setup.network.id.clone(),
            host: self.setup.target.host.clone(),
            candidate: Candidate { transport: attempt.transport(), ..attempt.candidate.clone() },
            level: attempt.level,
            failure,
            doubt: None,
            rtt,
            sent_again: None,
        }
    }
}
