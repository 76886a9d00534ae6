//! Limits on bursts (RFC 9260 §6.1 rule D), where acknowledgements do not limit them.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::BurstLimit;
use crate::identifier::PathId;

/// The packets sent since the last event.
#[derive(Debug)]
pub(super) struct PacketBurst {
    limit: BurstLimit,
    max_packets: u32,
    /// Whether an event occurred since the last packet.
    is_new: bool,
    /// When the last packet was sent.
    last: Duration,
    /// Packets by path.
    counts: Vec<(PathId, u32)>,
    total: u32,
}

impl PacketBurst {
    pub(super) fn new(limit: BurstLimit, max_packets: u32) -> Self {
        let (last, counts) = (Duration::ZERO, Vec::new());
        Self { limit, max_packets: max_packets.max(1), is_new: true, last, counts, total: 0 }
    }

    /// Records an event.
    pub(super) fn on_event(&mut self) {
        self.is_new = true;
    }

    /// Starts a new burst; everything at one time is one event.
    fn begin(&mut self, now: Duration) {
        if self.is_new && now > self.last {
            self.is_new = false;
            self.counts.clear();
            self.total = 0;
        }
    }

    /// Returns whether a path may send another packet before the next event.
    pub(super) fn admits(&mut self, path: PathId, now: Duration) -> bool {
        self.begin(now);
        let sent = self.counts.iter().find(|(id, _)| *id == path).map_or(0, |(_, count)| *count);
        match self.limit {
            BurstLimit::PerEvent => sent < self.max_packets,
            BurstLimit::Total => self.total < self.max_packets,
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
