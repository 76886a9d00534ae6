//! Lookup of the association of a packet (RFC 9260 §8.5, §1.3): by our verification tag, or by the
//! peer's address and the ports.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque, btree_map},
    vec::Vec,
};
use core::{cmp::Ordering, net::SocketAddr, time::Duration};

use super::limit::network;
use crate::association::Association;
use crate::identifier::AssociationId;
use crate::io::PeerIdentity;

/// The bits of an [`AssociationId`] that identify the slot; the higher ones count its uses.
const SLOT_BITS: u32 = 32;

/// Addresses and ports of an association, as seen from here. The port of the address is that of
/// the UDP encapsulation: behind one address translator there may be many hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerPorts {
    pub(crate) remote: SocketAddr,
    pub(crate) remote_port: u16,
    pub(crate) local_port: u16,
    /// Who it is according to the layer below: two hosts behind one address are two peers.
    pub(crate) identity: Option<PeerIdentity>,
}

/// A [`PeerPorts`] in numbers, which compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PeerKey {
    address: u128,
    /// Family, scope, UDP port and both SCTP ports.
    rest: u128,
    identity: Option<PeerIdentity>,
}

impl Ord for PeerKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.address != other.address {
            return self.address.cmp(&other.address);
        }
        if self.rest != other.rest {
            return self.rest.cmp(&other.rest);
        }
        self.identity.cmp(&other.identity)
    }
}

impl PartialOrd for PeerKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PeerPorts {
    fn key(&self) -> PeerKey {
        let (address, scope) = match self.remote {
            SocketAddr::V4(v4) => (u128::from(v4.ip().to_bits()), 1 << 32),
            SocketAddr::V6(v6) => (v6.ip().to_bits(), u64::from(v6.scope_id())),
        };
        let ports = [self.remote.port(), self.remote_port, self.local_port];
        let rest = ports.iter().fold(u128::from(scope), |sum, port| sum << 16 | u128::from(*port));
        PeerKey { address, rest, identity: self.identity }
    }
}

/// One association and what the endpoint keeps of it.
#[derive(Debug)]
pub(crate) struct RegistryEntry {
    pub(crate) association: Box<Association>,
    /// When its timer is scheduled.
    pub(crate) scheduled: Option<Duration>,
    /// Whether it is in the list of those that may have output.
    pub(crate) pending: bool,
    /// Whether it had no packet when last polled, and has not changed since.
    pub(crate) drained: bool,
    /// The tag by which it is indexed.
    tag: u32,
    /// The addresses by which it is indexed.
    peers: Vec<PeerKey>,
    /// The network that it was opened from or to.
    pub(super) source: u64,
}

impl RegistryEntry {
    /// Marks it as possibly having output, in the list of those that may.
    #[inline]
    pub(super) fn mark_pending(&mut self, slot: u32, pending: &mut VecDeque<u32>) {
        self.drained = false;
        if !self.pending {
            self.pending = true;
            pending.push_back(slot);
        }
    }
}

#[derive(Debug, Default)]
struct RegistrySlot {
    uses: u32,
    entry: Option<RegistryEntry>,
}

/// All associations of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct AssociationRegistry {
    slots: Vec<RegistrySlot>,
    free: Vec<u32>,
    by_tag: BTreeMap<u32, u32>,
    by_peer: BTreeMap<PeerKey, u32>,
    /// The number of associations of each source.
    by_source: BTreeMap<u64, usize>,
    last: Option<(u32, u32)>,
}

impl AssociationRegistry {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of associations of a source.
    pub(super) fn of_source(&self, source: u64) -> usize {
        self.by_source.get(&source).copied().unwrap_or(0)
    }

    /// Inserts the association that `make` creates with its new identifier.
    pub(crate) fn insert(
        &mut self,
        make: impl FnOnce(AssociationId) -> Box<Association>,
    ) -> (u32, AssociationId) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(RegistrySlot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot_entry = &mut self.slots[slot as usize];
        let id = AssociationId(u64::from(slot_entry.uses) << SLOT_BITS | u64::from(slot));
        let association = make(id);
        let tag = association.identity().local_tag().0;
        let source = association.paths().primary_address().map_or(0, network);
        *self.by_source.entry(source).or_default() += 1;
        slot_entry.entry = Some(RegistryEntry {
            association,
            scheduled: None,
            pending: false,
            drained: false,
            tag,
            peers: Vec::new(),
            source,
        });
        self.by_tag.insert(tag, slot);
        self.index(slot);
        (slot, id)
    }

    /// Removes an association; its identifier is never reused.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<RegistryEntry> {
        let slot_entry = self.slots.get_mut(slot as usize)?;
        let entry = slot_entry.entry.take()?;
        slot_entry.uses = slot_entry.uses.wrapping_add(1);
        self.free.push(slot);
        self.by_tag.remove(&entry.tag);
        for peer in &entry.peers {
            self.by_peer.remove(peer);
        }
        if let btree_map::Entry::Occupied(mut count) = self.by_source.entry(entry.source) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.last = None;
        Some(entry)
    }

    pub(crate) fn slot(&self, id: AssociationId) -> Option<u32> {
        let slot = (id.0 & u64::from(u32::MAX)) as u32;
        let slot_entry = self.slots.get(slot as usize)?;
        (slot_entry.entry.is_some() && u64::from(slot_entry.uses) == id.0 >> SLOT_BITS)
            .then_some(slot)
    }

    /// Returns the identifier of the association in a slot.
    pub(crate) fn id(&self, slot: u32) -> Option<AssociationId> {
        let slot_entry =
            self.slots.get(slot as usize).filter(|slot_entry| slot_entry.entry.is_some())?;
        Some(AssociationId(u64::from(slot_entry.uses) << SLOT_BITS | u64::from(slot)))
    }

    pub(crate) fn entry(&self, slot: u32) -> Option<&RegistryEntry> {
        self.slots.get(slot as usize)?.entry.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, slot: u32) -> Option<&mut RegistryEntry> {
        self.slots.get_mut(slot as usize)?.entry.as_mut()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.slots
            .iter()
            .zip(0u64..)
            .filter(|(slot, _)| slot.entry.is_some())
            .map(|(slot, index)| AssociationId(u64::from(slot.uses) << SLOT_BITS | index))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().zip(0u32..).filter(|(slot, _)| slot.entry.is_some()).map(|(_, slot)| slot)
    }

    /// Returns the association with this tag. Packets come in runs, so the last result is tried
    /// first.
    pub(crate) fn by_tag(&mut self, tag: u32) -> Option<u32> {
        if let Some((known, slot)) = self.last
            && known == tag
        {
            return Some(slot);
        }
        let slot = *self.by_tag.get(&tag)?;
        self.last = Some((tag, slot));
        Some(slot)
    }

    pub(crate) fn has_tag(&self, tag: u32) -> bool {
        self.by_tag.contains_key(&tag)
    }

    pub(crate) fn by_peer(&self, peer: &PeerPorts) -> Option<u32> {
        if let Some(slot) = self.by_peer.get(&peer.key()) {
            return Some(*slot);
        }
        // One that waits for an INIT ACK does not know yet who its peer is.
        peer.identity?;
        self.by_peer.get(&PeerPorts { identity: None, ..*peer }.key()).copied()
    }

    /// Returns whether an association has this address and these ports, whoever its peer is.
    pub(crate) fn is_taken(&self, peer: &PeerPorts) -> bool {
        let least = PeerPorts { identity: None, ..*peer }.key();
        let next = self.by_peer.range(least..).next();
        next.is_some_and(|(key, _)| (key.address, key.rest) == (least.address, least.rest))
    }

    /// Returns the associations that have a path to this address.
    pub(crate) fn associations_to(&self, remote: SocketAddr) -> Vec<u32> {
        let from = PeerPorts { remote, remote_port: 0, local_port: 0, identity: None };
        let most = Some(PeerIdentity([u8::MAX; 16]));
        let to = PeerPorts { remote, remote_port: u16::MAX, local_port: u16::MAX, identity: most };
        let mut slots: Vec<u32> =
            self.by_peer.range(from.key()..=to.key()).map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Updates the indexes after the association's tag or addresses changed. An address that
    /// another association already has stays with that one.
    pub(crate) fn index(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize).and_then(|s| s.entry.as_mut()) else {
            return;
        };
        let tag = entry.association.identity().local_tag().0;
        if entry.tag != tag {
            self.by_tag.remove(&entry.tag);
            self.by_tag.insert(tag, slot);
            entry.tag = tag;
            self.last = None;
        }
        if entry.association.peers().map(|peer| peer.key()).eq(entry.peers.iter().copied()) {
            return;
        }
        for peer in entry.peers.drain(..) {
            self.by_peer.remove(&peer);
        }
        // Most have one path for life, and a vector that grows begins with room for four.
        entry.peers.reserve_exact(entry.association.peers().count());
        for peer in entry.association.peers().map(|peer| peer.key()) {
            if let btree_map::Entry::Vacant(slot_entry) = self.by_peer.entry(peer) {
                slot_entry.insert(slot);
                entry.peers.push(peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PeerPorts;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_part_of_a_peer_identifies_it() {
        let peer = |remote: &str, remote_port, local_port| PeerPorts {
            remote: remote.parse().unwrap(),
            remote_port,
            local_port,
            identity: None,
        };
        let all = [
            peer("192.0.2.1:9899", 7, 8),
            peer("192.0.2.1:9899", 8, 7),
            peer("192.0.2.1:9898", 7, 8),
            peer("192.0.2.2:9899", 7, 8),
            peer("[::192.0.2.1]:9899", 7, 8),
            peer("[fe80::1%1]:9899", 7, 8),
            peer("[fe80::1%2]:9899", 7, 8),
        ];
        let keys: BTreeSet<_> = all.iter().map(PeerPorts::key).collect();
        assert_eq!(keys.len(), all.len());
    }
}
