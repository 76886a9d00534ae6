//! Determines whether this machine and user can send IP protocol 132 at all.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use socket2::{Domain, Protocol, Socket, Type};

use super::IPPROTO_SCTP;

/// Exists if the kernel provides SCTP in this network namespace.
const KERNEL_TABLES: &str = "/proc/net/sctp";

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
    ACCESS.get_or_init(detect).as_ref().copied().map_err(String::as_str)
}

fn detect() -> Result<DirectAccess, String> {
    let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::from(IPPROTO_SCTP)));
    if Path::new(KERNEL_TABLES).exists() {
        return match open(Type::STREAM) {
            Ok(_) => Ok(DirectAccess::Kernel),
            Err(error) => Err(format!("the kernel has SCTP but refuses a socket: {error}")),
        };
    }
    match open(Type::RAW) {
        Ok(_) => Ok(DirectAccess::Raw),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err("protocol 132 needs a raw socket, and so CAP_NET_RAW (run as root, or give the \
                 program `setcap cap_net_raw+ep`); SCTP inside UDP needs nothing"
                .into())
        }
        Err(error) => Err(format!("no raw socket for protocol 132: {error}")),
    }
}
