//! From which of its associations a socket receives.

use alloc::collections::VecDeque;

use crate::io::AssocId;

/// The associations that a socket receives from, in the order of arrival; while a message is
/// received in parts, no other association may interrupt it.
#[derive(Debug, Default)]
pub(super) struct ReceiveTurns {
    /// Each has its turn until this number of its items has been delivered.
    turns: VecDeque<(AssocId, u64)>,
    /// The association whose message is being received in parts.
    held_by: Option<AssocId>,
}

impl ReceiveTurns {
    /// Returns the association whose turn it is.
    pub(super) fn first(&self) -> Option<AssocId> {
        self.held_by.or_else(|| self.turns.front().map(|(id, _)| *id))
    }

    /// Returns the association whose message is being received in parts.
    pub(super) fn held_by(&self) -> Option<AssocId> {
        self.held_by
    }

    /// Returns whether an association waits for its turn, and no other interrupts it.
    pub(super) fn is_free(&self) -> bool {
        self.held_by.is_none() && !self.turns.is_empty()
    }

    /// Adds a turn, or extends the last one.
    pub(super) fn add(&mut self, id: AssocId, until: u64) {
        match self.turns.back_mut() {
            Some((last, end)) if *last == id => *end = until,
            _ => self.turns.push_back((id, until)),
        }
    }

    /// Sets whose message is being received in parts.
    pub(super) fn hold(&mut self, by: Option<AssocId>) {
        self.held_by = by;
    }

    /// Removes an association.
    pub(super) fn remove(&mut self, id: AssocId) {
        self.turns.retain(|(other, _)| *other != id);
        self.held_by = self.held_by.filter(|other| *other != id);
    }

    /// Removes turns that have been used up, according to the numbers of delivered items.
    pub(super) fn drop_used(&mut self, delivered: impl Fn(AssocId) -> Option<u64>) {
        while let Some((id, until)) = self.turns.front()
            && delivered(*id).is_none_or(|delivered| delivered >= *until)
        {
            self.turns.pop_front();
        }
    }
}
