//! Notice of changes from the kernel (rtnetlink(7)).

use std::io;
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Links, addresses and routes of both families.
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

/// Only that something changed counts, so what does not fit is cut off.
const BUFFER: usize = 4096;

/// Hears of every change of links, addresses and routes.
#[derive(Debug)]
pub(super) struct Watcher {
    socket: AsyncFd<OwnedFd>,
}

impl Watcher {
    pub(super) fn new() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        )?;
        use std::os::fd::AsRawFd;
        let groups = u32::try_from(GROUPS).unwrap_or_default();
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self { socket: AsyncFd::try_with_interest(socket, Interest::READABLE)? })
    }

    /// Something changed.
    pub(super) async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut guard = self.socket.readable_mut().await?;
            match guard.try_io(|socket| read(socket.get_ref())) {
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    /// Takes what else has come.
    pub(super) fn drain(&mut self) {
        while read(self.socket.get_ref()).is_ok() {}
    }
}

fn read(socket: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    match recv(socket.as_raw_fd(), &mut [0; BUFFER], MsgFlags::empty()) {
        Ok(_) => Ok(()),
        // The queue overflowed: then surely something changed.
        Err(nix::errno::Errno::ENOBUFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
