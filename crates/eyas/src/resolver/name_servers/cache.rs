//! Answers that still hold, and records that have expired. Pure: the time is passed in.

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

/// How long records are of use after they have expired (RFC 8767 §5: "The suggested value for
/// maximum stale timer is between 1 and 3 days").
const LONGEST_EXPIRED: Duration = Duration::from_hours(24);

/// Answers by name and type.
#[derive(Debug, Default)]
pub(super) struct AnswerCache {
    answers: BTreeMap<(String, RecordType), CacheEntry>,
    /// How often it was cleared.
    clears: u64,
}

#[derive(Debug)]
struct CacheEntry {
    found: FoundRecords,
    until: Instant,
}

impl AnswerCache {
    pub(super) fn get(&self, now: Instant, name: &str, kind: RecordType) -> Option<FoundRecords> {
        let entry = self.answers.get(&(name.to_owned(), kind))?;
        (now < entry.until).then(|| entry.found.clone())
    }

    /// Returns records that have expired, but not long ago. An absence of records is not returned:
    /// there may be some by now.
    pub(super) fn expired(
        &self,
        now: Instant,
        name: &str,
        kind: RecordType,
    ) -> Option<FoundRecords> {
        let entry = self.answers.get(&(name.to_owned(), kind))?;
        let is_expired = entry.until <= now && now < entry.until + LONGEST_EXPIRED;
        (is_expired && entry.found.records.is_ok()).then(|| entry.found.clone())
    }

    /// Returns whether the name has such records, which may have expired.
    pub(super) fn has_records(&self, now: Instant, name: &str, kind: RecordType) -> bool {
        let found = self.get(now, name, kind).or_else(|| self.expired(now, name, kind));
        found.is_some_and(|found| found.records.is_ok())
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
        if self.answers.len() >= MAX_ANSWERS && !self.answers.contains_key(&key) {
            self.answers.retain(|_, entry| now < entry.until);
            self.make_room();
        }
        self.answers.insert(key, CacheEntry { found, until: now + time_to_live });
    }

    /// Forgets everything, also the answers that are on their way: they are those of another network.
    pub(super) fn clear(&mut self) {
        self.answers.clear();
        self.clears += 1;
    }

    /// Returns how often it was cleared.
    pub(super) const fn clears(&self) -> u64 {
        self.clears
    }

    /// Removes the answer that ends first if there is no room.
    fn make_room(&mut self) {
        if self.answers.len() < MAX_ANSWERS {
            return;
        }
        let first =
            self.answers.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
        if let Some(first) = first {
            self.answers.remove(&first);
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
    fn records_are_of_use_for_a_day_after_they_have_expired() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        let key = || ("a.test".to_owned(), RecordType::A);
        cache.insert(now, key(), found(), HOUR);
        let expired =
            |cache: &AnswerCache, after| cache.expired(now + after, "a.test", RecordType::A);
        let has =
            |cache: &AnswerCache, after| cache.has_records(now + after, "a.test", RecordType::A);
        let end = HOUR * 25;
        assert_eq!(expired(&cache, HOUR - Duration::from_secs(1)), None, "it holds");
        assert_eq!(expired(&cache, HOUR), Some(found()));
        assert_eq!(expired(&cache, end - Duration::from_secs(1)), Some(found()));
        assert_eq!(expired(&cache, end), None);
        assert!(has(&cache, Duration::ZERO) && has(&cache, HOUR) && !has(&cache, end));
        let nothing = FoundRecords { records: Err(DnsFailure::NoData), is_authentic: false };
        cache.insert(now + HOUR, key(), nothing, HOUR);
        assert_eq!(expired(&cache, HOUR * 3), None, "an absence is never of use");
        assert!(!has(&cache, HOUR) && !has(&cache, HOUR * 3));
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
        assert_eq!(cache.answers.len(), MAX_ANSWERS);
        assert_eq!(cache.get(now, "0.test", RecordType::A), None);
        assert_eq!(cache.get(now, "1.test", RecordType::A), Some(found()));
        let late = now + HOUR * 3;
        cache.insert(late, ("new.test".to_owned(), RecordType::A), found(), HOUR);
        assert_eq!(cache.answers.len(), 1, "what no longer holds goes first");
    }
}
