//! Multicast groups of rtnetlink(7).

use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket,
};
use tokio::net::UdpSocket;

/// Links, addresses and routes of both families.
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

pub(super) fn subscribe() -> io::Result<UdpSocket> {
    subscribed(u32::try_from(GROUPS).unwrap_or_default())
}

pub(super) fn subscribed(groups: u32) -> io::Result<UdpSocket> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::NetlinkRoute,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    UdpSocket::from_std(socket.into())
}
