//! A router with longest-prefix matching.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use bytes::Bytes;

use crate::node::{Node, NodeInput, NodeOutput};
use crate::packet::{Packet, PacketPayload};

/// One line of a routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RouteEntry {
    prefix: IpAddr,
    length: u8,
    interface: u32,
}

/// A node that forwards packets. It takes no time, counts no hops and sends no errors; packets
/// without a route are dropped and counted.
#[derive(Clone, Debug)]
pub struct Router<B = Bytes> {
    /// Longest prefixes first; of equal length, in the order of adding.
    routes: Vec<RouteEntry>,
    outgoing: VecDeque<(u32, Packet<B>)>,
    forwarded: u64,
    unroutable: u64,
}

impl<B> Default for Router<B> {
    fn default() -> Self {
        Self { routes: Vec::new(), outgoing: VecDeque::new(), forwarded: 0, unroutable: 0 }
    }
}

impl<B: PacketPayload> Router<B> {
    /// Creates a router without routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route: packets whose destination begins with the first `length` bits of `prefix` are
    /// sent on `interface`. A length of 0 is the default route of the family.
    #[must_use]
    pub fn route(mut self, prefix: IpAddr, length: u8, interface: u32) -> Self {
        let index = self.routes.partition_point(|other| other.length >= length);
        self.routes.insert(index, RouteEntry { prefix, length, interface });
        self
    }

    /// Adds a route for this address to `interface`.
    #[must_use]
    pub fn host(self, address: IpAddr, interface: u32) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        self.route(address, length, interface)
    }

    /// Returns the number of forwarded packets.
    #[must_use]
    pub const fn forwarded(&self) -> u64 {
        self.forwarded
    }

    /// Returns the number of packets without a route.
    #[must_use]
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }

    fn interface_to(&self, destination: IpAddr) -> Option<u32> {
        let route = self.routes.iter().find(|route| route.matches(destination));
        route.map(|route| route.interface)
    }
}

impl RouteEntry {
    fn matches(&self, destination: IpAddr) -> bool {
        let (prefix, destination, bits) = match (self.prefix, destination) {
            (IpAddr::V4(prefix), IpAddr::V4(destination)) => {
                (u128::from(prefix.to_bits()), u128::from(destination.to_bits()), 32)
            }
            (IpAddr::V6(prefix), IpAddr::V6(destination)) => {
                (prefix.to_bits(), destination.to_bits(), 128)
            }
            _ => return false,
        };
        let ignored = bits - u32::from(self.length).min(bits);
        (prefix ^ destination).checked_shr(ignored).unwrap_or(0) == 0
    }
}

impl<B: PacketPayload> Node<B> for Router<B> {
    fn handle_input(&mut self, _now: Duration, input: NodeInput<B>) {
        if let NodeInput::Arrived { packet, .. } = input {
            match self.interface_to(packet.destination) {
                Some(interface) => {
                    self.forwarded += 1;
                    self.outgoing.push_back((interface, packet));
                }
                None => self.unroutable += 1,
            }
        }
    }

    fn poll_output(&mut self, _now: Duration) -> NodeOutput<B> {
        match self.outgoing.pop_front() {
            Some((interface, packet)) => NodeOutput::Transmit { interface, packet },
            None => NodeOutput::Timeout(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let router = Router::<Bytes>::new()
            .route([0, 0, 0, 0].into(), 0, 9)
            .route([10, 1, 0, 0].into(), 16, 1)
            .host([10, 1, 2, 3].into(), 2)
            .route("2001:db8::".parse().unwrap(), 32, 3);
        let to = |address: &str| router.interface_to(address.parse().unwrap());
        assert_eq!(to("10.1.2.3"), Some(2));
        assert_eq!(to("10.1.2.4"), Some(1));
        assert_eq!(to("10.2.0.1"), Some(9));
        assert_eq!(to("2001:db8:1::1"), Some(3));
        assert_eq!(to("2001:db9::1"), None);
    }
}
