//! The datagrams that passed for one client: for its report, and for how long it may be idle.

use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::associate::Dropped;
use crate::copy::Passed;
use crate::report::Datagrams;

/// What passed, and when something last did.
pub(crate) struct Traffic<'a> {
    moved_at: Instant,
    passed: &'a mut Passed,
    pub(crate) datagrams: &'a mut Datagrams,
}

impl<'a> Traffic<'a> {
    /// Nothing has passed yet.
    pub(crate) fn new(passed: &'a mut Passed, datagrams: &'a mut Datagrams) -> Self {
        Self { moved_at: Instant::now(), passed, datagrams }
    }

    /// A datagram of the client was passed on.
    pub(crate) fn sent(&mut self, length: usize) {
        self.moved_at = Instant::now();
        self.passed.sent += length as u64;
        self.datagrams.sent += 1;
    }

    /// A datagram was passed on to the client.
    pub(crate) fn received(&mut self, length: usize) {
        self.moved_at = Instant::now();
        self.passed.received += length as u64;
        self.datagrams.received += 1;
    }

    pub(crate) fn dropped(&mut self, why: Dropped) {
        self.datagrams.dropped[why as usize] += 1;
    }

    /// Waits until nothing has passed for this long.
    pub(crate) fn idle(&self, time: Duration) -> Sleep {
        sleep_until(self.moved_at + time)
    }
}
