//! By how much later what is sent arrives on one path than on another.
//!
//! No clock is shared with the peer, so the time that a packet takes one way cannot be measured. But
//! SACKs for what was sent on different paths come back on the same one, and then the way back is
//! the same: the answers differ by as much as the ways there do. The least answers differ by the
//! delays without queues. Where no SACKs came back on a common path, half of the difference of the
//! round trips is the best guess.

use alloc::vec::Vec;
use core::time::Duration;

use super::estimates::Least;
use super::{Path, PathState, Paths};
use crate::identifier::PathId;

/// The most paths back that are told apart for one path.
const MAX_WAYS: usize = 8;

/// How long answers took to what was sent on one path, by the path that they came back on.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    ways: Vec<Way>,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    back: PathId,
    least: Least,
}

impl Ways {
    /// An answer came back on `back` after so long; `alone`: there was no queue of ours in the way.
    pub(super) fn on_answer(&mut self, back: PathId, time: Duration, alone: bool) {
        if let Some(way) = self.ways.iter_mut().find(|way| way.back == back) {
            if way.least.on_sample(time, alone) {
                // The way there is another one, and what is known of the other ways back is of the old.
                self.ways.retain(|way| way.back == back);
            }
            return;
        }
        if self.ways.len() >= MAX_WAYS {
            self.ways.remove(0);
        }
        let mut least = Least::default();
        least.on_sample(time, alone);
        self.ways.push(Way { back, least });
    }

    /// Nothing comes back on `back` any more. Says whether anything did.
    pub(super) fn forget(&mut self, back: PathId) -> bool {
        let before = self.ways.len();
        self.ways.retain(|way| way.back != back);
        self.ways.len() < before
    }

    /// How long answers took at least, on whatever path they came back.
    pub(super) fn least(&self) -> Option<Duration> {
        self.ways.iter().filter_map(|way| way.least.get()).min()
    }

    /// By how much longer, in nanoseconds, the way there is than `other`, if both had answers on
    /// one path back: by those on the path where they took least.
    fn longer_than(&self, other: &Self) -> Option<i64> {
        let common = self.ways.iter().filter_map(|way| {
            let same = other.ways.iter().find(|same| same.back == way.back)?;
            Some((way.least.get()?, same.least.get()?))
        });
        let (own, others) = common.min_by_key(|(own, others)| own.saturating_add(*others))?;
        Some(signed(own) - signed(others))
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 4)
}

impl Path {
    /// By how much longer, in nanoseconds, the way there is than that of `other`, queues left out.
    fn longer_than(&self, other: &Self) -> Option<i64> {
        self.estimates.ways.longer_than(&other.estimates.ways).or_else(|| {
            let (own, others) = (self.least_rtt()?, other.least_rtt()?);
            Some((signed(own) - signed(others)) / 2)
        })
    }
}

impl Paths {
    /// By how much later what is sent on a path arrives than what is sent at the same time on the
    /// path that is quickest there, queues left out; none for that one. Unknown for a path without
    /// a measurement.
    #[must_use]
    pub fn forward_lag(&self, id: PathId) -> Option<Duration> {
        let path = self.get(id)?;
        path.least_rtt()?;
        let others = self.iter().filter(|other| other.state() == PathState::Active);
        let lag = others.filter_map(|other| path.longer_than(other)).max().unwrap_or(0);
        Some(Duration::from_nanos(u64::try_from(lag).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
