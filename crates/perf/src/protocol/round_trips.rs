//! Round trips of pings on a channel of their own.

use std::collections::VecDeque;
use std::time::Duration;

/// The most pings that wait for their answer; more are not sent.
pub const MAX_WAITING: usize = 1_024;
/// The most round trips that are kept of each phase.
pub const MAX_KEPT: usize = 1 << 20;

/// What the path was doing when a ping was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingPhase {
    /// Nothing.
    Idle,
    /// Data flowed that does not count.
    Omitted,
    /// Data flowed.
    Loaded,
}

/// The pings of one test. Round trips are measured from when a ping was due if the channel did not take it then, so that a
/// sender that is held up shows.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    phase: PingPhase,
    next: u64,
    /// Oldest first.
    waiting: VecDeque<(u64, Duration, PingPhase)>,
    idle: Vec<Duration>,
    loaded: Vec<Duration>,
}

impl Default for RoundTrips {
    fn default() -> Self {
        let (idle, loaded) = (Vec::new(), Vec::new());
        Self { phase: PingPhase::Idle, next: 0, waiting: VecDeque::new(), idle, loaded }
    }
}

impl RoundTrips {
    /// Sets what the path is doing from now on.
    pub fn set_phase(&mut self, phase: PingPhase) {
        self.phase = phase;
    }

    /// Returns the number of a ping whose round trip begins at this time; `None` if too many are without an answer.
    pub fn send(&mut self, begin: Duration) -> Option<u64> {
        if self.waiting.len() >= MAX_WAITING {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.waiting.push_back((number, begin, self.phase));
        Some(number)
    }

    /// Takes an answer. They come in order, because the channel has one.
    ///
    /// # Errors
    /// If it is not the answer to the oldest ping.
    pub fn answered(&mut self, now: Duration, number: u64) -> Result<Duration, UnexpectedPong> {
        match self.waiting.pop_front() {
            Some((expected, begin, phase)) if expected == number => {
                let time = now.saturating_sub(begin);
                let kept = match phase {
                    PingPhase::Idle => Some(&mut self.idle),
                    PingPhase::Omitted => None,
                    PingPhase::Loaded => Some(&mut self.loaded),
                };
                if let Some(kept) = kept.filter(|kept| kept.len() < MAX_KEPT) {
                    kept.push(time);
                }
                Ok(time)
            }
            _ => Err(UnexpectedPong),
        }
    }

    /// Returns the round trips in one phase, if there are any.
    pub fn summary(&self, phase: PingPhase) -> Option<RoundTripSummary> {
        let times = match phase {
            PingPhase::Idle => &self.idle,
            PingPhase::Omitted => return None,
            PingPhase::Loaded => &self.loaded,
        };
        let unanswered = self.waiting.iter().filter(|(_, _, of)| *of == phase).count();
        RoundTripSummary::new(times.clone(), unanswered)
    }
}

/// A `Pong` that answers no ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server answers pings that were not sent")]
pub struct UnexpectedPong;

/// The distribution of round-trip times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTripSummary {
    /// How many were measured.
    pub count: usize,
    /// Pings that had no answer when the test ended.
    pub unanswered: usize,
    /// The shortest.
    pub min: Duration,
    /// Half of them were at most this long, by the nearest rank.
    pub median: Duration,
    /// 90 % of them.
    pub p90: Duration,
    /// 99 % of them.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// The mean of those that are not above the 95th percentile (draft-ietf-ippm-responsiveness).
    pub trimmed_mean: Duration,
}

impl RoundTripSummary {
    fn new(mut times: Vec<Duration>, unanswered: usize) -> Option<Self> {
        times.sort_unstable();
        let (min, max) = (*times.first()?, *times.last()?);
        let rank = |percent: usize| (times.len() * percent).div_ceil(100).clamp(1, times.len());
        let percentile = |percent: usize| times[rank(percent) - 1];
        let kept = &times[..rank(95)];
        let mean = kept.iter().map(Duration::as_secs_f64).sum::<f64>() / kept.len() as f64;
        Some(Self {
            count: times.len(),
            unanswered,
            min,
            median: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max,
            trimmed_mean: Duration::try_from_secs_f64(mean).unwrap_or(max),
        })
    }

    /// Returns the round trips per minute (RPM) of the trimmed mean.
    pub fn per_minute(&self) -> Option<f64> {
        (!self.trimmed_mean.is_zero()).then(|| 60.0 / self.trimmed_mean.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn each_phase_has_its_own_round_trips() {
        let mut pings = RoundTrips::default();
        for number in 0..100 {
            assert_eq!(pings.send(millis(number)), Some(number));
            // The first takes 1 ms, the last 100.
            pings.answered(millis(2 * number + 1), number).expect("in order");
        }
        pings.set_phase(PingPhase::Omitted);
        pings.send(millis(300));
        pings.set_phase(PingPhase::Loaded);
        pings.send(millis(310));
        pings.send(millis(320));
        pings.answered(millis(330), 100).expect("in order");
        pings.answered(millis(330), 101).expect("in order");
        let idle = pings.summary(PingPhase::Idle).expect("there are some");
        assert_eq!((idle.min, idle.median, idle.p90), (millis(1), millis(50), millis(90)));
        assert_eq!((idle.p99, idle.max, idle.count), (millis(99), millis(100), 100));
        // The mean of 1 to 95.
        assert_eq!((idle.trimmed_mean, idle.per_minute()), (millis(48), Some(1_250.0)));
        let loaded = pings.summary(PingPhase::Loaded).expect("there is one");
        assert_eq!((loaded.count, loaded.unanswered, loaded.max), (1, 1, millis(20)));
        assert_eq!(pings.summary(PingPhase::Omitted), None);
    }

    #[test]
    fn answers_without_a_ping_are_refused_and_pings_without_answers_bounded() {
        let mut pings = RoundTrips::default();
        assert_eq!(pings.answered(millis(1), 0), Err(UnexpectedPong));
        pings.send(millis(0));
        assert_eq!(pings.answered(millis(1), 1), Err(UnexpectedPong));
        let sent = (0..2 * MAX_WAITING).filter_map(|_| pings.send(millis(1))).count();
        assert_eq!(sent, MAX_WAITING);
    }
}
