//! Who has which addresses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

/// Networks, and who has each. Of networks within one another the smallest counts, as for any router
/// (RFC 1812 §5.2.4.3).
#[derive(Clone, Debug)]
pub struct Routes<P> {
    /// By the bits that count, most of them first, and then by the first address. Addresses of both families
    /// stand beside one another.
    networks: BTreeMap<Reverse<u8>, HashMap<IpAddr, P>>,
}

/// Somebody else has this network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<P> {
    /// Which one.
    pub network: IpNet,
    /// Who has it.
    pub by: P,
}

impl<P> Default for Routes<P> {
    fn default() -> Self {
        Self { networks: BTreeMap::new() }
    }
}

impl<P: Clone + PartialEq> Routes<P> {
    /// Gives these networks to somebody: all of them, or none.
    ///
    /// # Errors
    /// If somebody else has one of them.
    pub fn insert(&mut self, networks: &[IpNet], peer: &P) -> Result<(), Taken<P>> {
        for network in networks {
            let same = self.networks.get(&Reverse(network.prefix_len()));
            if let Some(by) = same.and_then(|same| same.get(&network.network()))
                && by != peer
            {
                return Err(Taken { network: network.trunc(), by: by.clone() });
            }
        }
        for network in networks {
            let same = self.networks.entry(Reverse(network.prefix_len())).or_default();
            same.insert(network.network(), peer.clone());
        }
        Ok(())
    }

    /// Takes all networks from somebody.
    pub fn remove(&mut self, peer: &P) {
        self.networks.values_mut().for_each(|same| same.retain(|_, by| by != peer));
        self.networks.retain(|_, same| !same.is_empty());
    }

    /// Who has this address.
    pub fn peer(&self, address: IpAddr) -> Option<&P> {
        self.networks.iter().find_map(|(Reverse(bits), same)| {
            // A network of IPv6 alone may have so many bits.
            let network = IpNet::new(address, *bits).ok()?;
            same.get(&network.network())
        })
    }

    /// How many networks there are.
    pub fn len(&self) -> usize {
        self.networks.values().map(HashMap::len).sum()
    }

    /// Whether nobody has anything.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }
}
