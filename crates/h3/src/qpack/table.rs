//! The dynamic table, as an encoder and a decoder keep it.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-3.2>
//!
//! ```text
//!     oldest()                        inserted()
//!        │                                │
//!        ▼                                ▼
//!   +----+-----+---------------+-----+----+
//!   |  d | d+1 |      ...      | n-2 | n-1|    by absolute index
//!   +----+-----+---------------+-----+----+
//!        evicted first             inserted last
//! ```

use alloc::collections::VecDeque;

use bytes::Bytes;

/// What an entry counts beside its name and value, in octets (RFC 9204 §3.2.1).
pub(super) const ENTRY_OVERHEAD: u64 = 32;

/// An entry: a name, and a value after it, in memory of their own. What is used again of another entry is copied, so that
/// it does not keep what was evicted; and each idle connection has some dozens of entries.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    octets: Bytes,
    name_length: usize,
}

impl Entry {
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        Self { octets: [name, value].concat().into(), name_length: name.len() }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.octets[..self.name_length]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.octets[self.name_length..]
    }

    /// Returns its name and its value, which share its memory.
    pub(super) fn parts(&self) -> (Bytes, Bytes) {
        (self.octets.slice(..self.name_length), self.octets.slice(self.name_length..))
    }

    /// Returns the size of this entry, in octets.
    pub(super) fn size(&self) -> u64 {
        self.octets.len() as u64 + ENTRY_OVERHEAD
    }
}

/// Returns the size of a field line (RFC 9114 §4.2.2), or of an entry with it (RFC 9204 §3.2.1).
pub(super) fn size(name: &[u8], value: &[u8]) -> u64 {
    name.len() as u64 + value.len() as u64 + ENTRY_OVERHEAD
}

/// Makes room for one more in steps of a quarter: a queue that doubles would be half empty on every idle connection.
pub(super) fn reserve_for_one<T>(queue: &mut VecDeque<T>) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact((queue.len() / 4).max(4));
    }
}

/// Entries in the order of their insertion, whose size never exceeds the capacity.
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    entries: VecDeque<Entry>,
    inserted: u64,
    size: u64,
    capacity: u64,
}

impl DynamicTable {
    /// Returns how many entries were ever inserted: the Insert Count.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the absolute index of the oldest entry, or of the next if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    /// Returns the size of all entries, in octets.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the most octets that all entries may have.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the entry with this absolute index, if it is in the table.
    pub(super) fn entry(&self, absolute: u64) -> Option<&Entry> {
        let index = absolute.checked_sub(self.oldest())?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Changes the capacity, and evicts what exceeds it.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// Inserts an entry, and evicts the oldest ones that do not fit beside it. Returns whether it
    /// fits; otherwise nothing changes.
    pub(super) fn insert(&mut self, entry: Entry) -> bool {
        let size = entry.size();
        let Some(rest) = self.capacity.checked_sub(size) else { return false };
        self.evict_to(rest);
        reserve_for_one(&mut self.entries);
        self.entries.push_back(entry);
        self.size += size;
        self.inserted += 1;
        true
    }

    fn evict_to(&mut self, most: u64) {
        while self.size > most
            && let Some(evicted) = self.entries.pop_front()
        {
            self.size -= evicted.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, value: &'static str) -> Entry {
        Entry::new(name.as_bytes(), value.as_bytes())
    }

    //= rfc9204 §3.2.2
    //# the oldest entries make room
    #[test]
    fn the_oldest_entries_make_room() {
        let mut table = DynamicTable::default();
        assert!(!table.insert(entry("", "")), "the capacity is 0 at first");
        table.set_capacity(100);
        assert!(table.insert(entry("a", "1")) && table.insert(entry("b", "2")));
        assert_eq!((table.size(), table.oldest(), table.inserted()), (68, 0, 2));
        assert!(table.insert(entry("c", "3")), "34 octets beside 34 and 32");
        assert_eq!((table.size(), table.oldest(), table.inserted()), (68, 1, 3));
        assert!(table.entry(0).is_none() && table.entry(3).is_none());
        assert_eq!(table.entry(2).map(Entry::name), Some(&b"c"[..]));
    }

    #[test]
    fn an_entry_that_is_too_large_changes_nothing() {
        let mut table = DynamicTable::default();
        table.set_capacity(40);
        assert!(table.insert(entry("a", "1234567")));
        assert!(!table.insert(entry("a", "12345678")));
        assert_eq!((table.size(), table.inserted()), (40, 1));
    }

    #[test]
    fn a_smaller_capacity_evicts() {
        let mut table = DynamicTable::default();
        table.set_capacity(200);
        for value in ["1", "2", "3"] {
            assert!(table.insert(entry("a", value)));
        }
        table.set_capacity(70);
        assert_eq!((table.size(), table.oldest()), (68, 1));
        table.set_capacity(0);
        table.set_capacity(200);
        assert_eq!((table.size(), table.oldest(), table.inserted()), (0, 3, 3));
    }
}
