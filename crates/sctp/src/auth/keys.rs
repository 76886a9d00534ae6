//! Shared keys, and the association keys derived from them.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-6.1>

use alloc::{vec, vec::Vec};
use bytes::Bytes;
use core::cmp::Ordering;
use core::fmt;

use super::AuthOffer;
use super::algorithm::HmacKey;
use crate::error::Error;

/// The maximum number of keys that an endpoint pair can have at a time.
const MAX_SHARED_KEYS: usize = 32;

/// The keys that two endpoints share, by identifier. Without any, the key 0 is empty.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKeys {
    /// Sorted by identifier. Usually there is one, and each association and each socket has a copy:
    /// a tree would take ten times the memory.
    keys: Vec<(u16, Bytes)>,
    active: u16,
}

impl Default for SharedKeys {
    fn default() -> Self {
        Self { keys: vec![(0, Bytes::new())], active: 0 }
    }
}

impl fmt::Debug for SharedKeys {
    /// Shows the identifiers, but does not reveal the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<u16> = self.keys.iter().map(|(id, _)| *id).collect();
        f.debug_struct("SharedKeys")
            .field("ids", &ids)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

impl SharedKeys {
    /// Adds a key or replaces the one with this identifier (`SCTP_AUTH_KEY`).
    ///
    /// # Errors
    /// [`Error::Full`] if there are already 32 keys.
    pub fn set(&mut self, id: u16, key: Bytes) -> Result<(), Error> {
        match self.search(id) {
            Ok(at) => self.keys[at].1 = key,
            Err(_) if self.keys.len() >= MAX_SHARED_KEYS => return Err(Error::Full),
            Err(at) => self.keys.insert(at, (id, key)),
        }
        Ok(())
    }

    /// Chooses the key to sign with (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If there is no such key.
    pub fn activate(&mut self, id: u16) -> Result<(), Error> {
        self.search(id).map_err(|_| Error::NoSuchKey)?;
        self.active = id;
        Ok(())
    }

    /// Removes a key (`SCTP_AUTH_DELETE_KEY`): chunks signed with it are no longer accepted.
    ///
    /// # Errors
    /// If there is no such key, or it is the active key ([`Error::Busy`]): activate another one
    /// first (RFC 6458 §8.3.4).
    pub fn remove(&mut self, id: u16) -> Result<(), Error> {
        if id == self.active {
            return Err(Error::Busy);
        }
        let at = self.search(id).map_err(|_| Error::NoSuchKey)?;
        self.keys.remove(at);
        Ok(())
    }

    /// Returns the index of a key, or where it would be inserted.
    fn search(&self, id: u16) -> Result<usize, usize> {
        self.keys.binary_search_by_key(&id, |(one, _)| *one)
    }

    /// Returns the identifier of the active key.
    #[must_use]
    pub const fn active(&self) -> u16 {
        self.active
    }

    /// Returns all keys with their identifiers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Bytes)> {
        self.keys.iter().map(|(id, key)| (*id, key))
    }
}

/// The key vectors of both sides, in the order in which they are concatenated.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeyVectors {
    smaller: Vec<u8>,
    larger: Vec<u8>,
}

impl KeyVectors {
    /// Orders the vectors; both sides get the same result.
    pub(super) fn new(one: &AuthOffer, other: &AuthOffer) -> Self {
        let (one, other) = (one.key_vector(), other.key_vector());
        match compare(&one, &other) {
            Ordering::Greater => Self { smaller: other, larger: one },
            Ordering::Less | Ordering::Equal => Self { smaller: one, larger: other },
        }
    }

    /// Derives the association key from a shared key.
    pub(super) fn association_key(&self, shared: &[u8]) -> Option<HmacKey> {
        HmacKey::new(&self.concatenated(shared))
    }

    fn concatenated(&self, shared: &[u8]) -> Vec<u8> {
        [shared, &self.smaller, &self.larger].concat()
    }
}

/// Compares vectors as big-endian numbers; of equal numbers, the shorter vector comes first.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let (a, b) = (significant(one), significant(other));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b)).then_with(|| one.len().cmp(&other.len()))
}

fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ChunkType;
    use alloc::format;

    #[test]
    fn vectors_are_compared_as_numbers() {
        assert_eq!(compare(&[1, 0], &[255]), Ordering::Greater);
        assert_eq!(compare(&[0, 0, 7], &[9]), Ordering::Less);
        assert_eq!(compare(&[0, 7], &[7]), Ordering::Greater, "equal numbers: by length");
        assert_eq!(compare(&[7], &[7]), Ordering::Equal);
        assert_eq!(compare(&[1, 2], &[1, 3]), Ordering::Less);
    }

    #[test]
    fn both_sides_derive_the_same_key() {
        let one = AuthOffer::new([1; 32], &[ChunkType::ASCONF]);
        let other = AuthOffer::new([2; 32], &[ChunkType::ASCONF]);
        let longer = AuthOffer::new([0; 32], &[ChunkType::ASCONF, ChunkType::ASCONF_ACK]);
        for (a, b) in [(&one, &other), (&one, &longer), (&longer, &other), (&one, &one)] {
            let key = KeyVectors::new(a, b).concatenated(b"shared");
            assert_eq!(key, KeyVectors::new(b, a).concatenated(b"shared"));
        }
        let key = KeyVectors::new(&other, &one).concatenated(b"k");
        assert_eq!(key, [&b"k"[..], &one.key_vector(), &other.key_vector()].concat());
    }

    #[test]
    fn keys_are_added_chosen_and_removed() {
        let mut keys = SharedKeys::default();
        assert_eq!(keys.iter().next(), Some((0, &Bytes::new())), "an empty key to begin with");
        assert_eq!(keys.activate(7), Err(Error::NoSuchKey));
        assert_eq!(keys.set(7, Bytes::from_static(b"secret")), Ok(()));
        assert_eq!(keys.activate(7), Ok(()));
        assert_eq!(keys.remove(7), Err(Error::Busy));
        assert_eq!(keys.remove(0), Ok(()));
        assert_eq!(keys.remove(0), Err(Error::NoSuchKey));
        assert_eq!(keys.active(), 7);
        assert!(!format!("{keys:?}").contains("secret"));
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let mut keys = SharedKeys::default();
        let mut taken = 1;
        while keys.set(taken, Bytes::new()).is_ok() {
            taken += 1;
        }
        assert_eq!(usize::from(taken), MAX_SHARED_KEYS);
        assert_eq!(keys.set(taken, Bytes::new()), Err(Error::Full));
        assert_eq!(keys.set(0, Bytes::from_static(b"new")), Ok(()), "replacing is allowed");
    }
}
