//! The dynamic table of an encoder, in which fields and names are found.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-3.2>
//!
//! Each entry has a mark of its field and one of its name, made from their lengths and ends without
//! reading the rest. The entries with marks of one kind are chained from the newest to the oldest, so
//! that a search compares hardly more than the entry that it finds, and an eviction changes no chain:
//! a chain ends where it reaches what was evicted.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::iter;

use crate::qpack::table::{DynamicTable, Entry, reserve_for_one};

/// How many chains there are of each kind: a table of 4 KiB has some 60 entries, and every idle connection has this.
const CHAINS: usize = 32;

/// A draining entry has less than one part in this many of the capacity before it is evicted
/// (RFC 9204 §2.1.1.1).
const DRAINING_PART: u64 = 4;

/// What a search knows of an entry.
#[derive(Clone, Copy, Debug)]
struct Link {
    mark: u32,
    name_mark: u32,
    /// The absolute index, plus 1, of the entry before it in its chain; 0 if there was none.
    older: u64,
    older_name: u64,
    /// How many octets were inserted before it.
    start: u64,
}

/// The dynamic table of an encoder.
#[derive(Debug, Default)]
pub(super) struct MarkedTable {
    table: DynamicTable,
    /// For each entry, in the order of insertion.
    links: VecDeque<Link>,
    /// The newest entry of each chain, as in [`Link::older`]; the chains of names follow those of
    /// fields. Empty until the first insertion.
    newest: Vec<u64>,
    inserted_octets: u64,
}

impl MarkedTable {
    pub(super) fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    pub(super) fn oldest(&self) -> u64 {
        self.table.oldest()
    }

    pub(super) fn size(&self) -> u64 {
        self.table.size()
    }

    pub(super) fn capacity(&self) -> u64 {
        self.table.capacity()
    }

    /// Sets the capacity of an empty table.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.table.set_capacity(capacity);
    }

    pub(super) fn size_of_entry(&self, absolute: u64) -> Option<u64> {
        self.table.entry(absolute).map(Entry::size)
    }

    /// Returns the absolute indices of the entries with this field, from the newest on. `mark` is the
    /// field's [`mark`].
    pub(super) fn entries<'a>(
        &'a self,
        mark: u32,
        name: &'a [u8],
        value: &'a [u8],
    ) -> impl Iterator<Item = u64> + use<'a> {
        let is_equal = move |absolute: &u64| {
            self.table
                .entry(*absolute)
                .is_some_and(|entry| entry.name() == name && entry.value() == value)
        };
        let newest = self.newest.get(chain(mark)).copied().unwrap_or(0);
        let has_mark = move |link: &Link| link.mark == mark;
        self.chained(newest, |link| link.older, has_mark).filter(is_equal)
    }

    /// Returns the absolute indices of the entries with this name, from the newest on. `mark` is the
    /// name's [`name_mark`].
    pub(super) fn entries_named<'a>(
        &'a self,
        mark: u32,
        name: &'a [u8],
    ) -> impl Iterator<Item = u64> + use<'a> {
        let is_equal = move |absolute: &u64| {
            self.table.entry(*absolute).is_some_and(|entry| entry.name() == name)
        };
        let newest = self.newest.get(CHAINS + chain(mark)).copied().unwrap_or(0);
        let has_mark = move |link: &Link| link.name_mark == mark;
        self.chained(newest, |link| link.older_name, has_mark).filter(is_equal)
    }

    fn chained<'a>(
        &'a self,
        newest: u64,
        older: impl Fn(&Link) -> u64 + 'a,
        has_mark: impl Fn(&Link) -> bool + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        let mut next = newest;
        iter::from_fn(move || {
            loop {
                let absolute = next.checked_sub(1)?;
                let link = self.link(absolute)?;
                next = older(link);
                if has_mark(link) {
                    return Some(absolute);
                }
            }
        })
    }

    fn link(&self, absolute: u64) -> Option<&Link> {
        let index = absolute.checked_sub(self.table.oldest())?;
        self.links.get(usize::try_from(index).ok()?)
    }

    /// Returns whether an entry is close to its eviction.
    pub(super) fn is_draining(&self, absolute: u64) -> bool {
        let capacity = self.table.capacity();
        self.link(absolute).is_some_and(|link| {
            self.inserted_octets - link.start > capacity - capacity / DRAINING_PART
        })
    }

    /// Inserts a field; returns its absolute index, unless it is larger than the table.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) -> Option<u64> {
        let (mark, name_mark) = (mark(name, value), name_mark(name));
        self.insert_entry(Entry::new(name, value), mark, name_mark)
    }

    /// Inserts the field of an entry again; returns its new absolute index.
    pub(super) fn insert_again(&mut self, absolute: u64) -> Option<u64> {
        let entry = self.table.entry(absolute)?.clone();
        let Link { mark, name_mark, .. } = *self.link(absolute)?;
        self.insert_entry(entry, mark, name_mark)
    }

    fn insert_entry(&mut self, entry: Entry, mark: u32, name_mark: u32) -> Option<u64> {
        let (absolute, size) = (self.table.inserted(), entry.size());
        if !self.table.insert(entry) {
            return None;
        }
        if self.newest.is_empty() {
            self.newest = vec![0; 2 * CHAINS];
        }
        let [mut older, mut older_name] = [absolute + 1; 2];
        if let Some(newest) = self.newest.get_mut(chain(mark)) {
            core::mem::swap(newest, &mut older);
        }
        if let Some(newest) = self.newest.get_mut(CHAINS + chain(name_mark)) {
            core::mem::swap(newest, &mut older_name);
        }
        let start = self.inserted_octets;
        reserve_for_one(&mut self.links);
        self.links.push_back(Link { mark, name_mark, older, older_name, start });
        let evicted = self.links.len() as u64 - (self.table.inserted() - self.table.oldest());
        self.links.drain(..evicted as usize);
        self.inserted_octets += size;
        Some(absolute)
    }
}

fn chain(mark: u32) -> usize {
    mark as usize % CHAINS
}

/// Returns a number that differs between most fields.
pub(super) fn mark(name: &[u8], value: &[u8]) -> u32 {
    mixed(ends(name).rotate_left(32) ^ ends(value))
}

/// Returns a number that differs between most names.
pub(super) fn name_mark(name: &[u8]) -> u32 {
    mixed(ends(name))
}

fn mixed(number: u64) -> u32 {
    // The golden ratio, as in Fibonacci hashing: the highest bits depend on all others.
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Returns a number made from the length, and up to eight octets at both ends.
fn ends(text: &[u8]) -> u64 {
    let length = (text.len() as u64).wrapping_mul(0x0100_0000_01b3);
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        return (first ^ length).wrapping_mul(0xff51_afd7_ed55_8ccd) ^ last.rotate_left(17);
    }
    text.iter().fold(length, |number, octet| number << 8 ^ number >> 56 ^ u64::from(*octet))
}
