//! Alternatives that failed, and how long they are avoided.

use std::{collections::BTreeMap, time::Duration};

use super::{Origin, Service};

/// How long an alternative is avoided after its first failure: 5 minutes.
pub const BROKEN_FIRST: Duration = Duration::from_secs(5 * 60);

/// The longest time for which it is avoided: 2 days.
pub const BROKEN_MAX: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The maximum number of broken alternatives remembered; the one that expires first is evicted
/// first.
pub const MAX_BROKEN: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Entry {
    failures: u32,
    until: Duration,
}

/// The broken alternatives of each origin: a service may refuse one origin and serve another.
#[derive(Clone, Debug, Default)]
pub struct BrokenAlternatives {
    entries: BTreeMap<(Origin, Service), Entry>,
}

impl BrokenAlternatives {
    /// Returns whether the service has failed recently.
    pub fn is_broken(&self, origin: &Origin, service: &Service, now: Duration) -> bool {
        self.entries.get(&(origin.clone(), service.clone())).is_some_and(|entry| now < entry.until)
    }

    /// Records a failure; each consecutive one doubles the time.
    pub fn failed(&mut self, origin: &Origin, service: &Service, now: Duration) {
        let key = (origin.clone(), service.clone());
        let failures = self.entries.get(&key).map_or(0, |entry| entry.failures);
        if failures == 0 && self.entries.len() >= MAX_BROKEN {
            self.drop_soonest();
        }
        let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
        let time = BROKEN_FIRST.saturating_mul(factor).min(BROKEN_MAX);
        let entry = Entry { failures: failures.saturating_add(1), until: now.saturating_add(time) };
        self.entries.insert(key, entry);
    }

    /// Records a success: the next failure starts from the shortest time again.
    pub fn worked(&mut self, origin: &Origin, service: &Service) {
        self.entries.remove(&(origin.clone(), service.clone()));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn drop_soonest(&mut self) {
        let soonest = self.entries.iter().min_by_key(|(_, entry)| entry.until);
        if let Some(key) = soonest.map(|(key, _)| key.clone()) {
            self.entries.remove(&key);
        }
    }
}
