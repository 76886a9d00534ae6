//! Missing reports (RFC 9260 §7.2.4), counted for each path separately: a chunk is missing only if
//! something arrived that was sent later *on the same path* (split fast retransmit, Iyengar et al.
//! 2006 §3.1). With one path that is the rule of the RFC.

use core::time::Duration;

use super::super::AssociationSender;
use super::super::multipath::{path_for_lost, reports_for, splits_reports};
use super::super::outstanding::{ChunkState, SentChunk};
use super::super::retransmission::RetransmitReason;
use crate::path::AssociationPaths;
use crate::serial::Tsn;

/// The number of missing reports after which a chunk counts as lost.
const MISSING_REPORTS: u8 = 3;

impl AssociationSender {
    /// Counts missing reports, and marks the chunks that have three for retransmission.
    pub(super) fn count_missing(&mut self, now: Duration, paths: &mut AssociationPaths) {
        let highest = self.outstanding.flights().iter().filter_map(|flight| flight.seen.highest);
        let highest = highest.reduce(|one, other| if other.is_after(one) { other } else { one });
        let Some(highest) = highest else { return };
        let mut tsn = self.outstanding.first();
        let mut skip = 0;
        while tsn.is_before(highest) {
            // Skips whole ranges that were reported.
            if let Some(range) = self.reported.arrived.get(skip)
                && tsn.is_at_or_after(range.0)
            {
                tsn = if tsn.is_after(range.1) { tsn } else { range.1.next() };
                skip += 1;
                continue;
            }
            if let Some(chunk) = self.find_lost(tsn, highest) {
                let path = self.outstanding.path_of(chunk.flight);
                let concurrent = self.multipath.as_deref();
                let elsewhere = |path| path_for_lost(concurrent, path, paths);
                let to = path.map_or_else(|| paths.primary(), elsewhere);
                self.lose(tsn, to, RetransmitReason::Loss, now, paths);
                self.begin_recovery(chunk.flight, 1, chunk.packet, now, paths);
            }
            tsn = tsn.next();
        }
    }

    /// Counts a report for a chunk; returns it if there are three.
    fn find_lost(&mut self, tsn: Tsn, highest: Tsn) -> Option<SentChunk> {
        let chunk = *self.outstanding.get(tsn)?;
        if chunk.state != ChunkState::InFlight || chunk.fast_retransmitted {
            return None;
        }
        let flight = self.outstanding.flights().get(usize::from(chunk.flight))?;
        let concurrent = self.multipath.as_deref();
        let highest = if splits_reports(concurrent) { flight.seen.highest? } else { highest };
        if !tsn.is_before(highest) {
            return None;
        }
        let reports = reports_for(concurrent, &self.outstanding, chunk.flight, tsn);
        self.outstanding.report_missing(tsn, reports, MISSING_REPORTS)
    }
}
