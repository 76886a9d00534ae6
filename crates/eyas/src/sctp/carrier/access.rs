//! Determines whether this machine and user can send IP protocol 132 at all.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use socket2::{Domain, Protocol, Socket, Type};

use super::IPPROTO_SCTP;

/// Exists if the kernel provides SCTP in this network namespace.
const KERNEL_TABLES: &str = "/proc/net/sctp";

/// How this process can send protocol 132.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Through raw sockets.
    Raw,
    /// Through the kernel's own SCTP: it would respond to the packets of a second implementation
    /// beside it.
    Kernel,
    /// Not at all, for this reason.
    None(String),
}

/// Returns how this process can send protocol 132; determined once.
pub(crate) fn access() -> &'static Access {
    static ACCESS: OnceLock<Access> = OnceLock::new();
    ACCESS.get_or_init(detect)
}

/// Checks whether SCTP can run directly over IP here, either through raw sockets or through the
/// kernel's SCTP.
///
/// # Errors
/// Returns what is missing.
pub fn direct_access() -> Result<(), &'static str> {
    match access() {
        Access::Raw | Access::Kernel => Ok(()),
        Access::None(why) => Err(why),
    }
}

fn detect() -> Access {
    let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::from(IPPROTO_SCTP)));
    if Path::new(KERNEL_TABLES).exists() {
        return match open(Type::STREAM) {
            Ok(_) => Access::Kernel,
            Err(error) => {
                Access::None(format!("the kernel has SCTP but refuses a socket: {error}"))
            }
        };
    }
    match open(Type::RAW) {
        Ok(_) => Access::Raw,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Access::None(
            "protocol 132 needs a raw socket, and so CAP_NET_RAW (run as root, or give the \
             program `setcap cap_net_raw+ep`); SCTP inside UDP needs nothing"
                .into(),
        ),
        Err(error) => Access::None(format!("no raw socket for protocol 132: {error}")),
    }
}
