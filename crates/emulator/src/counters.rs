//! Packet counters.

use std::time::Duration;

use eyas_netem::link::{LinkConfig, LinkCounters, PacketCount};
use eyas_netem::middlebox::MiddleboxCounters as Counted;
use eyas_netem::world::LinkDirection;

/// The packet counters of one direction of a path.
#[derive(Clone, Debug)]
pub struct DirectionCounters {
    /// The current configuration of the link.
    pub config: LinkConfig,
    /// Packets queued for the link.
    pub queued: PacketCount,
    /// Packets being transmitted or in flight.
    pub in_flight: PacketCount,
    /// All other packets. Where single packets are not treated individually, those of TCP and UDP
    /// are counted as the host passes them on: several in one.
    pub link: LinkCounters,
    /// Whether the link is up.
    pub is_up: bool,
    /// Packets that arrived but were not accepted by the kernel of the receiving host.
    pub unwritten: u64,
}

/// The packet counters of one middlebox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleboxCounters {
    /// Its kind, as in a scenario file: `nat`, `firewall`.
    pub kind: &'static str,
    /// A description of its rule: `drops udp`. Empty if the kind is sufficient.
    pub rule: String,
    /// The packets that it has seen. Packets of an address family that it does not handle bypass it
    /// and are not counted.
    pub packets: Counted,
    /// The flows or mappings that it remembers.
    pub entries: usize,
    /// The time that the emulator has spent in it.
    pub busy: Duration,
}

/// The packet counters of one path.
#[derive(Clone, Debug)]
pub struct PathCounters {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub forward: DirectionCounters,
    /// From the server to the client.
    pub backward: DirectionCounters,
    /// The counters of each middlebox, the one nearest to the client first.
    pub middleboxes: Vec<MiddleboxCounters>,
    /// Fragments that were dropped before a middlebox.
    pub fragments: u64,
}

impl PathCounters {
    /// Returns the counters of one direction.
    #[must_use]
    pub const fn direction(&self, direction: LinkDirection) -> &DirectionCounters {
        match direction {
            LinkDirection::Forward => &self.forward,
            LinkDirection::Backward => &self.backward,
        }
    }
}

/// All counters so far, and how well the emulator kept up.
#[derive(Clone, Debug)]
pub struct EmulatorCounters {
    /// The time since the emulator was started.
    pub time: Duration,
    /// The paths, in the order of the topology.
    pub paths: Vec<PathCounters>,
    /// Packets that were lost because the emulator did not read them in time and the queues of the
    /// interfaces were full. These losses were not configured.
    pub missed: u64,
    /// Packets missing from a capture because the disk was too slow.
    pub uncaptured: u64,
}

impl EmulatorCounters {
    /// Returns the path with this name.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&PathCounters> {
        self.paths.iter().find(|path| path.name == name)
    }
}
