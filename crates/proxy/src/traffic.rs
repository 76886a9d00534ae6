//! The datagrams of one client, counted for its report and for its idle time.

use std::time::Duration;

use eyas_relay::copy::ByteCounts;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::report::{DatagramReport, DropReason};

/// Counts of a client's datagrams, and the time of the last one.
pub(crate) struct DatagramTraffic<'a> {
    last_datagram_at: Instant,
    /// When the client's first datagram was forwarded, if it began a QUIC connection.
    quic_started_at: Option<Instant>,
    counts: &'a mut ByteCounts,
    pub(crate) datagrams: &'a mut DatagramReport,
}

impl<'a> DatagramTraffic<'a> {
    /// Creates the counts of a client that has sent nothing yet.
    pub(crate) fn new(counts: &'a mut ByteCounts, datagrams: &'a mut DatagramReport) -> Self {
        Self { last_datagram_at: Instant::now(), quic_started_at: None, counts, datagrams }
    }

    /// Counts a datagram that was forwarded to the destination.
    pub(crate) fn sent(&mut self, length: usize) {
        self.last_datagram_at = Instant::now();
        self.counts.sent += length as u64;
        self.datagrams.sent += 1;
    }

    /// Notes whether the client's first datagram begins a QUIC connection, which it does if it has a long
    /// header (RFC 8999 §5.1). Such a client expects an answer.
    pub(crate) fn begins(&mut self, data: &[u8]) {
        let is_first = self.datagrams.sent == 0 && self.quic_started_at.is_none();
        if is_first && data.first().is_some_and(|first| first & 0xc0 == 0xc0) {
            self.quic_started_at = Some(Instant::now());
        }
    }

    /// Returns how long ago a QUIC connection was begun, and whether it was answered.
    pub(crate) fn quic(&self) -> Option<(Duration, bool)> {
        self.quic_started_at.map(|at| (at.elapsed(), self.datagrams.received > 0))
    }

    /// Counts a datagram that was forwarded to the client.
    pub(crate) fn received(&mut self, length: usize) {
        self.last_datagram_at = Instant::now();
        self.counts.received += length as u64;
        self.datagrams.received += 1;
    }

    pub(crate) fn dropped(&mut self, why: DropReason) {
        self.datagrams.dropped[why as usize] += 1;
    }

    /// Waits until no datagram was forwarded for this long.
    pub(crate) fn idle(&self, time: Duration) -> Sleep {
        sleep_until(self.last_datagram_at + time)
    }
}
