//! A packet of IP, as far as links and middleboxes care.

use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::{Bytes, BytesMut};

use crate::header;

/// Numbers of protocols inside IP, as IANA lists them.
pub mod protocol {
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP: u8 = 1;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// SCTP (RFC 9260).
    pub const SCTP: u8 = 132;
}

/// The two bits for congestion in the IP header (RFC 3168 §5).
pub mod ecn {
    /// The sender does not take part.
    pub const NOT_CAPABLE: u8 = 0;
    /// ECT(1).
    pub const CAPABLE_1: u8 = 1;
    /// ECT(0).
    pub const CAPABLE_0: u8 = 2;
    /// A queue on the way was congested.
    pub const CONGESTION_EXPERIENCED: u8 = 3;
}

/// Bytes of an IPv4 header without options (RFC 791 §3.1).
pub const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions (RFC 8200 §3).
pub const IPV6_HEADER: usize = 40;

/// What follows the IP header of a packet: bytes, or whatever the nodes of a world hand each other
/// instead, as long as it has a length and can be written as bytes where somebody wants to see them.
pub trait Payload: Clone + From<Bytes> {
    /// Bytes that it takes.
    fn len(&self) -> usize;

    /// As it is on a wire: [`Self::len`] bytes.
    fn to_bytes(&self) -> Bytes;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Payload for Bytes {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    fn to_bytes(&self) -> Bytes {
        self.clone()
    }
}

/// One IP packet. Its header is kept as fields, what comes after the header as bytes, or as what
/// else `B` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B = Bytes> {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// What is inside: see [`protocol`].
    pub protocol: u8,
    /// The mark for congestion, 0 to 3: see [`ecn`].
    pub ecn: u8,
    /// Whether it may not be cut into fragments. IPv6 packets never may, whatever this says.
    pub dont_fragment: bool,
    /// What follows the IP header: the transport's header and what it carries.
    pub payload: B,
}

impl Packet {
    /// Reads an IP packet from its bytes; `None` if they are none. Bytes behind its end are left
    /// out, options of IPv4 are skipped, and extensions of IPv6 count as payload.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        header::parse(bytes)
    }
}

impl<B: Payload> Packet<B> {
    /// Adds the IP header, in bytes, to `into`; the payload comes behind it. Life times are 64, and
    /// both addresses are written as those of the source's family.
    pub fn write_header(&self, identification: u16, into: &mut Vec<u8>) {
        header::write(self, identification, into);
    }

    /// Bytes of the packet with its IP header.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Whether nothing follows the IP header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Bytes of the IP header.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self.source {
            IpAddr::V4(_) => IPV4_HEADER,
            IpAddr::V6(_) => IPV6_HEADER,
        }
    }

    /// Whether a router may not cut it.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.dont_fragment || self.source.is_ipv6()
    }

    /// Whether a queue may mark it instead of dropping it (RFC 3168 §5).
    #[must_use]
    pub const fn is_ecn_capable(&self) -> bool {
        self.ecn & 3 != ecn::NOT_CAPABLE
    }

    /// The same packet with its payload in bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Packet {
        self.with_payload(self.payload.to_bytes())
    }

    /// The same packet with another payload.
    #[must_use]
    pub fn with_payload<C>(&self, payload: C) -> Packet<C> {
        Packet {
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            ecn: self.ecn,
            dont_fragment: self.dont_fragment,
            payload,
        }
    }
}

/// What a link needs to know of a packet, and what it may do to it.
///
/// [`Packet`] is one; an emulator that carries the packets of real hosts byte for byte has its own.
#[allow(clippy::len_without_is_empty, reason = "there is no packet without a header")]
pub trait LinkPacket: Clone {
    /// Bytes of the packet with its IP header.
    fn len(&self) -> usize;

    /// Bytes of the IP header; never more than [`Self::len`].
    fn header_len(&self) -> usize;

    /// Whether a router may not cut it.
    fn is_whole(&self) -> bool;

    /// Whether a queue may mark it instead of dropping it (RFC 3168 §5).
    fn is_ecn_capable(&self) -> bool;

    /// Marks it: a queue on the way was congested (RFC 3168 §5).
    fn mark(&mut self);

    /// Turns these bits over, counted from the first one behind the IP header, lowest bit of an
    /// octet first. All of them are within the packet.
    fn corrupt(&mut self, bits: &[u64]);
}

impl<B: Payload> LinkPacket for Packet<B> {
    fn len(&self) -> usize {
        self.len()
    }

    fn header_len(&self) -> usize {
        self.header_len()
    }

    fn is_whole(&self) -> bool {
        self.is_whole()
    }

    fn is_ecn_capable(&self) -> bool {
        self.is_ecn_capable()
    }

    fn mark(&mut self) {
        self.ecn = ecn::CONGESTION_EXPERIENCED;
    }

    fn corrupt(&mut self, bits: &[u64]) {
        let mut payload = BytesMut::from(&self.payload.to_bytes()[..]);
        for bit in bits {
            if let Some(octet) = payload.get_mut((bit / 8) as usize) {
                *octet ^= 1 << (bit % 8);
            }
        }
        self.payload = B::from(payload.freeze());
    }
}
