//! The routing socket (route(4)), which tells every program of each change of links, addresses and routes. It also
//! carries the answers to other programs' questions: after one of those the network is read once for nothing.

use std::io;

use nix::libc;
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

pub(super) fn subscribe() -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::from(libc::PF_ROUTE), Type::RAW, None)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}
