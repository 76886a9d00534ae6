//! Verification tags (RFC 9260 §8.5): which packets belong to an association although their tag is
//! not ours, and which do not although it is.

use core::net::{IpAddr, SocketAddr};

use super::state::AssociationPhase;
use super::{Association, PacketArrival};
use crate::counters::EndpointCounters;
use crate::identifier::VerificationTag;
use crate::path::{Path, PathState};
use crate::wire::{Chunk, ChunkType, PACKET_HEADER};

/// The bytes of a packet that every ICMP message quotes: the ports and the tag.
const QUOTED: usize = 8;

/// The offset of the initiate tag in a packet with an INIT (§3.3.2).
const INITIATE_TAG_AT: usize = PACKET_HEADER + 4;

impl Association {
    /// Returns whether an ABORT or SHUTDOWN COMPLETE with this tag is the peer's (§8.5.1 B, C): the
    /// tag is ours without the T bit and the peer's with it.
    pub(crate) fn is_authentic(&self, tag: VerificationTag, reflected: bool) -> bool {
        if reflected {
            self.peer_tag != VerificationTag::ZERO && tag == self.peer_tag
        } else {
            tag == self.local_tag
        }
    }

    /// Handles a packet from the peer's address whose tag is not ours. It is dropped, unless it
    /// contains a reflected ABORT or SHUTDOWN COMPLETE, or a SHUTDOWN ACK for an association that
    /// no longer exists.
    pub(crate) fn handle_foreign_tag(
        &mut self,
        arrival: &PacketArrival,
        tag: VerificationTag,
        first: Option<Chunk>,
        counters: &mut EndpointCounters,
    ) {
        match first {
            Some(Chunk::Abort(abort)) if abort.reflected && self.is_authentic(tag, true) => {
                if self.is_being_deleted(arrival.local) {
                    counters.unexpected_chunks += 1;
                } else if !self.concerns_unconfirmed_path(arrival.remote, arrival.local) {
                    self.handle_abort(&abort);
                }
            }
            Some(Chunk::ShutdownComplete { reflected: true }) if self.is_authentic(tag, true) => {
                self.handle_shutdown_complete(counters);
            }
            Some(Chunk::ShutdownAck)
                if matches!(
                    self.state,
                    AssociationPhase::CookieWait(_) | AssociationPhase::CookieEchoed(_)
                ) =>
            {
                let path = self.paths.by_remote(arrival.remote, arrival.local);
                let path = path.unwrap_or(self.paths.primary());
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.queues.push_standalone(path, tag, complete);
            }
            _ => counters.bad_tags += 1,
        }
    }

    /// Returns whether a refusal concerns a path that was never confirmed, while others were. If
    /// that path alone goes through a translator, as for IPv4 next to IPv6, the peer does not
    /// recognize the source address of our probe and treats it as out of the blue (§8.4), although
    /// it has the association; and an address that the peer listed may belong to another host that
    /// does not support SCTP.
    pub(super) fn concerns_unconfirmed_path(
        &self,
        remote: SocketAddr,
        local: Option<IpAddr>,
    ) -> bool {
        let path = self.paths.by_remote(remote, local);
        let path = path.and_then(|path| self.paths.get(path));
        let is_confirmed = |path: &Path| path.state() != PathState::Unconfirmed;
        path.is_some_and(|path| !is_confirmed(path)) && self.paths.iter().any(is_confirmed)
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
}
