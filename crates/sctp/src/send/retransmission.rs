//! What becomes of chunks that were lost, and T3 (RFC 9260 §6.3.3, §6.4.1, §7.2.4).

use alloc::vec::Vec;
use core::time::Duration;

use super::Sender;
use super::flight::{Recovery, Run, in_run};
use super::messages::Limit;
use super::outstanding::ChunkState;
use crate::config::LossDetection;
use crate::congestion::{CongestionControl, CongestionKind, PacketNumber};
use crate::identifier::PathId;
use crate::path::{PathState, Paths};
use crate::serial::Tsn;

/// What happened because time passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeoutOutcome {
    /// Paths on which T3 ran out.
    pub expired: Vec<Expired>,
}

/// T3 ran out on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Which one.
    pub path: PathId,
    /// Whether it is an error of the path: not if a probe into a closed window was left
    /// unacknowledged by a peer that answers (RFC 9260 §6.1 rule A).
    pub is_error: bool,
}

/// What the loss of a chunk means for its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The path lost it.
    Loss,
    /// Nothing: it is sent again for another reason.
    Nothing,
}

impl Sender {
    /// When something is to be done at the latest, if nothing happens before.
    #[must_use]
    pub fn next_timeout(&self, paths: &Paths) -> Option<Duration> {
        let mut next = self.next_deadline();
        for flight in &self.flights {
            let t3 = flight.path.and_then(|id| paths.get(id)).and_then(|path| path.t3);
            let timers = [t3, flight.rack.timer, flight.probe.timer, flight.doubt];
            for at in timers.into_iter().flatten() {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Duration, paths: &mut Paths) -> TimeoutOutcome {
        self.note_event();
        let mut outcome = TimeoutOutcome::default();
        for number in 0..self.flights.len() as u8 {
            let Some(id) = self.flights[usize::from(number)].path else { continue };
            if paths.get(id).and_then(|path| path.t3).is_some_and(|at| at <= now) {
                outcome.expired.push(self.expire(number, id, now, paths));
                continue;
            }
            self.handle_loss_timers(number, now, paths);
        }
        self.drop_overdue(now, paths);
        self.note_room();
        outcome
    }

    /// T3 ran out on a path (RFC 9260 §6.3.3).
    fn expire(&mut self, number: u8, id: PathId, now: Duration, paths: &mut Paths) -> Expired {
        let is_error = !self.is_probing_window();
        self.peer_window.await_answer();
        let to = self.path_instead_of(id, paths);
        let siblings = paths.siblings(id);
        let suspects = self.lose_flight(number, to, Meaning::Loss, now, paths);
        let exit = self.next_tsn().previous();
        let flight = &mut self.flights[usize::from(number)];
        if let Some(path) = paths.get_mut(id) {
            if is_error {
                path.on_timeout(now, siblings);
            } else {
                path.back_off();
            }
            let packet = path.next_packet();
            flight.recovery =
                is_error.then_some(Recovery { exit, packet, by_timeout: true, suspects });
        }
        self.forward_tsn_due |= self.must_forward();
        Expired { path: id, is_error }
    }

    /// Tells the paths which of them send something again at once: that is as good as a heartbeat.
    pub fn note_resends(&self, paths: &mut Paths) {
        for flight in &self.flights {
            if let Some(id) = flight.path {
                paths.set_resends(id, flight.waiting > 0);
            }
        }
    }

    /// Starts T3 anew if what was oldest on the path is under way no more: acknowledged, or lost
    /// and to be sent again (RFC 9260 §6.3.2, R3, §7.2.4 step 4). Stops it if nothing is under way
    /// (R2).
    pub(super) fn restart_t3(&mut self, number: u8, now: Duration, paths: &mut Paths) {
        let must_run = self.must_forward();
        let flight = &mut self.flights[usize::from(number)];
        let oldest = flight.oldest(number, &self.outstanding).map(|run| run.packet);
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        if oldest.is_none() {
            path.t3 = path.t3.filter(|_| must_run);
        } else if oldest != flight.timed {
            flight.timed = oldest;
            path.t3 = Some(now.saturating_add(path.rto.current()));
        }
    }

    /// Stops T3 where it has nothing to watch over.
    pub(super) fn stop_idle_t3(&mut self, number: u8, paths: &mut Paths) {
        let must_run = self.must_forward();
        let flight = &self.flights[usize::from(number)];
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        if path.outstanding() == 0 && !must_run {
            path.t3 = None;
        }
    }

    /// Takes the oldest run off a path.
    pub(super) fn take_oldest_run(&mut self, number: u8) -> Option<Run> {
        let flight = &mut self.flights[usize::from(number)];
        let run = flight.oldest(number, &self.outstanding)?;
        flight.drop_oldest();
        Some(run)
    }

    /// All that is under way on a path is to be sent again, on path `to`, and no timer watches over
    /// it any more. Says how many chunks that were.
    pub(super) fn lose_flight(
        &mut self,
        number: u8,
        to: PathId,
        meaning: Meaning,
        now: Duration,
        paths: &mut Paths,
    ) -> u32 {
        let mut lost = 0;
        while let Some(run) = self.take_oldest_run(number) {
            lost += self.lose_run(number, &run, to, meaning, now, paths);
        }
        let flight = &mut self.flights[usize::from(number)];
        flight.rack.restart();
        flight.probe.cancel();
        // What silence would have led to has come to pass.
        flight.doubt = None;
        if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
            path.t3 = None;
        }
        lost
    }

    /// All that is left under way of a run is to be sent again. Says how many chunks that were.
    pub(super) fn lose_run(
        &mut self,
        number: u8,
        run: &Run,
        to: PathId,
        meaning: Meaning,
        now: Duration,
        paths: &mut Paths,
    ) -> u32 {
        let mut lost = 0;
        for offset in 0..u32::from(run.count) {
            let tsn = run.first.plus(offset);
            if self.outstanding.get(tsn).is_some_and(|chunk| in_run(chunk, run, number)) {
                self.lose(tsn, to, meaning, now, paths);
                lost += 1;
            }
        }
        lost
    }

    /// A chunk that is under way is to be sent again, on path `to`; or given up, if its message
    /// was retransmitted as often as it may or its time is over.
    pub(super) fn lose(
        &mut self,
        tsn: Tsn,
        to: PathId,
        meaning: Meaning,
        now: Duration,
        paths: &mut Paths,
    ) {
        let Some(chunk) = self.outstanding.get_mut(tsn) else { return };
        if chunk.state != ChunkState::InFlight {
            return;
        }
        chunk.state = ChunkState::Lost;
        chunk.missing = 0;
        let (from, length) = (*chunk, usize::from(chunk.length));
        self.in_flight = self.in_flight.saturating_sub(length);
        let of = self.flights.get(usize::from(from.flight)).and_then(|flight| flight.path);
        if let Some(path) = of.and_then(|id| paths.get_mut(id)) {
            match meaning {
                Meaning::Loss => path.on_chunk_lost(now, from.packet, length),
                Meaning::Nothing => path.on_chunk_forgotten(from.packet, length),
            }
        }
        self.send_again(tsn, to);
        let limit = self.messages.get(from.message).map(|message| message.limit);
        let is_over = match limit {
            Some(Limit::Retransmissions(most)) => from.transmissions > most,
            Some(Limit::Deadline(deadline)) => deadline <= now,
            _ => false,
        };
        if is_over && self.terms.partial_reliability {
            self.abandon(from.message, paths);
        }
    }

    /// A chunk is sent again soon, though nothing says that the path lost it.
    pub(super) fn forget(&mut self, tsn: Tsn, now: Duration, paths: &mut Paths) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let flight = self.flights.get(usize::from(chunk.flight));
        let Some(path) = flight.and_then(|flight| flight.path) else { return };
        let to = self.path_for_lost(path, paths);
        self.lose(tsn, to, Meaning::Nothing, now, paths);
    }

    /// The peer dropped a chunk that it had reported: it counts as under way again, with one report
    /// that it is missing, and T3 watches over it (RFC 9260 §6.2.1 D iii).
    pub(super) fn take_back(&mut self, now: Duration, tsn: Tsn, paths: &mut Paths) {
        let most = 2 * self.outstanding.len() + 64;
        let Some(chunk) = self.outstanding.get_mut(tsn) else { return };
        if chunk.state != ChunkState::Acknowledged {
            return;
        }
        chunk.missing = 1;
        chunk.taken_back = true;
        let (number, length) = (chunk.flight, usize::from(chunk.length));
        let flight = self.flights.get_mut(usize::from(number));
        let path = flight.as_ref().and_then(|flight| flight.path);
        let path = path.and_then(|id| paths.get_mut(id));
        let (Some(flight), Some(path)) = (flight, path) else {
            // The path is gone: nothing watches over it any more.
            chunk.state = ChunkState::Lost;
            let to = paths.primary();
            return self.send_again(tsn, to);
        };
        // Reports are compared with the packets that were sent after it: none so far.
        let packet = path.take_back(length);
        chunk.state = ChunkState::InFlight;
        chunk.packet = packet;
        if path.t3.is_none() {
            path.t3 = Some(now.saturating_add(path.rto.current()));
            flight.timed = Some(packet);
        }
        flight.on_taken_back(packet, now, tsn);
        flight.compact(number, &self.outstanding, most);
        self.in_flight += length;
        self.note_lowest(number, tsn, true);
    }

    /// Puts a chunk that waits to be sent again on a path.
    fn send_again(&mut self, tsn: Tsn, to: PathId) {
        let target = self.flight_of(to).unwrap_or_default();
        let most = 2 * self.outstanding.len() + 64;
        let Some(chunk) = self.outstanding.get_mut(tsn) else { return };
        let from = core::mem::replace(&mut chunk.flight, target);
        chunk.moved |= from != target;
        let moved = if chunk.released { 0 } else { usize::from(chunk.length) };
        self.dequeue_from(from, moved);
        self.enqueue_on(target, moved);
        if let Some(flight) = self.flights.get_mut(usize::from(target)) {
            flight.add_again(tsn);
            flight.compact(target, &self.outstanding, most);
        }
    }

    /// A chunk arrived that was believed lost and had not been sent again.
    pub(super) fn note_late_arrival(
        &mut self,
        now: Duration,
        tsn: Tsn,
        chunk: &super::outstanding::SentChunk,
        paths: &mut Paths,
    ) {
        let Some(flight) = self.flights.get_mut(usize::from(chunk.flight)) else { return };
        flight.remove_again();
        flight.seen.late = true;
        flight.seen.acknowledged = true;
        flight.seen.works |= !chunk.moved;
        let spurious = flight.clear_suspect(tsn, 1);
        let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) else { return };
        path.on_late_chunk(now, chunk.length.into());
        if spurious {
            path.congestion.on_spurious(now);
        }
    }

    /// Losses were found on a path: its window is cut, once for each recovery
    /// (RFC 9260 §7.2.4). `newest`: the newest packet of which something was lost.
    pub(super) fn begin_recovery(
        &mut self,
        number: u8,
        lost: u32,
        newest: PacketNumber,
        now: Duration,
        paths: &mut Paths,
    ) {
        let exit = self.next_tsn().previous();
        let flight = &mut self.flights[usize::from(number)];
        let Some(id) = flight.path else { return };
        let siblings = paths.siblings(id);
        let Some(path) = paths.get_mut(id) else { return };
        flight.seen.lost = true;
        if let Some(recovery) = &mut flight.recovery {
            // Classic detection finds no second loss of a chunk, and one cut is enough.
            let by_time = self.detection == LossDetection::Rack;
            let is_later = !super::acknowledgement::is_newer(recovery.packet, newest);
            if !(is_later && (by_time || recovery.by_timeout)) {
                recovery.suspects = recovery.suspects.saturating_add(lost);
                return;
            }
        }
        path.on_congestion(now, CongestionKind::Loss, siblings);
        path.grant_packet();
        let packet = path.next_packet();
        flight.recovery = Some(Recovery { exit, packet, by_timeout: false, suspects: lost });
    }

    /// Ends recoveries whose exit point the cumulative TSN has reached.
    pub(super) fn end_recoveries(&mut self, now: Duration, cumulative: Tsn, paths: &mut Paths) {
        if self.is_multipath() && self.flights.iter().any(|flight| flight.recovery.is_some()) {
            self.find_points();
        }
        for number in 0..self.flights.len() as u8 {
            let Some(recovery) = self.flights[usize::from(number)].recovery else { continue };
            if recovery.exit.is_after(cumulative) && !self.is_recovered(number, recovery.exit) {
                continue;
            }
            let flight = &mut self.flights[usize::from(number)];
            flight.recovery = None;
            flight.rack.on_recovered();
            if let Some(path) = flight.path.and_then(|id| paths.get_mut(id))
                && !recovery.by_timeout
            {
                path.on_recovered(now);
            }
        }
    }

    /// Paths came, went or changed their state: what waits on one that is not to be used any more
    /// moves to another.
    pub fn paths_changed(&mut self, now: Duration, paths: &mut Paths) {
        self.note_event();
        for number in 0..self.flights.len() as u8 {
            let Some(id) = self.flights[usize::from(number)].path else { continue };
            let state = paths.get(id).map(crate::path::Path::state);
            let to = self.path_instead_of(id, paths);
            match state {
                None => {
                    while let Some(run) = self.take_oldest_run(number) {
                        self.lose_run(number, &run, to, Meaning::Nothing, now, paths);
                    }
                    self.move_waiting(number, to);
                    let flight = &mut self.flights[usize::from(number)];
                    flight.clear();
                    flight.path = None;
                    // The timer that would have repeated it went with the path.
                    self.forward_tsn_due |= self.must_forward();
                }
                Some(PathState::Active) => {}
                Some(_) if to != id => self.move_waiting(number, to),
                Some(_) => {}
            }
        }
    }

    fn move_waiting(&mut self, number: u8, to: PathId) {
        while let Some(tsn) =
            self.flights[usize::from(number)].first_again(number, &self.outstanding)
        {
            self.flights[usize::from(number)].take_again();
            self.send_again(tsn, to);
            if self.outstanding.get(tsn).is_some_and(|chunk| chunk.flight == number) {
                return;
            }
        }
    }
}

/// A path itself while it works, else the one for retransmissions of what was sent there.
pub(super) fn same_or_better(path: PathId, paths: &Paths) -> PathId {
    let works = paths.get(path).is_some_and(|path| path.state() == PathState::Active);
    if works { path } else { paths.for_retransmission(path) }
}
