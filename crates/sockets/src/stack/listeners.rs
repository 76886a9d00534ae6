//! Listening sockets that share a port (`SO_REUSEPORT`).

use core::net::IpAddr;

use super::Stack;
use super::port::{PortKey, SharedPort};
use crate::io::Received;

/// The hash of 64 bits (FNV-1a).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Stack {
    /// Returns the listening socket of a port that a new peer gets. Several of them at the same
    /// addresses share the peers at random, and each peer gets the same one again: the cookie of
    /// its handshake is valid only there.
    pub(super) fn listener_for(&self, number: u16, received: &Received) -> Option<PortKey> {
        let keys = self.numbers.get(&number)?.iter();
        let ports = keys.filter_map(|key| Some((*key, self.ports.get(key)?)));
        let here = ports.filter(|(_, port)| port.listens && port.receives_at(received.local));
        // At different addresses, the most recent one, as in Linux.
        let (_, newest) = here.clone().next_back()?;
        let peer = self.hash_of_peer(received);
        let group = here.filter(|(_, port)| is_at_same_addresses(port, newest));
        // Rendezvous hashing: if one is closed, only its peers change.
        group.map(|(key, _)| key).max_by_key(|key| hashed(peer, &key.0.to_le_bytes()))
    }

    /// Returns whether a socket may listen beside the others that listen on its port: at exactly
    /// the same addresses or at none of them.
    pub(super) fn may_join_listeners(&self, key: PortKey) -> bool {
        let Some(own) = self.ports.get(&key) else { return false };
        let others = || {
            let keys = self.numbers.get(&own.number).into_iter().flatten();
            keys.filter(|other| **other != key)
                .filter_map(|other| self.ports.get(other))
                .filter(|other| other.listens)
        };
        others().any(|other| is_at_same_addresses(own, other))
            || !others().any(|other| other.addresses.iter().any(|ip| own.addresses.contains(ip)))
    }

    fn hash_of_peer(&self, received: &Received) -> u64 {
        let seeded = hashed(BASIS, &self.seed);
        let address = match received.remote.ip().to_canonical() {
            IpAddr::V4(v4) => hashed(seeded, &v4.octets()),
            IpAddr::V6(v6) => hashed(seeded, &v6.octets()),
        };
        hashed(address, received.contents.get(..2).unwrap_or_default())
    }
}

fn is_at_same_addresses(one: &SharedPort, other: &SharedPort) -> bool {
    let is_among =
        |a: &SharedPort, b: &SharedPort| a.addresses.iter().all(|ip| b.addresses.contains(ip));
    one.domain == other.domain
        && one.addresses.is_empty() == other.addresses.is_empty()
        && is_among(one, other)
        && is_among(other, one)
}

/// Adds bytes to a hash.
fn hashed(start: u64, bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // Also spread the last bytes over the high bits, by which hashes are compared.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(32)
}
