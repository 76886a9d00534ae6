//! Counters of a link.

use core::fmt;

/// A number of packets, and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// Bytes, including IP headers but not framing.
    pub bytes: u64,
}

impl PacketCount {
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// Dropped by the queue management: RED or CoDel.
    QueueEarly,
    /// Lost on the wire.
    Loss,
    /// Bit errors that the link detected.
    BitError,
    /// Larger than the MTU, and not to be fragmented.
    TooBig,
    /// The link was down, or was cut while the packet was in it.
    Down,
}

impl DropCause {
    /// All causes, in the order of the counters.
    pub const ALL: [Self; 6] =
        [Self::QueueFull, Self::QueueEarly, Self::Loss, Self::BitError, Self::TooBig, Self::Down];

    /// Returns the cause in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::QueueEarly => "dropped early by the queue",
            Self::Loss => "lost",
            Self::BitError => "wrong bits",
            Self::TooBig => "too big",
            Self::Down => "link down",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The counters of one direction of a link.
///
/// `offered + duplicated` equals `delivered` plus all drops plus what is still in the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets passed to the link.
    pub offered: PacketCount,
    /// Packets taken out at the far end.
    pub delivered: PacketCount,
    /// Copies that the link made.
    pub duplicated: PacketCount,
    /// Packets transmitted, including those lost afterwards.
    pub sent: PacketCount,
    /// Packets delivered with bit errors.
    pub corrupted: PacketCount,
    /// Packets marked by ECN instead of being dropped.
    pub marked: PacketCount,
    /// Packets delayed so that others pass.
    pub late: PacketCount,
    dropped: [PacketCount; DropCause::ALL.len()],
}

impl LinkCounters {
    /// Returns the packets dropped for this cause.
    #[must_use]
    pub const fn dropped(&self, cause: DropCause) -> PacketCount {
        self.dropped[cause as usize]
    }

    /// Returns the packets dropped for any cause.
    #[must_use]
    pub fn total_dropped(&self) -> PacketCount {
        self.dropped.iter().fold(PacketCount::default(), |all, one| all.plus(*one))
    }

    pub(super) const fn drop(&mut self, cause: DropCause, bytes: usize) {
        self.dropped[cause as usize].add(bytes);
    }
}
