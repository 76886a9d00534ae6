//! SACK and NR-SACK chunks (RFC 9260 §3.3.4, draft-tuexen-tsvwg-sctp-multipath §3).
//!
//! An NR-SACK says of what arrived beyond gaps which part will never be asked for again, so that the
//! sender can forget it: what the application has, or all of it, as this receiver drops nothing that
//! it has reported ([`NrSackPolicy`]). The other part is in the first list of blocks, so the two do
//! not overlap.

use alloc::vec::Vec;
use core::time::Duration;

use super::acknowledgement::SackPolicy;
use super::ranges::{Range, difference};
use super::{Position, Receiver};
use crate::config::NrSackPolicy;
use crate::identifier::PathId;
use crate::path::Paths;
use crate::wire::{EncodeChunk, GapBlock, PacketWriter, SackBuilder};

fn put_blocks(
    blocks: &mut Vec<GapBlock>,
    cumulative: Position,
    ranges: impl Iterator<Item = Range>,
) {
    blocks.clear();
    let offset = |position: Position| u16::try_from(position.saturating_sub(cumulative));
    blocks.extend(ranges.map_while(|range| {
        let start = offset(range.first).ok()?;
        Some(GapBlock { start, end: offset(range.last).unwrap_or(u16::MAX) })
    }));
}

impl Receiver {
    /// Whether a SACK has to go now.
    #[inline]
    #[must_use]
    pub fn sack_wanted(&self, now: Duration) -> bool {
        self.acknowledgement.is_wanted(now)
    }

    /// Whether there is something that a SACK would tell; it may wait, but can go with a packet
    /// that goes anyway.
    #[must_use]
    pub fn sack_pending(&self) -> bool {
        self.acknowledgement.is_pending()
    }

    /// The path to send the SACK on.
    #[must_use]
    pub fn sack_path(&self, now: Duration, paths: &Paths) -> Option<PathId> {
        self.return_path.choose(now, paths, !self.tracking.duplicates().is_empty())
    }

    /// The SACK that was written goes on this path.
    pub fn sack_goes_on(&mut self, path: PathId) {
        self.return_path.on_sack(path);
    }

    /// When a SACK that may wait has to go.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.acknowledgement.deadline()
    }

    /// When to acknowledge.
    #[must_use]
    pub fn sack_policy(&self) -> SackPolicy {
        self.acknowledgement.policy
    }

    /// Changes when to acknowledge.
    pub fn set_sack_policy(&mut self, policy: SackPolicy) {
        self.acknowledgement.policy = policy;
    }

    /// From now on acknowledges every packet at once: a SHUTDOWN was sent (RFC 9260 §9.2).
    pub fn acknowledge_every_packet(&mut self) {
        self.acknowledgement.want_always();
    }

    /// Asks for a SACK with the next packets.
    pub fn want_sack(&mut self) {
        self.acknowledgement.want_now();
    }

    /// Writes a SACK or an NR-SACK. It is not written if it does not fit in whole, unless the
    /// packet is empty: then what is furthest ahead is left out.
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
        if !packet.put(&sack.fitted_to(room)) {
            return false;
        }
        self.window.advertised();
        self.tracking.clear_duplicates();
        self.acknowledgement.sent();
        true
    }
}
