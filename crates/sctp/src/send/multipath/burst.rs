//! How much may leave at once (RFC 9260 §6.1 rule D), where it is not acknowledgements that say.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::BurstLimit;
use crate::identifier::PathId;

/// Packets that left since the last event.
#[derive(Debug)]
pub(super) struct Burst {
    limit: BurstLimit,
    most: u32,
    /// Whether something happened since the last packet.
    is_new: bool,
    /// When the last packet left.
    last: Duration,
    /// By path.
    counts: Vec<(PathId, u32)>,
    total: u32,
}

impl Burst {
    pub(super) fn new(limit: BurstLimit, most: u32) -> Self {
        let (last, counts) = (Duration::ZERO, Vec::new());
        Self { limit, most: most.max(1), is_new: true, last, counts, total: 0 }
    }

    /// Something happened.
    pub(super) fn on_event(&mut self) {
        self.is_new = true;
    }

    /// What happens at one time is one event.
    fn begin(&mut self, now: Duration) {
        if self.is_new && now > self.last {
            self.is_new = false;
            self.counts.clear();
            self.total = 0;
        }
    }

    /// Whether a path may send one packet more before the next event.
    pub(super) fn admits(&mut self, path: PathId, now: Duration) -> bool {
        self.begin(now);
        let of_path = self.counts.iter().find(|(id, _)| *id == path).map_or(0, |(_, count)| *count);
        match self.limit {
            BurstLimit::PerEvent => of_path < self.most,
            BurstLimit::Total => self.total < self.most,
            BurstLimit::Acknowledged | BurstLimit::None => true,
        }
    }

    pub(super) fn on_sent(&mut self, path: PathId, now: Duration) {
        if matches!(self.limit, BurstLimit::Acknowledged | BurstLimit::None) {
            return;
        }
        self.begin(now);
        self.last = now;
        self.total += 1;
        match self.counts.iter_mut().find(|(id, _)| *id == path) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((path, 1)),
        }
    }
}
