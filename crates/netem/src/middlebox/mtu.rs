//! An MTU limit: packets that are too large are dropped, with or without an answer.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use bytes::Bytes;

use super::checksum::of_transport;
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OnesComplementSum, OutgoingPackets};
use crate::header;
use crate::packet::{Packet, ecn, protocol};

/// Bytes of a packet, after its header, that an ICMPv4 error quotes (RFC 792).
const QUOTED_V4: usize = 8;
/// The largest ICMPv6 error with its IPv6 header: the minimum MTU of IPv6 (RFC 4443 §2.4).
const ERROR_V6: usize = 1280;
/// Bytes before the quoted packet in an ICMP error.
const ICMP_HEADER: usize = 8;

/// The answer to a packet that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuAnswer {
    /// Nothing: a black hole (RFC 2923 §2.1).
    Nothing,
    /// The MTU, in an ICMP error from this address (RFC 1191, RFC 8201), if it is of the packet's
    /// family.
    TooBig(IpAddr),
}

/// A box that drops packets larger than its MTU. It never fragments.
#[derive(Clone, Debug)]
pub struct MtuLimit {
    mtu: usize,
    answer: MtuAnswer,
    outgoing: OutgoingPackets,
}

impl MtuLimit {
    /// Creates a limit, in bytes of IP packets.
    #[must_use]
    pub fn new(mtu: usize, answer: MtuAnswer) -> Self {
        Self { mtu, answer, outgoing: OutgoingPackets::default() }
    }

    /// Creates a limit without answers.
    #[must_use]
    pub fn black_hole(mtu: usize) -> Self {
        Self::new(mtu, MtuAnswer::Nothing)
    }
}

/// The ICMP error for a packet that does not fit.
fn too_big(from: IpAddr, mtu: usize, packet: &Packet) -> Option<Packet> {
    let mut quoted = Vec::new();
    header::write(packet, 0, &mut quoted);
    let mut message = Vec::new();
    let (number, room) = match (from, packet.source) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            let mtu = mtu.min(usize::from(u16::MAX)) as u16;
            message.extend([3, 4, 0, 0, 0, 0]);
            message.extend(mtu.to_be_bytes());
            (protocol::ICMP, QUOTED_V4)
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            let mtu = mtu.min(u32::MAX as usize) as u32;
            message.extend([2, 0, 0, 0]);
            message.extend(mtu.to_be_bytes());
            (protocol::ICMPV6, ERROR_V6 - 2 * packet.header_len() - ICMP_HEADER)
        }
        _ => return None,
    };
    message.extend(quoted);
    message.extend(&packet.payload[..room.min(packet.payload.len())]);
    let mut answer = Packet {
        source: from,
        destination: packet.source,
        protocol: number,
        ecn: ecn::NOT_CAPABLE,
        dont_fragment: false,
        payload: Bytes::copy_from_slice(&message),
    };
    let checksum = match number {
        protocol::ICMPV6 => of_transport(&answer),
        _ => OnesComplementSum::default().bytes(&message).finish(),
    };
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    answer.payload = Bytes::from(message);
    Some(answer)
}

impl Middlebox for MtuLimit {
    fn handle_packet(&mut self, _now: Duration, from: MiddleboxSide, packet: Packet) {
        self.outgoing.counters.received += 1;
        if packet.len() <= self.mtu {
            self.outgoing.pass(from, packet);
            return;
        }
        self.outgoing.drop(&packet);
        if let MtuAnswer::TooBig(address) = self.answer
            && let Some(answer) = too_big(address, self.mtu, &packet)
        {
            self.outgoing.generate(from, answer);
        }
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }
}
