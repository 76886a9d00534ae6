//! Multipath TCP (RFC 8684) through the kernel.

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use tokio::net::TcpStream;

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

/// Returns whether this connection can use several paths: false for plain TCP, and for MPTCP that
/// fell back to it. The kernel supports the option only while MPTCP is in use (since Linux 5.16;
/// before that the fallback cannot be detected and `tcp` is reported).
pub(crate) fn is_in_use(stream: &TcpStream) -> bool {
    matches!(getsockopt(stream, Info), Ok([_, _, flags]) if flags & FALLBACK == 0)
}
