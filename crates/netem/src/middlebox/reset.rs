//! A box that ends other hosts' TCP connections, by forging resets from both ends.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::checksum::of_transport;
use super::flow::ports;
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::{Packet, ecn, protocol};

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;
/// Flags of TCP, in the byte at offset 13.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// What makes the box reset a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetTrigger {
    /// A segment to or from this port.
    Port(u16),
    /// A segment that contains these bytes, for example a name in a ClientHello.
    Contains(Vec<u8>),
}

/// A box that answers a matching segment with resets to both ends.
#[derive(Clone, Debug)]
pub struct ResetInjector {
    trigger: ResetTrigger,
    drops: bool,
    outgoing: OutgoingPackets,
}

/// The fields that a reset is made from.
struct SegmentFields {
    ports: (u16, u16),
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    /// The number of sequence numbers that the segment occupies.
    length: u32,
}

impl ResetInjector {
    /// Creates a box with this trigger, which drops or passes the segment itself.
    #[must_use]
    pub fn new(trigger: ResetTrigger, drops: bool) -> Self {
        Self { trigger, drops, outgoing: OutgoingPackets::default() }
    }

    fn is_match(&self, segment: &SegmentFields, packet: &Packet) -> bool {
        match &self.trigger {
            ResetTrigger::Port(port) => segment.ports.0 == *port || segment.ports.1 == *port,
            ResetTrigger::Contains(bytes) => {
                let data = packet.payload.get(data_offset(packet)..).unwrap_or(&[]);
                !bytes.is_empty() && data.windows(bytes.len()).any(|window| window == bytes)
            }
        }
    }
}

fn data_offset(packet: &Packet) -> usize {
    packet.payload.get(12).map_or(0, |octet| usize::from(octet >> 4) * 4)
}

impl SegmentFields {
    fn from_packet(packet: &Packet) -> Option<Self> {
        if packet.protocol != protocol::TCP || packet.payload.len() < TCP_HEADER {
            return None;
        }
        let word = |at: usize| packet.payload.get(at..at + 4)?.try_into().ok();
        let flags = packet.payload[13];
        let data = packet.payload.len().saturating_sub(data_offset(packet)) as u32;
        Some(Self {
            ports: ports(packet)?,
            sequence: u32::from_be_bytes(word(4)?),
            acknowledgement: u32::from_be_bytes(word(8)?),
            flags,
            length: data + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0),
        })
    }

    /// The reset to its sender, in the name of its receiver (RFC 9293 §3.5.2).
    fn to_sender(&self, packet: &Packet) -> Packet {
        let acknowledges = self.sequence.wrapping_add(self.length);
        let ports = (self.ports.1, self.ports.0);
        let (source, destination) = (packet.destination, packet.source);
        if self.flags & ACK == 0 {
            reset((source, destination), ports, 0, Some(acknowledges))
        } else {
            reset((source, destination), ports, self.acknowledgement, None)
        }
    }

    /// The reset to its receiver, in the name of its sender.
    fn to_receiver(&self, packet: &Packet) -> Packet {
        let ends = (packet.source, packet.destination);
        // At the sequence number of the segment itself: what precedes it has been received.
        reset(ends, self.ports, self.sequence, None)
    }
}

fn reset(
    (source, destination): (core::net::IpAddr, core::net::IpAddr),
    ports: (u16, u16),
    sequence: u32,
    acknowledges: Option<u32>,
) -> Packet {
    let mut header = Vec::with_capacity(TCP_HEADER);
    header.extend(ports.0.to_be_bytes());
    header.extend(ports.1.to_be_bytes());
    header.extend(sequence.to_be_bytes());
    header.extend(acknowledges.unwrap_or(0).to_be_bytes());
    header.extend([5 << 4, if acknowledges.is_some() { RST | ACK } else { RST }]);
    // Window, checksum, urgent pointer.
    header.extend([0; 6]);
    let mut packet = Packet {
        source,
        destination,
        protocol: protocol::TCP,
        ecn: ecn::NOT_CAPABLE,
        dont_fragment: true,
        payload: Bytes::copy_from_slice(&header),
    };
    header[16..18].copy_from_slice(&of_transport(&packet).to_be_bytes());
    packet.payload = Bytes::from(header);
    packet
}

impl Middlebox for ResetInjector {
    fn handle_packet(&mut self, _now: Duration, from: MiddleboxSide, packet: Packet) {
        self.outgoing.counters.received += 1;
        let segment =
            SegmentFields::from_packet(&packet).filter(|segment| segment.flags & RST == 0);
        let Some(segment) = segment.filter(|segment| self.is_match(segment, &packet)) else {
            self.outgoing.pass(from, packet);
            return;
        };
        // The reset goes first, so that the receiver accepts it before the segment.
        self.outgoing.generate(from.opposite(), segment.to_receiver(&packet));
        self.outgoing.generate(from, segment.to_sender(&packet));
        if self.drops {
            self.outgoing.drop(&packet);
        } else {
            self.outgoing.pass(from, packet);
        }
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }
}
