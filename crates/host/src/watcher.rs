//! Change notifications from the kernel (rtnetlink(7)).

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

/// Only the fact of a change counts, so longer messages are truncated.
const BUFFER: usize = 4096;

/// Receives notifications of changes of links, addresses and routes.
#[derive(Debug)]
pub struct NetworkWatcher {
    socket: UdpSocket,
}

/// Returns a netlink socket that receives the messages of these groups, a bit for each. The runtime
/// has no type for this family, but treats all datagram sockets alike. Must be called inside a tokio
/// runtime.
///
/// # Errors
/// If the kernel refuses it, as in some sandboxes.
pub fn subscribed(groups: u32) -> io::Result<UdpSocket> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::NetlinkRoute,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    UdpSocket::from_std(socket.into())
}

impl NetworkWatcher {
    /// Begins to watch. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the kernel refuses it, as in some sandboxes.
    pub fn new() -> io::Result<Self> {
        let groups = u32::try_from(GROUPS).unwrap_or_default();
        Ok(Self { socket: subscribed(groups)? })
    }

    /// Waits for a change. Changes come in bursts: link, then addresses, then routes. Cancel-safe.
    ///
    /// # Errors
    /// If the socket fails.
    pub async fn changed(&self) -> io::Result<()> {
        ignore_overflow(self.socket.recv(&mut [0; BUFFER]).await)
    }

    /// Forgets the changes up to now.
    pub fn drain(&self) {
        while ignore_overflow(self.socket.try_recv(&mut [0; BUFFER])).is_ok() {}
    }
}

fn ignore_overflow(received: io::Result<usize>) -> io::Result<()> {
    match received {
        Ok(_) => Ok(()),
        // The queue overflowed, so something has changed.
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
        Err(error) => Err(error),
    }
}
