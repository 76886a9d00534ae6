//! The ClientHellos of one attempt: a long one, and a short one where that does not get through.
//!
//! With a share of X25519MLKEM768 a ClientHello takes two packets. Some devices on the path drop the second one, and
//! some servers do not put the two together. What would have passed with one packet must not be lost for that, and
//! what passes anyway must not wait for it:
//!
//! - The long ClientHello goes out first and alone, unless the memory knows that it does not get through.
//! - The short one, with X25519 alone, goes out beside it over a connection of its own once the long one is out of
//!   patience, or at once if the server ends the connection in a way that may be due to the length.
//! - The one that is answered first is used, and the other one is dropped.
//!
//! Patience is four round trips and at least a second. Over QUIC, whoever was not answered sends again after a probe
//! timeout of three round trips (RFC 9002 §6.2.1; 999 ms where none is known, §6.2.2), so that the answer to what was
//! lost once would have come a round trip later. Over TCP, where the first timeout is a second (RFC 6298 §2.1), the
//! kernel knows whether the server's host has the ClientHello: then it is the server that takes its time, and has 5 s.

use std::time::Duration;

use eyas_race::evidence::AttemptFailure;

/// How long a ClientHello may remain unanswered, at least, and in round trips.
const MIN_PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_ROUND_TRIPS: u32 = 4;
/// The round trip that is assumed where none is known (RFC 9002 §6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// How long a server may take to answer a ClientHello that has arrived. It may be busy.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);

/// The length of a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloLength {
    /// Two packets.
    Long,
    /// One packet.
    Short,
}

/// What has happened to the ClientHellos of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloInput {
    /// Patience has ended. The server's host may have acknowledged the long ClientHello, where that is known.
    Waited {
        /// Whether it has it, for all that is known.
        has_arrived: bool,
    },
    /// The server has answered this one.
    Answered(HelloLength),
    /// The handshake of this one has failed.
    Failed(HelloLength, HelloFault),
}

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloFault {
    /// In a way that may be due to the length of the ClientHello.
    MaybeLength,
    /// In any other way.
    Other,
}

/// A handshake that failed.
pub(super) struct HandshakeFailure {
    pub(super) failure: AttemptFailure,
    pub(super) fault: HelloFault,
}

impl From<AttemptFailure> for HandshakeFailure {
    fn from(failure: AttemptFailure) -> Self {
        Self { failure, fault: HelloFault::Other }
    }
}

/// What to do until the next input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloDecision {
    /// The long one is under way alone, and patience ends then.
    AwaitLong(Duration),
    /// Both are under way.
    AwaitBoth,
    /// This one is under way alone, and nothing but its end changes that.
    Await(HelloLength),
}

/// How far a ClientHello has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HelloState {
    Unsent,
    Sent,
    Answered,
    Failed(HelloFault),
}

/// The ClientHellos of an attempt. Times are since the long one was sent.
#[derive(Clone, Debug)]
pub(super) struct ClientHellos {
    long: HelloState,
    short: HelloState,
    patience: Duration,
}

impl ClientHellos {
    /// Starts with the long one.
    pub(super) fn new(rtt: Option<Duration>) -> Self {
        let round_trips = rtt.unwrap_or(INITIAL_RTT).saturating_mul(PATIENCE_ROUND_TRIPS);
        let patience = round_trips.max(MIN_PATIENCE);
        Self { long: HelloState::Sent, short: HelloState::Unsent, patience }
    }

    /// Handles an input, and returns whose failure has ended the attempt, if it has.
    pub(super) fn handle_input(&mut self, now: Duration, input: HelloInput) -> Option<HelloLength> {
        if let Some(which) = self.failed() {
            return Some(which);
        }
        match input {
            HelloInput::Waited { has_arrived } => self.handle_wait(now, has_arrived),
            HelloInput::Answered(which) => {
                let is_first = !matches!(self.state(which.other()), HelloState::Answered);
                if is_first && self.state(which) == HelloState::Sent {
                    *self.state_mut(which) = HelloState::Answered;
                }
            }
            HelloInput::Failed(which, fault) => {
                if matches!(self.state(which), HelloState::Sent | HelloState::Answered) {
                    self.handle_failure(which, fault);
                }
            }
        }
        self.failed()
    }

    fn handle_wait(&mut self, now: Duration, has_arrived: bool) {
        let is_due = self.long == HelloState::Sent && now >= self.patience;
        if !is_due || self.short != HelloState::Unsent {
            return;
        }
        if has_arrived && self.patience < SERVER_PATIENCE {
            self.patience = SERVER_PATIENCE;
        } else {
            self.short = HelloState::Sent;
        }
    }

    fn handle_failure(&mut self, which: HelloLength, fault: HelloFault) {
        let was_answered = self.state(which) == HelloState::Answered;
        // What follows an answer has nothing to do with the length.
        let fault = if was_answered { HelloFault::Other } else { fault };
        *self.state_mut(which) = HelloState::Failed(fault);
        let may_pass_short = which == HelloLength::Long && fault == HelloFault::MaybeLength;
        if may_pass_short && self.short == HelloState::Unsent {
            self.short = HelloState::Sent;
        }
        if which == HelloLength::Short && was_answered {
            // The server has had its say, whatever would become of the long one.
            self.long = HelloState::Unsent;
        }
    }

    /// Returns what to do now; nothing once the attempt has failed.
    pub(super) fn decision(&self) -> HelloDecision {
        use HelloState::{Answered, Failed, Sent, Unsent};
        match (self.long, self.short) {
            (_, Answered) | (Failed(_), Sent) | (Unsent, _) => {
                HelloDecision::Await(HelloLength::Short)
            }
            (Sent, Unsent) => HelloDecision::AwaitLong(self.patience),
            (Sent, Sent) => HelloDecision::AwaitBoth,
            (Answered, _) | (Sent, Failed(_)) | (Failed(_), Unsent | Failed(_)) => {
                HelloDecision::Await(HelloLength::Long)
            }
        }
    }

    /// Returns whose failure is that of the attempt.
    fn failed(&self) -> Option<HelloLength> {
        use HelloState::{Answered, Failed, Sent, Unsent};
        match (self.long, self.short) {
            (Answered | Sent, _) | (_, Answered) | (Failed(HelloFault::MaybeLength), Sent) => None,
            (Unsent, _) => Some(HelloLength::Short),
            // What the long one met says more, should both fail.
            (Failed(_), _) => Some(HelloLength::Long),
        }
    }

    /// Returns whether the long one did not get through, and the short one did.
    pub(super) fn shows_length(&self) -> bool {
        self.short == HelloState::Answered
    }

    const fn state(&self, which: HelloLength) -> HelloState {
        match which {
            HelloLength::Long => self.long,
            HelloLength::Short => self.short,
        }
    }

    const fn state_mut(&mut self, which: HelloLength) -> &mut HelloState {
        match which {
            HelloLength::Long => &mut self.long,
            HelloLength::Short => &mut self.short,
        }
    }
}

impl HelloLength {
    const fn other(self) -> Self {
        match self {
            Self::Long => Self::Short,
            Self::Short => Self::Long,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HelloLength::{Long, Short};
    use super::*;

    const INPUTS: [HelloInput; 8] = [
        HelloInput::Waited { has_arrived: false },
        HelloInput::Waited { has_arrived: true },
        HelloInput::Answered(Long),
        HelloInput::Answered(Short),
        HelloInput::Failed(Long, HelloFault::MaybeLength),
        HelloInput::Failed(Long, HelloFault::Other),
        HelloInput::Failed(Short, HelloFault::MaybeLength),
        HelloInput::Failed(Short, HelloFault::Other),
    ];
    /// Before the end of patience, at it, and after that of a server.
    const TIMES: [Duration; 3] =
        [Duration::from_millis(999), Duration::from_secs(2), Duration::from_secs(5)];

    /// An input, what is to be done then, and whose failure has ended the attempt.
    type Step = (Duration, HelloInput, HelloDecision, Option<HelloLength>);

    /// Calls `check` with every sequence of so many inputs, at times that do not go back, and what they led to.
    fn every_sequence(
        hellos: &ClientHellos,
        steps: &mut Vec<Step>,
        length: usize,
        check: &impl Fn(&ClientHellos, &[Step]),
    ) {
        check(hellos, steps);
        if steps.len() == length {
            return;
        }
        let earliest = steps.last().map_or(Duration::ZERO, |(at, ..)| *at);
        for at in TIMES.into_iter().filter(|at| *at >= earliest) {
            for input in INPUTS {
                let mut next = hellos.clone();
                let failed = next.handle_input(at, input);
                steps.push((at, input, next.decision(), failed));
                every_sequence(&next, steps, length, check);
                steps.pop();
            }
        }
    }

    fn check_all(check: impl Fn(&ClientHellos, &[Step])) {
        every_sequence(&ClientHellos::new(None), &mut Vec::new(), 4, &check);
    }

    fn has(steps: &[Step], input: HelloInput) -> bool {
        steps.iter().any(|(_, found, ..)| *found == input)
    }

    #[test]
    fn the_short_one_is_sent_only_out_of_patience_or_after_an_end_that_the_length_explains() {
        check_all(|_, steps| {
            let mut sent = steps.iter().map(|(_, _, decision, _)| *decision);
            let is_sent = sent.any(|decision| {
                matches!(decision, HelloDecision::AwaitBoth | HelloDecision::Await(Short))
            });
            let out_of_patience = steps.iter().any(|(at, input, ..)| {
                matches!(input, HelloInput::Waited { .. })
                    && *at >= ClientHellos::new(None).patience
            });
            let ended = has(steps, HelloInput::Failed(Long, HelloFault::MaybeLength));
            assert!(!is_sent || out_of_patience || ended, "{steps:?}");
        });
    }

    #[test]
    fn a_long_one_that_is_answered_in_time_is_all_there_is() {
        check_all(|hellos, steps| {
            if steps.first().is_some_and(|(_, input, ..)| *input == HelloInput::Answered(Long)) {
                let decisions = steps.iter().map(|(_, _, decision, _)| *decision);
                for decision in decisions {
                    assert_eq!(decision, HelloDecision::Await(Long), "{steps:?}");
                }
                assert!(steps.iter().all(|(.., failed)| *failed != Some(Short)), "{steps:?}");
                assert!(!hellos.shows_length(), "{steps:?}");
            }
        });
    }

    #[test]
    fn an_answer_decides_and_a_failure_is_final() {
        check_all(|_, steps| {
            for pair in steps.windows(2) {
                let ((_, _, before, failed), (_, _, after, then)) = (pair[0], pair[1]);
                assert!(failed.is_none() || then == failed, "{steps:?}");
                // Of the other one nothing more can come.
                let is_decided = matches!(before, HelloDecision::Await(_));
                assert!(!is_decided || after == before || then.is_some(), "{steps:?}");
            }
        });
    }

    #[test]
    fn the_length_is_to_blame_only_if_the_short_one_was_answered_and_the_long_one_was_not() {
        check_all(|hellos, steps| {
            let first_answer = steps.iter().find_map(|(_, input, decision, _)| match input {
                HelloInput::Answered(which) if *decision == HelloDecision::Await(*which) => {
                    Some(*which)
                }
                _ => None,
            });
            let is_shown = hellos.shows_length();
            assert!(!is_shown || first_answer == Some(Short), "{steps:?}");
        });
    }

    #[test]
    fn what_waits_always_has_something_to_wait_for() {
        check_all(|hellos, steps| {
            if let Some(failed) = hellos.failed() {
                assert!(matches!(hellos.state(failed), HelloState::Failed(_)), "{steps:?}");
                return;
            }
            let awaited = match hellos.decision() {
                HelloDecision::AwaitLong(until) => {
                    assert!(until >= MIN_PATIENCE && until <= SERVER_PATIENCE, "{steps:?}");
                    vec![Long]
                }
                HelloDecision::AwaitBoth => vec![Long, Short],
                HelloDecision::Await(which) => vec![which],
            };
            for which in awaited {
                let is_open =
                    matches!(hellos.state(which), HelloState::Sent | HelloState::Answered);
                assert!(is_open, "{which:?}: {steps:?}");
            }
        });
    }

    #[test]
    fn a_server_that_has_it_gets_more_time_and_a_long_path_too() {
        let waited = |has_arrived| HelloInput::Waited { has_arrived };
        let mut near = ClientHellos::new(Some(Duration::from_millis(20)));
        assert_eq!(near.decision(), HelloDecision::AwaitLong(MIN_PATIENCE));
        near.handle_input(MIN_PATIENCE, waited(true));
        assert_eq!(near.decision(), HelloDecision::AwaitLong(SERVER_PATIENCE));
        near.handle_input(SERVER_PATIENCE, waited(true));
        assert_eq!(near.decision(), HelloDecision::AwaitBoth);
        let far = ClientHellos::new(Some(Duration::from_secs(2)));
        assert_eq!(far.decision(), HelloDecision::AwaitLong(Duration::from_secs(8)));
        assert_eq!(ClientHellos::new(Some(Duration::MAX)).patience, Duration::MAX);
    }
}
