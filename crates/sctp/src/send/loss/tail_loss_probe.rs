//! Tail-loss probes: if the last packets of a flight are lost, nothing that arrives later can tell;
//! so something is sent again, long before T3 would run out (RFC 8985 §7). If it turns out that what
//! was sent again was all that had been lost, the window is cut all the same (§7.4).

use core::time::Duration;

use super::super::Sender;
use super::super::acknowledgement::is_newer;
use super::super::outstanding::{ChunkState, Chunks, Flight, in_run};
use super::super::retransmission::Meaning;
use crate::config::LossDetection;
use crate::congestion::PacketNumber;
use crate::path::{Path, Paths};
use crate::serial::Tsn;

/// How long to wait on a path whose round trip is not known.
const WITHOUT_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The probe of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct TailLossProbe {
    /// When to send one.
    pub(in crate::send) timer: Option<Duration>,
    /// The one that is out: one at a time.
    out: Option<Out>,
}

/// A probe that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// Its packet, or a later one.
    packet: PacketNumber,
    /// When it was sent.
    sent: Duration,
    /// The chunk that was sent again, if it is not new data.
    again: Option<Tsn>,
    /// Whether the peer got that chunk twice.
    twice: bool,
}

impl TailLossProbe {
    /// No probe is wanted any more.
    pub(in crate::send) fn cancel(&mut self) {
        *self = Self::default();
    }

    /// Whether a probe is out.
    pub(in crate::send) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// The peer got a chunk twice.
    pub(super) fn note_duplicate(&mut self, tsn: Tsn) {
        if let Some(out) = &mut self.out {
            out.twice |= out.again == Some(tsn);
        }
    }
}

impl Sender {
    /// After a SACK: probes that were answered end.
    pub(in crate::send) fn judge_probes(&mut self, now: Duration, paths: &mut Paths) {
        for number in self.outstanding.numbers() {
            if let Some(out) = self.outstanding.flight(number).probe.out {
                self.judge_probe(number, &out, now, paths);
            }
        }
    }

    /// After a SACK: timers start anew.
    pub(in crate::send) fn schedule_probes(&mut self, now: Duration, paths: &Paths) {
        for number in self.outstanding.numbers() {
            if self.outstanding.flight(number).seen.acknowledged {
                self.schedule_probe(number, now, paths);
            }
        }
    }

    /// Ends a probe that was answered; cuts the window if it repaired a loss (RFC 8985 §7.4).
    fn judge_probe(&mut self, number: u8, out: &Out, now: Duration, paths: &mut Paths) {
        let (flight, chunks) = self.outstanding.flight_and_chunks(number);
        let Some(tsn) = out.again else {
            // New data: what arrives of it tells of losses before it by itself.
            let newest = flight.seen.newest;
            if newest.is_some_and(|newest| !is_newer(out.packet, newest)) {
                flight.probe.out = None;
            }
            return;
        };
        let chunk = chunks.get(tsn);
        let waits = chunk
            .is_some_and(|chunk| matches!(chunk.state, ChunkState::InFlight | ChunkState::Lost));
        if waits {
            return;
        }
        flight.probe.out = None;
        let least = flight.path.and_then(|id| paths.get(id)).and_then(|path| path.rto.least());
        let is_first = least.is_none_or(|least| now.saturating_sub(out.sent) < least);
        let is_abandoned = chunk.is_some_and(|chunk| chunk.state == ChunkState::Abandoned);
        if !out.twice && !is_first && !is_abandoned {
            self.begin_recovery(number, 1, out.packet, now, paths);
        }
    }

    /// Starts the timer of a path anew, if it may have one (RFC 8985 §7.2).
    pub(in crate::send) fn schedule_probe(&mut self, number: u8, now: Duration, paths: &Paths) {
        if self.rules.detection != LossDetection::Rack {
            return;
        }
        let sack_delay = self.rules.sack_delay;
        let flight = self.outstanding.flight_mut(number);
        flight.probe.timer = None;
        let Some(path) = flight.path.and_then(|id| paths.get(id)) else { return };
        let is_wanted = path.outstanding() > 0
            && flight.recovery.is_none()
            && flight.waiting() == 0
            && !flight.probe.is_out()
            && flight.rack.timer.is_none();
        if !is_wanted {
            return;
        }
        let mut wait = path.rto.smoothed().map_or(WITHOUT_ROUND_TRIP, |smoothed| smoothed * 2);
        if flight.has_one_packet() {
            wait = wait.saturating_add(sack_delay);
        }
        let at = now.saturating_add(wait);
        // T3 does all that a probe could do.
        flight.probe.timer = Some(at).filter(|at| path.t3.is_none_or(|t3| *at < t3));
    }

    /// The timer ran out: new data is sent if there is some, else the last chunk again
    /// (RFC 8985 §7.3).
    pub(super) fn send_probe(&mut self, number: u8, now: Duration, paths: &mut Paths) {
        let has_new = self.queue.unsent() > 0 && self.peer_window() > 0;
        let path = self.outstanding.path_of(number);
        let is_taken = match path {
            Some(id) if self.is_multipath() => self.may_carry_new(id, paths),
            id => id.is_some() && paths.for_data(None) == id,
        };
        let (flight, chunks) = self.outstanding.flight_and_chunks(number);
        flight.probe.timer = None;
        let Some(id) = flight.path else { return };
        let Some(packet) = paths.get(id).map(Path::next_packet) else { return };
        let mut again = None;
        if !(has_new && is_taken) {
            again = flight.last_under_way(number, chunks);
            let Some(tsn) = again else { return };
            self.lose(tsn, id, Meaning::Nothing, now, paths);
        }
        let out = Out { packet, sent: now, again, twice: false };
        self.outstanding.flight_mut(number).probe.out = Some(out);
        if let Some(path) = paths.get_mut(id) {
            path.grant_packet();
        }
    }
}

impl Flight {
    /// Whether all that is under way went in one packet.
    pub(super) fn has_one_packet(&self) -> bool {
        let mut runs = self.runs();
        let Some(first) = runs.next() else { return false };
        runs.next_back().is_none_or(|last| last.packet == first.packet)
    }

    /// The chunk that was sent last of those that are under way.
    fn last_under_way(&self, number: u8, chunks: &Chunks) -> Option<Tsn> {
        self.runs().rev().find_map(|run| {
            (0..u32::from(run.count))
                .rev()
                .map(|offset| run.first.plus(offset))
                .find(|tsn| chunks.get(*tsn).is_some_and(|chunk| in_run(chunk, run, number)))
        })
    }
}
