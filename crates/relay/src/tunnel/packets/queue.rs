//! Packets that wait for their turn.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

/// How long a packet may wait. As long as a slow line needs to be kept busy, and no longer: what carries
/// connections in the tunnel finds out by what is lost how fast it may be.
pub const LIFETIME: Duration = Duration::from_millis(250);
/// Bytes that wait at most: about what a line of 100 Mbit/s carries in that time.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Packets that wait at most, however short they are.
pub const MAX_PACKETS: usize = 8192;

/// Packets in the order in which they came. Of those that are too many the oldest are dropped, for they are
/// late first.
#[derive(Debug, Default)]
pub struct PacketQueue {
    /// When each came, and the packet.
    waiting: VecDeque<(Duration, Bytes)>,
    bytes: usize,
    late: u64,
    overflow: u64,
}

impl PacketQueue {
    /// Puts a packet behind the others.
    pub fn push(&mut self, now: Duration, packet: Bytes) {
        self.bytes += packet.len();
        self.waiting.push_back((now, packet));
        while self.bytes > MAX_BYTES || self.waiting.len() > MAX_PACKETS {
            self.take();
            self.overflow += 1;
        }
    }

    /// The next packet that is not late.
    pub fn pop(&mut self, now: Duration) -> Option<Bytes> {
        loop {
            let (came, packet) = self.take()?;
            if now.saturating_sub(came) <= LIFETIME {
                return Some(packet);
            }
            self.late += 1;
        }
    }

    fn take(&mut self) -> Option<(Duration, Bytes)> {
        let (came, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.len();
        if self.waiting.is_empty() {
            // Who has nothing to say holds no room.
            self.waiting = VecDeque::new();
        }
        Some((came, packet))
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Packets that were dropped because they were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Packets that were dropped because there were too many.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }
}
