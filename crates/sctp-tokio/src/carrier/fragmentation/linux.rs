//! Linux.

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

pub(super) fn set_forbidden(socket: &Socket, is_ipv4: bool, forbidden: bool) -> io::Result<()> {
    if is_ipv4 {
        let discovery = if forbidden { libc::IP_PMTUDISC_PROBE } else { libc::IP_PMTUDISC_DONT };
        setsockopt(socket, MtuDiscoverV4, &discovery)?;
    } else {
        let discovery =
            if forbidden { libc::IPV6_PMTUDISC_PROBE } else { libc::IPV6_PMTUDISC_DONT };
        setsockopt(socket, MtuDiscoverV6, &discovery)?;
        setsockopt(socket, DontFragmentV6, &forbidden)?;
    }
    Ok(())
}
