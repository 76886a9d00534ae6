//! The counts of packets between an interface and the other ends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counts of packets between an interface and one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketCounts {
    /// Packets that were sent to the other end.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Those of them that were sent as datagrams of the transport, or as messages beside its streams.
    pub sent_as_datagrams: u64,
    /// Packets from the other end that were passed to the interface.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that were dropped because they had waited for too long.
    pub late: u64,
    /// Packets that were dropped because too many were waiting.
    pub overflow: u64,
    /// Packets from the other end with a source address that it does not have.
    pub forged: u64,
    /// Data from the other end that is not a packet.
    pub malformed: u64,
    /// Packets from the other end that the interface did not accept.
    pub refused: u64,
}

/// The counters behind [`PacketCounts`].
#[derive(Debug, Default)]
pub(crate) struct PacketTally {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    sent_as_datagrams: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    late: AtomicU64,
    overflow: AtomicU64,
    forged: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
}

/// The outcome for a packet from the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// The interface accepted it.
    Accepted,
    /// The interface did not accept it.
    Refused,
    /// Its source is not one of the other end's addresses.
    Forged,
    /// It is not a packet.
    Malformed,
}

impl PacketTally {
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a packet that was sent as a datagram of the transport, or as a message.
    pub(crate) fn sent_as_datagram(&self) {
        self.sent_as_datagrams.fetch_add(1, Relaxed);
    }

    /// Sets how many packets the queue has dropped so far.
    pub(crate) fn dropped(&self, late: u64, overflow: u64) {
        self.late.store(late, Relaxed);
        self.overflow.store(overflow, Relaxed);
    }

    pub(crate) fn count_received(&self, outcome: PacketOutcome, bytes: usize) {
        let count = match outcome {
            PacketOutcome::Accepted => {
                self.received_bytes.fetch_add(bytes as u64, Relaxed);
                &self.received
            }
            PacketOutcome::Refused => &self.refused,
            PacketOutcome::Forged => &self.forged,
            PacketOutcome::Malformed => &self.malformed,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> PacketCounts {
        PacketCounts {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            sent_as_datagrams: self.sent_as_datagrams.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            late: self.late.load(Relaxed),
            overflow: self.overflow.load(Relaxed),
            forged: self.forged.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}
