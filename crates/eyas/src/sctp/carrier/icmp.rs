//! What routers and hosts report of packets that did not arrive (RFC 9260 §10), as Linux keeps it
//! in the error queue of a socket (`IP_RECVERR`): with what the ICMP message quotes of the SCTP
//! packet, by which the core knows its own.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use bytes::Bytes;
use eyas_sctp::io::{Input, Unreachable};
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::Socket;

use super::Arrivals;

/// ICMP: destination unreachable (RFC 792).
const ICMP_UNREACHABLE: u8 = 3;
/// ICMPv6: destination unreachable (RFC 4443 §3.1).
const ICMP6_UNREACHABLE: u8 = 1;
/// ICMPv6: parameter problem (RFC 4443 §3.4).
const ICMP6_PARAMETER_PROBLEM: u8 = 4;
/// Bytes of the SCTP packet in question that are looked at: ports and tag, and those of an INIT.
const PEEKED: usize = 20;

/// One report.
pub(super) struct Report {
    pub(super) remote: SocketAddr,
    pub(super) reason: Unreachable,
    /// See [`Input::Unreachable`].
    quoted: Option<Bytes>,
}

/// Asks the kernel to keep reports for us.
pub(super) fn ask_for_reports(socket: &Socket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv4() {
        setsockopt(socket, sockopt::Ipv4RecvErr, &true)?;
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
    }
    Ok(())
}

/// Whether an error of a call is about an earlier packet and not about the call.
pub(super) fn is_a_report(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
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
    )
}

/// Reads reports.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] once none is left.
pub(super) fn read(
    socket: &Socket,
    is_udp: bool,
    most: usize,
    arrivals: &mut Arrivals,
) -> io::Result<()> {
    for _ in 0..most {
        if let Some(Report { mut remote, reason, quoted }) = read_one(socket)? {
            if !is_udp {
                remote.set_port(0);
            }
            arrivals.push(Input::Unreachable { remote, reason, quoted });
        }
    }
    Ok(())
}

fn read_one(socket: &Socket) -> nix::Result<Option<Report>> {
    let mut packet = [0; PEEKED];
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
    let (mut reason, mut from_here) = (None, false);
    for one in message.cmsgs()? {
        match one {
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                reason = meaning(&error);
                from_here = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
            }
            _ => {}
        }
    }
    let length = message.bytes;
    let quoted = packet.get(..length).unwrap_or(&packet);
    let quoted = (!from_here).then(|| Bytes::copy_from_slice(quoted));
    Ok(reason.map(|reason| Report { remote, reason, quoted }))
}

fn to_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || Some(SocketAddr::V4((*address.as_sockaddr_in()?).into()));
    let v6 = || Some(SocketAddr::V6((*address.as_sockaddr_in6()?).into()));
    v4().or_else(v6)
}

/// What a report says, if it is about the path.
pub(super) fn meaning(error: &libc::sock_extended_err) -> Option<Unreachable> {
    let errno = i32::try_from(error.ee_errno).ok()?;
    if errno == libc::EMSGSIZE {
        let mtu = u16::try_from(error.ee_info).unwrap_or(u16::MAX);
        return (mtu > 0).then_some(Unreachable::TooBig(mtu));
    }
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (libc::SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, 2 | 3)
        | (libc::SO_EE_ORIGIN_ICMP6, ICMP6_UNREACHABLE, 4)
        | (libc::SO_EE_ORIGIN_ICMP6, ICMP6_PARAMETER_PROBLEM, 1) => Some(Unreachable::Protocol),
        (libc::SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, _)
        | (libc::SO_EE_ORIGIN_ICMP6, ICMP6_UNREACHABLE, _) => Some(Unreachable::Route),
        (libc::SO_EE_ORIGIN_LOCAL, ..)
            if matches!(errno, libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EACCES) =>
        {
            Some(Unreachable::Route)
        }
        _ => None,
    }
}
