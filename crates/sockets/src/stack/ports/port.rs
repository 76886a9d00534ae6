//! One SCTP port, and which other sockets may have its number.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::identifier::AssociationId;

use super::schedule::{PortKey, PortTurn};
use crate::io::{AssocId, SocketDomain, SocketId};

/// Identifies an association at the endpoint of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) struct AssociationKey {
    pub(in crate::stack) port: PortKey,
    pub(in crate::stack) inner: AssociationId,
}

/// What a socket that wants a port claims.
#[derive(Clone, Copy, Debug)]
pub(in crate::stack) struct PortClaim {
    pub(in crate::stack) socket: SocketId,
    /// The port that the socket has already.
    pub(in crate::stack) held: Option<PortKey>,
    /// The address family, which decides what "all addresses" means.
    pub(in crate::stack) domain: SocketDomain,
    pub(in crate::stack) v6_only: bool,
    pub(in crate::stack) sharing: PortSharing,
}

/// Which other sockets may have the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) struct PortSharing {
    /// `SO_REUSEADDR` or `SCTP_REUSE_PORT`: those that have one of them too, until one listens.
    pub(in crate::stack) reuses_address: bool,
    /// `SO_REUSEPORT`: those of this user that have it too. All of them may listen.
    pub(in crate::stack) with_user: Option<u32>,
}

impl PortSharing {
    /// Returns whether both sockets may listen.
    fn listens_beside(self, other: Self) -> bool {
        self.with_user.is_some() && self.with_user == other.with_user
    }
}

/// An SCTP port with its addresses, shared by the socket that was bound to it and the sockets
/// accepted or peeled off from it.
#[derive(Debug)]
pub(super) struct SharedPort {
    pub(super) endpoint: Endpoint,
    pub(super) number: u16,
    /// The addresses that it is bound to; empty if bound to all.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) domain: SocketDomain,
    pub(super) v6_only: bool,
    /// The socket that was bound.
    pub(super) owner: Option<SocketId>,
    pub(super) listens: bool,
    pub(super) sharing: PortSharing,
    pub(super) sockets: BTreeSet<SocketId>,
    pub(super) associations: BTreeMap<AssociationId, AssocId>,
    pub(super) turn: PortTurn,
}

impl SharedPort {
    pub(super) fn new(
        claim: &PortClaim,
        number: u16,
        addresses: Vec<IpAddr>,
        endpoint: Endpoint,
    ) -> Self {
        Self {
            endpoint,
            number,
            addresses,
            domain: claim.domain,
            v6_only: claim.v6_only,
            owner: Some(claim.socket),
            listens: false,
            sharing: claim.sharing,
            sockets: BTreeSet::from([claim.socket]),
            associations: BTreeMap::new(),
            turn: PortTurn::default(),
        }
    }

    /// Returns whether it receives packets to this local address.
    pub(super) fn receives_at(&self, local: Option<IpAddr>) -> bool {
        let Some(local) = local.map(|ip| ip.to_canonical()) else { return true };
        if self.addresses.is_empty() {
            return self.is_of_family(local);
        }
        self.addresses.contains(&local)
    }

    /// Returns whether an address belongs to the families that its socket accepts.
    pub(super) fn is_of_family(&self, address: IpAddr) -> bool {
        is_of(self.domain, self.v6_only, address)
    }

    /// Returns whether it refuses a claim to its number at these addresses; with `listening`, one
    /// of a socket that already has the number and wants to listen.
    pub(super) fn refuses(&self, claim: &PortClaim, addresses: &[IpAddr], listening: bool) -> bool {
        let reuses = claim.sharing.reuses_address && self.sharing.reuses_address;
        let is_refused = self.listens || !(listening || reuses);
        is_refused
            && !claim.sharing.listens_beside(self.sharing)
            && self.overlaps(addresses, claim.domain, claim.v6_only)
    }

    fn overlaps(&self, addresses: &[IpAddr], domain: SocketDomain, v6_only: bool) -> bool {
        match (self.addresses.is_empty(), addresses.is_empty()) {
            (true, true) => self.domain == domain || !(self.v6_only || v6_only),
            (true, false) => addresses.iter().any(|one| self.is_of_family(*one)),
            (false, true) => self.addresses.iter().any(|one| is_of(domain, v6_only, *one)),
            (false, false) => self.shares_address(addresses),
        }
    }

    /// Returns whether it is bound to one of these addresses.
    pub(super) fn shares_address(&self, addresses: &[IpAddr]) -> bool {
        self.addresses.iter().any(|one| addresses.contains(one))
    }

    pub(super) fn is_at_same_addresses(&self, other: &Self) -> bool {
        let is_among = |a: &Self, b: &Self| a.addresses.iter().all(|ip| b.addresses.contains(ip));
        self.domain == other.domain
            && self.addresses.is_empty() == other.addresses.is_empty()
            && is_among(self, other)
            && is_among(other, self)
    }

    /// Returns the bound address to use for sending to `remote`: the one with the longest common
    /// prefix.
    pub(super) fn nearest(&self, remote: IpAddr) -> Option<IpAddr> {
        let usable = self.addresses.iter().filter(|one| one.is_ipv4() == remote.is_ipv4());
        usable.copied().max_by_key(|one| match (one, remote) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => 0,
        })
    }

    /// Returns whether no socket and no association uses it.
    pub(super) fn is_unused(&self) -> bool {
        self.sockets.is_empty() && self.associations.is_empty()
    }
}

fn is_of(domain: SocketDomain, v6_only: bool, address: IpAddr) -> bool {
    match domain {
        SocketDomain::Inet => address.is_ipv4(),
        SocketDomain::Inet6 => address.is_ipv6() || !v6_only,
    }
}
