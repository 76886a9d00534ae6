//! Ports that nobody has, for processes that are told theirs.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// A UDP port of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_udp_port() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.local_addr().expect("an address").port()
}

/// A port of 127.0.0.1 that was free a moment ago over TCP and UDP.
pub(crate) fn free_tcp_port() -> u16 {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
