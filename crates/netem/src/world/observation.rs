//! Observing a world from outside: captured packets and recorded events.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::{LinkDirection, LinkId, NodeId, World};
use crate::capture::{CaptureInterface, PacketCapture};
use crate::link::DropCause;
use crate::node::Node;
use crate::packet::{Packet, PacketPayload};

/// The default maximum size of a capture: 256 MiB.
const CAPTURE_LIMIT: usize = 256 << 20;

/// The end of a link at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TapPoint {
    /// The sending end. Packets that are dropped at once have a comment with the cause.
    Sender,
    /// The receiving end.
    Receiver,
}

/// The interfaces of the capture that one direction of a link writes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CaptureTap {
    pub(super) sender: Option<CaptureInterface>,
    pub(super) receiver: Option<CaptureInterface>,
}

/// A recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldRecord {
    /// The time.
    pub time: Duration,
    /// The event.
    pub observation: WorldObservation,
}

/// An event in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorldObservation {
    /// A packet was passed to a link, which accepted or dropped it.
    Offered {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: LinkDirection,
        /// The IP protocol number.
        protocol: u8,
        /// The size of the IP packet in bytes.
        bytes: usize,
        /// The immediate result. An accepted packet may still be lost.
        result: Result<(), DropCause>,
    },
    /// A packet arrived at the far end of a link.
    Arrived {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: LinkDirection,
        /// The IP protocol number.
        protocol: u8,
        /// The size of the IP packet in bytes.
        bytes: usize,
        /// The ECN codepoint.
        ecn: u8,
    },
    /// The timer of a node expired.
    Timer(NodeId),
    /// A link was changed.
    Changed(LinkId),
}

impl fmt::Display for WorldRecord {
    /// One line, identical for identical runs: two runs are compared by their lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.time.as_secs(), self.time.subsec_nanos());
        write!(f, "{seconds}.{nanoseconds:09} ")?;
        let arrow = |direction| if direction == LinkDirection::Forward { "→" } else { "←" };
        match self.observation {
            WorldObservation::Offered { link, direction, protocol, bytes, result } => {
                write!(f, "link {} {} sent {bytes} of {protocol}", link.0, arrow(direction))?;
                match result {
                    Ok(()) => Ok(()),
                    Err(cause) => write!(f, ": {cause}"),
                }
            }
            WorldObservation::Arrived { link, direction, protocol, bytes, ecn } => {
                let arrow = arrow(direction);
                write!(f, "link {} {arrow} arrived {bytes} of {protocol} ecn {ecn}", link.0)
            }
            WorldObservation::Timer(node) => write!(f, "node {} timer", node.0),
            WorldObservation::Changed(link) => write!(f, "link {} changed", link.0),
        }
    }
}

/// Records, up to a bound.
#[derive(Debug, Default)]
struct WorldRecords {
    kept: Vec<WorldRecord>,
    limit: usize,
    missed: u64,
}

/// The observers of a world. Without any, they cost one comparison per packet.
#[derive(Debug, Default)]
pub(super) struct WorldObservers {
    capture: Option<PacketCapture>,
    records: Option<WorldRecords>,
}

impl WorldObservers {
    pub(super) const fn is_idle(&self) -> bool {
        self.capture.is_none() && self.records.is_none()
    }

    /// Reports that a packet passes one end of a link.
    pub(super) fn packet<B: PacketPayload>(
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

    pub(super) fn record(&mut self, time: Duration, observation: WorldObservation) {
        if let Some(records) = &mut self.records {
            if records.kept.len() < records.limit {
                records.kept.push(WorldRecord { time, observation });
            } else {
                records.missed += 1;
            }
        }
    }
}

impl<N: Node<B>, B: PacketPayload> World<N, B> {
    /// Captures packets at one end of both directions of a link, on interfaces named after `name`.
    /// All taps share one capture.
    pub fn tap(&mut self, link: LinkId, point: TapPoint, name: &str) {
        let capture =
            self.observers.capture.get_or_insert_with(|| PacketCapture::new(CAPTURE_LIMIT));
        for (direction, arrow) in [(LinkDirection::Forward, "→"), (LinkDirection::Backward, "←")]
        {
            let tap = &mut self.links[Self::slot(link, direction)].tap;
            let (place, end) = match point {
                TapPoint::Sender => (&mut tap.sender, "sent"),
                TapPoint::Receiver => (&mut tap.receiver, "arrived"),
            };
            let full = alloc::format!("{name} {arrow} {end}");
            *place = Some(capture.interface(&full));
        }
    }

    /// Returns the capture of all taps, to be written to a file, or to be emptied regularly with
    /// [`PacketCapture::drain`] in a long run.
    pub const fn capture_mut(&mut self) -> Option<&mut PacketCapture> {
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
        let observation = WorldObservation::Offered { link, direction, protocol, bytes, result };
        self.observers.record(time, observation);
    }

    pub(super) fn observe_arrival(&mut self, slot: u32, packet: &Packet<B>) {
        let (time, (link, direction)) = (self.now(), Self::direction(slot));
        let interface = self.links[slot as usize].tap.receiver;
        self.observers.packet(time, interface, packet, Ok(()));
        let (protocol, bytes, ecn) = (packet.protocol, packet.len(), packet.ecn);
        let observation = WorldObservation::Arrived { link, direction, protocol, bytes, ecn };
        self.observers.record(time, observation);
    }

    const fn direction(slot: u32) -> (LinkId, LinkDirection) {
        let is_forward = slot.is_multiple_of(2);
        let direction = if is_forward { LinkDirection::Forward } else { LinkDirection::Backward };
        (LinkId(slot / 2), direction)
    }

    /// Starts recording events, up to this number.
    pub fn keep_records(&mut self, limit: usize) {
        self.observers.records = Some(WorldRecords { limit, ..WorldRecords::default() });
    }

    /// Returns the events recorded since [`Self::keep_records`].
    #[must_use]
    pub fn records(&self) -> &[WorldRecord] {
        self.observers.records.as_ref().map_or(&[], |records| &records.kept)
    }

    /// Returns the number of events beyond the limit.
    #[must_use]
    pub fn missed_records(&self) -> u64 {
        self.observers.records.as_ref().map_or(0, |records| records.missed)
    }
}
