//! Which attempts to start, when, and which one won.
//!
//! [`Race`] is a value-passing machine: [`Race::handle_input`] notes a fact,
//! [`Race::poll_output`] draws the conclusions. Conclusions are drawn from the stored facts as a
//! whole, never from the order in which facts of one instant came in. Which ones there are, and when
//! each of them is due, stands in one table (`rules`).
//!
//! # The race
//!
//! ```text
//!            Cancel, deadline, nothing left to try
//!        ┌────────────────────────────────────────────┐
//!        │                                            ▼
//!     Racing ───── an attempt is complete ──▶ Won ──▶ Over
//!      ▲  │         (and came to win_at)       │ ▲
//!      │  │                                    └─┘ a more wanted one is complete: Better
//!      │  └─ an attempt came to win_at ─▶ Elected ──▶ Won   as soon as it is complete
//!      └──────────────────────────────────── it failed, or made no progress for long
//! ```
//!
//! # One attempt
//!
//! ```text
//!                   ┌────────────▶ Failed
//!                   │ Failed         ▲
//!  Start ─▶ UnderWay ──── Ready ──▶ Complete ──▶ Usable        the winner
//!           │  │  ▲ more wanted      │    │
//!           │  └──┘ than the winner  │    └─────▶ Better       completed after the win
//!           │   Win ▶ Upgrade        │
//!           ├── lost, budget spent, ─┴──────────▶ Closed
//!           └── deadline, cancelled, network changed, made room
//! ```
//!
//! An attempt under way has a [`Purpose`]: to win; to give an upgrade after a lesser one has won
//! (the *late switch*); to be re-tested beside a working connection; to show whether it is silent,
//! because it stood before the winner and was not answered; or to end on its own so that there is
//! evidence ([`Losers::Finish`](crate::policy::Losers)).
//!
//! An attempt over SCTP stops at the INIT ACK, while the peer holds nothing for it, and goes on when
//! the race says so (`hold`): a loser then leaves nothing behind at the peer.
//!
//! # When the next attempt starts
//!
//! The delay stands in the plan. It counts from the last start, is extended while an attempt makes
//! progress, and falls away once the last attempt has failed or nothing is under way. Two starts
//! are never closer than [`ATTEMPT_DELAY_FLOOR`](crate::policy::ATTEMPT_DELAY_FLOOR), unless the
//! policy asks for a simultaneous race.
//!
//! While the limits of the race or of the process are reached, an attempt has to make room before
//! another starts (`turns`): the one that nobody has answered for longest, or that has stalled. It
//! is no failure, and its candidate has another turn later. Once as many candidates have been tried
//! as may be in flight, [`Policy::attempt_delay_min`] lies between two starts: where so many are
//! silent, what works is to be found soon.
//!
//! # What nobody answers
//!
//! Loss can swallow a first packet or its answer, and transports take a second to try again where
//! they know no round trip. So a candidate that is silent is tried again beside the first attempt
//! ([`Policy::second_tries`]), by a new attempt each time, at growing distances, until there is a
//! winner. The first to complete wins, the others at the same candidate are closed, and their
//! silence teaches nothing.
//!
//! # After the win
//!
//! DNS is read for [`Policy::dns_after_win`], so that a late HTTPS record still leads to an
//! upgrade. What the plan marked for a re-test starts in the background, and with the late switch
//! so does what is wanted more than the winner and was not yet tried. At most [`MAX_BACKGROUND`]
//! such attempts run in one race. An attempt for an upgrade or a re-test that stays without an
//! answer for [`Policy::late_switch_for`] is closed and remembered as silent; once it has been
//! answered it has until the deadline. With the late switch, what stood before the winner and was
//! not answered goes on as long, be it wanted more or not: it is closed at its first answer, and
//! remembered if there is none. Otherwise an address that goes nowhere would delay every race
//! whose memory of the winner has faded.
//!
//! # A host that refuses
//!
//! When everything else has come to its end, an attempt that nobody has answered, at an address
//! that refused another transport, is given [`Policy::refused_host_patience`] and then fails as
//! silent: a server that is not there is told at once, and not at the deadline. Beside a certificate
//! that was not accepted it is given less, for the same would come over every transport.
//!
//! # Everything to its end
//!
//! With [`Policy::exhaustive`] nobody wins before every candidate has ended or the deadline has
//! come. Then the most wanted transport among those that completed is `Usable`; within one
//! transport the quickest handshake counts.

mod attempt;
mod background;
mod ending;
mod evidence;
mod inbox;
mod init_ack_gate;
mod lookup;
mod refusal;
mod rules;
mod schedule;
mod second_try;
mod turns;
mod winner;

#[cfg(test)]
mod tests;

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use attempt::{Attempt, AttemptState, Purpose};
pub use background::MAX_BACKGROUND;

use crate::evidence::Level;
use crate::io::{AttemptId, Input, NetworkView, Output};
use crate::memory::View;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::target::Target;
use inbox::Inbox;
use lookup::Lookup;
use schedule::Standing;
use turns::Slots;

/// What a race is about. Together with the inputs it determines every output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Whom to reach.
    pub target: Target,
    /// What the caller wants; see [`Policy::validated`].
    pub policy: Policy,
    /// What is remembered of the target on this network.
    pub view: View,
    /// The network that the race runs on.
    pub network: NetworkView,
    /// Decides what is random: the order of records of equal priority, and whether this race
    /// probes what the network is held to swallow.
    pub seed: u64,
}

/// Where the race as a whole stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has won.
    Racing,
    /// This attempt came to `win_at` and is not complete yet; nothing else starts meanwhile.
    Elected(AttemptId),
    /// Somebody has won.
    Won {
        /// When.
        at: Duration,
        /// The most wanted complete attempt so far: the winner, or the last `Better`.
        best: AttemptId,
    },
    /// `Finished` has been said.
    Over,
}

/// A race to one target.
#[derive(Clone, Debug)]
pub struct Race {
    setup: Arc<Setup>,
    started_at: Duration,
    now: Duration,
    stage: Stage,
    inbox: Inbox,
    outbox: VecDeque<Output>,
    lookup: Lookup,
    plan: Plan,
    /// When the plan was made: what the memory says counts as of then.
    planned_at: Duration,
    /// Indices into the plan's entries that wait for a turn: those that were not tried, in order,
    /// then those that made room, in the order of their end.
    waiting: VecDeque<usize>,
    /// In the order of starting: the index is the identifier.
    attempts: Vec<Attempt>,
    /// The first attempt that runs on the present network.
    first_here: usize,
    slots: Slots,
    /// What an attempt has to have come to beside the winner to count as heard of: the first byte
    /// where the winner's application has spoken, or else any answer.
    heard_from: Level,
    settled: bool,
    /// When the next decision is due without an input, as of the last time everything was settled.
    wake_at: Option<Duration>,
}

impl Race {
    /// A race that starts now.
    pub fn new(setup: impl Into<Arc<Setup>>, now: Duration) -> Self {
        let setup = setup.into();
        let lookup = Lookup::new(&setup, now);
        Self {
            setup,
            started_at: now,
            now,
            stage: Stage::Racing,
            inbox: Inbox::default(),
            outbox: VecDeque::new(),
            lookup,
            plan: Plan::default(),
            planned_at: now,
            waiting: VecDeque::new(),
            attempts: Vec::new(),
            first_here: 0,
            slots: Slots::default(),
            heard_from: Level::Answered,
            settled: false,
            wake_at: None,
        }
    }

    /// Notes a fact. Conclusions are drawn by the next [`Race::poll_output`].
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.advance(now);
        self.inbox.push(input);
        self.settled = false;
    }

    /// What to do next; call it until it gives [`Output::Timeout`], whose time always lies ahead.
    pub fn poll_output(&mut self, now: Duration) -> Output {
        self.advance(now);
        // What was decided is said before anything new is decided.
        if !self.settled && self.outbox.is_empty() {
            self.settle();
        }
        match self.outbox.pop_front() {
            Some(output) => output,
            None => Output::Timeout(self.wake_at),
        }
    }

    /// What the race was set up with; the network and the view are the present ones.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// When the race started.
    pub fn started_at(&self) -> Duration {
        self.started_at
    }

    /// The plan as it stands, with the reasons of every entry.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Every attempt, in the order of starting.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The attempt of this number.
    pub fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(usize::try_from(id.0).ok()?)
    }

    /// Whether [`Output::Finished`] has been decided.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether an attempt came as far as it has to, beside the winner, for its silence to say nothing.
    fn is_heard(&self, attempt: &Attempt) -> bool {
        attempt.level >= self.heard_from
    }

    fn advance(&mut self, now: Duration) {
        if now > self.now {
            self.now = now;
            self.settled = false;
        }
    }

    /// Draws every conclusion that the facts allow at this instant.
    fn settle(&mut self) {
        self.settled = true;
        if self.take_facts() {
            self.cancel();
        }
        self.wake_at = self.decide();
    }

    /// Applies the inputs of this instant; says whether the caller gave up a race that is not over.
    fn take_facts(&mut self) -> bool {
        let mut is_cancelled = false;
        let mut inputs = self.inbox.take();
        for input in inputs.drain(..) {
            // Nothing comes after the end, whatever is still said.
            if self.stage == Stage::Over {
                break;
            }
            match input {
                Input::Tick => {}
                Input::Slots(slots) => self.slots = Slots::with_left(slots),
                Input::NetworkChanged(change) => self.change_network(*change),
                Input::Answer(answer) => self.lookup.note_answer(answer),
                Input::Progress { id, level, rtt } => self.note_progress(id, level, rtt),
                Input::Ready { id, alpn, rtt, fell_back } => {
                    self.note_ready(id, alpn, rtt, fell_back);
                }
                Input::Failed { id, failure } => self.note_failure(id, failure),
                Input::Cancel => is_cancelled = true,
            }
        }
        self.inbox.give_back(inputs);
        self.lookup.conclude(self.now);
        is_cancelled
    }

    /// When there is something to ask, or to plan with.
    fn next_lookup(&self) -> Option<Duration> {
        if self.heeds_dns() { self.lookup.next_due(self.now) } else { None }
    }

    /// Asks what there is to ask, and plans again if the facts have changed.
    fn look_up(&mut self) {
        while let Some(query) = self.lookup.poll_query() {
            self.outbox.push_back(Output::Query(query));
        }
        if let Some(plan) = self.lookup.plan(&self.setup, self.now) {
            self.adopt(plan);
        }
    }

    fn adopt(&mut self, plan: Plan) {
        self.plan = plan;
        self.planned_at = self.now;
        let mut returning = Vec::new();
        self.waiting.clear();
        for (index, entry) in self.plan.entries.iter().enumerate() {
            match self.standing(&entry.candidate) {
                Standing::Untried => self.waiting.push_back(index),
                Standing::MadeRoom(last) => returning.push((last, index)),
                Standing::Spent => {}
            }
        }
        returning.sort_unstable();
        self.waiting.extend(returning.into_iter().map(|(_, index)| index));
    }
}
