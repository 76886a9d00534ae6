//! The error queue of Linux (`IP_RECVERR`, `IPV6_RECVERR` of ip(7) and ipv6(7)).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use bytes::Bytes;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, Socket};

use super::{IcmpCause, IcmpReport};

pub(super) const ABSENT: Option<&str> = None;

/// ICMP: destination unreachable (RFC 792).
const ICMP_UNREACHABLE: u8 = 3;
/// ICMPv6: destination unreachable (RFC 4443 §3.1).
const ICMP6_UNREACHABLE: u8 = 1;
/// ICMPv6: parameter problem (RFC 4443 §3.4).
const ICMP6_PARAMETER_PROBLEM: u8 = 4;
/// The number of bytes that are kept of the quoted packet, after the IP or UDP header. For SCTP
/// these are ports and tag, and the tag of an INIT.
const QUOTED_BYTES: usize = 20;

pub(super) fn enable_existing(socket: &Socket) -> io::Result<()> {
    set_reports(socket, socket.domain()?, true)
}

pub(super) fn set_reports(socket: &Socket, family: Domain, enabled: bool) -> io::Result<()> {
    match family {
        Domain::IPV4 => setsockopt(socket, sockopt::Ipv4RecvErr, &enabled)?,
        Domain::IPV6 => setsockopt(socket, sockopt::Ipv6RecvErr, &enabled)?,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    }
    Ok(())
}

pub(super) fn is_report(code: i32) -> bool {
    matches!(
        code,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENOPROTOOPT
            | libc::EPROTO
            | libc::EMSGSIZE
            | libc::EACCES
            | libc::EOPNOTSUPP
            | libc::ENONET
    )
}

pub(super) fn read(socket: &Socket) -> io::Result<Option<IcmpReport>> {
    let mut packet = [0; QUOTED_BYTES];
    let mut slices = [IoSliceMut::new(&mut packet)];
    let mut control = nix::cmsg_space!(
        [u8; size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>()],
        libc::in6_pktinfo,
        libc::c_int
    );
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_ERRQUEUE,
    )?;
    let Some(remote) = message.address.as_ref().and_then(to_address) else { return Ok(None) };
    let (mut cause, mut sender, mut is_local) = (None, None, false);
    for control in message.cmsgs()? {
        let error = match control {
            ControlMessageOwned::Ipv4RecvErr(error, offender) => {
                sender =
                    offender.map(|address| IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()));
                error
            }
            ControlMessageOwned::Ipv6RecvErr(error, offender) => {
                sender = offender.map(|address| IpAddr::from(address.sin6_addr.s6_addr));
                error
            }
            _ => continue,
        };
        cause = cause_of(&error);
        is_local = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
    }
    let length = message.bytes;
    let quoted = packet.get(..length).unwrap_or(&packet);
    let quoted = (!is_local).then(|| Bytes::copy_from_slice(quoted));
    let sender = sender.filter(|sender| !is_local && !sender.is_unspecified());
    Ok(cause.map(|cause| IcmpReport { remote, cause, sender, quoted }))
}

fn to_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || Some(SocketAddr::V4((*address.as_sockaddr_in()?).into()));
    let v6 = || Some(SocketAddr::V6((*address.as_sockaddr_in6()?).into()));
    v4().or_else(v6)
}

/// Returns the meaning of a report, if it concerns the path.
fn cause_of(error: &libc::sock_extended_err) -> Option<IcmpCause> {
    let errno = i32::try_from(error.ee_errno).ok()?;
    if errno == libc::EMSGSIZE {
        let mtu = u16::try_from(error.ee_info).unwrap_or(u16::MAX);
        return (mtu > 0).then_some(IcmpCause::TooBig(mtu));
    }
    let cause = match (error.ee_origin, error.ee_type, error.ee_code) {
        (libc::SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, code) => match code {
            1 | 7 | 8 => IcmpCause::AddressUnreachable,
            2 => IcmpCause::ProtocolUnreachable,
            3 => IcmpCause::PortUnreachable,
            9 | 10 | 13..=15 => IcmpCause::Prohibited,
            _ => IcmpCause::NoRoute,
        },
        (libc::SO_EE_ORIGIN_ICMP6, ICMP6_UNREACHABLE, code) => match code {
            1 | 5 | 6 => IcmpCause::Prohibited,
            3 => IcmpCause::AddressUnreachable,
            4 => IcmpCause::PortUnreachable,
            _ => IcmpCause::NoRoute,
        },
        (libc::SO_EE_ORIGIN_ICMP6, ICMP6_PARAMETER_PROBLEM, 1) => IcmpCause::ProtocolUnreachable,
        (libc::SO_EE_ORIGIN_LOCAL, ..) => match errno {
            libc::EHOSTUNREACH => IcmpCause::AddressUnreachable,
            libc::ENETUNREACH => IcmpCause::NoRoute,
            libc::EACCES => IcmpCause::Prohibited,
            _ => return None,
        },
        _ => return None,
    };
    Some(cause)
}

#[cfg(test)]
mod tests;
