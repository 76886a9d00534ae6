//! Answers that still hold. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use eyas_race::dns::RecordType;

use super::FoundRecords;

/// The maximum number of answers.
const MAX_ANSWERS: usize = 512;
/// The longest time for which an answer is kept, whatever its time to live.
const LONGEST: Duration = Duration::from_hours(24);
/// The longest time for which the absence of records is kept (RFC 2308 §5: one to three hours).
const LONGEST_ABSENCE: Duration = Duration::from_hours(3);

/// Answers by name and type.
#[derive(Debug, Default)]
pub(super) struct AnswerCache(BTreeMap<(String, RecordType), CacheEntry>);

#[derive(Debug)]
struct CacheEntry {
    found: FoundRecords,
    until: Instant,
}

impl AnswerCache {
    pub(super) fn get(&self, now: Instant, name: &str, kind: RecordType) -> Option<FoundRecords> {
        let entry = self.0.get(&(name.to_owned(), kind))?;
        (now < entry.until).then(|| entry.found.clone())
    }

    /// Keeps an answer for this time.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        (name, kind): (String, RecordType),
        found: FoundRecords,
        time_to_live: Duration,
    ) {
        let longest = if found.records.is_ok() { LONGEST } else { LONGEST_ABSENCE };
        let time_to_live = time_to_live.min(longest);
        if time_to_live.is_zero() {
            return;
        }
        let key = (name, kind);
        if self.0.len() >= MAX_ANSWERS && !self.0.contains_key(&key) {
            self.0.retain(|_, entry| now < entry.until);
            self.make_room();
        }
        self.0.insert(key, CacheEntry { found, until: now + time_to_live });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes the answer that ends first if there is no room.
    fn make_room(&mut self) {
        if self.0.len() < MAX_ANSWERS {
            return;
        }
        let first = self.0.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
        if let Some(first) = first {
            self.0.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas_race::dns::{DnsFailure, DnsRecords};

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn found() -> FoundRecords {
        FoundRecords {
            records: Ok(DnsRecords::A(vec!["192.0.2.1".parse().unwrap()])),
            is_authentic: false,
        }
    }

    #[test]
    fn an_answer_is_kept_while_it_holds() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        let key = || ("a.test".to_owned(), RecordType::A);
        cache.insert(now, key(), found(), HOUR);
        assert_eq!(
            cache.get(now + HOUR - Duration::from_secs(1), "a.test", RecordType::A),
            Some(found())
        );
        assert_eq!(cache.get(now + HOUR, "a.test", RecordType::A), None);
        assert_eq!(cache.get(now, "a.test", RecordType::Aaaa), None);
        cache.insert(now, ("b.test".to_owned(), RecordType::A), found(), Duration::ZERO);
        assert_eq!(cache.get(now, "b.test", RecordType::A), None, "for the transaction only");
        cache.clear();
        assert_eq!(cache.get(now, "a.test", RecordType::A), None);
    }

    #[test]
    fn absence_is_kept_for_three_hours_at_most() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        let nothing = FoundRecords { records: Err(DnsFailure::NoData), is_authentic: false };
        cache.insert(now, ("a.test".to_owned(), RecordType::A), nothing.clone(), HOUR * 20);
        let get = |cache: &AnswerCache, after| cache.get(now + after, "a.test", RecordType::A);
        assert_eq!(get(&cache, HOUR * 2), Some(nothing));
        assert_eq!(get(&cache, HOUR * 3), None);
    }

    #[test]
    fn the_answer_that_ends_first_makes_room() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        for number in 0..=MAX_ANSWERS {
            let name = format!("{number}.test");
            let time_to_live = HOUR + Duration::from_secs(u64::try_from(number).unwrap());
            cache.insert(now, (name, RecordType::A), found(), time_to_live);
        }
        assert_eq!(cache.0.len(), MAX_ANSWERS);
        assert_eq!(cache.get(now, "0.test", RecordType::A), None);
        assert_eq!(cache.get(now, "1.test", RecordType::A), Some(found()));
        let late = now + HOUR * 3;
        cache.insert(late, ("new.test".to_owned(), RecordType::A), found(), HOUR);
        assert_eq!(cache.0.len(), 1, "what no longer holds goes first");
    }
}
