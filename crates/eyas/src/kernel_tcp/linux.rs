//! Linux.

use std::io;
use std::time::Duration;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::{getsockopt_impl, libc, sockopt_impl};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

pub(super) const MPTCP_ABSENT: Option<&str> = None;

/// `SOL_MPTCP` of `linux/mptcp.h`.
const SOL_MPTCP: libc::c_int = 284;
/// `MPTCP_INFO` of `linux/mptcp.h`.
const MPTCP_INFO: libc::c_int = 1;
/// `MPTCP_INFO_FLAG_FALLBACK` of `linux/mptcp.h`, in the field `mptcpi_flags`.
const FALLBACK: u32 = 1;

// The first 12 octets of `struct mptcp_info`: six counters of one octet, two of padding, flags.
sockopt_impl!(
    /// The kernel's `tcp_info`, as far as it concerns an MPTCP socket.
    Info,
    GetOnly,
    SOL_MPTCP,
    MPTCP_INFO,
    [u32; 3]
);

pub(super) fn open(family: Domain, mptcp: bool) -> io::Result<Socket> {
    let protocol = if mptcp { Protocol::from(libc::IPPROTO_MPTCP) } else { Protocol::TCP };
    Socket::new(family, Type::STREAM.nonblocking(), Some(protocol))
}

pub(super) fn mptcp() -> io::Result<Protocol> {
    Ok(Protocol::from(libc::IPPROTO_MPTCP))
}

pub(super) fn is_mptcp(stream: &TcpStream) -> bool {
    matches!(getsockopt(stream, Info), Ok([_, _, flags]) if flags & FALLBACK == 0)
}

pub(super) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(timeout))
}

pub(super) fn enable_fast_open(socket: &Socket) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::TcpFastOpenConnect, &true)?)
}

pub(super) fn choose_port_late(socket: &Socket) {
    // MPTCP before Linux 6.0 lacks it.
    let _ = setsockopt(socket, sockopt::IpBindAddressNoPort, &true);
}
