//! The peers that have networks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

/// Networks and their peers. If networks contain an address, the smallest one counts (RFC 1812 §5.2.4.3).
#[derive(Clone, Debug)]
pub struct PeerRoutes<P> {
    /// By prefix length, the longest first, and then by the first address, for both families together.
    networks: BTreeMap<Reverse<u8>, HashMap<IpAddr, P>>,
}

/// A network that another peer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenNetwork<P> {
    /// The network.
    pub network: IpNet,
    /// The other peer.
    pub by: P,
}

impl<P> Default for PeerRoutes<P> {
    fn default() -> Self {
        Self { networks: BTreeMap::new() }
    }
}

impl<P: Clone + PartialEq> PeerRoutes<P> {
    /// Assigns these networks to a peer: all of them, or none.
    ///
    /// # Errors
    /// If another peer has one of them.
    pub fn insert(&mut self, networks: &[IpNet], peer: &P) -> Result<(), TakenNetwork<P>> {
        for network in networks {
            let same = self.networks.get(&Reverse(network.prefix_len()));
            if let Some(by) = same.and_then(|same| same.get(&network.network()))
                && by != peer
            {
                return Err(TakenNetwork { network: network.trunc(), by: by.clone() });
            }
        }
        for network in networks {
            let same = self.networks.entry(Reverse(network.prefix_len())).or_default();
            same.insert(network.network(), peer.clone());
        }
        Ok(())
    }

    /// Removes all networks of a peer.
    pub fn remove(&mut self, peer: &P) {
        self.networks.values_mut().for_each(|same| same.retain(|_, by| by != peer));
        self.networks.retain(|_, same| !same.is_empty());
    }

    /// Returns the peer that has this address.
    pub fn peer(&self, address: IpAddr) -> Option<&P> {
        self.networks.iter().find_map(|(Reverse(bits), same)| {
            // For IPv4 the prefix may be too long.
            let network = IpNet::new(address, *bits).ok()?;
            same.get(&network.network())
        })
    }

    /// Returns the number of networks.
    #[cfg(any(test, feature = "internals"))]
    pub fn len(&self) -> usize {
        self.networks.values().map(HashMap::len).sum()
    }

    /// Returns whether there are none.
    #[cfg(any(test, feature = "internals"))]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }
}
