//! SCTP directly over IP, protocol 132, on raw sockets.
//!
//! A raw socket receives every packet of protocol 132 that reaches this host. Packets for other
//! ports than ours are dropped by the reading task (`super::super::ports`) before anything can
//! answer them.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use eyas_sctp::io::{Ecn, Fragmentation, Input, Received, Transmit};
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Arrivals, IPPROTO_SCTP, ReceiveBuffers, fragmentation};

/// The maximum number of packets read before other sockets get a turn.
const BATCH: usize = 64;
/// The minimum length of an IPv4 header.
const IPV4_HEADER: usize = 20;

/// The state of a raw socket for SCTP, apart from the socket itself.
#[derive(Debug)]
pub(super) struct RawCarrier {
    is_ipv4: bool,
}

pub(super) fn open(mut address: SocketAddr) -> io::Result<(Socket, RawCarrier)> {
    address.set_port(0);
    let protocol = Protocol::from(IPPROTO_SCTP);
    let socket = Socket::new(Domain::for_address(address), Type::RAW, Some(protocol))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        // IPV6_CHECKSUM stays off, as it is by default: SCTP has its own checksum.
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
    }
    fragmentation::forbid(&socket, address.is_ipv4())?;
    socket.bind(&address.into())?;
    Ok((socket, RawCarrier { is_ipv4: address.is_ipv4() }))
}

impl RawCarrier {
    pub(super) fn send(&self, socket: &Socket, transmit: &Transmit) -> io::Result<()> {
        let mut packets = transmit.contents.chunks(transmit.segment_size.max(1));
        packets.try_for_each(|packet| self.send_one(socket, transmit, packet))
    }

    /// Sends one packet, fragmented if that is necessary and allowed.
    fn send_one(&self, socket: &Socket, transmit: &Transmit, packet: &[u8]) -> io::Result<()> {
        let send = || self.send_packet(socket, transmit, packet);
        if transmit.fragmentation == Fragmentation::Allowed {
            return fragmentation::with_fragmentation(socket, self.is_ipv4, send);
        }
        match send() {
            Err(error) if fragmentation::is_too_big(&error) => {
                if transmit.fragmentation == Fragmentation::Forbidden {
                    return Ok(());
                }
                fragmentation::with_fragmentation(socket, self.is_ipv4, send)
            }
            sent => sent,
        }
    }

    fn send_packet(&self, socket: &Socket, transmit: &Transmit, packet: &[u8]) -> io::Result<()> {
        let contents = [IoSlice::new(packet)];
        let to = SockaddrStorage::from(transmit.remote);
        let (tos, class) = (transmit.ecn.bits(), i32::from(transmit.ecn.bits()));
        let source_v4 = source_v4(transmit.local);
        let source_v6 = source_v6(transmit.local);
        let mut control: Vec<ControlMessage<'_>> = Vec::with_capacity(2);
        match self.is_ipv4 {
            true => {
                control.extend(source_v4.as_ref().map(ControlMessage::Ipv4PacketInfo));
                control.extend((tos != 0).then_some(ControlMessage::Ipv4Tos(&tos)));
            }
            false => {
                control.extend(source_v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
                control.extend((tos != 0).then_some(ControlMessage::Ipv6TClass(&class)));
            }
        }
        let flags = MsgFlags::empty();
        sendmsg(socket.as_raw_fd(), &contents, &control, flags, Some(&to))?;
        Ok(())
    }

    pub(super) fn receive(
        &self,
        socket: &Socket,
        buffers: &mut ReceiveBuffers,
        arrivals: &mut Arrivals,
    ) -> io::Result<()> {
        let Some(buffer) = buffers.0.first_mut() else { return Ok(()) };
        for _ in 0..BATCH {
            if let Some(received) = self.receive_one(socket, buffer)? {
                arrivals.push(Input::Packets(received));
            }
        }
        Ok(())
    }

    /// Receives one packet; `None` if it is not valid.
    fn receive_one(&self, socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut control = nix::cmsg_space!(libc::in6_pktinfo, libc::c_int);
        let (length, remote, packet_info, class) = {
            let mut slices = [IoSliceMut::new(buffer)];
            let flags = MsgFlags::empty();
            let message = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut slices,
                Some(&mut control),
                flags,
            )?;
            let (mut packet_info, mut class) = (None, 0);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::Ipv6PacketInfo(info) => {
                        packet_info = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                    }
                    // Only the two bits of ECN are used.
                    ControlMessageOwned::Ipv6TClass(value) => class = value.to_le_bytes()[0],
                    _ => {}
                }
            }
            (message.bytes, message.address, packet_info, class)
        };
        let packet = buffer.get(..length).unwrap_or_default();
        Ok(if self.is_ipv4 {
            parse_ipv4(packet)
        } else {
            from_ipv6(packet, remote.as_ref(), packet_info, class)
        })
    }
}

/// Parses a packet from a raw IPv4 socket, to which Linux delivers the header as well.
fn parse_ipv4(packet: &[u8]) -> Option<Received> {
    let first = *packet.first()?;
    let header_length = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_length < IPV4_HEADER {
        return None;
    }
    let contents = packet.get(header_length..).filter(|contents| !contents.is_empty())?;
    let address = |at: usize| -> Option<Ipv4Addr> {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(octets.into())
    };
    let (source, destination) = (address(12)?, address(16)?);
    if destination.is_multicast() || destination.is_broadcast() {
        return None;
    }
    Some(Received {
        local: Some(destination.into()),
        remote: SocketAddr::new(source.into(), 0),
        ecn: Ecn::from_bits(packet[1]),
        peer: None,
        contents: Bytes::copy_from_slice(contents),
        segment_size: contents.len(),
    })
}

/// Creates a packet from an IPv6 socket, which delivers only the contents; the rest is in control
/// messages.
fn from_ipv6(
    contents: &[u8],
    remote: Option<&SockaddrStorage>,
    local: Option<IpAddr>,
    class: u8,
) -> Option<Received> {
    let remote = remote?.as_sockaddr_in6()?;
    if contents.is_empty() || local.is_some_and(|local| local.is_multicast()) {
        return None;
    }
    // A raw socket has no ports; Linux reports the protocol's number instead.
    let scope = if remote.ip().is_unicast_link_local() { remote.scope_id() } else { 0 };
    let remote = std::net::SocketAddrV6::new(remote.ip(), 0, 0, scope);
    Some(Received {
        local,
        remote: remote.into(),
        ecn: Ecn::from_bits(class),
        peer: None,
        contents: Bytes::copy_from_slice(contents),
        segment_size: contents.len(),
    })
}

fn source_v4(local: Option<IpAddr>) -> Option<libc::in_pktinfo> {
    let Some(IpAddr::V4(local)) = local else { return None };
    let any = libc::in_addr { s_addr: u32::from(Ipv4Addr::UNSPECIFIED) };
    let from = libc::in_addr { s_addr: u32::from(local).to_be() };
    Some(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: from, ipi_addr: any })
}

fn source_v6(local: Option<IpAddr>) -> Option<libc::in6_pktinfo> {
    let Some(IpAddr::V6(local)) = local else { return None };
    let from = libc::in6_addr { s6_addr: Ipv6Addr::octets(&local) };
    Some(libc::in6_pktinfo { ipi6_addr: from, ipi6_ifindex: 0 })
}
