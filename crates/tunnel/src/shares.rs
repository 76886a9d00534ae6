//! Places that all clients of a server share, such as sessions, and the share of each key.
//!
//! A key may take another place if more are free than it already has: alone it gets half of all, so that there are
//! places for the next key without anybody losing one. (For buffers of a switch: Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998, with α = 1.) If several busy keys have left none, a key
//! with few gets the newest place of the key with the most.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use eyas::KeyFingerprint;
use tokio_util::sync::CancellationToken;

/// The places of one kind. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct KeyShares(Arc<SharedPlaces>);

#[derive(Debug)]
struct SharedPlaces {
    all: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    next: u64,
    total: usize,
    /// The places of each key by their numbers, and how to tell that one is lost.
    by_key: BTreeMap<KeyFingerprint, BTreeMap<u64, CancellationToken>>,
}

/// A place that a key has until this is dropped, or lost.
#[derive(Debug)]
pub(crate) struct KeyPlace {
    shares: KeyShares,
    key: KeyFingerprint,
    number: u64,
    lost: CancellationToken,
}

/// The key has as many places as it may, or there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoPlace {
    /// The places that the key has.
    own: usize,
    free: usize,
    all: usize,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, free, all } = self;
        write!(f, "this key has {own} of {all}, and the last {free} are for other keys")
    }
}

impl KeyShares {
    pub(crate) fn new(all: usize) -> Self {
        Self(Arc::new(SharedPlaces { all, taken: Mutex::default() }))
    }

    /// Takes a place for this key.
    pub(crate) fn acquire(&self, key: KeyFingerprint) -> Result<KeyPlace, NoPlace> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.by_key.get(&key).map_or(0, BTreeMap::len);
        let (all, free) = (self.0.all, self.0.all.saturating_sub(taken.total));
        if own >= free && !(free == 0 && taken.free_one_for(own)) {
            return Err(NoPlace { own, free, all });
        }
        let (number, lost) = (taken.next, CancellationToken::new());
        taken.next += 1;
        taken.total += 1;
        taken.by_key.entry(key).or_default().insert(number, lost.clone());
        Ok(KeyPlace { shares: self.clone(), key, number, lost })
    }
}

impl TakenPlaces {
    /// Takes the newest place from the key with the most, if that has more than the key with these places will
    /// have. Returns whether it did.
    fn free_one_for(&mut self, own: usize) -> bool {
        let most = self.by_key.iter().max_by_key(|(_, places)| places.len());
        let Some(key) = most.filter(|(_, places)| places.len() > own + 1).map(|(key, _)| *key)
        else {
            return false;
        };
        let newest = self.by_key.get_mut(&key).and_then(BTreeMap::pop_last);
        if let Some((_, lost)) = &newest {
            self.total -= 1;
            lost.cancel();
        }
        newest.is_some()
    }
}

impl KeyPlace {
    /// Waits until the place goes to another key.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for KeyPlace {
    fn drop(&mut self) {
        let mut taken = self.shares.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(places) = taken.by_key.get_mut(&self.key) else { return };
        let was_there = places.remove(&self.number).is_some();
        if places.is_empty() {
            taken.by_key.remove(&self.key);
        }
        taken.total -= usize::from(was_there);
    }
}

#[cfg(test)]
mod tests {
    use eyas::ServerIdentity;

    use super::*;

    fn key() -> KeyFingerprint {
        let identity = ServerIdentity::self_signed(["key.test"]).expect("an identity");
        KeyFingerprint::from_certificate(identity.certificate()).expect("a key")
    }

    /// Takes as many places as the key gets.
    fn fill(shares: &KeyShares, key: KeyFingerprint) -> Vec<KeyPlace> {
        std::iter::from_fn(|| shares.acquire(key).ok()).collect()
    }

    fn lost(places: &[KeyPlace]) -> Vec<usize> {
        let lost = |(at, place): (usize, &KeyPlace)| place.lost.is_cancelled().then_some(at);
        places.iter().enumerate().filter_map(lost).collect()
    }

    #[test]
    fn a_key_leaves_as_many_places_as_it_has() {
        let (shares, [ada, bob]) = (KeyShares::new(12), [key(), key()]);
        let of_ada = fill(&shares, ada);
        assert_eq!(of_ada.len(), 6);
        let of_bob = fill(&shares, bob);
        assert_eq!(of_bob.len(), 3);
        let why = shares.acquire(ada).unwrap_err();
        assert_eq!(why.to_string(), "this key has 6 of 12, and the last 3 are for other keys");
        assert_eq!((lost(&of_ada), lost(&of_bob)), (vec![], vec![]));
        drop(of_ada);
        assert_eq!(fill(&shares, ada).len(), 5, "of the nine that are not bob's");
        drop(of_bob);
        assert_eq!(fill(&shares, bob).len(), 6, "nothing is left behind");
        let taken = shares.0.taken.lock().expect("not poisoned");
        assert_eq!((taken.total, taken.by_key.len()), (0, 0));
    }

    #[test]
    fn where_busy_keys_have_left_none_the_busiest_loses_its_newest_to_the_next() {
        let shares = KeyShares::new(8);
        let [ada, bob, eve, dan] = [key(), key(), key(), key()];
        let (of_ada, of_bob) = (fill(&shares, ada), fill(&shares, bob));
        let of_eve = fill(&shares, eve);
        let of_dan = fill(&shares, dan);
        assert_eq!((of_ada.len(), of_bob.len(), of_eve.len()), (4, 2, 1));
        // The last one that was free, and one of ada's four.
        assert_eq!((of_dan.len(), lost(&of_ada)), (2, vec![3]));
        assert_eq!((lost(&of_bob), lost(&of_eve)), (vec![], vec![]));
        assert!(shares.acquire(ada).is_err() && shares.acquire(bob).is_err());
        drop((of_ada, of_bob, of_eve, of_dan));
        assert_eq!(fill(&shares, ada).len(), 4, "a lost place is not returned twice");
    }

    #[test]
    fn there_is_a_place_for_each_key_however_many_are_greedy() {
        let shares = KeyShares::new(16);
        let keys: Vec<_> = (0..16).map(|_| key()).collect();
        let mut places = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let first = shares.acquire(*key);
            assert!(first.is_ok(), "{number}");
            places.extend(first);
            for greedy in &keys[..=number] {
                places.extend(fill(&shares, *greedy));
            }
        }
        assert!(shares.acquire(key()).is_err());
        let taken = shares.0.taken.lock().expect("not poisoned");
        assert_eq!((taken.total, taken.by_key.len()), (16, 16));
    }
}
