//! Addresses and names of programs, parsed and checked.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::socket::SctpSocket;
use crate::abi::{Errno, NameError, SocketName};
use crate::io::SocketDomain;

/// Returns the unspecified address of a socket's family.
pub(super) fn unspecified(socket: &SctpSocket) -> IpAddr {
    match socket.domain {
        SocketDomain::Inet => Ipv4Addr::UNSPECIFIED.into(),
        SocketDomain::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Parses a name that the socket accepts, and returns its address and its length. Mapped addresses
/// become IPv4 addresses.
pub(super) fn read_name(socket: &SctpSocket, name: &[u8]) -> Result<(SocketAddr, usize), Errno> {
    let (address, length) = SocketName::read(name).map_err(|error| match error {
        NameError::TooShort => Errno::EINVAL,
        NameError::Family(_) => Errno::EAFNOSUPPORT,
    })?;
    let canonical = address.ip().to_canonical();
    let accepted = match address {
        SocketAddr::V4(_) => socket.accepts(address.ip()),
        SocketAddr::V6(_) => socket.domain == SocketDomain::Inet6 && socket.accepts(canonical),
    };
    if !accepted {
        return Err(Errno::EINVAL);
    }
    let address = match (address, canonical) {
        (SocketAddr::V6(_), IpAddr::V4(_)) => SocketAddr::new(canonical, address.port()),
        _ => address,
    };
    Ok((address, length))
}

/// Parses packed names, of which there must be at least one.
pub(super) fn read_names(socket: &SctpSocket, mut names: &[u8]) -> Result<Vec<SocketAddr>, Errno> {
    let mut addresses = Vec::new();
    while !names.is_empty() {
        let (address, length) = read_name(socket, names).map_err(|_| Errno::EINVAL)?;
        addresses.push(address);
        names = names.get(length..).unwrap_or_default();
    }
    if addresses.is_empty() { Err(Errno::EINVAL) } else { Ok(addresses) }
}

/// Returns the scope of a link-local address: the number of an interface.
pub(super) fn scope_of(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            Some(v6.scope_id()).filter(|scope| *scope != 0)
        }
        _ => None,
    }
}

/// Returns whether this is a link-local address of no particular link (RFC 4007 §6).
pub(super) fn lacks_scope(address: SocketAddr) -> bool {
    let is_link_local = matches!(address.ip(), IpAddr::V6(v6) if v6.is_unicast_link_local());
    is_link_local && scope_of(address).is_none()
}

/// Checks that a peer's address is a unicast address with a port, and with a scope if it needs one.
pub(super) fn check_peer(address: SocketAddr) -> Result<(), Errno> {
    let ip = address.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    let is_unicast = !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast;
    if address.port() == 0 || !is_unicast || lacks_scope(address) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// Returns the address with another port: that of the encapsulation instead of the SCTP port.
pub(super) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
