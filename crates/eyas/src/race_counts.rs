//! Counts an endpoint's races, their attempts, and the outcomes of both.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use eyas_race::candidate::Transport;

/// The outcomes of the attempts over one transport since the endpoint was created.
///
/// An attempt that appears only in the first count lost its race before it was complete, or is
/// still in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptCounts {
    /// Attempts started.
    pub started: u64,
    /// Attempts whose handshakes all completed, whether they won or not.
    pub completed: u64,
    /// Attempts that became a connection for the caller.
    pub used: u64,
    /// Attempts that failed by themselves.
    pub failed: u64,
}

/// The outcomes of the races of an endpoint since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RaceCounts {
    /// Races started.
    pub started: u64,
    /// Races in which an attempt has won.
    pub won: u64,
    /// Connections that were ready after the win, and better than the winner.
    pub switched: u64,
    /// Races that nobody has won.
    pub failed: u64,
}

/// The current counts of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct EndpointTally {
    attempts: [TransportRow; Transport::ALL.len()],
    races: RaceTally,
}

/// The current counts of races.
#[derive(Debug, Default)]
pub(crate) struct RaceTally {
    started: AtomicU64,
    won: AtomicU64,
    switched: AtomicU64,
    failed: AtomicU64,
}

impl RaceTally {
    pub(crate) fn started(&self) {
        self.started.fetch_add(1, Relaxed);
    }

    pub(crate) fn won(&self) {
        self.won.fetch_add(1, Relaxed);
    }

    pub(crate) fn switched(&self) {
        self.switched.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Returns the current counts.
    pub(crate) fn counts(&self) -> RaceCounts {
        RaceCounts {
            started: self.started.load(Relaxed),
            won: self.won.load(Relaxed),
            switched: self.switched.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

#[derive(Debug, Default)]
struct TransportRow {
    started: AtomicU64,
    completed: AtomicU64,
    used: AtomicU64,
    failed: AtomicU64,
}

impl EndpointTally {
    pub(crate) fn started(&self, transport: Transport) {
        self.count(transport, |row| &row.started);
    }

    pub(crate) fn completed(&self, transport: Transport) {
        self.count(transport, |row| &row.completed);
    }

    pub(crate) fn used(&self, transport: Transport) {
        self.count(transport, |row| &row.used);
    }

    pub(crate) fn failed(&self, transport: Transport) {
        self.count(transport, |row| &row.failed);
    }

    /// Returns the current counts of one transport.
    pub(crate) fn transport_counts(&self, transport: Transport) -> AttemptCounts {
        let Some(row) = self.row(transport) else { return AttemptCounts::default() };
        AttemptCounts {
            started: row.started.load(Relaxed),
            completed: row.completed.load(Relaxed),
            used: row.used.load(Relaxed),
            failed: row.failed.load(Relaxed),
        }
    }

    /// Returns the counts of races.
    pub(crate) fn races(&self) -> &RaceTally {
        &self.races
    }

    fn count(&self, transport: Transport, counter: impl Fn(&TransportRow) -> &AtomicU64) {
        if let Some(row) = self.row(transport) {
            counter(row).fetch_add(1, Relaxed);
        }
    }

    fn row(&self, transport: Transport) -> Option<&TransportRow> {
        let index = Transport::ALL.iter().position(|listed| *listed == transport)?;
        self.attempts.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_counted_separately() {
        let tally = EndpointTally::default();
        tally.started(Transport::Tcp);
        tally.started(Transport::Tcp);
        tally.completed(Transport::Tcp);
        tally.used(Transport::Tcp);
        tally.failed(Transport::SctpUdp);
        let expected = AttemptCounts { started: 2, completed: 1, used: 1, failed: 0 };
        assert_eq!(tally.transport_counts(Transport::Tcp), expected);
        assert_eq!(tally.transport_counts(Transport::SctpUdp).failed, 1);
        assert_eq!(tally.transport_counts(Transport::Quic), AttemptCounts::default());
    }
}
