//! Names: `bind`, `bindx`, `getsockname`, `getpeername`.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::Stack;
use super::names::{lacks_scope, read_name, read_names, unspecified, with_port};
use super::ports::PortKey;
use super::socket::SocketState;
use crate::abi::{Errno, SocketName};
use crate::io::{AssocId, SocketId};

impl Stack {
    /// `bind`, with a `sockaddr`.
    ///
    /// # Errors
    /// `EINVAL` (bound already, too short), `EADDRINUSE`, `EADDRNOTAVAIL`, `EAFNOSUPPORT`.
    pub fn bind(&mut self, now: Duration, socket: SocketId, name: &[u8]) -> Result<(), Errno> {
        self.advance_to(now);
        let bound = self.sockets.find(socket)?;
        if bound.port.is_some() {
            return Err(Errno::EINVAL);
        }
        let (address, _) = read_name(bound, name)?;
        self.bind_to(socket, address)
    }

    fn bind_to(&mut self, socket: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let ip = address.ip();
        self.check_own(address)?;
        let addresses = if ip.is_unspecified() { Vec::new() } else { alloc::vec![ip] };
        let claim = self.sockets.find(socket)?.claim(socket);
        let key = self.ports.allocate(self.now, &claim, address.port(), addresses)?;
        let number = self.ports.number(key).unwrap_or_default();
        let bound = self.sockets.find_mut(socket)?;
        bound.port = Some(key);
        bound.bound = Some(with_port(address, number));
        Ok(())
    }

    /// Checks that a socket can be bound to an address.
    fn check_own(&self, address: SocketAddr) -> Result<(), Errno> {
        let ip = address.ip();
        if !ip.is_unspecified() && (!self.is_local(ip) || lacks_scope(address)) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        Ok(())
    }

    /// Binds an unbound socket to a free port on all addresses.
    pub(super) fn bind_if_needed(&mut self, socket: SocketId) -> Result<(), Errno> {
        let bound = self.sockets.find(socket)?;
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
        let addresses = read_names(self.sockets.find(socket)?, names)?;
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
        let found = self.sockets.find(socket)?;
        let Some(key) = found.port else { return self.bind_to(socket, address) };
        let claim = found.claim(socket);
        self.check_number(key, address)?;
        self.check_own(address)?;
        self.ports.add_address(self.now, &claim, key, address.ip())
    }

    /// Checks that an address, if it has a port, has that of the socket.
    fn check_number(&self, key: PortKey, address: SocketAddr) -> Result<(), Errno> {
        let number = self.ports.number(key).ok_or(Errno::EINVAL)?;
        if address.port() != 0 && address.port() != number { Err(Errno::EINVAL) } else { Ok(()) }
    }

    fn remove_address(&mut self, socket: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let key = self.sockets.find(socket)?.port.ok_or(Errno::EINVAL)?;
        if self.ports.bound_addresses(key).ok_or(Errno::EINVAL)?.len() <= 1 {
            return Err(Errno::EBUSY);
        }
        self.check_number(key, address)?;
        let first = self.ports.remove_address(self.now, key, address.ip())?;
        let bound = self.sockets.find_mut(socket)?;
        if let (Some(name), Some(first)) = (&mut bound.bound, first)
            && name.ip() == address.ip()
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
        let found = self.sockets.find(socket)?;
        let mut bound = found.bound.unwrap_or(SocketAddr::new(unspecified(found), 0));
        if bound.ip().is_unspecified()
            && let Some(used) = found.only().and_then(|id| self.address_towards(id))
        {
            bound = self.associations.own_name(found, SocketAddr::new(used, bound.port()));
        }
        // Without an address there is nothing to map.
        Ok(if bound.ip().is_unspecified() { SocketName::new(bound) } else { found.name(bound) })
    }

    /// Returns our address on the path to the peer's primary address, if known.
    fn address_towards(&self, id: AssocId) -> Option<IpAddr> {
        let assoc = self.associations.get(id)?;
        let remote = assoc.peer.ip();
        // A host that sends to itself uses the destination as the source address.
        let own = Some(remote).filter(|ip| self.is_local(*ip));
        own.or_else(|| {
            let status = self.ports.status(assoc.key)?;
            status.paths.iter().find(|path| path.id == status.primary)?.local
        })
    }

    /// `getpeername`.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn getpeername(&self, socket: SocketId) -> Result<SocketName, Errno> {
        let found = self.sockets.find(socket)?;
        let is_connected = matches!(found.state, SocketState::Established | SocketState::Closing);
        let assoc = self.associations.only_of(found).filter(|_| is_connected);
        let assoc = assoc.ok_or(Errno::ENOTCONN)?;
        Ok(found.name(assoc.peer))
    }

    /// Returns whether an address is a local one.
    #[must_use]
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.ports.is_local(address)
    }
}
