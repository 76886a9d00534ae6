//! FreeBSD, macOS and their relatives.

use std::io;

use nix::sys::socket::setsockopt;
use nix::{libc, setsockopt_impl, sockopt_impl};
use socket2::Socket;

sockopt_impl!(
    /// Whether IPv4 packets of the socket may not be fragmented.
    DontFragmentV4,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_DONTFRAG,
    bool
);
sockopt_impl!(
    /// Whether this host may not fragment IPv6 packets of the socket.
    DontFragmentV6,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_DONTFRAG,
    bool
);

pub(super) fn set_forbidden(socket: &Socket, is_ipv4: bool, forbidden: bool) -> io::Result<()> {
    match is_ipv4 {
        true => setsockopt(socket, DontFragmentV4, &forbidden)?,
        false => setsockopt(socket, DontFragmentV6, &forbidden)?,
    }
    Ok(())
}
