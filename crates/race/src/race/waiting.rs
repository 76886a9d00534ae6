//! The candidates that wait for a turn.

use alloc::collections::VecDeque;

/// The indices of the plan's entries that wait for a turn: first those that were not tried, in the
/// order of the plan, then those that made room for others, in the order in which they did.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingEntries {
    entries: VecDeque<usize>,
    /// The number of entries that were not tried.
    untried: usize,
}

impl WaitingEntries {
    /// Creates a queue of untried entries, followed by others that made room before.
    pub(super) fn new(
        untried: VecDeque<usize>,
        returning: impl IntoIterator<Item = usize>,
    ) -> Self {
        let (count, mut entries) = (untried.len(), untried);
        entries.extend(returning);
        Self { entries, untried: count }
    }

    /// Returns the next entry.
    pub(super) fn next(&self) -> Option<usize> {
        self.entries.front().copied()
    }

    /// Removes the next entry.
    pub(super) fn take_next(&mut self) -> Option<usize> {
        self.remove(0)
    }

    /// Removes the entry at this position.
    pub(super) fn remove(&mut self, position: usize) -> Option<usize> {
        let entry = self.entries.remove(position)?;
        self.untried -= usize::from(position < self.untried);
        Some(entry)
    }

    /// Appends an entry that made room.
    pub(super) fn push_returning(&mut self, entry: usize) {
        self.entries.push_back(entry);
    }

    /// Returns whether an untried entry waits. Untried entries come before all others.
    pub(super) fn has_untried(&self) -> bool {
        self.untried > 0
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().copied()
    }
}
