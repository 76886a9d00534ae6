//! IP packets of a [`PacketDevice`](crate::device::PacketDevice): parsing, translation of addresses, and rejection.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    Icmpv4Type, Icmpv6Type, IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, NetHeaders,
    PacketBuilder, PacketBuilderStep, PacketHeaders, TcpHeader, TransportHeader,
};

const HOP_LIMIT: u8 = 64;
/// How much of a packet is quoted in an error: RFC 1812 §4.3.2.3 limits the error to 576 octets, RFC 4443 §2.4 to
/// 1280.
const QUOTED: (usize, usize) = (548, 1232);

/// A packet, as far as it is parsed here.
pub enum ParsedPacket<'a> {
    /// A TCP segment.
    Tcp {
        /// Its source.
        from: SocketAddr,
        /// Its destination.
        to: SocketAddr,
        /// The rest of it.
        segment: TcpSegment<'a>,
    },
    /// A UDP datagram.
    Udp {
        /// Its source.
        from: SocketAddr,
        /// Its destination.
        to: SocketAddr,
        /// Its data.
        payload: &'a [u8],
    },
    /// Something else, whose sender gets an ICMP error.
    Other,
}

/// A TCP segment without its addresses.
pub struct TcpSegment<'a> {
    /// Its header, whose ports and checksum do not count.
    pub header: TcpHeader,
    payload: &'a [u8],
}

/// Why a packet is not delivered (RFC 792, RFC 1812 §5.2.7.1, RFC 4443 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreachableCause {
    /// There is no network.
    Network,
    /// There is no route to the host.
    Host,
    /// It is prohibited.
    Prohibited,
    /// Nothing receives datagrams on this port.
    Port,
}

impl UnreachableCause {
    /// Returns the codes of ICMP and of ICMPv6.
    const fn codes(self) -> (u8, u8) {
        match self {
            Self::Network => (0, 0),
            Self::Host => (1, 3),
            Self::Prohibited => (13, 1),
            Self::Port => (3, 4),
        }
    }
}

/// Parses a packet from one host to another. Returns `None` if it is invalid, or of a kind that is never answered.
pub fn read(bytes: &[u8]) -> Option<ParsedPacket<'_>> {
    let headers = PacketHeaders::from_ip_slice(bytes).ok()?;
    let (from, to) = match headers.net.as_ref()? {
        NetHeaders::Ipv4(ip, _) => (IpAddr::from(ip.source), IpAddr::from(ip.destination)),
        NetHeaders::Ipv6(ip, _) => (IpAddr::from(ip.source), IpAddr::from(ip.destination)),
        NetHeaders::Arp(_) => return None,
    };
    if !is_host(from) || !is_host(to) {
        return None;
    }
    let payload = headers.payload.slice();
    match headers.transport {
        Some(TransportHeader::Tcp(header)) => Some(ParsedPacket::Tcp {
            from: SocketAddr::new(from, header.source_port),
            to: SocketAddr::new(to, header.destination_port),
            segment: TcpSegment { header, payload },
        }),
        Some(TransportHeader::Udp(header)) => Some(ParsedPacket::Udp {
            from: SocketAddr::new(from, header.source_port),
            to: SocketAddr::new(to, header.destination_port),
            payload,
        }),
        // An error is not answered by an error (RFC 1122 §3.2.2).
        Some(TransportHeader::Icmpv4(icmp)) => {
            matches!(icmp.icmp_type, Icmpv4Type::EchoRequest(_)).then_some(ParsedPacket::Other)
        }
        Some(TransportHeader::Icmpv6(icmp)) => {
            matches!(icmp.icmp_type, Icmpv6Type::EchoRequest(_)).then_some(ParsedPacket::Other)
        }
        Some(TransportHeader::Igmp(_)) => None,
        None => Some(ParsedPacket::Other),
    }
}

fn is_host(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() || is_broadcast)
}

/// Returns a packet with this segment and these addresses, which must be of the same family.
pub fn tcp(from: SocketAddr, to: SocketAddr, segment: &TcpSegment<'_>) -> Option<Vec<u8>> {
    let mut header = segment.header.clone();
    (header.source_port, header.destination_port) = (from.port(), to.port());
    written(ip(from.ip(), to.ip())?.tcp_header(header), segment.payload)
}

/// Returns a reset for the sender of a segment of no connection (RFC 9293 §3.5.2), unless that is a reset itself.
pub fn reset(from: SocketAddr, to: SocketAddr, segment: &TcpSegment<'_>) -> Option<Vec<u8>> {
    let received = &segment.header;
    if received.rst {
        return None;
    }
    let mut header = TcpHeader::new(to.port(), from.port(), 0, 0);
    header.rst = true;
    if received.ack {
        header.sequence_number = received.acknowledgment_number;
    } else {
        let flags = u32::from(received.syn) + u32::from(received.fin);
        let length = u32::try_from(segment.payload.len()).ok()?.wrapping_add(flags);
        header.ack = true;
        header.acknowledgment_number = received.sequence_number.wrapping_add(length);
    }
    written(ip(to.ip(), from.ip())?.tcp_header(header), &[])
}

/// Returns a UDP datagram with these addresses, which must be of the same family.
pub fn udp(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
    written(ip(from.ip(), to.ip())?.udp(from.port(), to.port()), payload)
}

/// Returns an ICMP error for the sender of a packet that is not delivered.
pub fn unreachable(refused: &[u8], router: IpAddr, why: UnreachableCause) -> Option<Vec<u8>> {
    const DESTINATION_UNREACHABLE: (u8, u8) = (3, 1);
    let (code, code6) = why.codes();
    let headers = PacketHeaders::from_ip_slice(refused).ok()?;
    let quoted = |most: usize| &refused[..refused.len().min(most)];
    match headers.net? {
        NetHeaders::Ipv4(received, _) => {
            let step = ip(router, received.source.into())?;
            written(step.icmpv4_raw(DESTINATION_UNREACHABLE.0, code, [0; 4]), quoted(QUOTED.0))
        }
        NetHeaders::Ipv6(received, _) => {
            let step = ip(router, received.source.into())?;
            written(step.icmpv6_raw(DESTINATION_UNREACHABLE.1, code6, [0; 4]), quoted(QUOTED.1))
        }
        NetHeaders::Arp(_) => None,
    }
}

/// Returns the same, unless the packet is of a kind that is never answered.
pub fn unreachable_if_host(
    refused: &[u8],
    router: IpAddr,
    why: UnreachableCause,
) -> Option<Vec<u8>> {
    read(refused)?;
    unreachable(refused, router, why)
}

/// Returns an IP header, whose length and protocol are set later, or `None` unless both addresses are of the same
/// family.
fn ip(from: IpAddr, to: IpAddr) -> Option<PacketBuilderStep<IpHeaders>> {
    let headers = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header =
                Ipv4Header::new(0, HOP_LIMIT, IpNumber::TCP, from.octets(), to.octets()).ok()?;
            IpHeaders::Ipv4(header, Default::default())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: 0,
                next_header: IpNumber::TCP,
                hop_limit: HOP_LIMIT,
                source: from.octets(),
                destination: to.octets(),
            };
            IpHeaders::Ipv6(header, Default::default())
        }
        _ => return None,
    };
    Some(PacketBuilder::ip(headers))
}

fn written<T>(step: PacketBuilderStep<T>, payload: &[u8]) -> Option<Vec<u8>>
where
    PacketBuilderStep<T>: WriteAfter,
{
    let mut packet = Vec::new();
    step.write_after(payload, &mut packet).then_some(packet)
}

/// A header that can be written with its payload. The steps of the library share no trait.
trait WriteAfter {
    fn write_after(self, payload: &[u8], into: &mut Vec<u8>) -> bool;
}

macro_rules! written {
    ($($header:ty),*) => {
        $(impl WriteAfter for PacketBuilderStep<$header> {
            fn write_after(self, payload: &[u8], into: &mut Vec<u8>) -> bool {
                into.reserve(self.size(payload.len()));
                self.write_to_vec(into, payload).is_ok()
            }
        })*
    };
}

written!(TcpHeader, etherparse::UdpHeader, etherparse::Icmpv4Header, etherparse::Icmpv6Header);
