//! The link between both sides: a delay, and losses, copies and packets that overtake others as a
//! seed says. It looks at what passes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use bytes::Bytes;

/// The largest SCTP packet that passes, in bytes: what is left of 1,500 after IPv4 and UDP.
pub const LARGEST: usize = 1472;
/// From one side to the other.
const DELAY: Duration = Duration::from_millis(10);
/// What a packet that is overtaken needs longer.
const DETOUR: Duration = Duration::from_millis(15);
/// Bytes of the header of a packet.
const HEADER: usize = 12;

/// What the link does to packets, each in one of a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub lost: u32,
    pub copied: u32,
    pub overtaken: u32,
}

/// Both directions.
pub struct Link {
    pub trouble: Trouble,
    pub seen: Seen,
    random: u64,
    count: u64,
    under_way: BinaryHeap<Reverse<(Duration, u64, usize, Bytes)>>,
}

/// What passed.
#[derive(Default)]
pub struct Seen {
    pub packets: u64,
    pub lost: u64,
    pub without_checksum: u64,
    pub chunks: BTreeSet<u8>,
}

impl Link {
    pub fn new(seed: u64) -> Self {
        Self {
            trouble: Trouble::default(),
            seen: Seen::default(),
            random: seed,
            count: 0,
            under_way: BinaryHeap::new(),
        }
    }

    /// Takes a packet for the side with that number.
    pub fn offer(&mut self, now: Duration, to: usize, packet: Bytes) {
        self.seen.look(&packet);
        if packet.len() > LARGEST || self.chance(self.trouble.lost) {
            self.seen.lost += 1;
            return;
        }
        let copies = 1 + u32::from(self.chance(self.trouble.copied));
        for _ in 0..copies {
            let detour = if self.chance(self.trouble.overtaken) { DETOUR } else { Duration::ZERO };
            self.count += 1;
            self.under_way.push(Reverse((now + DELAY + detour, self.count, to, packet.clone())));
        }
    }

    /// The next packet that has arrived, and the side that it is for.
    pub fn arrived(&mut self, now: Duration) -> Option<(usize, Bytes)> {
        let Reverse((at, ..)) = self.under_way.peek()?;
        if *at > now {
            return None;
        }
        self.under_way.pop().map(|Reverse((_, _, to, packet))| (to, packet))
    }

    /// When the next packet arrives.
    pub fn timeout(&self) -> Option<Duration> {
        self.under_way.peek().map(|Reverse((at, ..))| *at)
    }

    /// SplitMix64.
    fn chance(&mut self, percent: u32) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 100 < u64::from(percent)
    }
}

impl Seen {
    fn look(&mut self, packet: &[u8]) {
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
