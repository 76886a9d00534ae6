//! Allows the network to fragment a packet that exceeds the path MTU.
//!
//! Packets are sent with "don't fragment" set, so that path MTUs can be probed (RFC 8899). A packet
//! that was built before its path's MTU shrank must still be sent once.

use std::io;

use eyas_host::errno;
use socket2::Socket;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod bsd;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use bsd as platform;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(windows)]
use windows as platform;

/// Forbids fragmentation, and makes the kernel accept packets up to the MTU of the interface.
pub(super) fn forbid(socket: &Socket, is_ipv4: bool) -> io::Result<()> {
    platform::set_forbidden(socket, is_ipv4, true)
}

/// Sends once with fragmentation allowed.
pub(super) fn with_fragmentation(
    socket: &Socket,
    is_ipv4: bool,
    send: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    platform::set_forbidden(socket, is_ipv4, false)?;
    let sent = send();
    forbid(socket, is_ipv4)?;
    sent
}

/// Returns whether a packet was rejected because it is too large for the path.
pub(super) fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(errno::EMSGSIZE)
}
