//! SACK and NR-SACK chunks (RFC 9260 §3.3.4, draft-tuexen-tsvwg-sctp-multipath §3).
//!
//! An NR-SACK states which of the data beyond gaps is non-renegable, so that the sender can release
//! it: what the application has received, or all of it, as this receiver drops nothing that it has
//! reported ([`NrSackPolicy`]). The rest is in the first list of blocks, so the two do not overlap.

use alloc::vec::Vec;
use core::time::Duration;

use super::acknowledgement::SackPolicy;
use super::ranges::{PositionRange, difference};
use super::return_path::FULL_PACKET;
use super::{AssociationReceiver, TsnPosition};
use crate::config::NrSackPolicy;
use crate::identifier::PathId;
use crate::path::AssociationPaths;
use crate::wire::{EncodeChunk, GapBlock, PacketWriter, SackBuilder};

/// The bytes of the headers below a SACK that is sent on its own: IP, UDP and SCTP.
const HEADERS: usize = 20 + 8 + 12;

/// The bytes of a SACK without blocks.
const SACK: usize = 16;

fn put_blocks(
    blocks: &mut Vec<GapBlock>,
    cumulative: TsnPosition,
    ranges: impl Iterator<Item = PositionRange>,
) {
    blocks.clear();
    let offset = |position: TsnPosition| u16::try_from(position.saturating_sub(cumulative));
    blocks.extend(ranges.map_while(|range| {
        let start = offset(range.first).ok()?;
        Some(GapBlock { start, end: offset(range.last).unwrap_or(u16::MAX) })
    }));
}

impl AssociationReceiver {
    /// Returns whether a SACK has to be sent now.
    #[inline]
    #[must_use]
    pub fn sack_wanted(&self, now: Duration) -> bool {
        self.acknowledgement.is_wanted(now)
    }

    /// Returns whether there is something to acknowledge, which may be delayed or bundled with
    /// another packet.
    #[must_use]
    pub fn sack_pending(&self) -> bool {
        self.acknowledgement.is_pending()
    }

    /// Returns the path to send the SACK on.
    #[must_use]
    pub fn sack_path(&self, now: Duration, paths: &AssociationPaths) -> Option<PathId> {
        self.return_path.choose(now, paths, !self.tracking.duplicates().is_empty())
    }

    /// Records the path of the SACK that was written.
    pub fn sack_sent_on(&mut self, path: PathId) {
        self.return_path.on_sack(path, self.sack_packet_len());
    }

    /// Returns the length of a packet with nothing but a SACK that is written now, in bytes.
    pub(super) fn sack_packet_len(&self) -> usize {
        (HEADERS + SACK + 4 * self.tracking.above().len()).min(FULL_PACKET)
    }

    /// Returns when a delayed SACK has to be sent.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.acknowledgement.deadline()
    }

    /// Returns when SACKs are sent.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn sack_policy(&self) -> SackPolicy {
        self.acknowledgement.policy
    }

    /// Changes when SACKs are sent.
    #[cfg(any(test, feature = "internals"))]
    pub fn set_sack_policy(&mut self, policy: SackPolicy) {
        self.acknowledgement.policy = policy;
    }

    /// Acknowledges every packet immediately from now on, as a SHUTDOWN was sent (RFC 9260 §9.2).
    pub fn acknowledge_every_packet(&mut self) {
        self.acknowledgement.request_always();
    }

    /// Requests an immediate SACK.
    #[cfg(any(test, feature = "internals"))]
    pub fn request_sack(&mut self) {
        self.acknowledgement.request_now();
    }

    /// Writes a SACK or an NR-SACK. Returns false if it does not fit, unless the packet is empty:
    /// then the blocks furthest ahead are left out.
    pub fn write_sack(&mut self, packet: &mut PacketWriter<'_>) -> bool {
        let cumulative = self.tracking.cumulative();
        if self.nr_sack && self.nr_policy == NrSackPolicy::AtArrival {
            self.blocks.clear();
            put_blocks(&mut self.nr_blocks, cumulative, self.tracking.above().iter());
        } else if self.nr_sack && !self.tracking.delivered().is_empty() {
            let (above, delivered) = (self.tracking.above(), self.tracking.delivered());
            put_blocks(&mut self.blocks, cumulative, difference(above, delivered));
            put_blocks(&mut self.nr_blocks, cumulative, delivered.iter());
        } else {
            self.nr_blocks.clear();
            put_blocks(&mut self.blocks, cumulative, self.tracking.above().iter());
        }
        let sack = SackBuilder {
            cumulative_tsn: self.cumulative_tsn(),
            a_rwnd: self.window.would_advertise(),
            gap_blocks: &self.blocks,
            nr_gap_blocks: &self.nr_blocks,
            duplicates: &[],
            dac_count: self.acknowledgement.count(),
            is_nr: self.nr_sack,
        };
        let room = packet.room();
        if sack.encoded_len() > room && !packet.is_empty() {
            return false;
        }
        let sack = SackBuilder { duplicates: self.tracking.duplicates(), ..sack };
        if !packet.append(&sack.fitted_to(room)) {
            return false;
        }
        self.window.advertised();
        self.tracking.clear_duplicates();
        self.acknowledgement.sent();
        true
    }
}
