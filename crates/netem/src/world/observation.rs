//! What can be seen of a world from outside: packets in a capture, happenings in a record.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::{Direction, LinkId, NodeId, World};
use crate::capture::{Capture, CaptureInterface};
use crate::link::DropCause;
use crate::node::Node;
use crate::packet::{Packet, Payload};

/// Bytes of a capture, if the caller does not begin one of another size: 256 MiB.
const CAPTURE_LIMIT: usize = 256 << 20;

/// At which end of a link packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TapPoint {
    /// Where they are sent. Those that are dropped at once have a comment that says why.
    Sender,
    /// Where they arrive.
    Receiver,
}

/// The interfaces of the capture that one direction of a link writes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tap {
    pub(super) sender: Option<CaptureInterface>,
    pub(super) receiver: Option<CaptureInterface>,
}

/// Something that happened in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub time: Duration,
    /// What.
    pub observation: Observation,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observation {
    /// A packet was given to a link, which took or dropped it.
    Offered {
        /// Which link.
        link: LinkId,
        /// In which direction.
        direction: Direction,
        /// The protocol inside IP.
        protocol: u8,
        /// Bytes of the IP packet.
        bytes: usize,
        /// What the link did at once. It may lose on the way what it took.
        result: Result<(), DropCause>,
    },
    /// A packet arrived at the far end of a link.
    Arrived {
        /// Which link.
        link: LinkId,
        /// In which direction.
        direction: Direction,
        /// The protocol inside IP.
        protocol: u8,
        /// Bytes of the IP packet.
        bytes: usize,
        /// The mark for congestion that it bears.
        ecn: u8,
    },
    /// The time that a node had asked for.
    Timer(NodeId),
    /// A link was changed.
    Changed(LinkId),
}

impl fmt::Display for Record {
    /// One line, the same for the same run: two runs are compared by their lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.time.as_secs(), self.time.subsec_nanos());
        write!(f, "{seconds}.{nanoseconds:09} ")?;
        let arrow = |direction| if direction == Direction::Forward { "→" } else { "←" };
        match self.observation {
            Observation::Offered { link, direction, protocol, bytes, result } => {
                write!(f, "link {} {} sent {bytes} of {protocol}", link.0, arrow(direction))?;
                match result {
                    Ok(()) => Ok(()),
                    Err(cause) => write!(f, ": {cause}"),
                }
            }
            Observation::Arrived { link, direction, protocol, bytes, ecn } => {
                let arrow = arrow(direction);
                write!(f, "link {} {arrow} arrived {bytes} of {protocol} ecn {ecn}", link.0)
            }
            Observation::Timer(node) => write!(f, "node {} timer", node.0),
            Observation::Changed(link) => write!(f, "link {} changed", link.0),
        }
    }
}

/// Records, up to a bound.
#[derive(Debug, Default)]
struct Records {
    kept: Vec<Record>,
    limit: usize,
    missed: u64,
}

/// Who looks on. A world without any pays for one comparison a packet.
#[derive(Debug, Default)]
pub(super) struct Observers {
    capture: Option<Capture>,
    records: Option<Records>,
}

impl Observers {
    pub(super) const fn is_idle(&self) -> bool {
        self.capture.is_none() && self.records.is_none()
    }

    /// A packet passes one end of a link.
    pub(super) fn packet<B: Payload>(
        &mut self,
        time: Duration,
        interface: Option<CaptureInterface>,
        packet: &Packet<B>,
        result: Result<(), DropCause>,
    ) {
        if let (Some(capture), Some(interface)) = (&mut self.capture, interface) {
            let comment = result.err().map(DropCause::text);
            capture.packet(time, interface, packet, comment);
        }
    }

    pub(super) fn record(&mut self, time: Duration, observation: Observation) {
        if let Some(records) = &mut self.records {
            if records.kept.len() < records.limit {
                records.kept.push(Record { time, observation });
            } else {
                records.missed += 1;
            }
        }
    }
}

impl<N: Node<B>, B: Payload> World<N, B> {
    /// Captures what passes one end of both directions of a link, under interfaces named after
    /// `name`. All taps write to one capture.
    pub fn tap(&mut self, link: LinkId, point: TapPoint, name: &str) {
        let capture = self.observers.capture.get_or_insert_with(|| Capture::new(CAPTURE_LIMIT));
        for (direction, arrow) in [(Direction::Forward, "→"), (Direction::Backward, "←")] {
            let tap = &mut self.links[Self::slot(link, direction)].tap;
            let (place, end) = match point {
                TapPoint::Sender => (&mut tap.sender, "sent"),
                TapPoint::Receiver => (&mut tap.receiver, "arrived"),
            };
            let full = alloc::format!("{name} {arrow} {end}");
            *place = Some(capture.interface(&full));
        }
    }

    /// The capture of the taps so far, to be written to a file, or to be emptied now and then by
    /// [`Capture::take`] in a long run.
    pub const fn capture_mut(&mut self) -> Option<&mut Capture> {
        self.observers.capture.as_mut()
    }

    pub(super) fn observe_offer(
        &mut self,
        slot: u32,
        packet: &Packet<B>,
        result: Result<(), DropCause>,
    ) {
        let (time, (link, direction)) = (self.now(), Self::direction(slot));
        let interface = self.links[slot as usize].tap.sender;
        self.observers.packet(time, interface, packet, result);
        let (protocol, bytes) = (packet.protocol, packet.len());
        let observation = Observation::Offered { link, direction, protocol, bytes, result };
        self.observers.record(time, observation);
    }

    pub(super) fn observe_arrival(&mut self, slot: u32, packet: &Packet<B>) {
        let (time, (link, direction)) = (self.now(), Self::direction(slot));
        let interface = self.links[slot as usize].tap.receiver;
        self.observers.packet(time, interface, packet, Ok(()));
        let (protocol, bytes, ecn) = (packet.protocol, packet.len(), packet.ecn);
        let observation = Observation::Arrived { link, direction, protocol, bytes, ecn };
        self.observers.record(time, observation);
    }

    const fn direction(slot: u32) -> (LinkId, Direction) {
        let is_forward = slot.is_multiple_of(2);
        let direction = if is_forward { Direction::Forward } else { Direction::Backward };
        (LinkId(slot / 2), direction)
    }

    /// Keeps a record of what happens from now on, of so many happenings at most.
    pub fn keep_records(&mut self, limit: usize) {
        self.observers.records = Some(Records { limit, ..Records::default() });
    }

    /// What happened since [`Self::keep_records`].
    #[must_use]
    pub fn records(&self) -> &[Record] {
        self.observers.records.as_ref().map_or(&[], |records| &records.kept)
    }

    /// Happenings that there was no room for.
    #[must_use]
    pub fn missed_records(&self) -> u64 {
        self.observers.records.as_ref().map_or(0, |records| records.missed)
    }
}
