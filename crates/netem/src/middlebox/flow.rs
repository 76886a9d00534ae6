//! Identifies flows by protocol, addresses and ports, and remembers them until they are idle.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use crate::middlebox::MiddleboxSide;
use crate::packet::{Packet, protocol};
use crate::time::EpochNanos;

/// The maximum number of flows; when it is reached, idle ones make room, or a new one fails.
pub const MAX_FLOWS: usize = 65_536;

/// An address and a port.
pub(super) type FlowEndpoint = (IpAddr, u16);

/// Packets between the same two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketFlow {
    pub(super) protocol: u8,
    /// The endpoint on the inside.
    pub(super) inside: FlowEndpoint,
    /// The endpoint on the outside.
    pub(super) outside: FlowEndpoint,
}

impl PacketFlow {
    /// Returns the flow of a packet from `side`.
    pub(super) fn from_packet(side: MiddleboxSide, packet: &Packet) -> Self {
        let (from, to) = ports(packet).unwrap_or((0, 0));
        let (source, destination) = ((packet.source, from), (packet.destination, to));
        let (inside, outside) = match side {
            MiddleboxSide::Inside => (source, destination),
            MiddleboxSide::Outside => (destination, source),
        };
        Self { protocol: packet.protocol, inside, outside }
    }
}

/// What a box remembers of each flow, until it has been idle for too long.
#[derive(Clone, Debug)]
pub(super) struct FlowTable<T> {
    idle: EpochNanos,
    flows: BTreeMap<PacketFlow, FlowMemory<T>>,
}

#[derive(Clone, Debug)]
struct FlowMemory<T> {
    last: EpochNanos,
    value: T,
}

impl<T: Default> FlowTable<T> {
    pub(super) const fn new(idle: EpochNanos) -> Self {
        Self { idle, flows: BTreeMap::new() }
    }

    /// Returns what is remembered of a flow, which is not idle now. An unknown flow is opened if
    /// `may_open`; `None` if it may not be, or there is no room.
    pub(super) fn refresh(
        &mut self,
        now: EpochNanos,
        flow: PacketFlow,
        may_open: bool,
    ) -> Option<&mut T> {
        let idle = self.idle;
        let is_alive = |known: &FlowMemory<T>| now.saturating_sub(known.last) <= idle;
        if !self.flows.get(&flow).is_some_and(is_alive) {
            self.flows.remove(&flow);
            if may_open && self.flows.len() >= MAX_FLOWS {
                self.flows.retain(|_, known| is_alive(known));
            }
            if !may_open || self.flows.len() >= MAX_FLOWS {
                return None;
            }
            self.flows.insert(flow, FlowMemory { last: now, value: T::default() });
        }
        let known = self.flows.get_mut(&flow)?;
        known.last = now;
        Some(&mut known.value)
    }

    /// Returns the number of flows, including idle ones that have not been removed yet.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }
}

/// Returns the source and destination ports, if there are any and the packet is long enough.
pub(super) fn ports(packet: &Packet) -> Option<(u16, u16)> {
    if !matches!(packet.protocol, protocol::TCP | protocol::UDP | protocol::SCTP) {
        return None;
    }
    let [a, b, c, d] = *packet.payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Returns whether a packet may be the first one of its flow: any of UDP; a TCP SYN without ACK; an
/// SCTP packet with a verification tag of zero, which only an INIT has (RFC 9260 §8.5.1).
pub(super) fn opens(packet: &Packet) -> bool {
    match packet.protocol {
        protocol::TCP => packet.payload.get(13).is_some_and(|flags| flags & 0x12 == 0x02),
        protocol::SCTP => packet.payload.get(4..8) == Some(&[0; 4]),
        _ => true,
    }
}
