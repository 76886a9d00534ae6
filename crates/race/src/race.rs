//! Decides which attempts to start, when, and which one won.
//!
//! [`Race`] is a state machine without I/O: [`Race::handle_input`] stores an input,
//! [`Race::poll_output`] derives the consequences. They are derived from all stored inputs
//! together, never from the order in which inputs of the same instant arrived. One table (`rules`)
//! lists the possible decisions and when each is due.
//!
//! # The race
//!
//! ```text
//!            Cancel, deadline, nothing left to try
//!        ┌────────────────────────────────────────────┐
//!        │                                            ▼
//!     Racing ───── an attempt is complete ──▶ Won ──▶ Over
//!      ▲  │         (and reached win_at)       │ ▲
//!      │  │                                    └─┘ a more preferred one is complete: Better
//!      │  └─ an attempt reached win_at ─▶ Elected ──▶ Won   as soon as it is complete
//!      └──────────────────────────────────── it failed, or made no progress for long
//! ```
//!
//! # One attempt
//!
//! ```text
//!                   ┌────────────▶ Failed
//!                   │ Failed         ▲
//!  Start ─▶ UnderWay ──── Ready ──▶ Complete ──▶ Usable        the winner
//!           │  │  ▲ more preferred   │    │
//!           │  └──┘ than the winner  │    └─────▶ Better       completed after the win
//!           │   Win ▶ Upgrade        │
//!           ├── lost, budget spent, ─┴──────────▶ Closed
//!           └── deadline, cancelled, network changed, made room
//! ```
//!
//! An attempt in progress has a [`AttemptPurpose`]: to win; to provide an upgrade after a less preferred
//! one has won (the *late switch*); to be re-tested beside a working connection; to find out
//! whether it is silent, because it was planned before the winner but not answered; or to end on
//! its own and so yield evidence ([`LoserPolicy::Finish`](crate::policy::LoserPolicy)).
//!
//! An SCTP attempt stops at the INIT ACK, while the peer keeps no state for it, and proceeds when
//! the race tells it to (`init_ack_gate`): a loser then leaves nothing behind at the peer.
//!
//! # When the next attempt starts
//!
//! The delay is part of the plan. It counts from the last start, is extended while an attempt makes
//! progress, and no longer applies once the last attempt has failed or nothing is in progress. Two
//! starts are never closer than [`ATTEMPT_DELAY_FLOOR`](crate::policy::ATTEMPT_DELAY_FLOOR), unless
//! the policy asks for a simultaneous race. It is cut short when changed DNS answers bring another
//! address next while an earlier attempt is overdue (`early_start`).
//!
//! While the limits of the race or of the process are reached, an attempt must make room before
//! another starts (`turns`): the one that has been unanswered for longest, or that has stalled.
//! This does not count as a failure, and its candidate gets another turn later. Once as many
//! candidates have been tried as may be in flight, starts are at least
//! [`Policy::attempt_delay_min`] apart: when so many are silent, one that works should be found
//! soon.
//!
//! # Unanswered candidates
//!
//! A first packet or its answer may be lost, and without a known round-trip time transports take a
//! second to retransmit. So a silent candidate is tried again beside the first attempt
//! ([`Policy::second_tries`]), by a new attempt each time, at growing intervals, until there is a
//! winner. The first to complete wins, the others at the same candidate are closed, and their
//! silence yields no evidence.
//!
//! # After the win
//!
//! DNS answers are read for [`Policy::dns_after_win`], so that a late HTTPS record can still lead
//! to an upgrade. Candidates that the plan marked for a re-test are started in the background, and
//! with the late switch also those that are preferred to the winner and were not tried yet; at most
//! [`MAX_BACKGROUND`] per race. An attempt for an upgrade or a re-test that remains unanswered for
//! [`Policy::late_switch_for`] is closed and remembered as silent; once answered, it has until the
//! deadline. With the late switch, attempts that were planned before the winner and are unanswered
//! continue for as long, whether preferred or not: they are closed at their first answer, and
//! remembered as silent if there is none. Otherwise a dead address would delay every race once the
//! memory of the winner has expired.
//!
//! # A host that refuses
//!
//! When everything else has ended, an unanswered attempt at an address that refused another
//! transport is given [`Policy::refused_host_patience`] and then fails as silent: that a service is
//! missing is reported quickly, and not at the deadline. After a certificate that was not accepted
//! it is given less, because the same certificate would be presented over every transport.
//!
//! # Exhaustive races
//!
//! With [`Policy::exhaustive`] there is no winner before every candidate has ended or the deadline
//! has expired. Then the most preferred transport among the completed attempts is `Usable`; within
//! one transport, the fastest handshake.

mod attempt;
mod background;
mod early_start;
mod ending;
mod evidence;
mod inbox;
mod init_ack_gate;
mod invariants;
mod lookup;
mod refusal;
mod rules;
mod schedule;
mod second_try;
mod turns;
mod waiting;
mod winner;

#[cfg(test)]
mod tests;

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use core::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

pub use attempt::{AttemptPurpose, AttemptState, RaceAttempt};
pub use background::MAX_BACKGROUND;

use crate::evidence::EvidenceLevel;
use crate::io::{AttemptId, NetworkView, RaceInput, RaceOutput};
use crate::memory::MemoryView;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::target::Target;
use inbox::RaceInbox;
use lookup::RaceLookup;
use schedule::CandidateState;
use turns::AttemptSlots;
use waiting::WaitingEntries;

/// The parameters of a race. Together with the inputs they determine every output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaceSetup {
    /// The target.
    pub target: Target,
    /// The caller's policy; see [`Policy::validated`].
    pub policy: Policy,
    /// What is remembered about the target on this network.
    pub view: MemoryView,
    /// The network of the race.
    pub network: NetworkView,
    /// Determines what is random: the order of records with equal priority, and whether this race
    /// probes what the network is assumed to drop.
    pub seed: u64,
}

/// The state of the race as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RaceStage {
    /// No attempt has won.
    Racing,
    /// This attempt reached `win_at` and is not complete yet; nothing else starts meanwhile.
    Elected(AttemptId),
    /// An attempt has won.
    Won {
        /// When.
        at: Duration,
        /// The most preferred complete attempt so far: the winner, or the last `Better`.
        best: AttemptId,
    },
    /// `Finished` has been queued.
    Over,
}

/// A race to one target.
#[derive(Clone, Debug)]
pub struct Race {
    setup: Arc<RaceSetup>,
    started_at: Duration,
    now: Duration,
    stage: RaceStage,
    inbox: RaceInbox,
    outbox: VecDeque<RaceOutput>,
    lookup: RaceLookup,
    plan: Plan,
    /// When the plan was made, which is when the memory was evaluated.
    planned_at: Duration,
    /// When an answer last changed which address is the next one to try.
    next_address_since: Option<Duration>,
    waiting: WaitingEntries,
    /// In the order of starting: the index is the identifier.
    attempts: Vec<RaceAttempt>,
    /// The index of the first attempt on the current network.
    first_on_network: usize,
    slots: AttemptSlots,
    /// The level at which an attempt beside the winner counts as heard: the first byte if the
    /// winner received one from its application, otherwise any answer.
    heard_level: EvidenceLevel,
    settled: bool,
    /// When the next decision is due without an input, as computed when the race was last settled.
    wake_at: Option<Duration>,
}

impl Race {
    /// Starts a race now.
    pub fn new(setup: impl Into<Arc<RaceSetup>>, now: Duration) -> Self {
        let setup = setup.into();
        let lookup = RaceLookup::new(&setup, now);
        Self {
            setup,
            started_at: now,
            now,
            stage: RaceStage::Racing,
            inbox: RaceInbox::default(),
            outbox: VecDeque::new(),
            lookup,
            plan: Plan::default(),
            planned_at: now,
            next_address_since: None,
            waiting: WaitingEntries::default(),
            attempts: Vec::new(),
            first_on_network: 0,
            slots: AttemptSlots::default(),
            heard_level: EvidenceLevel::Answered,
            settled: false,
            wake_at: None,
        }
    }

    /// Stores an input. Its consequences are computed by the next [`Race::poll_output`].
    pub fn handle_input(&mut self, now: Duration, input: RaceInput) {
        self.advance(now);
        self.inbox.push(input);
        self.settled = false;
    }

    /// Returns the next output. Call it until it returns [`RaceOutput::Timeout`], whose time is always
    /// in the future.
    pub fn poll_output(&mut self, now: Duration) -> RaceOutput {
        self.advance(now);
        // All outputs of earlier decisions are returned before new decisions are made.
        if !self.settled && self.outbox.is_empty() {
            self.settle();
        }
        match self.outbox.pop_front() {
            Some(output) => output,
            None => RaceOutput::Timeout(self.wake_at),
        }
    }

    /// Returns the parameters of the race, with the current network and view.
    pub fn setup(&self) -> &RaceSetup {
        &self.setup
    }

    /// Returns when the race started.
    pub fn started_at(&self) -> Duration {
        self.started_at
    }

    /// Returns the current plan, with the reasons of every entry.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns every attempt, in the order of starting.
    pub fn attempts(&self) -> &[RaceAttempt] {
        &self.attempts
    }

    /// Returns the attempt with this number.
    pub fn attempt(&self, id: AttemptId) -> Option<&RaceAttempt> {
        self.attempts.get(usize::try_from(id.0).ok()?)
    }

    /// Returns whether [`RaceOutput::Finished`] has been decided.
    pub fn is_over(&self) -> bool {
        self.stage == RaceStage::Over
    }

    /// Returns whether an attempt beside the winner has been heard ([`Self::heard_level`]).
    fn is_heard(&self, attempt: &RaceAttempt) -> bool {
        attempt.level >= self.heard_level
    }

    fn advance(&mut self, now: Duration) {
        if now > self.now {
            self.now = now;
            self.settled = false;
        }
    }

    /// Applies the inputs and makes every decision that is due at this instant.
    fn settle(&mut self) {
        self.settled = true;
        if self.apply_inputs() {
            self.cancel();
        }
        self.wake_at = self.decide();
        self.assert_invariants();
    }

    /// Applies the inputs of this instant; returns whether the caller cancelled a race that is not
    /// over.
    fn apply_inputs(&mut self) -> bool {
        let mut is_cancelled = false;
        let mut inputs = self.inbox.drain();
        for input in inputs.drain(..) {
            // Inputs after the end are ignored.
            if self.stage == RaceStage::Over {
                break;
            }
            match input {
                RaceInput::Tick => {}
                RaceInput::Slots(slots) => self.slots = AttemptSlots::with_left(slots),
                RaceInput::NetworkChanged(change) => self.change_network(*change),
                RaceInput::Answer(answer) => self.lookup.store_answer(answer),
                RaceInput::Progress { id, level, rtt } => self.handle_progress(id, level, rtt),
                RaceInput::Ready { id, alpn, rtt } => self.handle_ready(id, alpn, rtt),
                RaceInput::FellBack { id } => self.handle_fallback(id),
                RaceInput::LongHelloFailed { id, detail } => self.handle_long_hello(id, detail),
                RaceInput::Failed { id, failure } => self.handle_failure(id, failure),
                RaceInput::Cancel => is_cancelled = true,
            }
        }
        self.inbox.recycle(inputs);
        self.lookup.apply_answers(self.now);
        is_cancelled
    }

    /// Returns when there is a query to send or a plan to make.
    fn next_lookup(&self) -> Option<Duration> {
        if self.reads_dns() { self.lookup.next_due(self.now) } else { None }
    }

    /// Sends the pending queries, and plans again if the services have changed.
    fn look_up(&mut self) {
        while let Some(query) = self.lookup.poll_query() {
            self.outbox.push_back(RaceOutput::Query(query));
        }
        let is_update = self.lookup.has_answer_since_plan();
        if let Some(plan) = self.lookup.plan(&self.setup, self.now) {
            let next_before = self.next_address();
            self.adopt(plan);
            if is_update && self.next_address() != next_before {
                self.next_address_since = Some(self.now);
            }
        }
    }

    /// Returns the address of the candidate that is tried next.
    fn next_address(&self) -> Option<IpAddr> {
        let entry = &self.plan.entries[self.waiting.next()?];
        Some(entry.candidate.address.ip())
    }

    fn adopt(&mut self, plan: Plan) {
        self.plan = plan;
        self.planned_at = self.now;
        let mut untried = VecDeque::with_capacity(self.plan.entries.len());
        let mut returning = Vec::new();
        for (index, entry) in self.plan.entries.iter().enumerate() {
            match self.candidate_state(&entry.candidate) {
                CandidateState::Untried => untried.push_back(index),
                CandidateState::MadeRoom(last) => returning.push((last, index)),
                CandidateState::Spent => {}
            }
        }
        returning.sort_unstable();
        self.waiting = WaitingEntries::new(untried, returning.into_iter().map(|(_, index)| index));
    }
}
