//! Differences between the forward delays of paths.
//!
//! The peer's clock is not synchronised with ours, so a one-way delay cannot be measured. But if
//! SACKs for data that was sent on two paths come back on the same path, they have the return delay
//! in common, and the round-trip times differ by as much as the forward delays. The minimum
//! round-trip times differ by the delays without queues. If no SACKs came back on a common path,
//! half the difference of the two paths' round-trip times is the best estimate.

use alloc::vec::Vec;
use core::time::Duration;

use super::estimates::MinTracker;
use super::{AssociationPaths, Path, PathState};
use crate::identifier::PathId;

/// The maximum number of return paths that are distinguished for one path.
const MAX_RETURN_PATHS: usize = 8;

/// The minimum round-trip times of what was sent on one path, by the path that the SACKs came back
/// on.
#[derive(Clone, Debug, Default)]
pub(super) struct RttsByReturnPath {
    rtts: Vec<ReturnPathRtt>,
}

#[derive(Clone, Copy, Debug)]
struct ReturnPathRtt {
    return_path: PathId,
    minimum: MinTracker,
    /// Bytes that SACKs acknowledged which returned here: a decaying sum.
    acknowledged: u64,
}

/// When the sums are halved, in bytes.
const MAX_ACKNOWLEDGED: u64 = 256 << 10;

impl RttsByReturnPath {
    /// Adds the RTT of a SACK for `bytes` that returned on `return_path`; `without_queue`: there was
    /// no queue of ours on the path.
    pub(super) fn on_sample(
        &mut self,
        return_path: PathId,
        rtt: Duration,
        bytes: usize,
        without_queue: bool,
    ) {
        self.sample(return_path, rtt, without_queue);
        if let Some(known) = self.rtts.iter_mut().find(|known| known.return_path == return_path) {
            known.acknowledged += bytes as u64;
        }
        if self.rtts.iter().map(|known| known.acknowledged).sum::<u64>() > MAX_ACKNOWLEDGED {
            self.rtts.iter_mut().for_each(|known| known.acknowledged /= 2);
        }
    }

    fn sample(&mut self, return_path: PathId, rtt: Duration, without_queue: bool) {
        if let Some(known) = self.rtts.iter_mut().find(|known| known.return_path == return_path) {
            if known.minimum.on_sample(rtt, without_queue) {
                // The forward route has changed: measurements by other return paths are outdated.
                self.rtts.retain(|known| known.return_path == return_path);
            }
            return;
        }
        if self.rtts.len() >= MAX_RETURN_PATHS {
            self.rtts.remove(0);
        }
        let mut minimum = MinTracker::default();
        minimum.on_sample(rtt, without_queue);
        self.rtts.push(ReturnPathRtt { return_path, minimum, acknowledged: 0 });
    }

    /// Removes a return path. Returns whether there were measurements.
    pub(super) fn forget(&mut self, return_path: PathId) -> bool {
        let before = self.rtts.len();
        self.rtts.retain(|known| known.return_path != return_path);
        self.rtts.len() < before
    }

    /// Returns the minimum RTT over all return paths.
    pub(super) fn minimum(&self) -> Option<Duration> {
        self.rtts.iter().filter_map(|known| known.minimum.get()).min()
    }

    /// Returns the mean of the minimum RTTs over the return paths, by the data that SACKs on each
    /// of them acknowledged.
    pub(super) fn mean(&self) -> Option<Duration> {
        let known = self.rtts.iter().filter_map(|known| {
            Some((u128::from(known.acknowledged), known.minimum.get()?.as_nanos()))
        });
        let (bytes, sum) = known.fold((0, 0), |(bytes, sum), (weight, minimum)| {
            (bytes + weight, sum + weight * minimum)
        });
        let mean = sum.checked_div(bytes)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Returns by how much the forward delay exceeds that of `other` in nanoseconds, if SACKs for
    /// both returned on a common path. Of several, the one with the shortest RTTs counts.
    fn forward_excess(&self, other: &Self) -> Option<i64> {
        let common = self.rtts.iter().filter_map(|known| {
            let same = other.rtts.iter().find(|same| same.return_path == known.return_path)?;
            Some((known.minimum.get()?, same.minimum.get()?))
        });
        let (own, others) = common.min_by_key(|(own, others)| own.saturating_add(*others))?;
        Some(signed(own) - signed(others))
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 4)
}

impl Path {
    /// Returns by how much the forward delay without queues exceeds that of `other`, in
    /// nanoseconds.
    fn forward_excess(&self, other: &Self) -> Option<i64> {
        let (own, others) = (&self.estimates.return_rtts, &other.estimates.return_rtts);
        own.forward_excess(others).or_else(|| {
            let (own, others) = (self.min_rtt()?, other.min_rtt()?);
            Some((signed(own) - signed(others)) / 2)
        })
    }
}

impl AssociationPaths {
    /// Returns by how much the forward delay of a path without queues exceeds that of the active
    /// path with the shortest; zero for that path. `None` for a path without a measurement.
    #[must_use]
    pub fn forward_lag(&self, id: PathId) -> Option<Duration> {
        let path = self.get(id)?;
        path.min_rtt()?;
        let others = self.iter().filter(|other| other.state() == PathState::Active);
        let lag = others.filter_map(|other| path.forward_excess(other)).max().unwrap_or(0);
        Some(Duration::from_nanos(u64::try_from(lag).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
