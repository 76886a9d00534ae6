//! Who accepts associations at a port, and the listening sockets that share one (`SO_REUSEPORT`).

use core::net::IpAddr;

use eyas_sctp::config::AssociationConfig;

use super::super::seed::hashed;
use super::{PortClaim, PortKey, PortSharing, PortTable};
use crate::abi::Errno;
use crate::io::{Received, SocketId};

impl PortTable {
    /// Returns the socket that was bound to a port, and so accepts associations.
    pub(in crate::stack) fn owner(&self, key: PortKey) -> Option<SocketId> {
        self.ports.get(&key)?.owner
    }

    /// Sets which other sockets may have the port of the socket that was bound to it.
    pub(in crate::stack) fn set_sharing(
        &mut self,
        key: PortKey,
        owner: SocketId,
        sharing: PortSharing,
    ) {
        if let Some(port) = self.ports.get_mut(&key).filter(|port| port.owner == Some(owner)) {
            port.sharing = sharing;
        }
    }

    /// Checks whether a socket may listen at its port: beside others with its number, and beside
    /// those that listen there, at exactly the same addresses or at none of them.
    pub(in crate::stack) fn check_listening(
        &self,
        claim: &PortClaim,
        key: PortKey,
    ) -> Result<(), Errno> {
        let own = self.ports.get(&key).ok_or(Errno::EINVAL)?;
        if !self.is_free(claim, own.number, &own.addresses, true) {
            return Err(Errno::EADDRINUSE);
        }
        let mut others = self
            .numbered(own.number)
            .filter(|(other, port)| *other != key && port.listens)
            .map(|(_, port)| port);
        let may_join = others.clone().any(|other| own.is_at_same_addresses(other))
            || !others.any(|other| other.shares_address(&own.addresses));
        if own.listens || may_join { Ok(()) } else { Err(Errno::EEXIST) }
    }

    /// Sets whether a port listens.
    pub(in crate::stack) fn set_listening(&mut self, key: PortKey, listens: bool) {
        if let Some(port) = self.ports.get_mut(&key) {
            port.listens = listens;
        }
    }

    /// Updates whether the endpoint accepts associations, which it does while its listener has room,
    /// and their configuration. Only the socket that was bound to the port decides this.
    pub(in crate::stack) fn update_listening(
        &mut self,
        key: PortKey,
        owner: SocketId,
        has_room: bool,
        config: impl FnOnce() -> AssociationConfig,
    ) {
        let port = self.ports.get_mut(&key).filter(|port| port.owner == Some(owner));
        let Some(port) = port else { return };
        if port.listens {
            port.endpoint.accept_with(config());
        }
        port.endpoint.listen((port.listens && has_room).then_some(port.number));
    }

    /// Returns the listening socket of a port that a new peer gets. Several of them at the same
    /// addresses share the peers at random, and each peer gets the same one again: the cookie of
    /// its handshake is valid only there.
    pub(super) fn listener_for(&self, number: u16, received: &Received) -> Option<PortKey> {
        let ports = self.numbered(number);
        let here = ports.filter(|(_, port)| port.listens && port.receives_at(received.local));
        // At different addresses, the most recent one, as in Linux.
        let (_, newest) = here.clone().next_back()?;
        let peer = self.hash_of_peer(received);
        let group = here.filter(|(_, port)| port.is_at_same_addresses(newest));
        // Rendezvous hashing: if one is closed, only its peers change.
        group.map(|(key, _)| key).max_by_key(|key| hashed(peer, &key.0.to_le_bytes()))
    }

    fn hash_of_peer(&self, received: &Received) -> u64 {
        let seeded = self.seed.hash();
        let address = match received.remote.ip().to_canonical() {
            IpAddr::V4(v4) => hashed(seeded, &v4.octets()),
            IpAddr::V6(v6) => hashed(seeded, &v6.octets()),
        };
        hashed(address, received.contents.get(..2).unwrap_or_default())
    }
}
