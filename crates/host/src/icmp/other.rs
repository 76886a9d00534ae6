//! Systems without an error queue.

use std::io;

use socket2::{Domain, Socket};

use super::IcmpReport;
use crate::errno;

pub(super) const ABSENT: Option<&str> =
    Some("ICMP errors have no senders here: only Linux keeps them for the program (IP_RECVERR)");

pub(super) fn enable_existing(_: &Socket) -> io::Result<()> {
    Ok(())
}

pub(super) fn set_reports(_: &Socket, _: Domain, _: bool) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, ABSENT.unwrap_or_default()))
}

/// An error that an ICMP message about an earlier packet leaves on a socket. Windows reports a closed port as a reset
/// (`recvfrom`: "WSAECONNRESET: On a UDP-datagram socket this error indicates a previous send operation resulted in an
/// ICMP Port Unreachable message"), and an expired hop limit as `WSAENETRESET`.
pub(super) fn is_report(code: i32) -> bool {
    matches!(
        code,
        errno::ECONNREFUSED
            | errno::ECONNRESET
            | errno::EHOSTDOWN
            | errno::EHOSTUNREACH
            | errno::ENETRESET
            | errno::ENETUNREACH
            | errno::ENOPROTOOPT
    )
}

/// There is nothing to read.
pub(super) fn read(_: &Socket) -> io::Result<Option<IcmpReport>> {
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use socket2::Type;

    use super::*;
    use crate::icmp;

    #[test]
    fn what_is_absent_is_named() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let error = icmp::enable_reports(&socket, Domain::IPV4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert_eq!(Some(error.to_string().as_str()), icmp::ABSENT);
        assert_eq!(icmp::read(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
