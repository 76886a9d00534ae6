//! The datagrams that passed for one client: for its report, and for how long it may be idle.

use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::associate::Dropped;
use crate::copy::Passed;
use crate::report::Datagrams;

/// What passed, and when something last did.
pub(crate) struct Traffic<'a> {
    moved_at: Instant,
    /// When the client's first datagram was passed on, if that was one of QUIC.
    asked_at: Option<Instant>,
    passed: &'a mut Passed,
    pub(crate) datagrams: &'a mut Datagrams,
}

impl<'a> Traffic<'a> {
    /// Nothing has passed yet.
    pub(crate) fn new(passed: &'a mut Passed, datagrams: &'a mut Datagrams) -> Self {
        Self { moved_at: Instant::now(), asked_at: None, passed, datagrams }
    }

    /// A datagram of the client was passed on.
    pub(crate) fn sent(&mut self, length: usize) {
        self.moved_at = Instant::now();
        self.passed.sent += length as u64;
        self.datagrams.sent += 1;
    }

    /// The client's first datagram begins a connection of QUIC if it is one with a long header (RFC 8999
    /// §5.1): if it is one that wants an answer, that is.
    pub(crate) fn begins(&mut self, data: &[u8]) {
        let is_first = self.datagrams.sent == 0 && self.asked_at.is_none();
        if is_first && data.first().is_some_and(|first| first & 0xc0 == 0xc0) {
            self.asked_at = Some(Instant::now());
        }
    }

    /// Returns how long ago a connection of QUIC was begun, and whether anything has come back.
    pub(crate) fn quic(&self) -> Option<(Duration, bool)> {
        self.asked_at.map(|at| (at.elapsed(), self.datagrams.received > 0))
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
