//! Raw sockets, unless the kernel has SCTP itself.

use std::io;
use std::path::Path;

use socket2::{Domain, Protocol, Socket, Type};

use super::{DirectAccess, DirectAccessError};
use crate::carrier::IPPROTO_SCTP;

/// Exists if the kernel provides SCTP in this network namespace.
const KERNEL_TABLES: &str = "/proc/net/sctp";

pub(super) fn detect() -> Result<DirectAccess, DirectAccessError> {
    let number = |error: io::Error| error.raw_os_error().unwrap_or_default();
    let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::from(IPPROTO_SCTP)));
    if Path::new(KERNEL_TABLES).exists() {
        return match open(Type::STREAM) {
            Ok(_) => Ok(DirectAccess::Kernel),
            Err(error) => Err(DirectAccessError::KernelRefuses(number(error))),
        };
    }
    match open(Type::RAW) {
        Ok(_) => Ok(DirectAccess::Raw),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(DirectAccessError::NotPermitted)
        }
        Err(error) => Err(DirectAccessError::NoRawSocket(number(error))),
    }
}
