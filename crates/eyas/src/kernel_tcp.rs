//! What the TCP of some kernels has beyond the sockets API: Multipath TCP (RFC 8684), TCP Fast Open (RFC 7413), the user
//! timeout (RFC 5482), and a local port that is chosen with the peer. Linux has all of it, other systems none that this
//! crate uses.

use std::io;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket};
use tokio::net::TcpStream;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// Why there is no MPTCP on this platform, if so.
pub(crate) const MPTCP_ABSENT: Option<&str> = platform::MPTCP_ABSENT;

/// Opens a non-blocking socket for a connection.
pub(crate) fn open(family: Domain, mptcp: bool) -> io::Result<Socket> {
    platform::open(family, mptcp)
}

/// Returns the protocol of MPTCP.
///
/// # Errors
/// If the platform has none.
pub(crate) fn mptcp() -> io::Result<Protocol> {
    platform::mptcp()
}

/// Returns whether this connection can use several paths: false for plain TCP, and for MPTCP that
/// fell back to it. The kernel supports the option only while MPTCP is in use (since Linux 5.16;
/// before that the fallback cannot be detected and `tcp` is reported).
pub(crate) fn is_mptcp(stream: &TcpStream) -> bool {
    platform::is_mptcp(stream)
}

/// Sets how long sent data may remain unacknowledged before the kernel closes the connection.
///
/// # Errors
/// If the socket or the platform has no such limit.
pub(crate) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    platform::set_user_timeout(socket, timeout)
}

/// Has the connection send its first data with its SYN.
///
/// # Errors
/// If the socket or the platform cannot.
pub(crate) fn enable_fast_open(socket: &Socket) -> io::Result<()> {
    platform::enable_fast_open(socket)
}

/// Has a local port chosen only when the peer is known, so that a connection to another peer may already use it. Other
/// kernels choose it when the socket is bound.
pub(crate) fn choose_port_late(socket: &Socket) {
    platform::choose_port_late(socket);
}
