//! SCTP directly over IP, protocol 132, on raw sockets.
//!
//! A raw socket receives every packet of protocol 132 that reaches this host. Packets for other
//! ports than ours are dropped by the reading task (`super::super::ports`) before anything can
//! answer them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use eyas_sctp::io::{Ecn, Fragmentation, Input, Received, Transmit};
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Arrivals, IPPROTO_SCTP, ReceiveBuffers, fragmentation, marking};

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
        let send = || marking::send(socket, self.is_ipv4, transmit, packet);
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
