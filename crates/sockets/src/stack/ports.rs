//! SCTP ports: each port that a socket is bound to has its own endpoint.
//! | file | purpose |
//! | --- | --- |
//! | `port` | one port, and who else may have its number |
//! | `listening` | who accepts associations at a port |
//! | `arrivals` | the port that a packet is for |
//! | `endpoint` | what sockets do at the endpoint of their port |
//! | `schedule` | when endpoints are polled |

mod arrivals;
mod endpoint;
mod listening;
mod port;
mod schedule;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use eyas_sctp::config::EndpointConfig;
use eyas_sctp::endpoint::{Endpoint, PacketMemory};
use eyas_sctp::event::Event;
use eyas_sctp::io::{Input as EndpointInput, Output as EndpointOutput, Transmit};

use super::seed::StackSeed;
use crate::abi::Errno;
use crate::config::StackConfig;
use crate::io::SocketId;
use crate::status::CounterStatus;

use endpoint::with_packet_memory;
use port::SharedPort;
use schedule::PortSchedule;

pub(super) use arrivals::Arrival;
pub(super) use port::{AssociationKey, PortClaim, PortSharing};
pub(super) use schedule::PortKey;

/// The first ephemeral port, as in Linux (`net.ipv4.ip_local_port_range`).
const FIRST_EPHEMERAL: u16 = 32_768;
/// The number of ephemeral ports.
const EPHEMERAL_PORTS: u16 = 28_232;

/// What a port has for the stack.
#[derive(Debug)]
pub(super) enum PortOutput {
    Transmit(Transmit),
    Event(AssociationKey, Event),
}

/// The ports of a stack. Whatever may give an endpoint outputs marks its port to be polled, and a
/// port ends once no socket and no association uses it.
#[derive(Debug)]
pub(super) struct PortTable {
    ports: BTreeMap<PortKey, SharedPort>,
    /// Ports by number.
    numbers: BTreeMap<u16, Vec<PortKey>>,
    next: u64,
    schedule: PortSchedule,
    /// The local addresses.
    addresses: Vec<IpAddr>,
    /// Answers packets for unused ports.
    out_of_the_blue: Endpoint,
    /// The buffer into which the packets of all ports are written.
    packet_memory: PacketMemory,
    /// The configuration of every endpoint.
    config: EndpointConfig,
    seed: StackSeed,
    /// The counters of removed endpoints, and packets for others.
    counters: CounterStatus,
}

impl PortTable {
    pub(super) fn new(config: &StackConfig, seed: [u8; 32], now: Duration) -> Self {
        let mut endpoint = EndpointConfig::default();
        endpoint.memory = config.memory;
        endpoint.association.clone_from(&config.association);
        Self {
            ports: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 1,
            schedule: PortSchedule::default(),
            addresses: canonical(&config.addresses),
            out_of_the_blue: Endpoint::new(EndpointConfig::default(), seed, now),
            packet_memory: PacketMemory::default(),
            config: endpoint,
            seed: StackSeed::new(seed),
            counters: CounterStatus::default(),
        }
    }

    /// Returns the number of a port.
    pub(super) fn number(&self, key: PortKey) -> Option<u16> {
        self.ports.get(&key).map(|port| port.number)
    }

    /// Returns the addresses that a port is bound to: none if it is bound to all.
    pub(super) fn bound_addresses(&self, key: PortKey) -> Option<&[IpAddr]> {
        self.ports.get(&key).map(|port| port.addresses.as_slice())
    }

    /// Returns the local addresses.
    pub(super) fn local_addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns whether an address is a local one.
    pub(super) fn is_local(&self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(v4) if v4.is_loopback()) || self.addresses.contains(&address)
    }

    /// Returns the ports with a number.
    fn numbered(
        &self,
        number: u16,
    ) -> impl DoubleEndedIterator<Item = (PortKey, &SharedPort)> + Clone {
        let keys = self.numbers.get(&number).into_iter().flatten();
        keys.filter_map(|key| Some((*key, self.ports.get(key)?)))
    }

    /// Returns whether a number is free for a socket with these addresses; with `listening`,
    /// whether a socket that already has the port may listen on it.
    fn is_free(
        &self,
        claim: &PortClaim,
        number: u16,
        addresses: &[IpAddr],
        listening: bool,
    ) -> bool {
        let mut others = self.numbered(number).filter(|(key, _)| claim.held != Some(*key));
        !others.any(|(_, other)| other.refuses(claim, addresses, listening))
    }

    /// Allocates a port for a socket: the requested number, or a free one for 0.
    pub(super) fn allocate(
        &mut self,
        now: Duration,
        claim: &PortClaim,
        requested: u16,
        addresses: Vec<IpAddr>,
    ) -> Result<PortKey, Errno> {
        let number = match requested {
            0 => self.pick_ephemeral().ok_or(Errno::EADDRINUSE)?,
            requested if self.is_free(claim, requested, &addresses, false) => requested,
            _ => return Err(Errno::EADDRINUSE),
        };
        let endpoint = Endpoint::new(self.config.clone(), self.seed.draw(), now);
        let key = PortKey(self.next);
        self.next += 1;
        self.ports.insert(key, SharedPort::new(claim, number, addresses, endpoint));
        self.numbers.entry(number).or_default().push(key);
        self.update_addresses(now, key);
        Ok(key)
    }

    fn pick_ephemeral(&mut self) -> Option<u16> {
        let start = (self.seed.draw_number() % u64::from(EPHEMERAL_PORTS)) as u16;
        let mut all =
            (0..EPHEMERAL_PORTS).map(|step| FIRST_EPHEMERAL + (start + step) % EPHEMERAL_PORTS);
        all.find(|number| !self.numbers.contains_key(number))
    }

    /// Binds a port to one more address.
    pub(super) fn add_address(
        &mut self,
        now: Duration,
        claim: &PortClaim,
        key: PortKey,
        address: IpAddr,
    ) -> Result<(), Errno> {
        let port = self.ports.get(&key).ok_or(Errno::EINVAL)?;
        let is_known = port.addresses.contains(&address) || address.is_unspecified();
        if port.addresses.is_empty() || is_known {
            return Err(Errno::EINVAL);
        }
        if !self.is_free(claim, port.number, &[address], false) {
            return Err(Errno::EADDRINUSE);
        }
        if let Some(port) = self.ports.get_mut(&key) {
            port.addresses.push(address);
        }
        self.update_addresses(now, key);
        Ok(())
    }

    /// Removes an address that a port is bound to, and returns the first one of the others, of which
    /// there must be one.
    pub(super) fn remove_address(
        &mut self,
        now: Duration,
        key: PortKey,
        address: IpAddr,
    ) -> Result<Option<IpAddr>, Errno> {
        let port = self.ports.get_mut(&key).ok_or(Errno::EINVAL)?;
        if !port.addresses.contains(&address) {
            return Err(Errno::EINVAL);
        }
        port.addresses.retain(|other| *other != address);
        let first = port.addresses.first().copied();
        self.update_addresses(now, key);
        Ok(first)
    }

    /// Replaces the local addresses.
    pub(super) fn set_local_addresses(&mut self, now: Duration, addresses: &[IpAddr]) {
        self.addresses = canonical(addresses);
        let keys: Vec<PortKey> = self.ports.keys().copied().collect();
        keys.into_iter().for_each(|key| self.update_addresses(now, key));
    }

    /// Updates the local addresses of an endpoint.
    fn update_addresses(&mut self, now: Duration, key: PortKey) {
        let Some(port) = self.ports.get_mut(&key) else { return };
        let addresses = if port.addresses.is_empty() {
            let all = self.addresses.iter().copied();
            all.filter(|one| port.is_of_family(*one)).collect()
        } else {
            port.addresses.clone()
        };
        port.endpoint.handle_input(now, EndpointInput::LocalAddresses(addresses));
        self.schedule.touch(key, &mut port.turn);
    }

    /// Adds a socket that shares a port.
    pub(super) fn add_socket(&mut self, key: PortKey, socket: SocketId) {
        if let Some(port) = self.ports.get_mut(&key) {
            port.sockets.insert(socket);
        }
    }

    /// Removes a socket that shares a port which another one still has.
    pub(super) fn remove_socket(&mut self, key: PortKey, socket: SocketId) {
        if let Some(port) = self.ports.get_mut(&key) {
            port.sockets.remove(&socket);
        }
    }

    /// Removes a socket that was closed, after which its port may end. If it is the one that was
    /// bound, the port no longer listens.
    pub(super) fn close_socket(&mut self, key: PortKey, socket: SocketId) {
        let Some(port) = self.ports.get_mut(&key) else { return };
        port.sockets.remove(&socket);
        if port.owner == Some(socket) {
            (port.owner, port.listens) = (None, false);
            port.endpoint.listen(None);
        }
        self.schedule.touch(key, &mut port.turn);
        self.release(key);
    }

    /// Releases a port when no socket and no association uses it.
    fn release(&mut self, key: PortKey) {
        if !self.ports.get(&key).is_some_and(SharedPort::is_unused) {
            return;
        }
        let Some(port) = self.ports.remove(&key) else { return };
        self.schedule.cancel(key, &port.turn);
        self.counters.add(&port.endpoint.counters());
        if let Some(keys) = self.numbers.get_mut(&port.number) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.numbers.remove(&port.number);
            }
        }
    }

    /// Returns the counters of all endpoints, including those removed.
    pub(super) fn counters(&self) -> CounterStatus {
        let mut counters = self.counters;
        counters.add(&self.out_of_the_blue.counters());
        self.ports.values().for_each(|port| counters.add(&port.endpoint.counters()));
        counters
    }

    /// Marks the ports whose timers have expired.
    pub(super) fn expire_timers(&mut self, now: Duration) {
        while let Some(key) = self.schedule.pop_expired(now) {
            if let Some(port) = self.ports.get_mut(&key) {
                self.schedule.touch_expired(key, &mut port.turn);
            }
        }
    }

    /// Returns when the next timer expires.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.schedule.next_timeout()
    }

    /// Returns the next output of any port, or `None` if there is none until the next input or the
    /// next timeout.
    pub(super) fn poll_output(&mut self, now: Duration) -> Option<PortOutput> {
        if let EndpointOutput::Transmit(transmit) = self.out_of_the_blue.poll_output(now) {
            return Some(PortOutput::Transmit(transmit));
        }
        while let Some(key) = self.schedule.first() {
            let Some(port) = self.ports.get_mut(&key) else {
                self.schedule.drop_first();
                continue;
            };
            let output =
                with_packet_memory(&mut self.packet_memory, &mut port.endpoint, |endpoint| {
                    endpoint.poll_output(now)
                });
            match output {
                EndpointOutput::Transmit(mut transmit) => {
                    if transmit.local.is_none() {
                        transmit.local = port.nearest(transmit.remote.ip());
                    }
                    return Some(PortOutput::Transmit(transmit));
                }
                EndpointOutput::Event(inner, event) => {
                    return Some(PortOutput::Event(AssociationKey { port: key, inner }, event));
                }
                EndpointOutput::Timeout(due) => {
                    self.schedule.settle_first(&mut port.turn, due);
                    self.release(key);
                }
                // Endpoints of a stack write packets as bytes.
                EndpointOutput::TransmitStructs(_) => {}
            }
        }
        None
    }
}

fn canonical(addresses: &[IpAddr]) -> Vec<IpAddr> {
    addresses.iter().map(|ip| ip.to_canonical()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::SocketName;
    use crate::abi::number::socket;
    use crate::{Stack, StackOutput};

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
        let table = &mut stack.ports;
        assert_eq!((packets, table.ports.len()), (100, 100));
        assert!(table.packet_memory.room() > 0);
        for port in table.ports.values_mut() {
            let mut own = PacketMemory::default();
            port.endpoint.swap_packet_memory(&mut own);
            assert_eq!(own.room(), 0);
        }
    }
}
