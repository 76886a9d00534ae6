//! When a session that has something to send counts as silent, and when a lost one is replaced. Pure.
//!
//! A transport notices that its peer is gone after many retransmissions. Until then everything that programs send
//! disappears, although a new connection might take milliseconds. So a session that shows no sign of life when it
//! should have is *doubted*: another one is tried beside it, and the first that answers is used. A doubt costs a race,
//! but decides nothing: a session that comes back to life goes on.
//!
//! Signs of life are what the other end's session sends, and acknowledgements that only the other end's transport can
//! have sent. They are counted by the caller. A healthy session is not sent anything because of this, unless its
//! transport shows no acknowledgements, or a request is not answered for long.

use std::time::Duration;

/// The bounds of the time within which a sign of life is expected after something was sent. A single lost packet must
/// be no reason for a doubt: the minimum leaves room for a retransmission timeout of TCP, 200 ms (Linux).
const PATIENCE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// The same time in round trips: one for the answer, and two for a retransmission with its answer.
const ROUND_TRIPS: u32 = 3;
/// The longest time, however long a round trip takes: that of a retransmission of TCP whose peer is unknown (RFC 6298
/// §2.4 allows up to a minute, but two seconds are enough for a satellite).
const MAX_PATIENCE: Duration = Duration::from_secs(2);

/// What to do about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LivenessStep {
    /// Nothing.
    Wait,
    /// Request an answer, because acknowledgements are not visible.
    Ask,
    /// Try another session beside it.
    Doubt,
    /// Stop trying: it lives.
    Trust,
}

/// A reading of a session's signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignsOfLife {
    /// A count of what the other end's session has sent.
    pub(crate) received: u64,
    /// A count that grows with each acknowledgement of its transport, if they are visible.
    pub(crate) acknowledged: Option<u64>,
    /// The round-trip time, once measured.
    pub(crate) rtt: Option<Duration>,
}

/// The signs of life of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionLiveness {
    state: LivenessState,
    /// The number of doubts that were wrong, each of which doubles the patience.
    wrong: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum LivenessState {
    /// Nothing has been sent since the last sign.
    #[default]
    Quiet,
    /// Something was sent after this reading.
    Waiting { since: LivenessReading, due: Duration },
    /// No sign has come since this reading.
    Doubted { since: LivenessReading, was_silent: bool },
}

/// What is compared with later readings.
#[derive(Clone, Copy, Debug)]
struct LivenessReading {
    received: u64,
    acknowledged: Option<u64>,
    /// Whether only an answer of the session counts, because one was requested: a middlebox that divides a connection
    /// in two acknowledges for itself, and so does the kernel of a process that hangs.
    needs_answer: bool,
}

impl LivenessReading {
    fn new(signs: SignsOfLife, needs_answer: bool) -> Self {
        Self { received: signs.received, acknowledged: signs.acknowledged, needs_answer }
    }

    fn is_answered_by(self, signs: SignsOfLife) -> bool {
        let is_acknowledged = !self.needs_answer && signs.acknowledged != self.acknowledged;
        is_acknowledged || signs.received != self.received
    }
}

impl SessionLiveness {
    /// Handles that something is about to be sent. Reads the signs only if nothing else waits for one.
    pub(crate) fn handle_sending(&mut self, now: Duration, signs: impl FnOnce() -> SignsOfLife) {
        if matches!(self.state, LivenessState::Quiet) {
            let signs = signs();
            let due = now + self.patience(signs.rtt);
            self.state = LivenessState::Waiting { since: LivenessReading::new(signs, false), due };
        }
    }

    /// Handles that an answer was requested from the other end's session.
    pub(crate) fn handle_question(&mut self, now: Duration, signs: SignsOfLife) {
        let is_asked = match self.state {
            LivenessState::Quiet => false,
            LivenessState::Waiting { since, .. } => since.needs_answer,
            LivenessState::Doubted { .. } => true,
        };
        if !is_asked {
            let due = now + self.patience(signs.rtt);
            self.state = LivenessState::Waiting { since: LivenessReading::new(signs, true), due };
        }
    }

    /// Handles that the machine was suspended: nobody knows what the other end has forgotten meanwhile.
    pub(crate) fn handle_suspension(&mut self, signs: impl FnOnce() -> SignsOfLife) {
        if !self.is_doubted() {
            let since = LivenessReading::new(signs(), false);
            self.state = LivenessState::Doubted { since, was_silent: false };
        }
    }

    /// Handles a reading of the signs, at [`next_timeout`](Self::next_timeout) and as often as the caller likes. After
    /// [`LivenessStep::Ask`] the caller reports the [question](Self::handle_question).
    pub(crate) fn handle_signs(&mut self, now: Duration, signs: SignsOfLife) -> LivenessStep {
        match self.state {
            LivenessState::Quiet => LivenessStep::Wait,
            LivenessState::Waiting { since, .. } if since.is_answered_by(signs) => {
                self.state = LivenessState::Quiet;
                LivenessStep::Wait
            }
            LivenessState::Waiting { due, .. } if now < due => LivenessStep::Wait,
            LivenessState::Waiting { since, .. }
                if !since.needs_answer && signs.acknowledged.is_none() =>
            {
                LivenessStep::Ask
            }
            LivenessState::Waiting { since, .. } => {
                self.state = LivenessState::Doubted { since, was_silent: true };
                LivenessStep::Doubt
            }
            LivenessState::Doubted { since, was_silent } if since.is_answered_by(signs) => {
                self.state = LivenessState::Quiet;
                self.wrong = self.wrong.saturating_add(was_silent.into());
                LivenessStep::Trust
            }
            LivenessState::Doubted { .. } => LivenessStep::Wait,
        }
    }

    /// Returns when the signs must be read.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        match self.state {
            LivenessState::Waiting { due, .. } => Some(due),
            LivenessState::Quiet | LivenessState::Doubted { .. } => None,
        }
    }

    /// Returns whether the session should have shown a sign of life, and has not.
    pub(crate) fn is_doubted(&self) -> bool {
        matches!(self.state, LivenessState::Doubted { .. })
    }

    /// Returns how long to wait for a sign. A path where doubts are wrong, because it loses or delays a lot, gets more
    /// time, up to a second.
    fn patience(&self, rtt: Option<Duration>) -> Duration {
        let expected = rtt.map_or(PATIENCE.1, |rtt| rtt.saturating_mul(ROUND_TRIPS));
        let expected = expected.clamp(PATIENCE.0, MAX_PATIENCE);
        let doubled = expected.saturating_mul(2u32.saturating_pow(self.wrong));
        doubled.min(PATIENCE.1.max(expected))
    }
}

/// The first and the longest pause before reconnecting. Each pause is twice as long as the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// The longest pause while a program waits for the next session.
const WANTED: Duration = Duration::from_millis(500);
/// After a session that lasted this long, the pauses start with the first one.
const STABLE: Duration = Duration::from_secs(30);

/// When to try to reconnect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReconnectAttempts {
    /// When the pause began.
    since: Duration,
    pause: Duration,
}

impl ReconnectAttempts {
    /// Creates them after a session that lasted this long.
    pub(crate) fn after_session(now: Duration, session: Duration) -> Self {
        let pause = if session >= STABLE { PAUSES.0 } else { 4 * PAUSES.0 };
        Self { since: now, pause }
    }

    /// Handles that an attempt failed.
    pub(crate) fn handle_failure(&mut self, now: Duration) {
        *self = Self { since: now, pause: (2 * self.pause).min(PAUSES.1) };
    }

    /// Returns when the next one is due, given whether a program waits.
    pub(crate) fn next(&self, is_wanted: bool) -> Duration {
        let pause = if is_wanted { self.pause.min(WANTED) } else { self.pause };
        self.since + pause
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A reading of a session that has sent nothing but acknowledgements.
    fn signs(count: u64, rtt: Option<Duration>) -> SignsOfLife {
        SignsOfLife { received: 0, acknowledged: Some(count), rtt }
    }

    #[test]
    fn a_session_that_acknowledges_is_never_asked_or_doubted() {
        let mut liveness = SessionLiveness::default();
        let mut now = Duration::ZERO;
        for count in 0..1000 {
            liveness.handle_sending(now, || signs(count, Some(20 * MS)));
            let due = liveness.next_timeout().expect("a reading is due");
            now += 20 * MS;
            assert_eq!(
                liveness.handle_signs(due, signs(count + 1, Some(20 * MS))),
                LivenessStep::Wait
            );
            assert_eq!(liveness.next_timeout(), None);
        }
    }

    #[test]
    fn silence_is_doubted_once_and_a_sign_ends_the_doubt() {
        let mut liveness = SessionLiveness::default();
        liveness.handle_sending(MS, || signs(7, Some(10 * MS)));
        // What is sent later does not extend the time.
        liveness.handle_sending(200 * MS, || unreachable!("one reading is enough"));
        assert_eq!(liveness.next_timeout(), Some(251 * MS));
        assert_eq!(liveness.handle_signs(250 * MS, signs(7, None)), LivenessStep::Wait);
        assert_eq!(liveness.handle_signs(251 * MS, signs(7, None)), LivenessStep::Doubt);
        assert_eq!((liveness.is_doubted(), liveness.next_timeout()), (true, None));
        assert_eq!(liveness.handle_signs(900 * MS, signs(7, None)), LivenessStep::Wait);
        assert_eq!(liveness.handle_signs(901 * MS, signs(8, None)), LivenessStep::Trust);
        assert!(!liveness.is_doubted());
        // The next doubt takes longer.
        liveness.handle_sending(1000 * MS, || signs(8, Some(10 * MS)));
        assert_eq!(liveness.next_timeout(), Some(1500 * MS));
    }

    #[test]
    fn where_acknowledgements_are_invisible_the_other_end_is_asked_first() {
        let mut liveness = SessionLiveness::default();
        let hidden = |received| SignsOfLife { received, acknowledged: None, rtt: Some(MS) };
        liveness.handle_sending(Duration::ZERO, || hidden(0));
        assert_eq!(liveness.handle_signs(250 * MS, hidden(0)), LivenessStep::Ask);
        liveness.handle_question(250 * MS, hidden(0));
        assert_eq!(liveness.handle_signs(499 * MS, hidden(0)), LivenessStep::Wait);
        assert_eq!(liveness.handle_signs(500 * MS, hidden(0)), LivenessStep::Doubt);
    }

    #[test]
    fn an_acknowledgement_is_no_answer_to_a_question() {
        let mut liveness = SessionLiveness::default();
        liveness.handle_sending(Duration::ZERO, || signs(0, Some(MS)));
        liveness.handle_question(MS, signs(0, Some(MS)));
        assert_eq!(liveness.handle_signs(250 * MS, signs(1, Some(MS))), LivenessStep::Wait);
        // A second question does not extend the time.
        liveness.handle_question(250 * MS, signs(1, Some(MS)));
        assert_eq!(liveness.handle_signs(251 * MS, signs(2, Some(MS))), LivenessStep::Doubt);
        assert_eq!(liveness.handle_signs(252 * MS, signs(3, Some(MS))), LivenessStep::Wait);
        let answer = SignsOfLife { received: 9, ..signs(3, Some(MS)) };
        assert_eq!(liveness.handle_signs(253 * MS, answer), LivenessStep::Trust);
    }

    #[test]
    fn a_suspension_is_a_reason_for_a_doubt() {
        let mut liveness = SessionLiveness::default();
        liveness.handle_suspension(|| signs(3, None));
        assert!(liveness.is_doubted());
        assert_eq!(liveness.handle_signs(MS, signs(4, None)), LivenessStep::Trust);
        // That doubt does not make the next one later.
        liveness.handle_sending(MS, || signs(4, Some(MS)));
        assert_eq!(liveness.next_timeout(), Some(251 * MS));
    }

    #[test]
    fn attempts_are_frequent_while_a_program_waits() {
        let mut attempts = ReconnectAttempts::after_session(Duration::ZERO, STABLE);
        assert_eq!(attempts.next(false), 250 * MS);
        let mut now = Duration::ZERO;
        for _ in 0..20 {
            now += attempts.next(true).saturating_sub(now);
            attempts.handle_failure(now);
            assert!(attempts.next(true) <= now + WANTED);
            assert!(attempts.next(false) <= now + PAUSES.1);
        }
        assert_eq!(attempts.next(false), now + PAUSES.1);
        assert_eq!(ReconnectAttempts::after_session(now, MS).next(false), now + 1000 * MS);
    }

    /// A moment in the life of a session.
    #[derive(Clone, Debug)]
    enum SessionMoment {
        Pass(u64),
        Send,
        Acknowledge,
        Answer,
        Ask,
        Suspend,
    }

    fn moment() -> impl Strategy<Value = SessionMoment> {
        prop_oneof![
            4 => (1u64..700).prop_map(SessionMoment::Pass),
            3 => Just(SessionMoment::Send),
            2 => Just(SessionMoment::Acknowledge),
            2 => Just(SessionMoment::Answer),
            1 => Just(SessionMoment::Ask),
            1 => Just(SessionMoment::Suspend),
        ]
    }

    proptest! {
        /// Whatever happens: only a session that did not answer for its patience is doubted, none is doubted later than
        /// after the longest patience twice, and a doubt ends with an answer.
        #[test]
        fn doubts_have_a_reason_and_come_in_time(
            moments in proptest::collection::vec(moment(), 1..200),
            rtt in proptest::option::of(0u64..5000),
            is_visible in any::<bool>(),
        ) {
            let rtt = rtt.map(Duration::from_millis);
            let (mut liveness, mut now) = (SessionLiveness::default(), Duration::ZERO);
            let (mut received, mut acknowledged) = (0, 0);
            // When something was first sent since the last sign, and when an answer was first requested.
            let (mut unanswered, mut asked): (Option<Duration>, Option<Duration>) = (None, None);
            let mut is_suspended = false;
            for moment in moments {
                let read = |received, acknowledged| SignsOfLife {
                    received,
                    acknowledged: is_visible.then_some(acknowledged),
                    rtt,
                };
                match moment {
                    SessionMoment::Pass(ms) => {
                        let until = now + Duration::from_millis(ms);
                        while let Some(due) = liveness.next_timeout().filter(|due| *due <= until) {
                            now = now.max(due);
                            let signs = read(received, acknowledged);
                            let step = liveness.handle_signs(now, signs);
                            if step == LivenessStep::Doubt {
                                let since = unanswered.into_iter().chain(asked).min();
                                prop_assert!(now - since.expect("a reason") >= PATIENCE.0);
                            } else if step == LivenessStep::Ask {
                                liveness.handle_question(now, signs);
                                asked = asked.or(Some(now));
                            }
                        }
                        now = until;
                    }
                    SessionMoment::Send => {
                        liveness.handle_sending(now, || read(received, acknowledged));
                        unanswered = unanswered.or(Some(now));
                    }
                    SessionMoment::Ask => {
                        liveness.handle_question(now, read(received, acknowledged));
                        asked = asked.or(Some(now));
                    }
                    SessionMoment::Acknowledge => {
                        acknowledged += 1;
                        liveness.handle_signs(now, read(received, acknowledged));
                        if is_visible {
                            unanswered = None;
                            is_suspended &= liveness.is_doubted();
                        }
                    }
                    SessionMoment::Answer => {
                        received += 1;
                        let was_doubted = liveness.is_doubted();
                        let step = liveness.handle_signs(now, read(received, acknowledged));
                        prop_assert_eq!(step == LivenessStep::Trust, was_doubted);
                        prop_assert!(!liveness.is_doubted());
                        (unanswered, asked, is_suspended) = (None, None, false);
                    }
                    SessionMoment::Suspend => {
                        liveness.handle_suspension(|| read(received, acknowledged));
                        is_suspended = true;
                        prop_assert!(liveness.is_doubted());
                    }
                }
                let since = unanswered.into_iter().chain(asked).min();
                let is_late = unanswered.is_some_and(|since| now - since > 2 * MAX_PATIENCE);
                prop_assert!(!is_late || liveness.is_doubted());
                prop_assert!(!liveness.is_doubted() || since.is_some() || is_suspended);
            }
        }
    }
}
