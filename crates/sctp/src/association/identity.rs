//! What the packets of an association are recognized by: ports, verification tags (RFC 9260 §8.5),
//! and who the peer is according to the layer below.

use super::PacketArrival;
use crate::endpoint::cookie::CookieContents;
use crate::identifier::VerificationTag;
use crate::io::PeerIdentity;
use crate::wire::{ChunkType, CommonHeader, PACKET_HEADER};

/// The bytes of a packet that every ICMP message quotes: the ports and the tag.
const QUOTED: usize = 8;

/// The offset of the initiate tag in a packet with an INIT (§3.3.2).
const INITIATE_TAG_AT: usize = PACKET_HEADER + 4;

/// The ports and tags of both sides, and the peer's identity.
#[derive(Debug)]
pub(crate) struct AssociationIdentity {
    local_port: u16,
    remote_port: u16,
    local_tag: VerificationTag,
    peer_tag: VerificationTag,
    /// `None` before the INIT ACK of the peer, and if the layer below does not tell.
    peer: Option<PeerIdentity>,
    /// Whether the tag or the addresses by which the association is looked up have changed.
    lookup_changed: bool,
}

impl AssociationIdentity {
    pub(super) const fn new(
        local_port: u16,
        remote_port: u16,
        local_tag: VerificationTag,
        peer_tag: VerificationTag,
    ) -> Self {
        let (peer, lookup_changed) = (None, false);
        Self { local_port, remote_port, local_tag, peer_tag, peer, lookup_changed }
    }

    pub(crate) const fn local_port(&self) -> u16 {
        self.local_port
    }

    pub(crate) const fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// Returns the tag that packets for this association carry.
    pub(crate) const fn local_tag(&self) -> VerificationTag {
        self.local_tag
    }

    /// Returns the tag that packets to the peer carry.
    pub(super) const fn peer_tag(&self) -> VerificationTag {
        self.peer_tag
    }

    pub(crate) const fn peer(&self) -> Option<PeerIdentity> {
        self.peer
    }

    /// Returns the tags by which the peer shows in a restart that it had this association (§5.2.2).
    pub(super) const fn tie_tags(&self) -> (u32, u32) {
        (self.local_tag.0, self.peer_tag.0)
    }

    /// Replaces our tag, after a restart of the peer.
    pub(super) fn set_local_tag(&mut self, tag: VerificationTag) {
        self.local_tag = tag;
        self.lookup_changed = true;
    }

    pub(super) fn set_peer_tag(&mut self, tag: VerificationTag) {
        self.peer_tag = tag;
    }

    /// Records who the peer is: the sender of a packet of the handshake.
    pub(super) fn set_peer(&mut self, arrival: &PacketArrival) {
        self.peer = arrival.peer;
    }

    /// Records that the addresses by which the association is looked up have changed.
    pub(super) fn addresses_changed(&mut self) {
        self.lookup_changed = true;
    }

    /// Returns whether the tag or the addresses have changed since the last call.
    pub(super) fn take_lookup_changed(&mut self) -> bool {
        core::mem::take(&mut self.lookup_changed)
    }

    /// Returns whether packets between these ports belong to the association.
    pub(crate) fn has_ports(&self, local: u16, remote: u16) -> bool {
        self.local_port == local && self.remote_port == remote
    }

    /// Returns whether both tags of a cookie match this association.
    pub(crate) fn has_tags_of(&self, cookie: &CookieContents) -> bool {
        cookie.own.tag == self.local_tag && cookie.peer.tag == self.peer_tag
    }

    /// Returns whether an ABORT or SHUTDOWN COMPLETE with the T bit and this tag is the peer's
    /// (§8.5.1 B, C): the tag is then the peer's own.
    pub(super) fn is_reflected(&self, tag: VerificationTag) -> bool {
        self.peer_tag != VerificationTag::ZERO && tag == self.peer_tag
    }

    /// Returns whether a packet that an ICMP message quotes is one of ours (RFC 9260 §10, ICMP 5
    /// and 6): its ports, and the peer's tag, or of an INIT ours.
    pub(crate) fn has_sent(&self, quoted: &[u8]) -> bool {
        let Some(&[s0, s1, d0, d1, t0, t1, t2, t3]) = quoted.first_chunk::<QUOTED>() else {
            return false;
        };
        let ours = u16::from_be_bytes([s0, s1]);
        let theirs = u16::from_be_bytes([d0, d1]);
        let tag = VerificationTag(u32::from_be_bytes([t0, t1, t2, t3]));
        if !self.has_ports(ours, theirs) {
            return false;
        }
        if tag != VerificationTag::ZERO {
            return tag == self.peer_tag;
        }
        let initiate_tag = quoted.get(INITIATE_TAG_AT..).and_then(<[u8]>::first_chunk);
        quoted.get(PACKET_HEADER) == Some(&ChunkType::INIT.0)
            && initiate_tag.is_some_and(|tag| u32::from_be_bytes(*tag) == self.local_tag.0)
    }

    /// Returns the header of a packet to the peer with this tag.
    pub(super) const fn header(&self, tag: VerificationTag) -> CommonHeader {
        CommonHeader { source_port: self.local_port, destination_port: self.remote_port, tag }
    }

    /// Returns the header of a packet of the association.
    pub(super) const fn header_to_peer(&self) -> CommonHeader {
        self.header(self.peer_tag)
    }
}
