//! Destinations from which connections of QUIC have had no answer.
//!
//! A client that tries HTTP/3 and then TCP waits for the first where UDP is dropped. If it asks for UDP
//! again, it is refused, and uses TCP at once. Other protocols may expect no answer, so they count for
//! nothing.

use std::collections::VecDeque;
use std::time::Duration;

use crate::handshake::Destination;

/// How long a destination is refused after the first time, and at most: the time doubles while nothing
/// comes back.
pub(crate) const FIRST: Duration = Duration::from_mins(1);
pub(crate) const LONGEST: Duration = Duration::from_mins(32);
/// A tunnel that is closed sooner shows nothing. A client that has meanwhile got an answer over TCP has
/// waited for two round trips, and an answer by UDP takes one.
pub(crate) const ENOUGH: Duration = Duration::from_millis(100);
/// The number of destinations; the one with the oldest news is forgotten.
const MOST: usize = 1024;

/// What tunnels have shown. Time is that since any fixed instant.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Those with the newest news last.
    destinations: VecDeque<Silent>,
}

#[derive(Debug)]
struct Silent {
    destination: Destination,
    since: Duration,
    times: u32,
}

impl Silent {
    fn ends(&self) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.times.saturating_sub(1).min(31));
        self.since.saturating_add(doubled.min(LONGEST))
    }
}

impl Unanswered {
    /// Returns for how much longer a destination is refused, if it is.
    pub(crate) fn refused_for(&self, now: Duration, destination: &Destination) -> Option<Duration> {
        let silent = self.destinations.iter().find(|one| one.destination == *destination)?;
        silent.ends().checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Notes that a client which began a connection of QUIC so long ago has closed its tunnel.
    pub(crate) fn ended(
        &mut self,
        now: Duration,
        destination: &Destination,
        asked: Duration,
        is_answered: bool,
    ) {
        if !is_answered && asked < ENOUGH {
            return;
        }
        let found = self.destinations.iter().position(|one| one.destination == *destination);
        let before = found.and_then(|place| self.destinations.remove(place));
        if !is_answered {
            if self.destinations.len() == MOST {
                self.destinations.pop_front();
            }
            let times = before.map_or(1, |one| one.times.saturating_add(1));
            self.destinations.push_back(Silent {
                destination: destination.clone(),
                since: now,
                times,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas::race::target::Host;

    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn to(port: u16) -> Destination {
        Destination { host: Host::Name("far.test".to_owned()), port }
    }

    #[test]
    fn silence_is_remembered_longer_each_time_and_an_answer_ends_it() {
        let mut unanswered = Unanswered::default();
        let mut now = NOW;
        for minutes in [1, 2, 4, 8, 16, 32, 32] {
            unanswered.ended(now, &to(443), ENOUGH, false);
            assert_eq!(unanswered.refused_for(now, &to(443)), Some(Duration::from_mins(minutes)));
            assert_eq!(unanswered.refused_for(now, &to(444)), None);
            now += Duration::from_mins(minutes);
            assert_eq!(unanswered.refused_for(now, &to(443)), None);
        }
        unanswered.ended(now, &to(443), ENOUGH / 2, true);
        unanswered.ended(now, &to(443), ENOUGH, false);
        assert_eq!(unanswered.refused_for(now, &to(443)), Some(FIRST));
    }

    #[test]
    fn a_tunnel_that_shows_nothing_changes_nothing() {
        let mut unanswered = Unanswered::default();
        unanswered.ended(NOW, &to(443), ENOUGH / 2, false);
        assert_eq!(unanswered.refused_for(NOW, &to(443)), None);
        unanswered.ended(NOW, &to(443), ENOUGH, false);
        unanswered.ended(NOW, &to(443), ENOUGH / 2, false);
        assert_eq!(unanswered.refused_for(NOW, &to(443)), Some(FIRST));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut unanswered = Unanswered::default();
        for port in 1..=1025 {
            unanswered.ended(NOW, &to(port), ENOUGH, false);
        }
        assert_eq!(unanswered.destinations.len(), MOST);
        assert_eq!(unanswered.refused_for(NOW, &to(1)), None);
        assert!(unanswered.refused_for(NOW, &to(2)).is_some());
    }
}
