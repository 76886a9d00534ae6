//! What became of the packets.

use std::time::Duration;

use eyas_netem::link::{Count, LinkConfig, LinkCounters};
use eyas_netem::middlebox::MiddleboxCounters as Counted;
use eyas_netem::world::Direction;

/// What became of the packets of one direction of a path.
#[derive(Clone, Debug)]
pub struct DirectionCounters {
    /// What the link is like now.
    pub config: LinkConfig,
    /// Packets that wait for the link.
    pub queued: Count,
    /// Packets that are being sent or on their way.
    pub in_flight: Count,
    /// What became of the others. Where nothing happens to single packets, those of TCP and UDP are
    /// counted as the host hands them over: many in one.
    pub link: LinkCounters,
    /// Whether packets pass.
    pub is_up: bool,
    /// Packets that arrived, and that the receiving host's kernel did not take.
    pub unwritten: u64,
}

/// What became of the packets of one middlebox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxCounters {
    /// Its kind, as in a file: `nat`, `firewall`.
    pub kind: &'static str,
    /// What it does, in words: `drops udp`. Empty if the kind says it all.
    pub rule: String,
    /// The packets that it saw. Those of a family of addresses that it is not for pass it by, and count
    /// nowhere here.
    pub packets: Counted,
}

/// What became of the packets of one path.
#[derive(Clone, Debug)]
pub struct PathCounters {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub forward: DirectionCounters,
    /// From the server to the client.
    pub backward: DirectionCounters,
    /// Of each middlebox, the one nearest to the client first.
    pub middleboxes: Vec<MiddleboxCounters>,
    /// Fragments of packets that were dropped before a middlebox.
    pub fragments: u64,
}

impl PathCounters {
    /// One direction.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionCounters {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }
}

/// What became of all packets so far, and how well the emulator kept its time.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Since the emulator was started.
    pub time: Duration,
    /// The paths, in the order of the topology.
    pub paths: Vec<PathCounters>,
    /// Packets that a host wanted to send while the emulator did not come to take them: the
    /// interfaces' queues were full. Losses that no link was asked to make.
    pub missed: u64,
    /// Packets that a capture left out, because the disk was too slow.
    pub uncaptured: u64,
}

impl Counters {
    /// The path of this name.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&PathCounters> {
        self.paths.iter().find(|path| path.name == name)
    }
}
