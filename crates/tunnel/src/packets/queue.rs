//! The packets that wait to be sent.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

/// How long a packet may wait: long enough to keep a slow link busy, and no longer, since TCP within the tunnel
/// adapts its rate to losses.
pub const LIFETIME: Duration = Duration::from_millis(250);
/// The limit on waiting packets in bytes: about what a link of 100 Mbit/s carries in that time.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The limit on the number of waiting packets.
pub const MAX_PACKETS: usize = 8192;

/// Packets in the order of their arrival. If there are too many, the oldest are dropped, which would be late first.
#[derive(Debug, Default)]
pub struct PacketQueue {
    /// The time of arrival, and the packet.
    waiting: VecDeque<(Duration, Bytes)>,
    bytes: usize,
    late: u64,
    overflow: u64,
}

impl PacketQueue {
    /// Appends a packet.
    pub fn push(&mut self, now: Duration, packet: Bytes) {
        self.bytes += packet.len();
        self.waiting.push_back((now, packet));
        while self.bytes > MAX_BYTES || self.waiting.len() > MAX_PACKETS {
            self.remove_first();
            self.overflow += 1;
        }
    }

    /// Removes the next packet that is not late.
    pub fn pop(&mut self, now: Duration) -> Option<Bytes> {
        loop {
            let (arrived, packet) = self.remove_first()?;
            if now.saturating_sub(arrived) <= LIFETIME {
                return Some(packet);
            }
            self.late += 1;
        }
    }

    fn remove_first(&mut self) -> Option<(Duration, Bytes)> {
        let (arrived, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.len();
        if self.waiting.is_empty() {
            // An idle queue keeps no memory.
            self.waiting = VecDeque::new();
        }
        Some((arrived, packet))
    }

    /// Returns the number of waiting bytes.
    #[cfg(any(test, feature = "internals"))]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of waiting packets.
    #[cfg(any(test, feature = "internals"))]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no packet is waiting.
    #[cfg(feature = "internals")]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of packets that were dropped because they were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the number of packets that were dropped because there were too many.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }
}
