//! What the caller wants: RFC 9622 preferences and Happy Eyeballs values.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::Transport;
use crate::evidence::Level;

/// Values of draft-ietf-happy-happyeyeballs-v3 §9 and what eyas adds to them. Durations are
/// validated by [`Policy::validated`], never silently changed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Transports allowed, most wanted first; what is not listed is prohibited.
    pub transports: Vec<Transport>,
    /// Race all candidates at once (RFC 9621 §4.1), the only way below the 10 ms floor.
    pub simultaneous: bool,
    /// Resolution Delay: 50 ms.
    pub resolution_delay: Duration,
    /// Connection Attempt Delay without a remembered round trip: 250 ms.
    pub attempt_delay: Duration,
    /// Lower bound of an adapted Connection Attempt Delay: 100 ms.
    pub attempt_delay_min: Duration,
    /// Upper bound of an adapted or extended Connection Attempt Delay: 2 s.
    pub attempt_delay_max: Duration,
    /// Preferred Address Family Count: 1.
    pub preferred_family_count: usize,
    /// Whether IPv4 goes first; IPv6 does by default.
    pub prefer_ipv4: bool,
    /// What a more wanted transport gets before the next one starts, without memory: 50 ms.
    pub head_start: Duration,
    /// What a usable but less wanted transport waits for a more wanted one still under way: 0.
    pub grace: Duration,
    /// How far an attempt must come to win: [`Level::Security`].
    pub win_at: Level,
    /// Keep the more wanted transport going after a lesser one has won, and yield it as `Better`.
    pub late_switch: bool,
    /// How long after the win (or after its own start, if that is later) an attempt that goes on
    /// for the late switch may stay without an answer before it counts as silent: 3 s, the time
    /// of the second retransmission of a QUIC Initial or of a SYN.
    pub late_switch_for: Duration,
    /// What losers may do.
    pub losers: Losers,
    /// Attempts in flight at once in this race.
    pub max_in_flight: usize,
    /// From the start to the last moment at which an attempt may win: 30 s.
    pub deadline: Duration,
    /// How long DNS is still read after the win, for the memory: 1 s.
    pub dns_after_win: Duration,
    /// Try every candidate to its end and crown the best (`eyas race --all`).
    pub exhaustive: bool,
    /// Ignore what the memory says; outcomes are still learnt.
    pub ignore_memory: bool,
}

/// What becomes of the attempts that lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losers {
    /// They are closed at once and teach nothing.
    Cancel,
    /// They may go on for this long after the win, to give evidence; then they are closed.
    Finish(Duration),
}

/// The least time between two attempts of a race that is not simultaneous
/// (draft-ietf-happy-happyeyeballs-v3 §9, absolute minimum).
pub const ATTEMPT_DELAY_FLOOR: Duration = Duration::from_millis(10);

impl Default for Policy {
    fn default() -> Self {
        Self {
            transports: alloc::vec![Transport::Quic, Transport::Tcp],
            simultaneous: false,
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
            attempt_delay_min: Duration::from_millis(100),
            attempt_delay_max: Duration::from_secs(2),
            preferred_family_count: 1,
            prefer_ipv4: false,
            head_start: Duration::from_millis(50),
            grace: Duration::ZERO,
            win_at: Level::Security,
            late_switch: true,
            late_switch_for: Duration::from_secs(3),
            losers: Losers::Cancel,
            max_in_flight: 8,
            deadline: Duration::from_secs(30),
            dns_after_win: Duration::from_secs(1),
            exhaustive: false,
            ignore_memory: false,
        }
    }
}

/// The longest deadline that a policy can ask for: a race that nobody ends holds its sockets.
pub const DEADLINE_MAX: Duration = Duration::from_hours(1);

impl Policy {
    /// The policy itself, if its values make sense together.
    ///
    /// # Errors
    /// The first value that does not, with the bound it breaks.
    pub fn validated(self) -> Result<Self, PolicyError> {
        let rules = [
            (!self.transports.is_empty(), PolicyError::NoTransport),
            (self.max_in_flight > 0, PolicyError::NothingInFlight),
            (self.attempt_delay_min >= ATTEMPT_DELAY_FLOOR, PolicyError::BelowFloor),
            (
                self.attempt_delay_min <= self.attempt_delay
                    && self.attempt_delay <= self.attempt_delay_max,
                PolicyError::DelayOutOfBounds,
            ),
            (!self.deadline.is_zero() && self.deadline <= DEADLINE_MAX, PolicyError::Deadline),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, error)) => Err(error),
            None => Ok(self),
        }
    }

    /// How much this transport is wanted: 0 is the most wanted, `None` is prohibited.
    pub fn rank(&self, transport: Transport) -> Option<usize> {
        self.transports.iter().position(|allowed| *allowed == transport)
    }
}

/// Why a policy cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// [`Policy::transports`] is empty.
    NoTransport,
    /// [`Policy::max_in_flight`] is zero.
    NothingInFlight,
    /// [`Policy::attempt_delay_min`] is below [`ATTEMPT_DELAY_FLOOR`].
    BelowFloor,
    /// [`Policy::attempt_delay`] is not between its bounds.
    DelayOutOfBounds,
    /// [`Policy::deadline`] is zero or above [`DEADLINE_MAX`].
    Deadline,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTransport => "the policy allows no transport; name at least one",
            Self::NothingInFlight => "the policy allows no attempt in flight; allow at least one",
            Self::BelowFloor => {
                "the least attempt delay is below 10 ms; raise it, or ask for a simultaneous race"
            }
            Self::DelayOutOfBounds => "the attempt delay is not between its least and its most",
            Self::Deadline => "the deadline must be above zero and at most an hour",
        })
    }
}

impl core::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Policy::default().validated(), Ok(Policy::default()));
    }

    #[test]
    fn nonsense_is_named() {
        let ms = Duration::from_millis;
        let cases = [
            (Policy { transports: Vec::new(), ..Policy::default() }, PolicyError::NoTransport),
            (Policy { max_in_flight: 0, ..Policy::default() }, PolicyError::NothingInFlight),
            (Policy { attempt_delay_min: ms(9), ..Policy::default() }, PolicyError::BelowFloor),
            (Policy { attempt_delay: ms(99), ..Policy::default() }, PolicyError::DelayOutOfBounds),
            (
                Policy { attempt_delay: ms(2001), ..Policy::default() },
                PolicyError::DelayOutOfBounds,
            ),
            (Policy { deadline: ms(0), ..Policy::default() }, PolicyError::Deadline),
            (Policy { deadline: 2 * DEADLINE_MAX, ..Policy::default() }, PolicyError::Deadline),
        ];
        for (policy, error) in cases {
            assert_eq!(policy.validated(), Err(error));
        }
    }

    #[test]
    fn what_is_not_listed_is_prohibited() {
        let policy = Policy::default();
        assert_eq!(policy.rank(Transport::Quic), Some(0));
        assert_eq!(policy.rank(Transport::Sctp), None);
    }
}
