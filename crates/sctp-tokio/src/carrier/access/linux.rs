//! Raw sockets, unless the kernel has SCTP itself.

use std::io;
use std::path::Path;

use socket2::{Domain, Protocol, Socket, Type};

use super::DirectAccess;
use crate::carrier::IPPROTO_SCTP;

/// Exists if the kernel provides SCTP in this network namespace.
const KERNEL_TABLES: &str = "/proc/net/sctp";

pub(super) fn detect() -> Result<DirectAccess, String> {
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
