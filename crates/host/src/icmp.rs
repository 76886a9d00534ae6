//! ICMP errors, as Linux keeps them in the error queue of a socket (`IP_RECVERR`, `IPV6_RECVERR`).
//!
//! For an unconnected UDP socket this is the only source of ICMP errors. For a TCP connect it is
//! the only way to learn who sent the error, and over IPv6 to notice errors that arrived during the
//! call. A socket with reports enabled must expect [`is_icmp_report`] errors: the kernel also returns
//! the report as the error of whichever call comes next.
//!
//! Other systems have no such queue: there [`enable_reports`] fails with [`ABSENT`], and an ICMP error shows itself, if at
//! all, as the error of a call on a connected socket.
//!
//! Anyone can forge a report. What it may end depends on what it proves, which only the protocol
//! knows: see [`IcmpReport::quoted`].

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use socket2::{Domain, Socket};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// Why a socket reports no ICMP errors on this platform, if so.
pub const ABSENT: Option<&str> = platform::ABSENT;

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
/// If the socket does not support the option, like MPTCP sockets (observed up to Linux 6.18), is
/// not one of IPv4 or IPv6, or the platform has no reports ([`ABSENT`]).
pub fn enable_reports(socket: &Socket, family: Domain) -> io::Result<()> {
    platform::set_reports(socket, family, true)
}

/// Enables reports if the platform has any.
///
/// # Errors
/// If the socket is not one of IPv4 or IPv6.
pub(crate) fn enable_existing_reports(socket: &Socket) -> io::Result<()> {
    platform::enable_existing(socket)
}

/// Disables reports; those that were not read yet are lost.
///
/// # Errors
/// The same as for [`enable_reports`].
pub fn disable_reports(socket: &Socket, family: Domain) -> io::Result<()> {
    platform::set_reports(socket, family, false)
}

/// Returns whether an error of a call concerns an earlier packet rather than the call.
pub fn is_icmp_report(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(platform::is_report)
}

/// Reads the next report from the queue; `None` if it is one that does not concern a path.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] once none is left.
pub fn read(socket: &Socket) -> io::Result<Option<IcmpReport>> {
    platform::read(socket)
}
