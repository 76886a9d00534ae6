//! Allows the network to fragment a packet that exceeds the path MTU.
//!
//! Packets are sent with "don't fragment" set, so that path MTUs can be probed (RFC 8899). A packet
//! that was built before its path's MTU shrank must still be sent once.

use std::io;

use nix::libc;
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use socket2::Socket;

sockopt_impl!(
    /// Whether IPv4 packets of the socket may be fragmented.
    MtuDiscoverV4,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_MTU_DISCOVER,
    libc::c_int
);
sockopt_impl!(
    /// Whether the socket obeys the path MTU known to the kernel.
    MtuDiscoverV6,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU_DISCOVER,
    libc::c_int
);
sockopt_impl!(
    /// Whether this host may fragment IPv6 packets of the socket.
    DontFragmentV6,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_DONTFRAG,
    bool
);

/// Forbids fragmentation, and makes the kernel accept packets up to the MTU of the interface.
pub(super) fn forbid(socket: &Socket, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 {
        setsockopt(socket, MtuDiscoverV4, &libc::IP_PMTUDISC_PROBE)?;
    } else {
        setsockopt(socket, MtuDiscoverV6, &libc::IPV6_PMTUDISC_PROBE)?;
        setsockopt(socket, DontFragmentV6, &true)?;
    }
    Ok(())
}

fn allow(socket: &Socket, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 {
        setsockopt(socket, MtuDiscoverV4, &libc::IP_PMTUDISC_DONT)?;
    } else {
        setsockopt(socket, MtuDiscoverV6, &libc::IPV6_PMTUDISC_DONT)?;
        setsockopt(socket, DontFragmentV6, &false)?;
    }
    Ok(())
}

/// Sends once with fragmentation allowed.
pub(super) fn with_fragmentation(
    socket: &Socket,
    is_ipv4: bool,
    send: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    allow(socket, is_ipv4)?;
    let sent = send();
    forbid(socket, is_ipv4)?;
    sent
}

/// Returns whether a packet was rejected because it is too large for the path.
pub(super) fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}
