//! The counters of a proxy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use eyas_relay::destination::RequestRefusal;
use eyas_relay::handshake::HandshakeProtocol;

use crate::report::{ClientEnding, DropReason, ProxyClientReport, WonBy};

/// The counters of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Currently connected clients.
    pub open: usize,
    /// Clients accepted.
    pub accepted: u64,
    /// Clients closed at once because of a limit.
    pub over_limit: u64,
    /// Disconnected clients by protocol, in the order of [`HandshakeProtocol::ALL`].
    pub protocols: [u64; HandshakeProtocol::ALL.len()],
    /// Disconnected clients by outcome, in the order of [`ClientEnding::NAMES`].
    pub endings: [u64; ClientEnding::NAMES.len()],
    /// Refused clients by reason, in the order of [`RequestRefusal::NAMES`].
    pub refusals: [u64; RequestRefusal::NAMES.len()],
    /// Races decided by an established transport.
    pub won_by_transport: u64,
    /// Races decided by the server's first byte.
    pub won_by_first_byte: u64,
    /// Bytes from disconnected clients.
    pub sent: u64,
    /// Bytes to disconnected clients.
    pub received: u64,
    /// Current UDP associations and CONNECT-UDP tunnels.
    pub associations: usize,
    /// Datagrams from disconnected clients.
    pub datagrams_sent: u64,
    /// Datagrams to disconnected clients.
    pub datagrams_received: u64,
    /// Datagrams from or to disconnected clients that were dropped, in the order of
    /// [`DropReason::NAMES`].
    pub datagrams_dropped: [u64; DropReason::NAMES.len()],
}

#[derive(Debug, Default)]
pub(crate) struct ProxyCounters {
    accepted: AtomicU64,
    over_limit: AtomicU64,
    protocols: [AtomicU64; HandshakeProtocol::ALL.len()],
    endings: [AtomicU64; ClientEnding::NAMES.len()],
    refusals: [AtomicU64; RequestRefusal::NAMES.len()],
    won_by_transport: AtomicU64,
    won_by_first_byte: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    datagrams_sent: AtomicU64,
    datagrams_received: AtomicU64,
    datagrams_dropped: [AtomicU64; DropReason::NAMES.len()],
}

impl ProxyCounters {
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    pub(crate) fn over_limit(&self) {
        self.over_limit.fetch_add(1, Relaxed);
    }

    /// Counts a client that has disconnected.
    pub(crate) fn note(&self, report: &ProxyClientReport) {
        let one = |counter: &AtomicU64| counter.fetch_add(1, Relaxed);
        if let Some(protocol) = report.protocol {
            one(&self.protocols[protocol as usize]);
        }
        let count = |names: &[&str], counters: &[AtomicU64], name: &str| {
            if let Some(at) = names.iter().position(|one| *one == name) {
                one(&counters[at]);
            }
        };
        count(&ClientEnding::NAMES, &self.endings, report.end.name());
        if let ClientEnding::Refused(why) | ClientEnding::Unanswered(why) = &report.end {
            count(&RequestRefusal::NAMES, &self.refusals, why.name());
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

    pub(crate) fn snapshot(&self, open: usize, associations: usize) -> ProxyStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        ProxyStats {
            open,
            accepted: read(&self.accepted),
            over_limit: read(&self.over_limit),
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
