//! Names: `bind`, `bindx`, `getsockname`, `getpeername`, and parsing addresses from programs.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::time::Duration;

use super::Stack;
use super::connecting::with_port;
use super::socket::{SctpSocket, SocketState};
use crate::abi::{Errno, NameError, SocketName};
use crate::io::{AssocId, SocketDomain, SocketId};

impl Stack {
    /// `bind`, with a `sockaddr`.
    ///
    /// # Errors
    /// `EINVAL` (bound already, too short), `EADDRINUSE`, `EADDRNOTAVAIL`, `EAFNOSUPPORT`.
    pub fn bind(&mut self, now: Duration, socket: SocketId, name: &[u8]) -> Result<(), Errno> {
        self.advance_to(now);
        let bound = self.socket_of(socket)?;
        if bound.port.is_some() {
            return Err(Errno::EINVAL);
        }
        let (address, _) = read_name(bound, name)?;
        self.bind_to(socket, address)
    }

    fn bind_to(&mut self, socket: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let ip = address.ip();
        if !ip.is_unspecified() && (!self.is_local(ip) || lacks_scope(address)) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let addresses = if ip.is_unspecified() { Vec::new() } else { alloc::vec![ip] };
        let key = self.allocate_port(socket, address.port(), addresses)?;
        let number = self.ports.get(&key).map_or(0, |port| port.number);
        let bound = self.socket_mut(socket)?;
        bound.port = Some(key);
        bound.bound = Some(with_port(address, number));
        Ok(())
    }

    /// Binds an unbound socket to a free port on all addresses.
    pub(super) fn bind_if_needed(&mut self, socket: SocketId) -> Result<(), Errno> {
        let bound = self.socket_of(socket)?;
        if bound.port.is_some() {
            return Ok(());
        }
        let all = unspecified(bound);
        self.bind_to(socket, SocketAddr::new(all, 0)).map_err(|_| Errno::EAGAIN)
    }

    /// `sctp_bindx`, with packed `sockaddr`s; `add` or remove them (RFC 6458 §9.1).
    ///
    /// # Errors
    /// As `bind`; `EBUSY` if the last address would be removed.
    pub fn bindx(
        &mut self,
        now: Duration,
        socket: SocketId,
        names: &[u8],
        add: bool,
    ) -> Result<(), Errno> {
        self.advance_to(now);
        let addresses = read_names(self.socket_of(socket)?, names)?;
        for (done, address) in addresses.iter().enumerate() {
            let outcome = match add {
                true => self.add_address(socket, *address),
                false => self.remove_address(socket, *address),
            };
            if let Err(error) = outcome {
                // Either all addresses are changed or none.
                for changed in addresses.iter().take(done) {
                    let _ = match add {
                        true => self.remove_address(socket, *changed),
                        false => self.add_address(socket, *changed),
                    };
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn add_address(&mut self, socket: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let Some(key) = self.socket_of(socket)?.port else { return self.bind_to(socket, address) };
        let ip = address.ip();
        let port = self.ports.get(&key).ok_or(Errno::EINVAL)?;
        if address.port() != 0 && address.port() != port.number {
            return Err(Errno::EINVAL);
        }
        if !ip.is_unspecified() && (!self.is_local(ip) || lacks_scope(address)) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if port.addresses.is_empty() || port.addresses.contains(&ip) || ip.is_unspecified() {
            return Err(Errno::EINVAL);
        }
        if !self.port_is_free(socket, port.number, &[ip], false) {
            return Err(Errno::EADDRINUSE);
        }
        if let Some(port) = self.ports.get_mut(&key) {
            port.addresses.push(ip);
        }
        self.update_addresses(key);
        Ok(())
    }

    fn remove_address(&mut self, socket: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let key = self.socket_of(socket)?.port.ok_or(Errno::EINVAL)?;
        let ip = address.ip();
        let port = self.ports.get_mut(&key).ok_or(Errno::EINVAL)?;
        if port.addresses.len() <= 1 {
            return Err(Errno::EBUSY);
        }
        if address.port() != 0 && address.port() != port.number {
            return Err(Errno::EINVAL);
        }
        if !port.addresses.contains(&ip) {
            return Err(Errno::EINVAL);
        }
        port.addresses.retain(|other| *other != ip);
        let first = port.addresses.first().copied();
        self.update_addresses(key);
        let bound = self.socket_mut(socket)?;
        if let (Some(name), Some(first)) = (&mut bound.bound, first)
            && name.ip() == ip
        {
            name.set_ip(first);
        }
        Ok(())
    }

    /// `getsockname`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn getsockname(&self, socket: SocketId) -> Result<SocketName, Errno> {
        let found = self.socket_of(socket)?;
        let mut bound = found.bound.unwrap_or(SocketAddr::new(unspecified(found), 0));
        if bound.ip().is_unspecified()
            && let Some(used) = found.only().and_then(|id| self.address_towards(id))
        {
            bound = self.own_name(found, SocketAddr::new(used, bound.port()));
        }
        // Without an address there is nothing to map.
        Ok(if bound.ip().is_unspecified() { SocketName::new(bound) } else { found.name(bound) })
    }

    /// Returns an own address with its scope, if it has one: that of the peer, or of the address that
    /// the socket was bound to. Linux omits it here.
    pub(super) fn own_name(&self, socket: &SctpSocket, address: SocketAddr) -> SocketAddr {
        let peer = socket.associations.iter().find_map(|id| {
            let assoc = self.associations.get(id)?;
            scope_of(assoc.peer)
        });
        match (address, socket.bound.and_then(scope_of).or(peer)) {
            (SocketAddr::V6(v6), Some(scope)) if v6.ip().is_unicast_link_local() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, scope).into()
            }
            _ => address,
        }
    }

    /// Returns our address on the path to the peer's primary address, if known.
    fn address_towards(&self, id: AssocId) -> Option<IpAddr> {
        let assoc = self.associations.get(&id)?;
        let remote = assoc.peer.ip();
        // A host that sends to itself uses the destination as the source address.
        let own = Some(remote).filter(|ip| self.is_local(*ip));
        own.or_else(|| {
            let status = self.endpoint_status(id)?;
            status.paths.iter().find(|path| path.id == status.primary)?.local
        })
    }

    /// `getpeername`.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn getpeername(&self, socket: SocketId) -> Result<SocketName, Errno> {
        let found = self.socket_of(socket)?;
        let is_connected = matches!(found.state, SocketState::Established | SocketState::Closing);
        let id = found.only().filter(|_| is_connected).ok_or(Errno::ENOTCONN)?;
        let assoc = self.associations.get(&id).ok_or(Errno::ENOTCONN)?;
        Ok(found.name(assoc.peer))
    }

    /// Returns whether an address is a local one.
    #[must_use]
    pub fn is_local(&self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(v4) if v4.is_loopback()) || self.addresses.contains(&address)
    }
}

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
fn scope_of(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            Some(v6.scope_id()).filter(|scope| *scope != 0)
        }
        _ => None,
    }
}

/// Returns whether this is a link-local address of no particular link (RFC 4007 §6).
fn lacks_scope(address: SocketAddr) -> bool {
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
