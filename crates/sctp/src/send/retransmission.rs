//! Lost chunks, and T3 (RFC 9260 §6.3.3, §6.4.1, §7.2.4).

use alloc::vec::Vec;
use core::time::Duration;

use super::AssociationSender;
use super::multipath::{path_for_lost, path_instead_of};
use super::outstanding::{OutstandingData, PacketRun, RecoveryPeriod, SentChunk, in_run};
use super::queue::AbandonLimit;
use crate::config::LossDetection;
use crate::congestion::{CongestionKind, PacketNumber};
use crate::identifier::PathId;
use crate::path::{AssociationPaths, PathState};
use crate::serial::Tsn;

/// The result of a timeout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeoutOutcome {
    /// The paths whose T3 expired.
    pub expired: Vec<T3Expiry>,
}

/// The expiry of a path's T3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct T3Expiry {
    /// The path.
    pub path: PathId,
    /// Whether it counts as an error of the path: not if a zero window probe was left
    /// unacknowledged by a peer that responds (RFC 9260 §6.1 rule A).
    pub is_error: bool,
}

/// Why a chunk is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetransmitReason {
    /// The path lost it.
    Loss,
    /// Another reason that does not concern the path.
    NotLost,
}

impl AssociationSender {
    /// Returns when to call [`Self::handle_timeout`] at the latest.
    #[must_use]
    pub fn next_timeout(&self, paths: &AssociationPaths) -> Option<Duration> {
        let mut next = self.queue.next_deadline();
        for flight in self.outstanding.flights() {
            let t3 = flight.path.and_then(|id| paths.get(id)).and_then(|path| path.t3);
            let timers = [t3, flight.rack.timer, flight.probe.timer, flight.doubt];
            for at in timers.into_iter().flatten() {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(
        &mut self,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> TimeoutOutcome {
        self.note_event();
        let mut outcome = TimeoutOutcome::default();
        for number in self.outstanding.numbers() {
            let Some(id) = self.outstanding.path_of(number) else { continue };
            if paths.get(id).and_then(|path| path.t3).is_some_and(|at| at <= now) {
                outcome.expired.push(self.expire(number, id, now, paths));
                continue;
            }
            self.handle_loss_timers(number, now, paths);
        }
        self.abandon_expired(now, paths);
        self.notify_room();
        self.check();
        outcome
    }

    /// Handles the expiry of a path's T3 (RFC 9260 §6.3.3).
    fn expire(
        &mut self,
        number: u8,
        id: PathId,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> T3Expiry {
        let is_error = !self.peer_window.is_probing(&self.outstanding);
        self.peer_window.await_answer();
        let to = path_instead_of(self.multipath.as_deref(), id, paths);
        let siblings = paths.siblings(id);
        let suspects = self.lose_flight(number, to, RetransmitReason::Loss, now, paths);
        let exit = self.outstanding.last();
        let flight = self.outstanding.flight_mut(number);
        if let Some(path) = paths.get_mut(id) {
            if is_error {
                path.on_timeout(now, siblings);
            } else {
                path.back_off();
            }
            let packet = path.next_packet();
            flight.recovery =
                is_error.then_some(RecoveryPeriod { exit, packet, by_timeout: true, suspects });
        }
        self.forwarding.make_due(&self.outstanding);
        T3Expiry { path: id, is_error }
    }

    /// Tells the paths which of them have retransmissions pending: those are as good as a
    /// heartbeat.
    pub fn record_pending_retransmissions(&self, paths: &mut AssociationPaths) {
        for flight in self.outstanding.flights() {
            if let Some(id) = flight.path {
                paths.set_retransmits(id, flight.pending_retransmissions() > 0);
            }
        }
    }

    /// Restarts T3 if the oldest data on the path is no longer in flight: acknowledged, or lost and
    /// to be retransmitted (RFC 9260 §6.3.2, R3, §7.2.4 step 4). Stops it if nothing is in flight
    /// (R2).
    pub(super) fn restart_t3(&mut self, number: u8, now: Duration, paths: &mut AssociationPaths) {
        let must_run = self.must_forward();
        let (flight, chunks) = self.outstanding.flight_and_chunks(number);
        let oldest = flight.oldest(number, chunks).map(|run| run.packet);
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        if oldest.is_none() {
            path.t3 = path.t3.filter(|_| must_run);
        } else if oldest != flight.timed {
            flight.timed = oldest;
            path.t3 = Some(now.saturating_add(path.rto.current()));
        }
    }

    /// Stops T3 if it covers nothing.
    pub(super) fn stop_idle_t3(&mut self, number: u8, paths: &mut AssociationPaths) {
        let must_run = self.must_forward();
        let path = self.outstanding.path_of(number);
        let Some(path) = path.and_then(|id| paths.get_mut(id)) else { return };
        if path.outstanding() == 0 && !must_run {
            path.t3 = None;
        }
    }

    /// Marks everything in flight on a path for retransmission on path `to`, and stops its timers.
    /// Returns the number of chunks.
    pub(super) fn lose_flight(
        &mut self,
        number: u8,
        to: PathId,
        reason: RetransmitReason,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> u32 {
        let mut lost = 0;
        while let Some(run) = self.outstanding.take_oldest_run(number) {
            lost += self.lose_run(number, &run, to, reason, now, paths);
        }
        let flight = self.outstanding.flight_mut(number);
        flight.rack.restart();
        flight.probe.cancel();
        // The move that silence would have caused has been made.
        flight.doubt = None;
        if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
            path.t3 = None;
        }
        lost
    }

    /// Marks everything still in flight of a run for retransmission. Returns the number of chunks.
    pub(super) fn lose_run(
        &mut self,
        number: u8,
        run: &PacketRun,
        to: PathId,
        reason: RetransmitReason,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> u32 {
        let mut lost = 0;
        for offset in 0..u32::from(run.count) {
            let tsn = run.first.plus(offset);
            if self.outstanding.get(tsn).is_some_and(|chunk| in_run(chunk, run, number)) {
                self.lose(tsn, to, reason, now, paths);
                lost += 1;
            }
        }
        lost
    }

    /// Marks a chunk in flight for retransmission on path `to`, or abandons it if its message has
    /// used up its retransmissions or its lifetime.
    pub(super) fn lose(
        &mut self,
        tsn: Tsn,
        to: PathId,
        reason: RetransmitReason,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let Some((before, path)) = self.outstanding.lose(tsn, to) else { return };
        if let Some(path) = path.and_then(|id| paths.get_mut(id)) {
            match reason {
                RetransmitReason::Loss => {
                    path.on_chunk_lost(now, before.packet, before.length.into())
                }
                RetransmitReason::NotLost => {
                    path.on_chunk_forgotten(before.packet, before.length.into())
                }
            }
        }
        let limit = self.queue.message(before.message).map(|message| message.limit);
        let is_expired = match limit {
            Some(AbandonLimit::Retransmissions(most)) => before.transmissions > most,
            Some(AbandonLimit::Deadline(deadline)) => deadline <= now,
            _ => false,
        };
        if is_expired && self.terms.partial_reliability {
            self.abandon(before.message, paths);
        }
    }

    /// Retransmits a chunk soon although nothing shows that the path lost it.
    pub(super) fn retransmit_soon(
        &mut self,
        tsn: Tsn,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let Some(path) = self.outstanding.path_of(chunk.flight) else { return };
        let to = path_for_lost(self.multipath.as_deref(), path, paths);
        self.lose(tsn, to, RetransmitReason::NotLost, now, paths);
    }

    /// Handles losses on a path: reduces its window, once per recovery (RFC 9260 §7.2.4). `newest`
    /// is the newest packet with a loss.
    pub(super) fn begin_recovery(
        &mut self,
        number: u8,
        lost: u32,
        newest: PacketNumber,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let exit = self.outstanding.last();
        let flight = self.outstanding.flight_mut(number);
        let Some(id) = flight.path else { return };
        let siblings = paths.siblings(id);
        let Some(path) = paths.get_mut(id) else { return };
        flight.seen.lost = true;
        if let Some(recovery) = &mut flight.recovery {
            // Classic detection finds no second loss of a chunk, and one reduction is enough.
            let by_time = self.rules.detection == LossDetection::Rack;
            let is_later = !super::acknowledgement::is_newer(recovery.packet, newest);
            if !(is_later && (by_time || recovery.by_timeout)) {
                recovery.suspects = recovery.suspects.saturating_add(lost);
                return;
            }
        }
        path.on_congestion(now, CongestionKind::Loss, siblings);
        path.grant_packet();
        let packet = path.next_packet();
        flight.recovery = Some(RecoveryPeriod { exit, packet, by_timeout: false, suspects: lost });
    }

    /// Ends recoveries whose exit point the cumulative TSN ack has reached.
    pub(super) fn end_recoveries(
        &mut self,
        now: Duration,
        cumulative: Tsn,
        paths: &mut AssociationPaths,
    ) {
        let outstanding = &mut self.outstanding;
        if outstanding.flights().iter().any(|flight| flight.recovery.is_some()) {
            outstanding.update_points();
        }
        for number in outstanding.numbers() {
            let Some(recovery) = outstanding.flight(number).recovery else { continue };
            let is_expired = recovery.exit.is_at_or_before(cumulative)
                || outstanding.is_recovered(number, recovery.exit);
            if !is_expired {
                continue;
            }
            let flight = outstanding.flight_mut(number);
            flight.recovery = None;
            flight.rack.on_recovered();
            if let Some(path) = flight.path.and_then(|id| paths.get_mut(id))
                && !recovery.by_timeout
            {
                path.on_recovered(now);
            }
        }
    }

    /// Handles added, removed or changed paths: retransmissions on a path that is no longer used
    /// move to another.
    pub fn paths_changed(&mut self, now: Duration, paths: &mut AssociationPaths) {
        self.note_event();
        for number in self.outstanding.numbers() {
            let Some(id) = self.outstanding.path_of(number) else { continue };
            let state = paths.get(id).map(crate::path::Path::state);
            let to = path_instead_of(self.multipath.as_deref(), id, paths);
            if state.is_some() {
                self.catch_up(number, to, now, paths);
            }
            match state {
                None => {
                    while let Some(run) = self.outstanding.take_oldest_run(number) {
                        self.lose_run(number, &run, to, RetransmitReason::NotLost, now, paths);
                    }
                    while self.outstanding.move_retransmission(number, to) {}
                    self.outstanding.detach_path(number);
                    // The timer that would have repeated it was removed with the path.
                    self.forwarding.make_due(&self.outstanding);
                }
                Some(PathState::Active) => {}
                Some(_) if to != id => while self.outstanding.move_retransmission(number, to) {},
                Some(_) => {}
            }
        }
        self.check();
    }
}

impl OutstandingData {
    /// Handles the arrival of a chunk that was marked as lost and had not been retransmitted.
    pub(super) fn note_late_arrival(
        &mut self,
        now: Duration,
        tsn: Tsn,
        chunk: &SentChunk,
        paths: &mut AssociationPaths,
    ) {
        let Some(flight) = self.flights_mut().get_mut(usize::from(chunk.flight)) else { return };
        flight.seen.late = true;
        flight.seen.acknowledged = true;
        flight.seen.works |= !chunk.moved;
        let spurious = flight.clear_suspects(tsn, 1);
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        // What was moved here has arrived over the path that it was sent on.
        if !chunk.moved {
            path.on_late_chunk(now, chunk.length.into());
        }
        if spurious {
            path.congestion.on_spurious(now);
        }
    }
}

/// Returns the path itself if it is active, otherwise the one for retransmissions of its data.
pub(super) fn same_or_better(path: PathId, paths: &AssociationPaths) -> PathId {
    let works = paths.get(path).is_some_and(|path| path.state() == PathState::Active);
    if works { path } else { paths.for_retransmission(path) }
}
