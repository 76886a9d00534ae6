//! Destinations that have not answered QUIC.
//!
//! A client that tries HTTP/3 before TCP has to wait where UDP is dropped. The next time that it requests UDP,
//! it is refused, and uses TCP at once. Only QUIC counts, since other protocols may not expect an answer.

use std::collections::VecDeque;
use std::time::Duration;

use eyas_relay::destination::Destination;

/// How long a destination is refused after the first time. The time doubles each time that it does not answer.
const MIN_REFUSAL: Duration = Duration::from_mins(1);
/// The longest time that a destination is refused.
const MAX_REFUSAL: Duration = Duration::from_mins(32);
/// A tunnel that is closed sooner proves nothing. (A client that got an answer over TCP in this time has
/// waited for two round trips, and an answer over UDP takes one.)
const MIN_AGE: Duration = Duration::from_millis(100);
/// The limit on destinations. Beyond it, the one that was noted first is forgotten.
const MAX_DESTINATIONS: usize = 1024;

/// The destinations that have not answered. Times are those since any fixed instant.
#[derive(Debug, Default)]
pub(crate) struct UnansweredDestinations {
    /// In the order in which they were last noted.
    destinations: VecDeque<SilentDestination>,
}

#[derive(Debug)]
struct SilentDestination {
    destination: Destination,
    since: Duration,
    times: u32,
}

impl SilentDestination {
    fn end(&self) -> Duration {
        let doubled = MIN_REFUSAL.saturating_mul(1 << self.times.saturating_sub(1).min(31));
        self.since.saturating_add(doubled.min(MAX_REFUSAL))
    }
}

impl UnansweredDestinations {
    /// Returns for how much longer a destination is refused, if it is.
    pub(crate) fn refused_for(&self, now: Duration, destination: &Destination) -> Option<Duration> {
        let silent = self.destinations.iter().find(|one| one.destination == *destination)?;
        silent.end().checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Notes that a client closed its tunnel, in which it began a QUIC connection this long ago.
    pub(crate) fn ended(
        &mut self,
        now: Duration,
        destination: &Destination,
        age: Duration,
        is_answered: bool,
    ) {
        if !is_answered && age < MIN_AGE {
            return;
        }
        let found = self.destinations.iter().position(|one| one.destination == *destination);
        let before = found.and_then(|place| self.destinations.remove(place));
        if !is_answered {
            if self.destinations.len() == MAX_DESTINATIONS {
                self.destinations.pop_front();
            }
            let times = before.map_or(1, |one| one.times.saturating_add(1));
            self.destinations.push_back(SilentDestination {
                destination: destination.clone(),
                since: now,
                times,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas::race::target::TargetHost;

    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn to(port: u16) -> Destination {
        Destination::new(TargetHost::Name("far.test".to_owned()), port)
    }

    #[test]
    fn silence_is_remembered_longer_each_time_and_an_answer_ends_it() {
        let mut unanswered = UnansweredDestinations::default();
        let mut now = NOW;
        for minutes in [1, 2, 4, 8, 16, 32, 32] {
            unanswered.ended(now, &to(443), MIN_AGE, false);
            assert_eq!(unanswered.refused_for(now, &to(443)), Some(Duration::from_mins(minutes)));
            assert_eq!(unanswered.refused_for(now, &to(444)), None);
            now += Duration::from_mins(minutes);
            assert_eq!(unanswered.refused_for(now, &to(443)), None);
        }
        unanswered.ended(now, &to(443), MIN_AGE / 2, true);
        unanswered.ended(now, &to(443), MIN_AGE, false);
        assert_eq!(unanswered.refused_for(now, &to(443)), Some(MIN_REFUSAL));
    }

    #[test]
    fn a_short_tunnel_changes_nothing() {
        let mut unanswered = UnansweredDestinations::default();
        unanswered.ended(NOW, &to(443), MIN_AGE / 2, false);
        assert_eq!(unanswered.refused_for(NOW, &to(443)), None);
        unanswered.ended(NOW, &to(443), MIN_AGE, false);
        unanswered.ended(NOW, &to(443), MIN_AGE / 2, false);
        assert_eq!(unanswered.refused_for(NOW, &to(443)), Some(MIN_REFUSAL));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut unanswered = UnansweredDestinations::default();
        for port in 1..=1025 {
            unanswered.ended(NOW, &to(port), MIN_AGE, false);
        }
        assert_eq!(unanswered.destinations.len(), MAX_DESTINATIONS);
        assert_eq!(unanswered.refused_for(NOW, &to(1)), None);
        assert!(unanswered.refused_for(NOW, &to(2)).is_some());
    }
}
