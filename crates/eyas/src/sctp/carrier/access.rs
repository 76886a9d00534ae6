//! Determines whether this machine and user can send IP protocol 132 at all.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use socket2::{Domain, Protocol, Socket, Type};

use super::IPPROTO_SCTP;

/// A kernel that speaks SCTP in this network namespace keeps its tables here.
const KERNEL_TABLES: &str = "/proc/net/sctp";

/// How protocol 132 can be sent from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Through raw sockets.
    Raw,
    /// Through the kernel, which speaks SCTP itself: a second speaker beside it would get its
    /// packets answered by the kernel.
    Kernel,
    /// Not at all, and why.
    None(String),
}

/// Returns how protocol 132 can be sent from here; determined once per process.
pub(crate) fn access() -> &'static Access {
    static ACCESS: OnceLock<Access> = OnceLock::new();
    ACCESS.get_or_init(find_out)
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

fn find_out() -> Access {
    let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::from(IPPROTO_SCTP)));
    if Path::new(KERNEL_TABLES).exists() {
        return match open(Type::STREAM) {
            Ok(_) => Access::Kernel,
            Err(error) => Access::None(format!("the kernel speaks SCTP but not to us: {error}")),
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
