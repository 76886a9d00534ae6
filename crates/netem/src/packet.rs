//! An IP packet, as seen by links and middleboxes.

use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::{Bytes, BytesMut};

use crate::header;

/// IP protocol numbers assigned by IANA.
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

/// The ECN codepoints of the IP header (RFC 3168 §5).
pub mod ecn {
    /// Not-ECT: the sender does not support ECN.
    pub const NOT_CAPABLE: u8 = 0;
    /// ECT(1).
    pub const CAPABLE_1: u8 = 1;
    /// ECT(0).
    pub const CAPABLE_0: u8 = 2;
    /// CE: a queue on the path was congested.
    pub const CONGESTION_EXPERIENCED: u8 = 3;
}

/// The size of an IPv4 header without options (RFC 791 §3.1).
pub const IPV4_HEADER: usize = 20;
/// The size of an IPv6 header without extensions (RFC 8200 §3).
pub const IPV6_HEADER: usize = 40;

/// The payload of a packet: bytes, or another type that the nodes of a world exchange, which has a
/// length and can be encoded where bytes are needed.
pub trait PacketPayload: Clone + From<Bytes> {
    /// Returns the number of bytes.
    fn len(&self) -> usize;

    /// Returns the encoded payload: [`Self::len`] bytes.
    fn to_bytes(&self) -> Bytes;

    /// Returns whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PacketPayload for Bytes {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    fn to_bytes(&self) -> Bytes {
        self.clone()
    }
}

/// An IP packet. The header is stored as fields, the payload as bytes or as another type `B`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<B = Bytes> {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol number: see [`protocol`].
    pub protocol: u8,
    /// The ECN codepoint, 0 to 3: see [`ecn`].
    pub ecn: u8,
    /// Whether it must not be fragmented. This is always so for IPv6 packets, whatever the value.
    pub dont_fragment: bool,
    /// The payload: the transport header and its data.
    pub payload: B,
}

impl Packet {
    /// Parses an IP packet; returns `None` if it is malformed. Trailing bytes are ignored, IPv4
    /// options are skipped, and IPv6 extension headers count as payload.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        header::parse(bytes)
    }
}

impl<B: PacketPayload> Packet<B> {
    /// Appends the encoded IP header to `into`. The TTL is 64, and both addresses are written in
    /// the family of the source.
    pub fn write_header(&self, identification: u16, into: &mut Vec<u8>) {
        header::write(self, identification, into);
    }

    /// Returns the size of the packet in bytes, including its IP header.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Returns whether there is no payload.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Returns the size of the IP header in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self.source {
            IpAddr::V4(_) => IPV4_HEADER,
            IpAddr::V6(_) => IPV6_HEADER,
        }
    }

    /// Returns whether routers must not fragment it.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.dont_fragment || self.source.is_ipv6()
    }

    /// Returns whether a queue may mark it instead of dropping it (RFC 3168 §5).
    #[must_use]
    pub const fn is_ecn_capable(&self) -> bool {
        self.ecn & 3 != ecn::NOT_CAPABLE
    }

    /// Returns the packet with an encoded payload.
    #[must_use]
    pub fn to_bytes(&self) -> Packet {
        self.with_payload(self.payload.to_bytes())
    }

    /// Returns the packet with another payload.
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

/// What a link must know about a packet, and what it may do to it.
///
/// [`Packet`] implements it; an emulator that carries packets of real hosts has its own type.
#[allow(clippy::len_without_is_empty, reason = "there is no packet without a header")]
pub trait LinkPacket: Clone {
    /// Returns the size of the packet in bytes, including its IP header.
    fn len(&self) -> usize;

    /// Returns the size of the IP header in bytes; at most [`Self::len`].
    fn header_len(&self) -> usize;

    /// Returns whether routers must not fragment it.
    fn is_whole(&self) -> bool;

    /// Returns whether a queue may mark it instead of dropping it (RFC 3168 §5).
    fn is_ecn_capable(&self) -> bool;

    /// Marks it as congestion experienced (RFC 3168 §5).
    fn mark(&mut self);

    /// Inverts these bits, counted from the first one after the IP header, lowest bit of an octet
    /// first. All of them are within the packet.
    fn corrupt(&mut self, bits: &[u64]);
}

impl<B: PacketPayload> LinkPacket for Packet<B> {
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
