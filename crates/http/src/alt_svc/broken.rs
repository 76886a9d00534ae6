//! Alternatives that failed, and for how long they are left alone.

use std::{collections::BTreeMap, time::Duration};

use super::{Origin, Service};

/// How long an alternative is left alone after its first failure: 5 minutes.
pub const BROKEN_FIRST: Duration = Duration::from_secs(5 * 60);

/// The longest that it is left alone: 2 days.
pub const BROKEN_MAX: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// Failed alternatives remembered; the one whose time ends first goes first.
pub const MAX_BROKEN: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Entry {
    failures: u32,
    until: Duration,
}

/// Which alternatives failed, per origin: one service may refuse one origin and serve another.
#[derive(Clone, Debug, Default)]
pub struct BrokenAlternatives {
    entries: BTreeMap<(Origin, Service), Entry>,
}

impl BrokenAlternatives {
    /// Whether it failed lately.
    pub fn is_broken(&self, origin: &Origin, service: &Service, now: Duration) -> bool {
        self.entries.get(&(origin.clone(), service.clone())).is_some_and(|entry| now < entry.until)
    }

    /// Notes a failure; each one in a row doubles the time.
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

    /// Notes a success: the next failure starts from the beginning.
    pub fn worked(&mut self, origin: &Origin, service: &Service) {
        self.entries.remove(&(origin.clone(), service.clone()));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
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
