//! Multicast groups of rtnetlink(7).

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket,
};
use tokio::net::UdpSocket;

/// Links, addresses and routes of both families: the bits of `linux/rtnetlink.h`, which libc lacks on Android.
const GROUPS: u32 =
    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
const RTMGRP_LINK: u32 = 0x1;
const RTMGRP_IPV4_IFADDR: u32 = 0x10;
const RTMGRP_IPV4_ROUTE: u32 = 0x40;
const RTMGRP_IPV6_IFADDR: u32 = 0x100;
const RTMGRP_IPV6_ROUTE: u32 = 0x400;

pub(super) fn subscribe() -> io::Result<UdpSocket> {
    subscribed(GROUPS)
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
