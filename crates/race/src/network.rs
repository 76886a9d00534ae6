//! Properties of a network: families with a route, sources, NAT64.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::candidate::AddressFamily;
use crate::io::{NetworkView, SourceAddress};
use crate::nat64;

#[cfg(test)]
mod tests;

impl NetworkView {
    /// Returns whether the family has "connectivity" (HEv3 §4.1): a route, and a source that is
    /// neither loopback nor link-local.
    pub fn has_connectivity(&self, family: AddressFamily) -> bool {
        self.sources
            .iter()
            .any(|source| is_routed(source) && AddressFamily::from_ip(source.address) == family)
    }

    /// Returns whether no family has connectivity. Loopback may still work.
    pub fn is_offline(&self) -> bool {
        !self.has_connectivity(AddressFamily::V6) && !self.has_connectivity(AddressFamily::V4)
    }

    /// Returns the family that resolution waits for: the only one with connectivity, or else the
    /// one preferred by the policy (HEv3 §4.2).
    pub fn preferred_family(&self, prefer_ipv4: bool) -> AddressFamily {
        match (self.has_connectivity(AddressFamily::V6), self.has_connectivity(AddressFamily::V4)) {
            (true, false) => AddressFamily::V6,
            (false, true) => AddressFamily::V4,
            _ if prefer_ipv4 => AddressFamily::V4,
            _ => AddressFamily::V6,
        }
    }

    /// Returns whether packets to this address can be sent: to the machine itself always, otherwise
    /// through a route or on a link.
    pub fn reaches(&self, address: IpAddr) -> bool {
        address.is_loopback()
            || self.sources.iter().any(|source| {
                AddressFamily::from_ip(source.address) == AddressFamily::from_ip(address)
                    && (is_routed(source) && !is_link_local(address) || is_on_link(source, address))
            })
    }

    /// Returns the IPv6 address that represents this IPv4 address here, if there is a PREF64 and
    /// either no IPv4 route (HEv3 §8.3) or only IPv6 is wanted.
    pub fn synthesised(&self, address: Ipv4Addr, only: Option<AddressFamily>) -> Option<Ipv6Addr> {
        if only != Some(AddressFamily::V6) && self.reaches(IpAddr::V4(address)) {
            return None;
        }
        self.pref64
            .iter()
            .filter_map(|prefix| nat64::synthesise(*prefix, address))
            .find(|address| self.reaches(IpAddr::V6(*address)))
    }

    /// Returns the IPv4 address embedded in an address under a PREF64 of this network; other
    /// addresses are returned unchanged (HEv3 §8.2).
    pub fn desynthesised(&self, address: Ipv6Addr) -> IpAddr {
        self.pref64
            .iter()
            .find_map(|prefix| nat64::extract(*prefix, address))
            .map_or(IpAddr::V6(address), IpAddr::V4)
    }

    /// Returns the address to which packets for this one are sent: itself, or its translation
    /// behind NAT64.
    pub fn on_the_wire(&self, address: IpAddr, only: Option<AddressFamily>) -> IpAddr {
        match address {
            IpAddr::V4(v4) => self.synthesised(v4, only).map_or(address, IpAddr::V6),
            IpAddr::V6(_) => address,
        }
    }

    /// Returns whether a caller that wants only one family may try an address.
    ///
    /// IPv6 only means that IPv6 packets leave this machine: an IPv4 address behind a NAT64 is
    /// reached by such packets. IPv4 only means that the peer's address is IPv4, as if this machine
    /// had an IPv4 route: without one, the peer is reached through a NAT64, as with 464XLAT (RFC
    /// 6877). So a translated address belongs to both families, and without NAT64 each address
    /// belongs to its own family.
    pub fn admits(&self, only: Option<AddressFamily>, address: IpAddr) -> bool {
        only.is_none_or(|family| {
            family == AddressFamily::from_ip(address)
                || family == AddressFamily::from_ip(self.on_the_wire(address, only))
        })
    }

    /// Returns whether packets to this address can leave the machine, directly or through NAT64.
    pub fn can_try(&self, address: IpAddr) -> bool {
        self.reaches(address) || self.reaches(self.on_the_wire(address, None))
    }
}

/// Returns whether an address is valid on only one link.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V6(address) => address.is_unicast_link_local(),
        IpAddr::V4(address) => address.is_link_local(),
    }
}

/// Returns whether packets from this source leave the link.
fn is_routed(source: &SourceAddress) -> bool {
    source.routed && !source.address.is_loopback() && !is_link_local(source.address)
}

/// Returns whether an address is in the on-link prefix of a source, as all link-local IPv6
/// addresses are.
fn is_on_link(source: &SourceAddress, address: IpAddr) -> bool {
    let prefix = u32::from(source.prefix_len);
    match (source.address, address) {
        (IpAddr::V6(source), IpAddr::V6(address)) => {
            common_bits(source.to_bits(), address.to_bits()) >= prefix.min(128)
        }
        (IpAddr::V4(source), IpAddr::V4(address)) => {
            (source.to_bits() ^ address.to_bits()).leading_zeros() >= prefix.min(32)
        }
        _ => false,
    }
}

/// Returns the number of leading bits that two IPv6 addresses share.
pub(crate) const fn common_bits(one: u128, other: u128) -> u32 {
    (one ^ other).leading_zeros()
}
