//! The addresses of the clients.

use std::net::SocketAddr;

/// Returns the address of a client: two clients are at one address, two in one /64, one in another, and one
/// with IPv4 inside of IPv6.
pub fn address(client: usize) -> SocketAddr {
    let number = u16::try_from(client).expect("few");
    match client {
        0 | 1 => SocketAddr::from(([192, 0, 2, 1], 1000 + number)),
        2 | 3 => SocketAddr::from(([0x2001, 0xdb8, 0, 1, 0, 0, 0, number], 1000)),
        4 => SocketAddr::from(([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1], 1000)),
        _ => SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc633, 0x6401], 1000)),
    }
}
