//! What a proxy has done.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::associate::Dropped;
use crate::handshake::{Protocol, Refusal};
use crate::report::{Ending, Report, WonBy};

/// What a proxy has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Clients connected now.
    pub open: usize,
    /// Clients accepted.
    pub accepted: u64,
    /// Clients closed at once by a limit.
    pub turned_away: u64,
    /// Clients that have gone, by what they spoke, in the order of [`Protocol::ALL`].
    pub protocols: [u64; Protocol::ALL.len()],
    /// The same by how they ended, in the order of [`Ending::NAMES`].
    pub endings: [u64; Ending::NAMES.len()],
    /// Clients that were refused, by the reason, in the order of [`Refusal::NAMES`].
    pub refusals: [u64; Refusal::NAMES.len()],
    /// Races that were won by a transport that was up.
    pub won_by_transport: u64,
    /// Races that were won by a server that spoke.
    pub won_by_first_byte: u64,
    /// Bytes from clients that have gone.
    pub sent: u64,
    /// Bytes to them.
    pub received: u64,
    /// Associations for UDP now.
    pub associations: usize,
    /// Datagrams from clients that have gone.
    pub datagrams_sent: u64,
    /// Datagrams to them.
    pub datagrams_received: u64,
    /// Datagrams of theirs, or for them, that were dropped, in the order of [`Dropped::NAMES`].
    pub datagrams_dropped: [u64; Dropped::NAMES.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    turned_away: AtomicU64,
    protocols: [AtomicU64; Protocol::ALL.len()],
    endings: [AtomicU64; Ending::NAMES.len()],
    refusals: [AtomicU64; Refusal::NAMES.len()],
    won_by_transport: AtomicU64,
    won_by_first_byte: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    datagrams_sent: AtomicU64,
    datagrams_received: AtomicU64,
    datagrams_dropped: [AtomicU64; Dropped::NAMES.len()],
}

impl Counters {
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    /// Counts a client that has gone.
    pub(crate) fn note(&self, report: &Report) {
        let one = |counter: &AtomicU64| counter.fetch_add(1, Relaxed);
        if let Some(protocol) = report.protocol {
            one(&self.protocols[protocol as usize]);
        }
        let count = |names: &[&str], counters: &[AtomicU64], name: &str| {
            if let Some(at) = names.iter().position(|one| *one == name) {
                one(&counters[at]);
            }
        };
        count(&Ending::NAMES, &self.endings, report.end.name());
        if let Ending::Refused(why) | Ending::Unanswered(why) = &report.end {
            count(&Refusal::NAMES, &self.refusals, why.name());
        }
        match report.won_by {
            Some(WonBy::Transport) => _ = one(&self.won_by_transport),
            Some(WonBy::FirstByte) => _ = one(&self.won_by_first_byte),
            None => {}
        }
        self.sent.fetch_add(report.sent, Relaxed);
        self.received.fetch_add(report.received, Relaxed);
        if let Some(datagrams) = &report.datagrams {
            self.datagrams_sent.fetch_add(datagrams.sent, Relaxed);
            self.datagrams_received.fetch_add(datagrams.received, Relaxed);
            for (counter, dropped) in self.datagrams_dropped.iter().zip(datagrams.dropped) {
                counter.fetch_add(dropped, Relaxed);
            }
        }
    }

    pub(crate) fn snapshot(&self, open: usize, associations: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            open,
            accepted: read(&self.accepted),
            turned_away: read(&self.turned_away),
            protocols: self.protocols.each_ref().map(read),
            endings: self.endings.each_ref().map(read),
            refusals: self.refusals.each_ref().map(read),
            won_by_transport: read(&self.won_by_transport),
            won_by_first_byte: read(&self.won_by_first_byte),
            sent: read(&self.sent),
            received: read(&self.received),
            associations,
            datagrams_sent: read(&self.datagrams_sent),
            datagrams_received: read(&self.datagrams_received),
            datagrams_dropped: self.datagrams_dropped.each_ref().map(read),
        }
    }
}
