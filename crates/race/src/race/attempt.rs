//! The state of one attempt.

use alloc::vec::Vec;
use core::time::Duration;

use crate::candidate::{AlpnName, Candidate, Security, Transport};
use crate::evidence::{AttemptFailure, EvidenceLevel};
use crate::io::{AttemptId, CloseReason};
use crate::plan::PlanReason;

/// How many round trips pass until a first retransmission is answered, if the round-trip time is
/// remembered: three for the probe timeout (RFC 9002 §6.2.1), one for the answer.
pub(super) const ROUND_TRIPS_WITH_RETRANSMISSION: u32 = 4;

/// When a first packet is retransmitted if no round-trip time is remembered.
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The probe timeout of QUIC, in remembered round trips (RFC 9002 §6.2.1).
const ROUND_TRIPS_TO_PROBE: u32 = 3;

/// By how much a busy server may exceed the round-trip time without a packet being lost.
const PROCESSING_MARGIN: Duration = Duration::from_millis(50);

/// The minimum delay due to a lost segment over TCP and SCTP once a round-trip time is known: Linux
/// waits 200 ms longer, RFC 6298 §2.4 and RFC 9260 §16 require a second.
const MIN_RETRANSMISSION_DELAY: Duration = Duration::from_millis(190);

/// One attempt of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceAttempt {
    /// Its number.
    pub id: AttemptId,
    /// The candidate.
    pub candidate: Candidate,
    /// The first attempt at the same candidate, if this is a second try.
    pub second_try_of: Option<AttemptId>,
    /// How often its candidate has made room for others before.
    pub turn: u32,
    /// When it was started.
    pub started: Duration,
    /// Why it has its rank in the plan.
    pub reasons: Vec<PlanReason>,
    /// Whether the memory determined its rank.
    pub from_memory: bool,
    /// Whether it was started beside a connection that already worked.
    pub background: bool,
    /// The furthest level it reached.
    pub level: EvidenceLevel,
    /// When it last made progress; the time of its start if it made none.
    pub progress_at: Duration,
    /// The round-trip time that the memory expected, as the transport's initial estimate.
    pub initial_rtt: Option<Duration>,
    /// The round-trip time of the handshake, if it was measured.
    pub rtt: Option<Duration>,
    /// When the peer was first heard.
    pub answered_at: Option<Duration>,
    /// Whether it was told to proceed after the peer's first answer, if it waits there.
    pub proceeded: bool,
    /// Whether the kernel fell back to plain TCP although MPTCP was requested.
    pub fell_back: bool,
    /// Whether its ClientHello takes one packet, because one of two does not get through: the memory knows that, or the
    /// attempt has found out.
    pub short_hello: bool,
    /// What became of the long one, if it has found out.
    pub long_hello_failure: Option<AttemptFailure>,
    /// Its current state.
    pub state: AttemptState,
}

/// The state of an attempt.
// Each event asks every attempt for it. A tag of its own is read in one instruction; the one that the compiler hides
// in unused values of the fields takes five.
#[repr(u8)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// In progress.
    UnderWay(AttemptPurpose),
    /// Complete, waiting for the decision.
    Complete(AttemptCompletion),
    /// It won, and its connection was passed to the caller.
    Usable(AttemptCompletion),
    /// It completed after the win, and was passed to the caller as the preferred one.
    Better(AttemptCompletion),
    /// It failed.
    Failed {
        /// When it failed.
        at: Duration,
        /// How it failed.
        failure: AttemptFailure,
    },
    /// It was closed.
    Closed {
        /// When it was closed.
        at: Duration,
        /// The reason.
        why: CloseReason,
        /// When it had completed, if it had.
        completed: Option<Duration>,
    },
}

/// The purpose of an attempt in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptPurpose {
    /// To win the race.
    Win,
    /// To become `Better` after a less preferred transport has won. Closed as silent at this time
    /// unless it has been answered.
    Upgrade(Duration),
    /// To find out whether something that failed works again. Closed as silent at this time unless
    /// it has been answered.
    Retest(Duration),
    /// To find out whether it is silent: it was planned before the winner but not answered, or not
    /// by the application although the winner's had answered. Closed at its first answer, or as
    /// silent at this time.
    Silence(Duration),
    /// To end on its own and so yield evidence; closed at this time.
    Evidence(Duration),
}

/// How an attempt completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptCompletion {
    /// When it completed.
    pub at: Duration,
    /// The negotiated application protocol.
    pub alpn: Option<AlpnName>,
}

impl RaceAttempt {
    /// Returns the level at which a connection to this candidate is complete.
    pub fn complete_at(&self) -> EvidenceLevel {
        match self.candidate.security {
            Security::None => EvidenceLevel::Transport,
            Security::Tls | Security::Dtls => EvidenceLevel::Security,
        }
    }

    /// Returns the transport in use: plain TCP if MPTCP fell back.
    pub fn transport(&self) -> Transport {
        let planned = self.candidate.transport;
        if self.fell_back { planned.falls_back_to().unwrap_or(planned) } else { planned }
    }

    /// Returns how it completed, if it did and is still open.
    pub fn completion(&self) -> Option<&AttemptCompletion> {
        match &self.state {
            AttemptState::Complete(completion)
            | AttemptState::Usable(completion)
            | AttemptState::Better(completion) => Some(completion),
            _ => None,
        }
    }

    /// Returns when it ended for whatever reason, or completed.
    pub fn ended(&self) -> Option<Duration> {
        match &self.state {
            AttemptState::UnderWay(_) => None,
            AttemptState::Complete(completion)
            | AttemptState::Usable(completion)
            | AttemptState::Better(completion) => Some(completion.at),
            AttemptState::Closed { at, completed, .. } => Some(completed.unwrap_or(*at)),
            AttemptState::Failed { at, .. } => Some(*at),
        }
    }

    /// Returns whether ending at `now` would leave no time for a lost first packet to be
    /// retransmitted and answered. Without a known round-trip time it is retransmitted after a
    /// second (RFC 9002 §6.2.2, RFC 6298 §2.1); over QUIC with a known one, after three times that
    /// (RFC 9002 §6.2.1).
    pub fn is_cut_short(&self, now: Duration) -> bool {
        now.saturating_sub(self.started)
            < self.retransmission_timeout(ROUND_TRIPS_WITH_RETRANSMISSION)
    }

    /// Returns when a first packet is retransmitted: after this many round trips if the round-trip
    /// time is remembered and the transport uses it.
    fn retransmission_timeout(&self, round_trips: u32) -> Duration {
        let remembered =
            self.initial_rtt.filter(|_| self.candidate.transport.probes_by_round_trip());
        remembered.map_or(INITIAL_TIMEOUT, |rtt| rtt.saturating_mul(round_trips))
    }

    /// Returns whether the answer was so late that the first packets, or the answer to them, must
    /// have been retransmitted: after the timeout of the transport and well after one round trip.
    /// Over TCP and SCTP the first timeout is 1 s (RFC 6298 §2.1, RFC 9260 §16).
    ///
    /// A delay after the answer counts as well ([`Self::was_completed_late`]).
    pub(super) fn was_retransmitted(&self) -> Option<bool> {
        let waited = self.answered_at?.saturating_sub(self.started);
        let timeout = self.retransmission_timeout(ROUND_TRIPS_TO_PROBE);
        let round_trip = self.rtt.or(self.initial_rtt).unwrap_or_default();
        let answered_late =
            waited >= timeout && waited >= round_trip.saturating_add(PROCESSING_MARGIN);
        Some(answered_late || self.was_completed_late())
    }

    /// Returns whether the time between the first answer and the end of the handshakes was so long
    /// that a later flight must have been retransmitted: well above its round trips. QUIC needs one
    /// flight, or two for a long certificate chain (RFC 9000 §8.1), and knows the round-trip time
    /// by then, so its probe timeout is three round trips. The others need as many round trips
    /// again for their security. An attempt that waits for the application, and TCP without
    /// security, which is complete with the first answer, reveal nothing by taking longer.
    fn was_completed_late(&self) -> bool {
        let (transport, security) = (self.candidate.transport, self.candidate.security);
        let round_trips_to_complete = transport.round_trips_under(security);
        let is_complete_when_answered = security == Security::None && round_trips_to_complete == 1;
        if self.level >= EvidenceLevel::FirstByte || is_complete_when_answered {
            return false;
        }
        let (Some(answered), Some(done)) = (self.answered_at, self.completion()) else {
            return false;
        };
        let Some(rtt) = self.rtt.or(self.initial_rtt) else { return false };
        let round_trips = transport.round_trips().saturating_mul(2);
        let late = if transport.probes_by_round_trip() {
            PROCESSING_MARGIN
        } else {
            MIN_RETRANSMISSION_DELAY
        };
        let limit = rtt.saturating_mul(round_trips).saturating_add(late);
        done.at.saturating_sub(answered) >= limit
    }

    /// Records when the peer was first heard.
    pub(super) fn record_answer(&mut self, now: Duration) {
        self.answered_at = self.answered_at.or_else(|| self.is_answered().then_some(now));
    }

    /// Returns its purpose, while it is in progress.
    pub(super) fn purpose(&self) -> Option<AttemptPurpose> {
        match self.state {
            AttemptState::UnderWay(purpose) => Some(purpose),
            _ => None,
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.state, AttemptState::UnderWay(_))
    }

    pub(super) fn is_answered(&self) -> bool {
        self.level >= EvidenceLevel::Answered
    }

    /// Returns when it completed, if it is still to be decided whether it wins.
    pub(super) fn awaiting_decision_since(&self) -> Option<Duration> {
        match &self.state {
            AttemptState::Complete(completion) => Some(completion.at),
            _ => None,
        }
    }

    /// Returns whether it was closed so that another could start.
    pub(super) fn made_room(&self) -> bool {
        matches!(self.state, AttemptState::Closed { why: CloseReason::MadeRoom, .. })
    }

    /// Returns why it failed, if it did.
    pub fn failure(&self) -> Option<&AttemptFailure> {
        match &self.state {
            AttemptState::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }
}
