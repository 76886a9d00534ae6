//! Failed paths are probed more often than errors are counted, if that is wished
//! ([`AssociationConfig::max_probe_interval`]): the timeout of a heartbeat doubles with each that is lost, up to
//! `RTO.Max`, but a path that is back is of use at once.
//!
//! These heartbeats go beside those of [`super::heartbeat`]. One that is not answered counts no error and backs
//! nothing off: how long an outage may last before a path or the association is given up does not depend on them.

use alloc::boxed::Box;

use super::heartbeat::Heartbeat;
use super::{Path, PathState, Paths};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// The least time between two heartbeats of one path, in nanoseconds, however often paths come and go.
const LEAST_GAP: u64 = 100_000_000;

/// Heartbeats whose answers are waited for: round trips may be longer than they used to be.
const REMEMBERED: usize = 4;

/// The heartbeats of a path that failed, beside those that count errors. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct FurtherBeats {
    next: u64,
    /// Number and time of the latest ones, the newest first.
    sent: [(u64, u64); REMEMBERED],
}

impl Path {
    fn has_failed(&self) -> bool {
        matches!(self.state(), PathState::PotentiallyFailed | PathState::Inactive)
    }

    /// When the next of these heartbeats goes.
    pub(super) fn further_due(&self) -> Option<u64> {
        self.further.as_ref().map(|further| further.next)
    }

    /// Another heartbeat has just gone.
    pub(super) fn put_further_off(&mut self, now: u64, config: &AssociationConfig) {
        let interval = self.probe_interval(config);
        if let (Some(further), Some(interval)) = (&mut self.further, interval) {
            further.next = now.saturating_add(interval);
        }
    }

    /// Not less than an answer usually takes.
    fn probe_interval(&self, config: &AssociationConfig) -> Option<u64> {
        let wanted = nanoseconds(config.max_probe_interval?).max(LEAST_GAP);
        let smoothed = self.rto.smoothed().map_or(0, nanoseconds);
        let answer = smoothed.saturating_add(nanoseconds(self.rto.variance()).saturating_mul(4));
        Some(wanted.max(answer))
    }

    /// Begins or ends with them, and says whether one is to go now.
    pub(super) fn wants_further(&mut self, now: u64, config: &AssociationConfig) -> bool {
        let interval = self.probe_interval(config).filter(|_| self.has_failed());
        let Some(interval) = interval else {
            self.further = None;
            return false;
        };
        let further = self.further.get_or_insert_with(|| {
            let next = now.saturating_add(interval);
            Box::new(FurtherBeats { next, sent: [(0, 0); REMEMBERED] })
        });
        further.next <= now
    }

    /// Sends one.
    pub(super) fn further_heartbeat(
        &mut self,
        now: u64,
        nonce: u64,
        config: &AssociationConfig,
    ) -> Heartbeat {
        if let Some(further) = &mut self.further {
            further.sent.rotate_right(1);
            further.sent[0] = (nonce, now.max(1));
        }
        self.put_further_off(now, config);
        Heartbeat::plain(self.id, nonce)
    }

    /// When the one with this number was sent, if it is one of them.
    pub(super) fn further_sent(&self, nonce: u64) -> Option<u64> {
        let sent = self.further.as_ref()?.sent;
        sent.iter().find(|(number, at)| *number == nonce && *at != 0).map(|(_, at)| *at)
    }

    fn hasten_further(&mut self, now: u64) {
        let last = self.beat_sent().unwrap_or(0);
        if let Some(further) = &mut self.further {
            let last = further.sent[0].1.max(last);
            let soon = if last == 0 { now } else { last.saturating_add(LEAST_GAP).max(now) };
            further.next = further.next.min(soon);
        }
    }
}

impl Paths {
    /// No path works any more: those that failed before may be back.
    pub(super) fn probe_failed(&mut self, now: u64, config: &AssociationConfig) {
        if core::mem::take(&mut self.last_has_failed) {
            for path in &mut self.paths {
                path.wants_further(now, config);
                path.hasten_further(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
