//! Decides what happens to one request on a connection that was used before: reuse is raced.
//!
//! ```text
//!           ┌────────────────────────────── alive ─────────────────────────────┐
//!           │                                                                   ▼
//! Check ──▶ Sent ── no sign of life within the delay ──▶ race beside it     response
//!                                                          │ won, still no sign
//!                                                          ├──▶ may be repeated: sent again there, first answer wins
//!                                                          └──▶ may not: waits on the connection that has it,
//!                                                               and is abandoned there after a while
//! ```
//!
//! A sign of life is anything that the peer's host has sent since: an acknowledgement of the
//! request, an answer to a probe, any frame. A slow service is none of its business: while the host
//! acknowledges, nothing is raced. What has come may have been on its way before the request was
//! sent, and a host may die while it works, so one that has nothing to send is asked from time to
//! time while a response is awaited, and raced if it does not answer.
//!
//! Pure: `(now, input)` in, outputs out. Times are durations since an epoch chosen by the driver.

use std::{collections::VecDeque, time::Duration};

/// The shortest time without a sign of life after which a race starts. Below it, an acknowledgement
/// that the peer delays (RFC 9000 §13.2.1: 25 ms by default) or one lost packet would start races.
pub(crate) const MIN_DELAY: Duration = Duration::from_millis(100);

/// The longest, for estimates from a path that was once congested.
const MAX_DELAY: Duration = Duration::from_secs(3);

/// The delay if the round-trip time is unknown: Chromium's, for a second connection beside a slow
/// one.
const DEFAULT_DELAY: Duration = Duration::from_millis(250);

/// The delay in round-trip times. A packet that was lost is sent again after somewhat more than one
/// (RFC 9002 §6.2), and its acknowledgement takes another one.
const ROUND_TRIPS: u32 = 3;

/// How long a connection is idle before it is checked ahead of a request that may not be repeated:
/// Chromium's `connection_at_risk_of_loss_time`. RFC 4787 §4.3 wants NATs to remember UDP for two
/// minutes and RFC 5382 §5 TCP for two hours, but many forget UDP after 30 seconds.
pub(crate) const CHECK_AFTER: Duration = Duration::from_secs(10);

/// How often an answer to a probe is looked for, once it is due.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How long a request waits before its connection, which has shown a sign of life, is asked for
/// another one; doubled each time.
const FIRST_QUESTION_AFTER: Duration = Duration::from_secs(2);

/// The longest such wait: RFC 9000 §10.1.2 suggests keeping a connection alive well within its idle
/// timeout, which is 30 s.
const MAX_QUESTION_AFTER: Duration = Duration::from_secs(10);

/// The shortest time for an answer to such a question: a host that works on the request may be too
/// busy to answer sooner.
const MIN_ANSWER_TIME: Duration = Duration::from_secs(2);

/// How long to wait before another race after one that failed; doubled each time.
const FIRST_BACK_OFF: Duration = Duration::from_secs(1);

/// The longest such wait.
const MAX_BACK_OFF: Duration = Duration::from_secs(30);

/// How long a request that may not be repeated is waited for on a dead connection: as long as QUIC
/// connections may be silent, and far less than `TCP_USER_TIMEOUT`.
const ABANDON_AFTER: Duration = Duration::from_secs(30);

/// Returns how long a connection with this round-trip time may show no sign of life.
pub(crate) fn delay(rtt: Option<Duration>) -> Duration {
    rtt.map_or(DEFAULT_DELAY, |rtt| (rtt * ROUND_TRIPS).clamp(MIN_DELAY, MAX_DELAY))
}

/// What is known about the request and its connection at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The connection's round-trip time.
    pub(crate) rtt: Option<Duration>,
    /// How long the connection has been idle.
    pub(crate) idle: Duration,
    /// Whether the request may reach the server twice: it is idempotent (RFC 9110 §9.2.2), and its
    /// body can be sent again.
    pub(crate) may_repeat: bool,
    /// Whether the connection can be asked for a sign of life without a request.
    pub(crate) can_check: bool,
}

/// One of the two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The one from the pool.
    Reused,
    /// The one that the race beside it made.
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The result of [`Output::Look`].
    Looked(Sign),
    /// Another request has found the connection without a sign of life.
    Doubted,
    /// The race has made a connection.
    RaceWon,
    /// The race has failed.
    RaceFailed,
    /// The head of a response has arrived.
    Answered(Lane),
    /// The connection, or its stream, has failed.
    Failed(Lane),
    /// The time of [`Output::Timeout`] has come.
    Tick,
}

/// Whether the connection has shown a sign of life since the request or the probe was sent, or, for
/// a request that was acknowledged before another one found none, since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Seen,
    /// Not yet, though the transport itself allows this much time.
    NotWithin(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Ask the connection for a sign of life.
    Probe,
    /// Send the request.
    Send(Lane),
    /// Look for a sign of life.
    Look,
    /// Let no other request use the connection, and tell those that do.
    Doubt,
    /// Let others use it again.
    Trust,
    /// Start a race.
    StartRace,
    /// End the race, which is not needed.
    EndRace,
    /// The connection is dead: a new one was made, and it has still shown no sign of life.
    Dead,
    /// The response of this lane is the request's.
    Use(Lane),
    /// The failure of this lane is the request's.
    Fail(Lane),
    /// The failure of the race is the request's; nothing was sent.
    GiveUp,
    /// The dead connection that has the request stayed silent, and that is the request's failure.
    Abandon,
    /// Wait for an input, at most until then.
    Timeout(Option<Duration>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The connection was asked for a sign of life; nothing was sent.
    Checking,
    /// The request was sent, and no sign of life has been looked for.
    Waiting,
    /// A sign of life was seen.
    Alive,
    /// The connection was asked for another one.
    Asked,
    /// No sign of life: a race is in progress, or will be.
    Racing { sent: bool },
    /// The connection is dead, and has the request, which may not be repeated.
    Stuck,
    /// The request was sent again.
    Repeated,
    /// The request has its outcome.
    Over,
}

/// The state of one request.
#[derive(Debug)]
pub(crate) struct ReusedRequest {
    setup: Setup,
    phase: Phase,
    /// When the request or the last probe was sent, or, if that was acknowledged, when another
    /// request found no sign of life.
    since: Duration,
    /// How long after a sign of life the connection is asked for another one.
    question_after: Duration,
    /// When to look for a sign of life.
    due: Option<Duration>,
    /// Whether a wake-up has come too late before.
    was_late: bool,
    is_doubted: bool,
    is_racing: bool,
    /// When to race again after a race that failed.
    race_at: Option<Duration>,
    back_off: Duration,
    /// Whether a race was won, and what it made has not been used.
    is_won: bool,
    is_stuck: bool,
    /// Which lanes have failed: reused, new.
    failed: [bool; 2],
    outputs: VecDeque<Output>,
}

impl ReusedRequest {
    pub(crate) fn new(setup: Setup, now: Duration) -> Self {
        let checks = setup.can_check && !setup.may_repeat && setup.idle >= CHECK_AFTER;
        let (phase, first, look_after) = match checks {
            // What may be repeated is sent at once: its acknowledgement is the sign of life.
            false => (Phase::Waiting, Output::Send(Lane::Reused), delay(setup.rtt)),
            true => (Phase::Checking, Output::Probe, setup.rtt.unwrap_or(CHECK_INTERVAL)),
        };
        Self {
            setup,
            phase,
            since: now,
            question_after: FIRST_QUESTION_AFTER,
            due: Some(now + look_after),
            was_late: false,
            is_doubted: false,
            is_racing: false,
            race_at: None,
            back_off: FIRST_BACK_OFF,
            is_won: false,
            is_stuck: false,
            failed: [false; 2],
            outputs: VecDeque::from([first]),
        }
    }

    pub(crate) fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            _ if self.phase == Phase::Over => {}
            Input::Tick => self.tick(now),
            Input::Looked(sign) => self.looked(now, sign),
            Input::Doubted => self.doubted(now),
            Input::RaceWon if self.is_racing => {
                self.is_racing = false;
                self.is_won = true;
                // The last look may be as old as the delay.
                self.outputs.push_back(Output::Look);
            }
            Input::RaceFailed if self.is_racing => self.race_failed(now),
            Input::RaceWon | Input::RaceFailed => {}
            Input::Answered(lane) => {
                if lane == Lane::Reused && matches!(self.phase, Phase::Racing { .. }) {
                    self.revive();
                }
                self.end(Output::Use(lane));
            }
            Input::Failed(lane) => self.lane_failed(lane),
        }
    }

    pub(crate) fn poll_output(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or(Output::Timeout(match self.phase {
            Phase::Over => None,
            _ => self.due.into_iter().chain(self.race_at).min(),
        }))
    }

    /// Returns whether the request waits, or has waited, on a dead connection that has it.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Returns whether the request waits on a connection that has shown a sign of life since, and
    /// has not been asked for another one.
    pub(crate) fn is_alive(&self) -> bool {
        self.phase == Phase::Alive
    }

    fn tick(&mut self, now: Duration) {
        if self.race_at.is_some_and(|at| at <= now) {
            self.start_race();
        }
        let Some(due) = self.due.filter(|due| *due <= now) else { return };
        if self.phase == Phase::Alive {
            self.ask(now);
            return;
        }
        let delay = delay(self.setup.rtt);
        let is_waiting = matches!(self.phase, Phase::Waiting | Phase::Asked);
        if is_waiting && now >= due + delay && !self.was_late {
            // This host was busy or suspended, and may find the sign of life in its queues yet.
            self.was_late = true;
            self.due = Some(now + MIN_DELAY);
            return;
        }
        self.due = Some(now + delay);
        self.outputs.push_back(Output::Look);
    }

    /// Asks a connection that has shown a sign of life whether it is still alive.
    fn ask(&mut self, now: Duration) {
        self.phase = Phase::Asked;
        self.since = now;
        self.was_late = false;
        self.question_after = (self.question_after * 2).min(MAX_QUESTION_AFTER);
        self.due = Some(now + delay(self.setup.rtt).max(MIN_ANSWER_TIME));
        self.outputs.push_back(Output::Probe);
    }

    fn looked(&mut self, now: Duration, sign: Sign) {
        match (sign, self.phase) {
            // Its end may have been a sign of life, too, but is of no use to the request.
            (Sign::Seen, Phase::Racing { .. }) if self.failed[0] => self.dead_if_won(now, true),
            (Sign::Seen, Phase::Checking | Phase::Racing { sent: false }) => {
                self.revive();
                self.outputs.push_back(Output::Send(Lane::Reused));
                self.phase = Phase::Waiting;
                self.since = now;
                self.due = Some(now + delay(self.setup.rtt));
            }
            (Sign::Seen, Phase::Waiting | Phase::Asked | Phase::Racing { sent: true }) => {
                self.revive();
                self.phase = Phase::Alive;
                self.due = self.setup.can_check.then(|| now + self.question_after);
            }
            (Sign::NotWithin(patience), Phase::Checking | Phase::Waiting | Phase::Asked) => {
                let patience = delay(self.setup.rtt).max(patience.min(MAX_DELAY));
                let is_checking = self.phase == Phase::Checking;
                match self.since + patience {
                    enough if enough <= now => self.begin_racing(now, !is_checking),
                    enough if is_checking => self.due = Some(enough.min(now + CHECK_INTERVAL)),
                    enough => self.due = Some(enough),
                }
            }
            (Sign::NotWithin(_), Phase::Racing { sent }) => self.dead_if_won(now, sent),
            // It comes too late for others, but the request may be answered yet.
            (Sign::Seen, Phase::Stuck) => {
                self.is_stuck = false;
                self.due = None;
            }
            (Sign::NotWithin(_), Phase::Stuck) => self.end(Output::Abandon),
            _ => {}
        }
    }

    /// If there is a new connection, the request moves there if it may.
    fn dead_if_won(&mut self, now: Duration, sent: bool) {
        if !std::mem::take(&mut self.is_won) {
            return;
        }
        self.outputs.push_back(Output::Dead);
        self.due = None;
        self.race_at = None;
        if sent && !self.setup.may_repeat {
            self.is_stuck = true;
            self.phase = Phase::Stuck;
            // If the connection comes back to life, a packet is sent again before it has been silent for
            // twice as long as until now (RFC 6298 §5.5, RFC 9002 §6.2.1).
            let silence = now.saturating_sub(self.since);
            self.due = Some(now + ABANDON_AFTER.max(silence) + delay(self.setup.rtt));
            return;
        }
        self.phase = Phase::Repeated;
        self.failed[0] |= !sent;
        self.outputs.push_back(Output::Send(Lane::New));
    }

    fn doubted(&mut self, now: Duration) {
        match self.phase {
            Phase::Waiting | Phase::Alive | Phase::Asked => {
                if self.phase == Phase::Alive {
                    self.since = now;
                }
                // Whoever found it has let no others use it.
                self.is_doubted = true;
                self.begin_racing(now, true);
            }
            Phase::Checking => {
                self.is_doubted = true;
                self.begin_racing(now, false);
            }
            _ => {}
        }
    }

    fn begin_racing(&mut self, now: Duration, sent: bool) {
        if !std::mem::replace(&mut self.is_doubted, true) {
            self.outputs.push_back(Output::Doubt);
        }
        self.phase = Phase::Racing { sent };
        self.due = Some(now + delay(self.setup.rtt));
        self.start_race();
    }

    fn start_race(&mut self) {
        self.race_at = None;
        self.is_racing = true;
        self.outputs.push_back(Output::StartRace);
    }

    fn race_failed(&mut self, now: Duration) {
        self.is_racing = false;
        match self.phase {
            Phase::Racing { sent: false } => self.end(Output::GiveUp),
            Phase::Racing { sent: true } if self.failed[0] => self.end(Output::Fail(Lane::Reused)),
            _ => {
                // The network may come back, and with it the connection.
                self.race_at = Some(now + self.back_off);
                self.back_off = (self.back_off * 2).min(MAX_BACK_OFF);
            }
        }
    }

    /// Handles the sign of life of a connection that others may doubt.
    fn revive(&mut self) {
        self.race_at = None;
        self.is_won = false;
        if std::mem::take(&mut self.is_racing) {
            self.outputs.push_back(Output::EndRace);
        }
        if std::mem::take(&mut self.is_doubted) {
            self.outputs.push_back(Output::Trust);
        }
    }

    fn lane_failed(&mut self, lane: Lane) {
        self.failed[lane as usize] = true;
        match (lane, self.phase) {
            // The race goes on without it.
            (Lane::Reused, Phase::Racing { .. }) if self.setup.may_repeat && self.is_racing => {
                self.due = None;
            }
            (Lane::Reused, Phase::Racing { .. }) if self.setup.may_repeat && self.is_won => {}
            (_, Phase::Repeated) if !self.failed.iter().all(|failed| *failed) => {}
            _ => self.end(Output::Fail(lane)),
        }
    }

    fn end(&mut self, outcome: Output) {
        if std::mem::take(&mut self.is_racing) {
            self.outputs.push_back(Output::EndRace);
        }
        self.outputs.push_back(outcome);
        self.phase = Phase::Over;
    }
}

#[cfg(test)]
mod tests;
