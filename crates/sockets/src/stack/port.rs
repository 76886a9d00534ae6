//! SCTP ports: each port that a socket is bound to has its own endpoint.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use eyas_sctp::config::EndpointConfig;
use eyas_sctp::endpoint::{Endpoint, PacketMemory};
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::Input as EndpointInput;

use super::Stack;
use crate::abi::Errno;
use crate::io::{AssocId, SocketDomain, SocketId};

/// Identifies a port in use. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortKey(pub(super) u64);

/// The first ephemeral port, as in Linux (`net.ipv4.ip_local_port_range`).
const FIRST_EPHEMERAL: u16 = 32_768;
/// The number of ephemeral ports.
const EPHEMERAL_PORTS: u16 = 28_232;

/// An SCTP port with its addresses, shared by the socket that was bound to it and the sockets
/// accepted or peeled off from it.
#[derive(Debug)]
pub(super) struct SharedPort {
    pub(super) endpoint: Endpoint,
    pub(super) number: u16,
    /// The addresses that it is bound to; empty if bound to all.
    pub(super) addresses: Vec<IpAddr>,
    /// The address family, which decides what "all" means.
    pub(super) domain: SocketDomain,
    pub(super) v6_only: bool,
    /// The socket that was bound.
    pub(super) owner: Option<SocketId>,
    pub(super) listens: bool,
    pub(super) sharing: PortSharing,
    pub(super) sockets: BTreeSet<SocketId>,
    pub(super) associations: BTreeMap<AssociationId, AssocId>,
    /// When its next timer expires.
    pub(super) due: Option<Duration>,
    pub(super) is_dirty: bool,
}

/// Which other sockets may have the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortSharing {
    /// `SO_REUSEADDR` or `SCTP_REUSE_PORT`: those that have one of them too, until one listens.
    pub(super) reuses_address: bool,
    /// `SO_REUSEPORT`: those of this user that have it too. All of them may listen.
    pub(super) with_user: Option<u32>,
}

impl PortSharing {
    /// Returns whether both sockets may listen.
    fn listens_beside(self, other: Self) -> bool {
        self.with_user.is_some() && self.with_user == other.with_user
    }
}

impl SharedPort {
    /// Returns whether it receives packets to this local address.
    pub(super) fn receives_at(&self, local: Option<IpAddr>) -> bool {
        let Some(local) = local.map(|ip| ip.to_canonical()) else { return true };
        if self.addresses.is_empty() {
            return is_of(self.domain, self.v6_only, local);
        }
        self.addresses.contains(&local)
    }

    fn overlaps(&self, addresses: &[IpAddr], domain: SocketDomain, v6_only: bool) -> bool {
        match (self.addresses.is_empty(), addresses.is_empty()) {
            (true, true) => self.domain == domain || !(self.v6_only || v6_only),
            (true, false) => addresses.iter().any(|one| is_of(self.domain, self.v6_only, *one)),
            (false, true) => self.addresses.iter().any(|one| is_of(domain, v6_only, *one)),
            (false, false) => self.addresses.iter().any(|one| addresses.contains(one)),
        }
    }
}

/// Returns whether an address belongs to the families that a socket accepts.
fn is_of(domain: SocketDomain, v6_only: bool, address: IpAddr) -> bool {
    match domain {
        SocketDomain::Inet => address.is_ipv4(),
        SocketDomain::Inet6 => address.is_ipv6() || !v6_only,
    }
}

/// Performs an action on an endpoint, lending it the shared packet memory: otherwise an endpoint
/// that sends little would keep as much memory as one that sends much.
pub(super) fn with_packet_memory<T>(
    memory: &mut PacketMemory,
    endpoint: &mut Endpoint,
    action: impl FnOnce(&mut Endpoint) -> T,
) -> T {
    endpoint.swap_packet_memory(memory);
    let outcome = action(endpoint);
    endpoint.swap_packet_memory(memory);
    outcome
}

impl Stack {
    /// Returns whether a port is free for a socket with these addresses; with `listening`, whether
    /// a socket that already has the port may listen on it.
    pub(super) fn port_is_free(
        &self,
        socket: SocketId,
        number: u16,
        addresses: &[IpAddr],
        listening: bool,
    ) -> bool {
        let Some(requester) = self.sockets.get(&socket) else { return false };
        let (sharing, v6_only) = (requester.sharing(), requester.shared.v6_only);
        let others = self.numbers.get(&number).into_iter().flatten();
        let mut others = others.filter(|key| requester.port != Some(**key));
        !others.any(|key| {
            self.ports.get(key).is_some_and(|other| {
                let reuses = sharing.reuses_address && other.sharing.reuses_address;
                let is_refused = other.listens || !(listening || reuses);
                is_refused
                    && !sharing.listens_beside(other.sharing)
                    && other.overlaps(addresses, requester.domain, v6_only)
            })
        })
    }

    /// Allocates a port for a socket: the requested one, or a free one for 0.
    pub(super) fn allocate_port(
        &mut self,
        socket: SocketId,
        requested: u16,
        addresses: Vec<IpAddr>,
    ) -> Result<PortKey, Errno> {
        let number = match requested {
            0 => self.pick_free_port(socket, &addresses).ok_or(Errno::EADDRINUSE)?,
            requested if self.port_is_free(socket, requested, &addresses, false) => requested,
            _ => return Err(Errno::EADDRINUSE),
        };
        let found = self.sockets.get(&socket).ok_or(Errno::EBADF)?;
        let (domain, v6_only) = (found.domain, found.shared.v6_only);
        let sharing = found.sharing();
        let config = self.endpoint_config();
        let seed = self.draw_seed();
        let port = SharedPort {
            endpoint: Endpoint::new(config, seed, self.now),
            number,
            addresses,
            domain,
            v6_only,
            owner: Some(socket),
            listens: false,
            sharing,
            sockets: BTreeSet::from([socket]),
            associations: BTreeMap::new(),
            due: None,
            is_dirty: false,
        };
        let key = PortKey(self.next_port);
        self.next_port += 1;
        self.ports.insert(key, port);
        self.numbers.entry(number).or_default().push(key);
        self.update_addresses(key);
        Ok(key)
    }

    fn pick_free_port(&mut self, socket: SocketId, addresses: &[IpAddr]) -> Option<u16> {
        let start = (self.random() % u64::from(EPHEMERAL_PORTS)) as u16;
        let mut all =
            (0..EPHEMERAL_PORTS).map(|step| FIRST_EPHEMERAL + (start + step) % EPHEMERAL_PORTS);
        all.find(|number| {
            !self.numbers.contains_key(number)
                && self.port_is_free(socket, *number, addresses, false)
        })
    }

    /// Returns the configuration of every endpoint.
    pub(super) fn endpoint_config(&self) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        config.memory = self.config.memory;
        config.association.clone_from(&self.config.association);
        config
    }

    /// Updates the local addresses of an endpoint.
    pub(super) fn update_addresses(&mut self, key: PortKey) {
        let Some(port) = self.ports.get_mut(&key) else { return };
        let addresses = if port.addresses.is_empty() {
            let all = self.addresses.iter().copied();
            all.filter(|one| is_of(port.domain, port.v6_only, *one)).collect()
        } else {
            port.addresses.clone()
        };
        port.endpoint.handle_input(self.now, EndpointInput::LocalAddresses(addresses));
        self.touch_port(key);
    }

    /// Marks a port whose endpoint may have outputs.
    pub(super) fn touch_port(&mut self, key: PortKey) {
        if let Some(port) = self.ports.get_mut(&key)
            && !core::mem::replace(&mut port.is_dirty, true)
        {
            self.dirty.push_back(key);
        }
    }

    /// Performs an action on the endpoint of a port, after which it may have outputs.
    pub(super) fn at_port<T>(
        &mut self,
        key: PortKey,
        action: impl FnOnce(&mut Endpoint, Duration) -> T,
    ) -> Option<T> {
        let now = self.now;
        let endpoint = &mut self.ports.get_mut(&key)?.endpoint;
        let outcome =
            with_packet_memory(&mut self.packet_memory, endpoint, |endpoint| action(endpoint, now));
        self.touch_port(key);
        Some(outcome)
    }

    /// Releases a port when no socket and no association uses it.
    pub(super) fn release_port(&mut self, key: PortKey) {
        let Some(port) = self.ports.get(&key) else { return };
        if !port.sockets.is_empty() || !port.associations.is_empty() {
            return;
        }
        let Some(port) = self.ports.remove(&key) else { return };
        if let Some(due) = port.due {
            self.timers.remove(&(due, key));
        }
        self.retired.add(&port.endpoint.counters());
        if let Some(keys) = self.numbers.get_mut(&port.number) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.numbers.remove(&port.number);
            }
        }
    }

    /// Updates whether the endpoint accepts associations, and their configuration.
    pub(super) fn refresh_listening(&mut self, socket: SocketId) {
        let Some(listener) = self.sockets.get(&socket) else { return };
        let Some(key) = listener.port else { return };
        let is_open = !listener.is_one_to_one() || listener.accepting.len() <= listener.backlog;
        let config = self.association_config(&listener.shared, &listener.settings);
        let Some(port) = self.ports.get_mut(&key) else { return };
        if port.owner != Some(socket) {
            return;
        }
        let number = (port.listens && is_open).then_some(port.number);
        if port.listens {
            port.endpoint.accept_with(config);
        }
        port.endpoint.listen(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::SocketName;
    use crate::abi::number::socket;
    use crate::{StackConfig, StackOutput};

    #[test]
    fn ports_share_the_memory_for_packets() {
        let addresses = alloc::vec!["192.0.2.1".parse().unwrap()];
        let config = StackConfig { addresses, ..StackConfig::default() };
        let mut stack = Stack::new(config, [7; 32], Duration::ZERO);
        let peer = SocketName::new("192.0.2.2:5000".parse().unwrap());
        for _ in 0..100 {
            let socket = stack.socket(socket::AF_INET, socket::SOCK_STREAM, 132).unwrap();
            stack.connect(Duration::ZERO, socket, peer.as_bytes()).unwrap();
        }
        let mut packets = 0;
        loop {
            match stack.poll_output(Duration::ZERO) {
                StackOutput::Transmit(_) => packets += 1,
                StackOutput::Timeout(_) => break,
                _ => {}
            }
        }
        assert_eq!((packets, stack.ports.len()), (100, 100));
        assert!(stack.packet_memory.room() > 0);
        for port in stack.ports.values_mut() {
            let mut own = PacketMemory::default();
            port.endpoint.swap_packet_memory(&mut own);
            assert_eq!(own.room(), 0);
        }
    }
}
