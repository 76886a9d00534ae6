//! Determines whether this machine and user can send IP protocol 132 at all.

use std::io;
use std::sync::OnceLock;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// How this process can use SCTP directly over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectAccess {
    /// Through raw sockets.
    Raw,
    /// Through the kernel's own SCTP: it would respond to the packets of a second implementation
    /// beside it.
    Kernel,
}

/// Why SCTP cannot run directly over IP here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectAccessError {
    /// This system has no raw sockets that suit it.
    #[error(
        "SCTP directly over IP (protocol 132) is there on Linux only; SCTP inside UDP needs nothing"
    )]
    NotLinux,
    /// This user may not open raw sockets.
    #[error(
        "protocol 132 needs a raw socket, and so CAP_NET_RAW (run as root, or give the program \
         `setcap cap_net_raw+ep`); SCTP inside UDP needs nothing"
    )]
    NotPermitted,
    /// The kernel has SCTP, but refuses a socket with this error number.
    #[error("the kernel has SCTP but refuses a socket: {}", io::Error::from_raw_os_error(*.0))]
    KernelRefuses(i32),
    /// The kernel refuses a raw socket with this error number.
    #[error("no raw socket for protocol 132: {}", io::Error::from_raw_os_error(*.0))]
    NoRawSocket(i32),
}

/// Returns how SCTP can run directly over IP here; determined once.
///
/// # Errors
/// If something is missing for that.
pub fn direct_access() -> Result<DirectAccess, DirectAccessError> {
    static ACCESS: OnceLock<Result<DirectAccess, DirectAccessError>> = OnceLock::new();
    *ACCESS.get_or_init(platform::detect)
}
