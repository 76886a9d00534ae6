//! ICMP errors, as Linux keeps them in the error queue of a socket (`IP_RECVERR`, `IPV6_RECVERR`).
//!
//! For an unconnected UDP socket this is the only source of ICMP errors. For a TCP connect it is
//! the only way to learn who sent the error, and over IPv6 to notice errors that arrived during the
//! call (`attempt/tcp_connect.rs`). A socket with reports enabled must expect [`is_icmp_report`]
//! errors: the kernel also returns the report as the error of whichever call comes next.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use bytes::Bytes;
use eyas_race::candidate::Family;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};

/// ICMP: destination unreachable (RFC 792).
const ICMP_UNREACHABLE: u8 = 3;
/// ICMPv6: destination unreachable (RFC 4443 §3.1).
const ICMP6_UNREACHABLE: u8 = 1;
/// ICMPv6: parameter problem (RFC 4443 §3.4).
const ICMP6_PARAMETER_PROBLEM: u8 = 4;
/// Bytes of the packet in question that are looked at, behind the header of IP or UDP: of SCTP
/// those are ports and tag, and the tag of an INIT.
const PEEKED: usize = 20;

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Where the packet in question was going.
    pub(crate) remote: SocketAddr,
    pub(crate) cause: IcmpCause,
    /// The router or host that says so; `None` if this host itself does.
    pub(crate) by: Option<IpAddr>,
    /// How the packet begins behind the header of IP or UDP, as far as it is quoted; `None` for
    /// what this host itself says.
    pub(crate) quoted: Option<Bytes>,
}

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpCause {
    /// No route leads there.
    NoRoute,
    /// A filter or a policy forbids it.
    Prohibited,
    /// The last router finds no such host.
    AddressUnreachable,
    /// The host has nobody at this port.
    PortUnreachable,
    /// The host does not speak what the packet carries.
    ProtocolUnreachable,
    /// The path takes packets of at most so many bytes, the header of IP included.
    TooBig(u16),
}

impl std::fmt::Display for IcmpCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRoute => f.write_str("there is no route to it"),
            Self::Prohibited => f.write_str("a filter or a policy forbids it"),
            Self::AddressUnreachable => f.write_str("no host answers to this address"),
            Self::PortUnreachable => f.write_str("nothing is listening on this port"),
            Self::ProtocolUnreachable => f.write_str("the host does not speak this protocol"),
            Self::TooBig(mtu) => write!(f, "the path takes packets of at most {mtu} bytes"),
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.by {
            Some(by) => write!(f, "{} (ICMP from {by})", self.cause),
            None => write!(f, "{} (by this host)", self.cause),
        }
    }
}

/// Asks the kernel to keep reports for us, of a socket of this family.
///
/// # Errors
/// MPTCP sockets know no such option (seen up to Linux 6.18).
pub(crate) fn ask_for_reports(socket: &impl AsFd, family: Family) -> io::Result<()> {
    set_reports(socket, family, true)
}

/// Takes [`ask_for_reports`] back; what was not read yet is gone.
pub(crate) fn stop_reports(socket: &impl AsFd, family: Family) -> io::Result<()> {
    set_reports(socket, family, false)
}

fn set_reports(socket: &impl AsFd, family: Family, wanted: bool) -> io::Result<()> {
    match family {
        Family::V4 => setsockopt(socket, sockopt::Ipv4RecvErr, &wanted)?,
        Family::V6 => setsockopt(socket, sockopt::Ipv6RecvErr, &wanted)?,
    }
    Ok(())
}

/// Returns whether an error of a call concerns an earlier packet rather than the call.
pub(crate) fn is_icmp_report(error: &io::Error) -> bool {
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

/// Takes the next report out of the queue; `None` in the place of one that says nothing about a
/// path.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] once none is left.
pub(crate) fn read(socket: &impl AsFd) -> io::Result<Option<Report>> {
    let mut packet = [0; PEEKED];
    let mut slices = [IoSliceMut::new(&mut packet)];
    let mut control = nix::cmsg_space!(
        [u8; size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>()],
        libc::in6_pktinfo,
        libc::c_int
    );
    let message = recvmsg::<SockaddrStorage>(
        socket.as_fd().as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_ERRQUEUE,
    )?;
    let Some(remote) = message.address.as_ref().and_then(to_address) else { return Ok(None) };
    let (mut cause, mut by, mut from_here) = (None, None, false);
    for one in message.cmsgs()? {
        let error = match one {
            ControlMessageOwned::Ipv4RecvErr(error, offender) => {
                by = offender.map(|it| IpAddr::from(it.sin_addr.s_addr.to_ne_bytes()));
                error
            }
            ControlMessageOwned::Ipv6RecvErr(error, offender) => {
                by = offender.map(|it| IpAddr::from(it.sin6_addr.s6_addr));
                error
            }
            _ => continue,
        };
        cause = meaning(&error);
        from_here = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
    }
    let length = message.bytes;
    let quoted = packet.get(..length).unwrap_or(&packet);
    let quoted = (!from_here).then(|| Bytes::copy_from_slice(quoted));
    let by = by.filter(|by| !from_here && !by.is_unspecified());
    Ok(cause.map(|cause| Report { remote, cause, by, quoted }))
}

fn to_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || Some(SocketAddr::V4((*address.as_sockaddr_in()?).into()));
    let v6 = || Some(SocketAddr::V6((*address.as_sockaddr_in6()?).into()));
    v4().or_else(v6)
}

/// Returns the meaning of a report, if it concerns the path.
fn meaning(error: &libc::sock_extended_err) -> Option<IcmpCause> {
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
