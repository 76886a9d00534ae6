//! The link between both sides: a delay, and losses, duplicates and reordering determined by a seed.
//! It counts the packets.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use bytes::Bytes;

/// The largest SCTP packet that passes, in bytes: 1,500 less the headers of IPv4 and UDP.
pub const LARGEST: usize = 1472;
/// The delay in each direction.
const DELAY: Duration = Duration::from_millis(10);
/// The additional delay of a reordered packet.
const REORDER_DELAY: Duration = Duration::from_millis(15);
/// The size of the SCTP common header, in bytes.
const HEADER: usize = 12;

/// The impairments of the link, in percent of the packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairments {
    pub lost: u32,
    pub duplicated: u32,
    pub reordered: u32,
}

/// The link, in both directions.
pub struct Link {
    pub impairments: Impairments,
    pub stats: Stats,
    random: u64,
    count: u64,
    in_flight: BinaryHeap<Reverse<(Duration, u64, usize, Bytes)>>,
}

/// Statistics of the packets.
#[derive(Default)]
pub struct Stats {
    pub packets: u64,
    pub lost: u64,
    pub without_checksum: u64,
    pub chunks: BTreeSet<u8>,
}

impl Link {
    pub fn new(seed: u64) -> Self {
        Self {
            impairments: Impairments::default(),
            stats: Stats::default(),
            random: seed,
            count: 0,
            in_flight: BinaryHeap::new(),
        }
    }

    /// Sends a packet to the side with that number.
    pub fn send(&mut self, now: Duration, to: usize, packet: Bytes) {
        self.stats.count(&packet);
        if packet.len() > LARGEST || self.chance(self.impairments.lost) {
            self.stats.lost += 1;
            return;
        }
        let copies = 1 + u32::from(self.chance(self.impairments.duplicated));
        for _ in 0..copies {
            let extra_delay = if self.chance(self.impairments.reordered) {
                REORDER_DELAY
            } else {
                Duration::ZERO
            };
            self.count += 1;
            self.in_flight.push(Reverse((
                now + DELAY + extra_delay,
                self.count,
                to,
                packet.clone(),
            )));
        }
    }

    /// Returns the next packet that has arrived, and its destination side.
    pub fn arrived(&mut self, now: Duration) -> Option<(usize, Bytes)> {
        let Reverse((at, ..)) = self.in_flight.peek()?;
        if *at > now {
            return None;
        }
        self.in_flight.pop().map(|Reverse((_, _, to, packet))| (to, packet))
    }

    /// Returns when the next packet arrives.
    pub fn timeout(&self) -> Option<Duration> {
        self.in_flight.peek().map(|Reverse((at, ..))| *at)
    }

    /// Returns true with this probability, by SplitMix64.
    fn chance(&mut self, percent: u32) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 100 < u64::from(percent)
    }
}

impl Stats {
    fn count(&mut self, packet: &[u8]) {
        self.packets += 1;
        self.without_checksum += u64::from(packet.get(8..HEADER) == Some(&[0; 4]));
        let mut rest = packet.get(HEADER..).unwrap_or_default();
        while let [kind, _, high, low, ..] = rest {
            self.chunks.insert(*kind);
            let length = usize::from(u16::from_be_bytes([*high, *low])).max(4);
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}
