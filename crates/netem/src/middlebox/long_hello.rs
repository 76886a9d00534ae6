//! A box that takes the first packet of a client for its whole ClientHello, and drops what follows until the server has
//! answered. With X25519MLKEM768 a ClientHello takes two packets.
//!
//! Over TCP it passes the segment in which a ClientHello begins, however often, and other segments with data only once
//! the server has sent some. Over QUIC it passes the first datagram of a connection, recognised by the client's
//! connection ID, and further ones only once a Handshake packet has come back: an acknowledgement is no answer to a
//! ClientHello, and would open the box for the rest of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::flow::{FlowTable, PacketFlow};
use super::quic_header::LongHeader;
use super::tcp_header::{SYN, TcpSegment};
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::{Packet, protocol};
use crate::time::nanos;

/// After this time without a packet a flow is forgotten (RFC 4787 §4.3).
const IDLE: Duration = Duration::from_mins(5);
/// The maximum number of QUIC connections of one flow; beyond it, the oldest is forgotten.
const MAX_CONNECTIONS: usize = 16;
/// How a ClientHello begins: a record of handshake messages (RFC 8446 §5.1), of which this is the first (§4).
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER: usize = 5;

/// What is known of a flow.
#[derive(Clone, Debug, Default)]
struct ObservedFlow {
    /// The sequence number of the segment that a ClientHello over TCP begins with, until it is answered.
    hello: Option<u32>,
    /// Whether data has passed in either direction, so that no ClientHello can begin.
    has_data: bool,
    /// The QUIC connections.
    connections: VecDeque<ObservedConnection>,
}

#[derive(Clone, Debug)]
struct ObservedConnection {
    client: Vec<u8>,
    is_answered: bool,
}

/// A box that drops what follows the first packet of a ClientHello.
#[derive(Clone, Debug)]
pub struct LongHelloFirewall {
    flows: FlowTable<ObservedFlow>,
    outgoing: OutgoingPackets,
}

impl Default for LongHelloFirewall {
    fn default() -> Self {
        Self { flows: FlowTable::new(nanos(IDLE)), outgoing: OutgoingPackets::default() }
    }
}

impl LongHelloFirewall {
    /// Creates a box that has seen no flow.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn admits(&mut self, now: Duration, from: MiddleboxSide, packet: &Packet) -> bool {
        if !matches!(packet.protocol, protocol::TCP | protocol::UDP) {
            return true;
        }
        let flow = PacketFlow::from_packet(from, packet);
        let Some(flow) = self.flows.refresh(nanos(now), flow, true) else { return false };
        match (packet.protocol, from) {
            (protocol::TCP, _) => TcpSegment::from_packet(packet)
                .is_none_or(|segment| flow.admits_tcp(from, &segment)),
            (_, MiddleboxSide::Inside) => flow.admits_quic(&packet.payload),
            (_, MiddleboxSide::Outside) => {
                flow.observe_quic_answer(&packet.payload);
                true
            }
        }
    }
}

impl ObservedFlow {
    fn admits_tcp(&mut self, from: MiddleboxSide, segment: &TcpSegment<'_>) -> bool {
        if segment.flags & SYN != 0 {
            (self.hello, self.has_data) = (None, false);
        }
        if segment.data.is_empty() {
            return true;
        }
        let had_data = core::mem::replace(&mut self.has_data, true);
        match from {
            MiddleboxSide::Outside => {
                self.hello = None;
                true
            }
            MiddleboxSide::Inside => {
                if !had_data && begins_hello(segment.data) {
                    self.hello = Some(segment.sequence);
                }
                self.hello.is_none_or(|sequence| sequence == segment.sequence)
            }
        }
    }

    fn admits_quic(&mut self, datagram: &[u8]) -> bool {
        let Some(header) = datagram.get(UDP_HEADER..).and_then(LongHeader::from_bytes) else {
            return true;
        };
        let known = self.connections.iter().find(|known| known.client == header.source);
        match known {
            Some(known) => known.is_answered,
            None if !header.is_initial() => true,
            None => {
                if self.connections.len() == MAX_CONNECTIONS {
                    self.connections.pop_front();
                }
                let client = header.source.to_vec();
                self.connections.push_back(ObservedConnection { client, is_answered: false });
                true
            }
        }
    }

    fn observe_quic_answer(&mut self, datagram: &[u8]) {
        let packets = LongHeader::coalesced(datagram.get(UDP_HEADER..).unwrap_or(&[]));
        for header in packets.filter(LongHeader::is_handshake) {
            for known in &mut self.connections {
                known.is_answered |= known.client == header.destination;
            }
        }
    }
}

/// The length of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;

fn begins_hello(data: &[u8]) -> bool {
    data.first() == Some(&HANDSHAKE_RECORD) && data.get(RECORD_HEADER) == Some(&CLIENT_HELLO)
}

impl Middlebox for LongHelloFirewall {
    fn handle_packet(&mut self, now: Duration, from: MiddleboxSide, packet: Packet) {
        let passes = self.admits(now, from, &packet);
        self.outgoing.pass_or_drop(from, packet, passes);
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }

    fn entries(&self) -> usize {
        self.flows.len()
    }
}
