//! The kernel's own SCTP, where it speaks it: one-to-one sockets (RFC 6458 §4).
//!
//! To whoever reads and writes such a socket is like one of TCP: one stream of bytes each way, on
//! SCTP's stream 0. The kernel sees to paths and retransmissions.

use std::io;
use std::net::SocketAddr;

use nix::libc;
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::IPPROTO_SCTP;

/// `SCTP_NODELAY` (RFC 6458 §8.1.5), as `linux/sctp.h` numbers it.
const SCTP_NODELAY: libc::c_int = 3;
/// Associations that the kernel completes before they are accepted.
const KERNEL_BACKLOG: i32 = 1024;

sockopt_impl!(
    /// Whether small messages are sent at once.
    NoDelay,
    SetOnly,
    IPPROTO_SCTP,
    SCTP_NODELAY,
    bool
);

fn open(address: SocketAddr) -> io::Result<Socket> {
    let protocol = Some(Protocol::from(IPPROTO_SCTP));
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, protocol)?;
    socket.set_nonblocking(true)?;
    setsockopt(&socket, NoDelay, &true)?;
    Ok(socket)
}

/// Opens an association. Dropping the future aborts it.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpSocket::from_std_stream(open(address)?.into()).connect(address).await
}

/// Listens at this address. Must be called inside a tokio runtime.
pub(crate) fn listen(address: SocketAddr, v6_only: bool) -> io::Result<TcpListener> {
    let socket = open(address)?;
    if address.is_ipv6() {
        socket.set_only_v6(v6_only)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    TcpListener::from_std(socket.into())
}
