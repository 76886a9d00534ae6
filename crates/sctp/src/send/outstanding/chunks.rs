//! The chunks by TSN.

use alloc::collections::VecDeque;

use crate::congestion::PacketNumber;
use crate::send::queue::MessageId;
use crate::serial::Tsn;

/// The state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::send) enum ChunkState {
    /// In flight.
    InFlight,
    /// To be retransmitted.
    Lost,
    /// Acknowledged by a gap ack block; the peer may still renege (RFC 9260 §6.2.1).
    Acknowledged,
    /// Abandoned (RFC 3758 §3.5); the peer has to be notified.
    Abandoned,
}

/// One chunk. Small: there are tens of thousands in a large window of small messages.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct SentChunk {
    pub(in crate::send) message: MessageId,
    /// The offset of its data in the message.
    pub(in crate::send) offset: u32,
    /// Fragment sequence number (RFC 8260 §2.1).
    pub(in crate::send) fragment: u32,
    /// The packet that it was last sent in, on the path of `flight`.
    pub(in crate::send) packet: PacketNumber,
    /// Bytes of data.
    pub(in crate::send) length: u16,
    /// The number of transmissions; saturates.
    pub(in crate::send) transmissions: u16,
    /// The path that it was last sent on, or that is to retransmit it.
    pub(in crate::send) flight: u8,
    pub(in crate::send) state: ChunkState,
    /// Missing reports since the last transmission (RFC 9260 §7.2.4).
    pub(in crate::send) missing: u8,
    /// Its bytes are no longer in the send buffer: non-renegably acknowledged (NR-SACK), or
    /// abandoned.
    pub(in crate::send) released: bool,
    /// It was fast retransmitted, which happens once (RFC 9260 §7.2.4).
    pub(in crate::send) fast_retransmitted: bool,
    /// The peer reneged on it, so its arrival measures no round trip.
    pub(in crate::send) reneged: bool,
    /// It moved to another path after it was sent, so its arrival does not show that either path
    /// works.
    pub(in crate::send) moved: bool,
}

/// Chunks in the order of their TSNs, without gaps.
#[derive(Debug)]
pub(in crate::send) struct OutstandingChunks {
    chunks: VecDeque<SentChunk>,
    /// The TSN of the first chunk, or of the next one if there is none.
    first: Tsn,
}

impl OutstandingChunks {
    pub(super) fn new(initial: Tsn) -> Self {
        Self { chunks: VecDeque::new(), first: initial }
    }

    /// Returns the first TSN that is not cumulatively acknowledged.
    #[inline]
    pub(in crate::send) fn first(&self) -> Tsn {
        self.first
    }

    /// Returns the TSN of the next new chunk.
    #[inline]
    pub(super) fn next(&self) -> Tsn {
        self.first.plus(self.chunks.len() as u32)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, chunk: SentChunk) {
        self.chunks.push_back(chunk);
    }

    /// Removes the chunk with the first TSN.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<SentChunk> {
        let chunk = self.chunks.pop_front()?;
        self.first = self.first.next();
        Some(chunk)
    }

    #[inline]
    pub(in crate::send) fn get(&self, tsn: Tsn) -> Option<&SentChunk> {
        self.chunks.get(tsn.distance_from(self.first) as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, tsn: Tsn) -> Option<&mut SentChunk> {
        self.chunks.get_mut(tsn.distance_from(self.first) as usize)
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn iter(&self) -> impl Iterator<Item = &SentChunk> {
        self.chunks.iter()
    }

    /// Frees memory, if nothing is outstanding.
    pub(super) fn shrink(&mut self) {
        if self.chunks.is_empty() && self.chunks.capacity() > 0 {
            self.chunks = VecDeque::new();
        }
    }
}
