//! When the endpoints of ports are polled: those that may have outputs, then those whose timers
//! expire.

use alloc::collections::{BTreeSet, VecDeque};
use core::time::Duration;

/// Identifies a port in use. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::stack) struct PortKey(pub(super) u64);

/// The part of a port in the schedule.
#[derive(Debug, Default)]
pub(super) struct PortTurn {
    /// When its next timer expires.
    due: Option<Duration>,
    /// Whether it is among those that may have outputs.
    is_dirty: bool,
}

/// Which ports to poll, and when. Each port is in either list at most once.
#[derive(Debug, Default)]
pub(super) struct PortSchedule {
    timers: BTreeSet<(Duration, PortKey)>,
    /// Ports that may have outputs.
    dirty: VecDeque<PortKey>,
}

impl PortSchedule {
    /// Marks a port whose endpoint may have outputs.
    pub(super) fn touch(&mut self, key: PortKey, turn: &mut PortTurn) {
        if !core::mem::replace(&mut turn.is_dirty, true) {
            self.dirty.push_back(key);
        }
    }

    /// Removes a timer that has expired, of a port that is to be [touched](Self::touch_expired).
    pub(super) fn pop_expired(&mut self, now: Duration) -> Option<PortKey> {
        let (_, key) = self.timers.first().filter(|(due, _)| *due <= now)?;
        let key = *key;
        self.timers.pop_first();
        Some(key)
    }

    /// Marks a port whose timer has been removed.
    pub(super) fn touch_expired(&mut self, key: PortKey, turn: &mut PortTurn) {
        turn.due = None;
        self.touch(key, turn);
    }

    /// Returns the port to poll next.
    pub(super) fn first(&self) -> Option<PortKey> {
        self.dirty.front().copied()
    }

    /// Removes the first port, which no longer exists.
    pub(super) fn drop_first(&mut self) {
        self.dirty.pop_front();
    }

    /// Removes the first port, which has no more outputs until this time.
    pub(super) fn settle_first(&mut self, turn: &mut PortTurn, due: Option<Duration>) {
        let Some(key) = self.dirty.pop_front() else { return };
        turn.is_dirty = false;
        if turn.due != due {
            let previous = core::mem::replace(&mut turn.due, due);
            previous.map(|at| self.timers.remove(&(at, key)));
            due.map(|at| self.timers.insert((at, key)));
        }
    }

    /// Removes the timer of a port that ends. Its place among those that may have outputs ends when
    /// its turn comes.
    pub(super) fn cancel(&mut self, key: PortKey, turn: &PortTurn) {
        if let Some(due) = turn.due {
            self.timers.remove(&(due, key));
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }
}
