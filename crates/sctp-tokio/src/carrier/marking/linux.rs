//! The control messages of Linux.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use eyas_sctp::io::{Marking, Transmit};
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use socket2::Socket;

pub(super) fn applies(transmit: &Transmit) -> bool {
    transmit.marking != Marking::default()
}

/// Sends one packet from its source address and with its marking.
pub(super) fn send(
    socket: &Socket,
    is_ipv4: bool,
    transmit: &Transmit,
    packet: &[u8],
) -> io::Result<()> {
    // Control messages cannot carry it on all kernels.
    if transmit.marking.mark == 0 {
        return send_unmarked(socket, is_ipv4, transmit, packet);
    }
    socket.set_mark(transmit.marking.mark)?;
    let sent = send_unmarked(socket, is_ipv4, transmit, packet);
    socket.set_mark(0)?;
    sent
}

fn send_unmarked(
    socket: &Socket,
    is_ipv4: bool,
    transmit: &Transmit,
    packet: &[u8],
) -> io::Result<()> {
    let contents = [IoSlice::new(packet)];
    let to = SockaddrStorage::from(transmit.remote);
    let tos = transmit.marking.dscp_bits | transmit.ecn.bits();
    let class = i32::from(tos);
    let hop_limit = transmit.marking.hop_limit.map(i32::from);
    let source_v4 = source_v4(transmit.local);
    let source_v6 = source_v6(transmit.local);
    let mut control: Vec<ControlMessage<'_>> = Vec::with_capacity(3);
    match is_ipv4 {
        true => {
            control.extend(source_v4.as_ref().map(ControlMessage::Ipv4PacketInfo));
            control.extend((tos != 0).then_some(ControlMessage::Ipv4Tos(&tos)));
            control.extend(hop_limit.as_ref().map(ControlMessage::Ipv4Ttl));
        }
        false => {
            control.extend(source_v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
            control.extend((tos != 0).then_some(ControlMessage::Ipv6TClass(&class)));
            control.extend(hop_limit.as_ref().map(ControlMessage::Ipv6HopLimit));
        }
    }
    sendmsg(socket.as_raw_fd(), &contents, &control, MsgFlags::empty(), Some(&to))?;
    Ok(())
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
