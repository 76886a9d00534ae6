//! SACK and NR-SACK (RFC 9260 §6.2.1).

use core::time::Duration;

use super::Sender;
use super::gap_blocks::{self, Range};
use super::outstanding::{ChunkState, Flight, Seen, SentChunk};
use crate::config::RttSampling;
use crate::congestion::PacketNumber;
use crate::counters::Counters;
use crate::identifier::PathId;
use crate::path::{Paths, Progress};
use crate::serial::Tsn;
use crate::wire::SackChunk;

/// What a SACK brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackOutcome {
    /// Whether it was taken: neither overtaken by a later one nor nonsense.
    pub accepted: bool,
    /// Whether the cumulative TSN advanced.
    pub advanced: bool,
    /// Bytes of user data acknowledged for the first time.
    pub acknowledged: usize,
}

/// Whether the peer takes back what it reported (RFC 9260 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// No, or once only: that SACK may have been overtaken by another one.
    None,
    /// Twice in a row.
    Repeated,
    /// The very next TSN is one that was reported: no other order of SACKs explains that.
    Certain,
}

/// Acknowledged chunks that were sent in one packet, collected so that the path is told once.
#[derive(Debug)]
struct Batch {
    now: Duration,
    flight: u8,
    packet: PacketNumber,
    once: bool,
    /// Whether the chunks were sent on another path before.
    moved: bool,
    /// Whether the cumulative TSN covers the chunks.
    cumulative: bool,
    first: Tsn,
    last: Tsn,
    bytes: usize,
    /// Bytes of all batches so far.
    total: usize,
}

impl Batch {
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

    /// Adds a chunk that was under way.
    #[inline]
    fn add(&mut self, tsn: Tsn, chunk: &SentChunk, flights: &mut [Flight], paths: &mut Paths) {
        let once = chunk.transmissions == 1 && !chunk.taken_back;
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

    /// Tells the path.
    fn flush(&mut self, flights: &mut [Flight], paths: &mut Paths) {
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
            seen.newest_once = Some(newer(seen.newest_once, self.packet));
            let passed = flight.highest_acknowledged;
            seen.late |= passed.is_some_and(|highest| self.first.is_before(highest));
        } else if flight.is_too_soon(self.packet, self.now, path.rto.least()) {
            // It is the first transmission that arrived.
            return;
        }
        flight.seen.newest = Some(newer(flight.seen.newest, self.packet));
    }
}

/// The one that was sent later.
fn newer(known: Option<PacketNumber>, other: PacketNumber) -> PacketNumber {
    match known {
        Some(known) if !is_newer(other, known) => known,
        _ => other,
    }
}

/// Whether `one` was sent after `other`.
pub(super) fn is_newer(one: PacketNumber, other: PacketNumber) -> bool {
    (one.0.wrapping_sub(other.0) as i32) > 0
}

impl Sender {
    /// Takes in a SACK or NR-SACK that came back on this path. Tells the paths that delivered
    /// something that they work.
    pub fn handle_sack(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        arrived_on: PathId,
        paths: &mut Paths,
        counters: &mut Counters,
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
            flight.seen = Seen::default();
        }
        if let Some(concurrent) = &mut self.multipath {
            concurrent.dac_count = sack.dac_count;
            self.note_event();
            self.outstanding.find_points();
        }
        let advanced = cumulative != self.cumulative_tsn_acked();
        let mut batch = Batch::new(now);
        self.acknowledge_up_to(cumulative, &mut batch, paths);
        if !sack.gap_blocks().is_empty()
            || !sack.nr_gap_blocks().is_empty()
            || !self.reported.is_empty()
        {
            self.acknowledge_gaps(sack, &mut batch, paths);
        }
        batch.flush(self.outstanding.flights_mut(), paths);
        self.outstanding.note_duplicates(now, sack, paths);
        self.conclude(now, sack, advanced, arrived_on, paths);
        self.check();
        SackOutcome { accepted: true, advanced, acknowledged: batch.total }
    }

    /// Takes the chunks that the cumulative TSN covers.
    fn acknowledge_up_to(&mut self, cumulative: Tsn, batch: &mut Batch, paths: &mut Paths) {
        while self.outstanding.first().is_at_or_before(cumulative) {
            let tsn = self.outstanding.first();
            let Some(chunk) = self.outstanding.pop() else { return };
            self.note_arrival(tsn, &chunk, batch, paths);
            let held = if chunk.released { 0 } else { usize::from(chunk.length) };
            self.queue.on_acknowledged(chunk.message, held);
        }
    }

    /// A chunk arrived, which was like this before: its path is told.
    #[inline]
    fn note_arrival(&mut self, tsn: Tsn, before: &SentChunk, batch: &mut Batch, paths: &mut Paths) {
        self.outstanding.note_point(tsn, before);
        match before.state {
            ChunkState::InFlight => batch.add(tsn, before, self.outstanding.flights_mut(), paths),
            ChunkState::Lost => self.outstanding.note_late_arrival(batch.now, tsn, before, paths),
            ChunkState::Acknowledged | ChunkState::Abandoned => {}
        }
    }

    /// Takes in what arrived beyond gaps, and what the peer dropped of that.
    fn acknowledge_gaps(&mut self, sack: &SackChunk, batch: &mut Batch, paths: &mut Paths) {
        batch.flush(self.outstanding.flights_mut(), paths);
        batch.cumulative = false;
        self.reported.trim(sack.cumulative_tsn);
        let mut report = core::mem::take(&mut self.reported.spare);
        let known = core::mem::take(&mut self.reported.arrived);
        gap_blocks::collect(sack, &mut report);
        gap_blocks::difference(&report, &known, |first, last| {
            self.gap_acknowledge(first, last, batch, paths);
        });
        match self.denial(&report, &known) {
            Denial::None if self.reported.doubted => merge(&mut report, &known),
            Denial::None => {}
            Denial::Repeated => self.renege(batch.now, &report, &known, true, paths),
            Denial::Certain => {
                let all = (self.outstanding.first(), self.outstanding.last());
                self.renege(batch.now, &report, &[all], false, paths);
            }
        }
        (self.reported.arrived, self.reported.spare) = (report, known);
        if sack.is_nr {
            self.keep(sack);
        }
    }

    fn gap_acknowledge(&mut self, first: Tsn, last: Tsn, batch: &mut Batch, paths: &mut Paths) {
        for offset in 0..=last.distance_from(first) {
            let tsn = first.plus(offset);
            let Some(before) = self.outstanding.acknowledge(tsn) else { return };
            self.note_arrival(tsn, &before, batch, paths);
        }
    }

    /// Whether the peer denies what it reported earlier.
    fn denial(&mut self, report: &[Range], known: &[Range]) -> Denial {
        let limit = gap_blocks::deniable(report);
        let mut denied = false;
        gap_blocks::difference(known, report, |first, _| {
            denied |= limit.is_none_or(|limit| first.is_at_or_before(limit));
        });
        let doubted = core::mem::replace(&mut self.reported.doubted, denied);
        let next = self.outstanding.get(self.outstanding.first());
        if next.is_some_and(|chunk| chunk.state == ChunkState::Acknowledged) {
            Denial::Certain
        } else if self.multipath.is_some() {
            // SACKs overtake each other all the time where they return on several paths.
            Denial::None
        } else if doubted && denied {
            Denial::Repeated
        } else {
            Denial::None
        }
    }

    /// What the peer dropped is under way again. `trusting` leaves out what it has said that it will
    /// not drop (NR-SACK): reports of that have overtaken each other.
    fn renege(
        &mut self,
        now: Duration,
        report: &[Range],
        known: &[Range],
        trusting: bool,
        paths: &mut Paths,
    ) {
        self.reported.doubted = false;
        gap_blocks::difference(known, report, |first, last| {
            for offset in 0..=last.distance_from(first) {
                let tsn = first.plus(offset);
                if trusting && self.outstanding.get(tsn).is_some_and(|chunk| chunk.released) {
                    continue;
                }
                self.outstanding.take_back(now, tsn, paths);
            }
        });
    }

    /// Lets go of what the peer cannot drop any more (NR-SACK).
    fn keep(&mut self, sack: &SackChunk) {
        let mut kept = core::mem::take(&mut self.reported.spare);
        gap_blocks::collect_kept(sack, &mut kept);
        let known = core::mem::take(&mut self.reported.kept);
        gap_blocks::difference(&kept, &known, |first, last| {
            for offset in 0..=last.distance_from(first) {
                let tsn = first.plus(offset);
                let Some(before) = self.outstanding.release(tsn) else { return };
                if !before.released {
                    self.queue.release(before.message, before.length.into());
                }
            }
        });
        (self.reported.kept, self.reported.spare) = (kept, known);
    }

    /// What follows from a SACK for paths, losses and messages.
    fn conclude(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        advanced: bool,
        arrived_on: PathId,
        paths: &mut Paths,
    ) {
        let several = paths.len() > 1;
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
            let sent = seen.newest_once.and_then(|packet| flight.sent_at(packet));
            let answer = sent.map(|sent| now.saturating_sub(sent));
            flight.note_newest(now);
            let siblings = paths.siblings(id);
            if let Some(path) = paths.get_mut(id) {
                let rtt = answer.filter(|_| measures);
                let answered = answer.filter(|_| several).map(|answer| (arrived_on, answer));
                let progress = Progress { cumulative_advanced, rtt, answered };
                path.on_sack(now, progress, siblings);
            }
            // Which of its transmissions arrived is not known of what went elsewhere (RFC 7829 §3.2).
            if seen.works {
                paths.on_answer(id);
            } else {
                paths.on_peer_alive();
            }
            // What came back on another path may be old news of a path that has died since.
            let usual = sent.zip(paths.get(id).and_then(|path| path.rto.smoothed()));
            let expected = usual.filter(|_| id != arrived_on).map(|(sent, rtt)| sent + rtt);
            let alive = expected.map_or(now, |expected| expected.min(now));
            self.schedule_doubt(number, now, Some(alive), paths);
        }
        if advanced {
            paths.on_peer_alive();
            self.forwarding.note_advance(&self.outstanding);
        }
        // What denies something and brings nothing was overtaken: its window is an old one.
        if self.multipath.is_none() || advanced || !self.reported.doubted {
            self.peer_window.on_sack(sack.a_rwnd);
        }
        if let Some(probe) = self.peer_window.take_probe(&self.outstanding) {
            self.forget(probe, now, paths);
        }
        self.detect_losses(now, paths);
        self.forwarding.repeat(now, &self.outstanding, paths);
        for number in self.outstanding.numbers() {
            if self.outstanding.flight(number).seen.acknowledged {
                self.restart_t3(number, now, paths);
            }
        }
        self.judge_probes(now, paths);
        self.end_recoveries(now, sack.cumulative_tsn, paths);
        self.schedule_probes(now, paths);
        self.look_at_paths(paths);
        self.note_room();
    }
}

/// Adds to a report what was known before: it counts on while it is only doubted.
fn merge(report: &mut alloc::vec::Vec<Range>, known: &[Range]) {
    report.extend_from_slice(known);
    let Some(base) = report
        .iter()
        .map(|range| range.0)
        .reduce(|least, tsn| if tsn.is_before(least) { tsn } else { least })
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
