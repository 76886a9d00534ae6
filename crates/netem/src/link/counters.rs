//! What became of the packets of a link.

use core::fmt;

/// So many packets, so many bytes of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, IP headers included, framing not.
    pub bytes: u64,
}

impl Count {
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Both together.
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
    /// The queue chose to drop it: RED or CoDel.
    QueueEarly,
    /// Lost on the wire.
    Loss,
    /// Bits were wrong, and the link saw it.
    BitError,
    /// Larger than the MTU, and not to be cut.
    TooBig,
    /// The link was down, or was cut while the packet was in it.
    Down,
}

impl DropCause {
    /// Every cause, in the order of the counters.
    pub const ALL: [Self; 6] =
        [Self::QueueFull, Self::QueueEarly, Self::Loss, Self::BitError, Self::TooBig, Self::Down];

    /// The cause in words.
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

/// What became of the packets of one direction of a link.
///
/// `offered + duplicated` is `delivered`, plus all that was dropped, plus what is in the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Given to the link.
    pub offered: Count,
    /// Taken out at the far end.
    pub delivered: Count,
    /// Copies that the link made.
    pub duplicated: Count,
    /// Put on the wire, the lost ones included.
    pub sent: Count,
    /// Arriving with wrong bits.
    pub corrupted: Count,
    /// Marked for congestion instead of being dropped.
    pub marked: Count,
    /// Held back, so that others pass.
    pub late: Count,
    dropped: [Count; DropCause::ALL.len()],
}

impl LinkCounters {
    /// Dropped for this cause.
    #[must_use]
    pub const fn dropped(&self, cause: DropCause) -> Count {
        self.dropped[cause as usize]
    }

    /// Dropped for any cause.
    #[must_use]
    pub fn dropped_in_all(&self) -> Count {
        self.dropped.iter().fold(Count::default(), |all, one| all.plus(*one))
    }

    pub(super) const fn drop(&mut self, cause: DropCause, bytes: usize) {
        self.dropped[cause as usize].add(bytes);
    }
}
