//! Determines whether this machine and user can send IP protocol 132 at all.

use std::sync::OnceLock;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use other::NOT_DIRECT;

/// How this process can use SCTP directly over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectAccess {
    /// Through raw sockets.
    Raw,
    /// Through the kernel's own SCTP: it would respond to the packets of a second implementation
    /// beside it.
    Kernel,
}

/// Returns how SCTP can run directly over IP here; determined once.
///
/// # Errors
/// Returns what is missing.
pub fn direct_access() -> Result<DirectAccess, &'static str> {
    static ACCESS: OnceLock<Result<DirectAccess, String>> = OnceLock::new();
    ACCESS.get_or_init(platform::detect).as_ref().copied().map_err(String::as_str)
}
