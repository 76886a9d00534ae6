//! Other systems.

use std::io;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

pub(super) const MPTCP_ABSENT: Option<&str> =
    Some("this system gives programs no MPTCP sockets: only Linux has them, since 5.6");

fn absent(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what)
}

pub(super) fn open(family: Domain, mptcp: bool) -> io::Result<Socket> {
    let protocol = if mptcp { self::mptcp()? } else { Protocol::TCP };
    let socket = Socket::new(family, Type::STREAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(super) fn mptcp() -> io::Result<Protocol> {
    Err(absent(MPTCP_ABSENT.unwrap_or_default()))
}

pub(super) fn is_mptcp(_: &TcpStream) -> bool {
    false
}

pub(super) fn set_user_timeout(_: &Socket, _: Duration) -> io::Result<()> {
    Err(absent("only Linux has a user timeout (RFC 5482)"))
}

pub(super) fn enable_fast_open(_: &Socket) -> io::Result<()> {
    Err(absent("TCP Fast Open is used on Linux only"))
}

pub(super) fn choose_port_late(_: &Socket) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_an_error_with_a_reason() {
        let socket = open(Domain::IPV4, false).unwrap();
        let errors = [
            open(Domain::IPV4, true).map(drop),
            set_user_timeout(&socket, Duration::from_secs(1)),
            enable_fast_open(&socket),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("Linux"), "{error}");
        }
    }
}
