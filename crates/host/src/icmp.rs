//! ICMP errors, as Linux keeps them in the error queue of a socket (`IP_RECVERR`, `IPV6_RECVERR`).
//!
//! For an unconnected UDP socket this is the only source of ICMP errors. For a TCP connect it is
//! the only way to learn who sent the error, and over IPv6 to notice errors that arrived during the
//! call. A socket with reports enabled must expect [`is_icmp_report`] errors: the kernel also returns
//! the report as the error of whichever call comes next.
//!
//! Anyone can forge a report. What it may end depends on what it proves, which only the protocol
//! knows: see [`IcmpReport::quoted`].

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use bytes::Bytes;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::Domain;

/// ICMP: destination unreachable (RFC 792).
const ICMP_UNREACHABLE: u8 = 3;
/// ICMPv6: destination unreachable (RFC 4443 §3.1).
const ICMP6_UNREACHABLE: u8 = 1;
/// ICMPv6: parameter problem (RFC 4443 §3.4).
const ICMP6_PARAMETER_PROBLEM: u8 = 4;
/// The number of bytes that are kept of the quoted packet, after the IP or UDP header. For SCTP
/// these are ports and tag, and the tag of an INIT.
const QUOTED_BYTES: usize = 20;

/// An ICMP error report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// The destination of the packet that the report is about.
    pub remote: SocketAddr,
    /// What the error means.
    pub cause: IcmpCause,
    /// The router or host that sent it; `None` if this host itself did.
    pub sender: Option<IpAddr>,
    /// The start of the packet after the IP or UDP header, as far as it is quoted; `None` for
    /// reports of this host itself.
    pub quoted: Option<Bytes>,
}

/// What an ICMP error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpCause {
    /// There is no route to the destination.
    NoRoute,
    /// A filter or a policy forbids it.
    Prohibited,
    /// The last router cannot find the host.
    AddressUnreachable,
    /// Nothing is listening on the port.
    PortUnreachable,
    /// The host does not support the protocol.
    ProtocolUnreachable,
    /// The path carries packets of at most this many bytes, including the IP header.
    TooBig(u16),
}

impl std::fmt::Display for IcmpCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRoute => f.write_str("there is no route to it"),
            Self::Prohibited => f.write_str("a filter or a policy forbids it"),
            Self::AddressUnreachable => f.write_str("no host responds at this address"),
            Self::PortUnreachable => f.write_str("nothing is listening on this port"),
            Self::ProtocolUnreachable => f.write_str("the host does not support this protocol"),
            Self::TooBig(mtu) => write!(f, "the path carries packets of at most {mtu} bytes"),
        }
    }
}

impl IcmpReport {
    /// Returns whether a rule of this host's own firewall rejected the packet: the report comes from
    /// an address of this host, and the packet was for another one. A host that does not answer on
    /// the link is reported by this host too, but as that.
    pub fn is_by_own_firewall(&self) -> bool {
        let is_rejection = matches!(
            self.cause,
            IcmpCause::Prohibited | IcmpCause::PortUnreachable | IcmpCause::ProtocolUnreachable
        );
        is_rejection
            && self.sender.is_some_and(|sender| sender != self.remote.ip() && is_own(sender))
            && !is_own(self.remote.ip())
    }
}

/// Returns whether this is an address of this host: a socket can be bound to it.
fn is_own(address: IpAddr) -> bool {
    std::net::UdpSocket::bind((address, 0)).is_ok()
}

impl std::fmt::Display for IcmpReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sender {
            Some(sender) => write!(f, "{} (ICMP from {sender})", self.cause),
            None => write!(f, "{} (by this host)", self.cause),
        }
    }
}

/// Enables reports for a socket of this family.
///
/// # Errors
/// If the socket does not support the option, like MPTCP sockets (observed up to Linux 6.18), or is
/// not one of IPv4 or IPv6.
pub fn enable_reports(socket: &impl AsFd, family: Domain) -> io::Result<()> {
    set_reports(socket, family, true)
}

/// Disables reports; those that were not read yet are lost.
///
/// # Errors
/// The same as for [`enable_reports`].
pub fn disable_reports(socket: &impl AsFd, family: Domain) -> io::Result<()> {
    set_reports(socket, family, false)
}

fn set_reports(socket: &impl AsFd, family: Domain, enabled: bool) -> io::Result<()> {
    match family {
        Domain::IPV4 => setsockopt(socket, sockopt::Ipv4RecvErr, &enabled)?,
        Domain::IPV6 => setsockopt(socket, sockopt::Ipv6RecvErr, &enabled)?,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    }
    Ok(())
}

/// Returns whether an error of a call concerns an earlier packet rather than the call.
pub fn is_icmp_report(error: &io::Error) -> bool {
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

/// Reads the next report from the queue; `None` if it is one that does not concern a path.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] once none is left.
pub fn read(socket: &impl AsFd) -> io::Result<Option<IcmpReport>> {
    let mut packet = [0; QUOTED_BYTES];
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
