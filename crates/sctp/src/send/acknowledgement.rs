//! SACK and NR-SACK (RFC 9260 §6.2.1).

use core::time::Duration;

use super::AssociationSender;
use super::gap_blocks::{self, TsnRange};
use super::outstanding::{ChunkState, PathFlight, SackFindings, SentChunk};
use crate::config::RttSampling;
use crate::congestion::PacketNumber;
use crate::counters::EndpointCounters;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, PathProgress};
use crate::serial::Tsn;
use crate::wire::{SackBuilder, SackChunk};

/// The result of processing a SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackOutcome {
    /// Whether it was accepted: neither outdated nor invalid.
    pub accepted: bool,
    /// Whether the cumulative TSN advanced.
    pub advanced: bool,
    /// Bytes of user data acknowledged for the first time.
    pub acknowledged: usize,
}

/// Whether the peer has reneged on gap ack blocks (RFC 9260 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerReneging {
    /// No, or only in one SACK, which may have been overtaken by another one.
    None,
    /// In two consecutive SACKs.
    Repeated,
    /// The TSN after the cumulative TSN ack is one that was reported: no reordering of SACKs
    /// explains that.
    Certain,
}

/// Acknowledged chunks that were sent in one packet, collected so that the path is updated once.
#[derive(Debug)]
struct AcknowledgedBatch {
    now: Duration,
    flight: u8,
    packet: PacketNumber,
    once: bool,
    /// Whether the chunks were previously sent on another path.
    moved: bool,
    /// Whether the cumulative TSN covers the chunks.
    cumulative: bool,
    first: Tsn,
    last: Tsn,
    bytes: usize,
    /// Bytes of all batches so far.
    total: usize,
}

impl AcknowledgedBatch {
    fn new(now: Duration) -> Self {
        Self {
            now,
            flight: 0,
            packet: PacketNumber(0),
            once: true,
            moved: false,
            cumulative: true,
            first: Tsn(0),
            last: Tsn(0),
            bytes: 0,
            total: 0,
        }
    }

    /// Adds a chunk that was in flight.
    #[inline]
    fn add(
        &mut self,
        tsn: Tsn,
        chunk: &SentChunk,
        flights: &mut [PathFlight],
        paths: &mut AssociationPaths,
    ) {
        let once = chunk.transmissions == 1 && !chunk.reneged;
        let same = self.flight == chunk.flight && self.packet == chunk.packet;
        if self.bytes == 0 || !same || self.once != once || self.moved != chunk.moved {
            self.flush(flights, paths);
            (self.flight, self.packet) = (chunk.flight, chunk.packet);
            (self.once, self.moved) = (once, chunk.moved);
            self.first = tsn;
        }
        self.last = tsn;
        self.bytes += usize::from(chunk.length);
    }

    /// Updates the path.
    fn flush(&mut self, flights: &mut [PathFlight], paths: &mut AssociationPaths) {
        let bytes = core::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        let Some(flight) = flights.get_mut(usize::from(self.flight)) else { return };
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        path.on_chunk_acknowledged(self.now, self.packet, bytes);
        let seen = &mut flight.seen;
        seen.acknowledged = true;
        seen.works |= !self.moved;
        seen.cumulative |= self.cumulative;
        if seen.highest.is_none_or(|highest| self.last.is_after(highest)) {
            seen.highest = Some(self.last);
        }
        if self.once {
            seen.newest_sent_once = Some(newer(seen.newest_sent_once, self.packet));
            let passed = flight.highest_acknowledged;
            seen.late |= passed.is_some_and(|highest| self.first.is_before(highest));
        } else if flight.is_too_soon(self.packet, self.now, path.rto.min_rtt()) {
            // The acknowledgement is for the first transmission.
            return;
        }
        flight.seen.newest = Some(newer(flight.seen.newest, self.packet));
    }
}

/// Returns the packet that was sent later.
fn newer(known: Option<PacketNumber>, other: PacketNumber) -> PacketNumber {
    match known {
        Some(known) if !is_newer(other, known) => known,
        _ => other,
    }
}

/// Returns whether `one` was sent after `other`.
pub(super) fn is_newer(one: PacketNumber, other: PacketNumber) -> bool {
    (one.0.wrapping_sub(other.0) as i32) > 0
}

impl AssociationSender {
    /// Processes a SACK or NR-SACK that arrived on this path. Marks the paths that delivered
    /// something as working.
    pub fn handle_sack(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        arrived_on: PathId,
        paths: &mut AssociationPaths,
        counters: &mut EndpointCounters,
    ) -> SackOutcome {
        let cumulative = sack.cumulative_tsn;
        if cumulative.is_before(self.cumulative_tsn_acked()) {
            return SackOutcome::default();
        }
        let highest = self.next_tsn().previous();
        if cumulative.is_after(highest) || !gap_blocks::are_plausible(sack, highest) {
            counters.bad_sacks += 1;
            return SackOutcome::default();
        }
        for flight in self.outstanding.flights_mut() {
            flight.seen = SackFindings::default();
        }
        if let Some(concurrent) = &mut self.multipath {
            concurrent.dac_count = sack.dac_count;
            self.note_event();
            self.outstanding.update_points();
        }
        let advanced = cumulative != self.cumulative_tsn_acked();
        let mut batch = AcknowledgedBatch::new(now);
        self.acknowledge_up_to(cumulative, &mut batch, paths);
        if !sack.gap_blocks().is_empty()
            || !sack.nr_gap_blocks().is_empty()
            || !self.reported.is_empty()
        {
            self.acknowledge_gaps(sack, &mut batch, paths);
        }
        batch.flush(self.outstanding.flights_mut(), paths);
        self.outstanding.note_duplicates(now, sack, paths);
        self.finish_sack(now, sack, advanced, arrived_on, paths);
        self.check();
        SackOutcome { accepted: true, advanced, acknowledged: batch.total }
    }

    /// Processes the acknowledgement in a SHUTDOWN (RFC 9260 §9.2).
    pub(crate) fn handle_cumulative_tsn(
        &mut self,
        now: Duration,
        cumulative_tsn: Tsn,
        paths: &mut AssociationPaths,
        counters: &mut EndpointCounters,
    ) {
        let a_rwnd = u32::try_from(self.peer_window() + self.in_flight());
        let sack = SackBuilder {
            cumulative_tsn,
            a_rwnd: a_rwnd.unwrap_or(u32::MAX),
            ..SackBuilder::default()
        };
        // It does not measure the return trip of another path.
        let path = paths.primary();
        self.handle_sack(now, &sack.build(), path, paths, counters);
    }

    /// Acknowledges the chunks that the cumulative TSN ack covers.
    fn acknowledge_up_to(
        &mut self,
        cumulative: Tsn,
        batch: &mut AcknowledgedBatch,
        paths: &mut AssociationPaths,
    ) {
        let mut skipped = false;
        while self.outstanding.first().is_at_or_before(cumulative) {
            let tsn = self.outstanding.first();
            let Some(chunk) = self.outstanding.pop() else { break };
            skipped |= chunk.state == ChunkState::Abandoned;
            self.on_chunk_arrived(tsn, &chunk, batch, paths);
            let queued_bytes = if chunk.released { 0 } else { usize::from(chunk.length) };
            self.queue.on_acknowledged(chunk.message, queued_bytes);
        }
        // RFC 3758 §3.5, C5: "If a FORWARD TSN chunk is sent, the sender MUST ensure that at least
        // one T3-rtx timer is running." Its answer ends what an expiry of that timer began, as one
        // to DATA does.
        if skipped && let Some(path) = self.forwarding.sent_on().and_then(|id| paths.get_mut(id)) {
            path.on_forward_tsn_acknowledged();
        }
    }

    /// Handles the arrival of a chunk, given its previous state: updates its path.
    #[inline(always)]
    fn on_chunk_arrived(
        &mut self,
        tsn: Tsn,
        before: &SentChunk,
        batch: &mut AcknowledgedBatch,
        paths: &mut AssociationPaths,
    ) {
        self.outstanding.on_point_acknowledged(tsn, before);
        match before.state {
            ChunkState::InFlight => batch.add(tsn, before, self.outstanding.flights_mut(), paths),
            ChunkState::Lost => self.outstanding.note_late_arrival(batch.now, tsn, before, paths),
            ChunkState::Acknowledged | ChunkState::Abandoned => {}
        }
    }

    /// Processes the gap ack blocks, and reneging on earlier ones.
    fn acknowledge_gaps(
        &mut self,
        sack: &SackChunk,
        batch: &mut AcknowledgedBatch,
        paths: &mut AssociationPaths,
    ) {
        batch.flush(self.outstanding.flights_mut(), paths);
        batch.cumulative = false;
        self.reported.trim(sack.cumulative_tsn);
        let mut report = core::mem::take(&mut self.reported.spare);
        let known = core::mem::take(&mut self.reported.arrived);
        gap_blocks::collect(sack, &mut report);
        gap_blocks::difference(&report, &known, |first, last| {
            self.gap_acknowledge(first, last, batch, paths);
        });
        match self.detect_reneging(&report, &known) {
            PeerReneging::None if self.reported.suspected => merge(&mut report, &known),
            PeerReneging::None => {}
            PeerReneging::Repeated => self.renege(batch.now, &report, &known, true, paths),
            PeerReneging::Certain => {
                let all = (self.outstanding.first(), self.outstanding.last());
                self.renege(batch.now, &report, &[all], false, paths);
            }
        }
        (self.reported.arrived, self.reported.spare) = (report, known);
        if sack.is_nr {
            self.release_non_renegable(sack);
        }
    }

    fn gap_acknowledge(
        &mut self,
        first: Tsn,
        last: Tsn,
        batch: &mut AcknowledgedBatch,
        paths: &mut AssociationPaths,
    ) {
        for offset in 0..=last.distance_from(first) {
            let tsn = first.plus(offset);
            let Some(before) = self.outstanding.acknowledge(tsn) else { return };
            self.on_chunk_arrived(tsn, &before, batch, paths);
        }
    }

    /// Whether the peer denies what it reported earlier.
    fn detect_reneging(&mut self, report: &[TsnRange], known: &[TsnRange]) -> PeerReneging {
        let limit = gap_blocks::last_conclusive(report);
        let mut missing = false;
        gap_blocks::difference(known, report, |first, _| {
            missing |= limit.is_none_or(|limit| first.is_at_or_before(limit));
        });
        let suspected = core::mem::replace(&mut self.reported.suspected, missing);
        let next = self.outstanding.get(self.outstanding.first());
        if next.is_some_and(|chunk| chunk.state == ChunkState::Acknowledged) {
            PeerReneging::Certain
        } else if self.multipath.is_some() {
            // SACKs that return on several paths overtake each other all the time.
            PeerReneging::None
        } else if suspected && missing {
            PeerReneging::Repeated
        } else {
            PeerReneging::None
        }
    }

    /// Marks the chunks that the peer dropped as in flight again. `trust_non_renegable` excludes those that it
    /// reported as non-renegable (NR-SACK): such reports have overtaken each other.
    fn renege(
        &mut self,
        now: Duration,
        report: &[TsnRange],
        known: &[TsnRange],
        trust_non_renegable: bool,
        paths: &mut AssociationPaths,
    ) {
        self.reported.suspected = false;
        gap_blocks::difference(known, report, |first, last| {
            for offset in 0..=last.distance_from(first) {
                let tsn = first.plus(offset);
                if trust_non_renegable
                    && self.outstanding.get(tsn).is_some_and(|chunk| chunk.released)
                {
                    continue;
                }
                self.outstanding.on_reneged(now, tsn, paths);
            }
        });
    }

    /// Releases the data that the peer has reported as non-renegable (NR-SACK).
    fn release_non_renegable(&mut self, sack: &SackChunk) {
        let mut non_renegable = core::mem::take(&mut self.reported.spare);
        gap_blocks::collect_non_renegable(sack, &mut non_renegable);
        let known = core::mem::take(&mut self.reported.non_renegable);
        gap_blocks::difference(&non_renegable, &known, |first, last| {
            for offset in 0..=last.distance_from(first) {
                let tsn = first.plus(offset);
                let Some(before) = self.outstanding.release(tsn) else { return };
                if !before.released {
                    self.queue.release(before.message, before.length.into());
                }
            }
        });
        (self.reported.non_renegable, self.reported.spare) = (non_renegable, known);
    }

    /// Completes a SACK: updates paths, detects losses, restarts timers.
    fn finish_sack(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        advanced: bool,
        arrived_on: PathId,
        paths: &mut AssociationPaths,
    ) {
        let several = paths.len() > 1;
        let peer_sends = several && paths.peer_sends(now);
        for number in self.outstanding.numbers() {
            let cumulative_advanced = self.outstanding.has_advanced(number);
            let flight = self.outstanding.flight_mut(number);
            let Some(id) = flight.path else { continue };
            if !flight.seen.acknowledged {
                self.stop_idle_t3(number, paths);
                continue;
            }
            let seen = flight.seen;
            let measures = self.rules.rtt_sampling == RttSampling::AnyPath || id == arrived_on;
            let sent = seen.newest_sent_once.and_then(|packet| flight.sent_at(packet));
            let answer = sent.map(|sent| now.saturating_sub(sent));
            flight.update_rack(now);
            let siblings = paths.siblings(id);
            if let Some(path) = paths.get_mut(id) {
                let rtt = answer.filter(|_| measures);
                let answered = answer.filter(|_| several).map(|answer| (arrived_on, answer));
                let progress = PathProgress { cumulative_advanced, rtt, answered, peer_sends };
                path.on_sack(now, progress, siblings);
            }
            // It is unknown which transmission of a moved chunk arrived (RFC 7829 §3.2).
            if seen.works {
                paths.on_answer(id);
            } else {
                paths.on_peer_alive();
            }
            // A SACK on another path may be outdated evidence for a path that has failed since.
            let sent_and_rtt = sent.zip(paths.get(id).and_then(|path| path.rto.smoothed()));
            let expected = sent_and_rtt.filter(|_| id != arrived_on).map(|(sent, rtt)| sent + rtt);
            let alive = expected.map_or(now, |expected| expected.min(now));
            self.schedule_doubt(number, now, Some(alive), paths);
        }
        if advanced {
            paths.on_peer_alive();
            self.forwarding.note_advance(&self.outstanding);
        }
        // A SACK that omits something and acknowledges nothing new was overtaken: its window is
        // outdated.
        if self.multipath.is_none() || advanced || !self.reported.suspected {
            self.peer_window.on_sack(sack.a_rwnd);
        }
        if let Some(probe) = self.peer_window.take_probe(&self.outstanding) {
            self.retransmit_soon(probe, now, paths);
        }
        self.detect_losses(now, paths);
        self.forwarding.repeat(now, &self.outstanding, paths);
        for number in self.outstanding.numbers() {
            if self.outstanding.flight(number).seen.acknowledged {
                self.restart_t3(number, now, paths);
            }
        }
        self.evaluate_probes(now, paths);
        self.end_recoveries(now, sack.cumulative_tsn, paths);
        self.schedule_probes(now, paths);
        self.refresh_estimates(paths);
        self.notify_room();
    }
}

/// Adds the earlier report, which stays valid while reneging is only suspected.
fn merge(report: &mut alloc::vec::Vec<TsnRange>, known: &[TsnRange]) {
    report.extend_from_slice(known);
    let Some(base) = report
        .iter()
        .map(|range| range.0)
        .reduce(|lowest, tsn| if tsn.is_before(lowest) { tsn } else { lowest })
    else {
        return;
    };
    report.sort_unstable_by_key(|range| range.0.distance_from(base));
    let mut last = 0;
    for at in 1..report.len() {
        if report[at].0.is_at_or_before(report[last].1.next()) {
            if report[at].1.is_after(report[last].1) {
                report[last].1 = report[at].1;
            }
        } else {
            last += 1;
            report[last] = report[at];
        }
    }
    report.truncate(last + 1);
}
