//! Tail loss probes: if the last packets of a flight are lost, nothing that arrives later can
//! reveal it; so a probe is sent, long before T3 would expire (RFC 8985 §7). If it turns out that
//! the probe repaired the only loss, the window is reduced all the same (§7.4).

use core::time::Duration;

use super::super::AssociationSender;
use super::super::acknowledgement::is_newer;
use super::super::outstanding::{ChunkState, OutstandingChunks, PathFlight, in_run};
use super::super::retransmission::RetransmitReason;
use crate::config::LossDetection;
use crate::congestion::PacketNumber;
use crate::path::{AssociationPaths, Path};
use crate::serial::Tsn;

/// The timeout on a path whose RTT is unknown.
const TIMEOUT_WITHOUT_RTT: Duration = Duration::from_secs(1);

/// The probe of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct TailLossProbe {
    /// When to send one.
    pub(in crate::send) timer: Option<Duration>,
    /// The time for which the timer was computed. A further packet of that time changes nothing.
    computed: Option<Duration>,
    /// The outstanding probe; one at a time.
    outstanding: Option<SentProbe>,
}

/// An outstanding probe.
#[derive(Clone, Copy, Debug)]
struct SentProbe {
    /// Its packet, or a later one.
    packet: PacketNumber,
    /// When it was sent.
    sent: Duration,
    /// The chunk that was retransmitted, if it is not new data.
    retransmitted: Option<Tsn>,
    /// Whether the peer received that chunk twice.
    received_twice: bool,
}

impl TailLossProbe {
    /// Cancels the probe and its timer.
    pub(in crate::send) fn cancel(&mut self) {
        *self = Self::default();
    }

    /// Returns whether a probe is out.
    pub(in crate::send) fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Records a duplicate that the peer reported.
    pub(super) fn note_duplicate(&mut self, tsn: Tsn) {
        if let Some(probe) = &mut self.outstanding {
            probe.received_twice |= probe.retransmitted == Some(tsn);
        }
    }
}

impl AssociationSender {
    /// Completes the probes that a SACK answered.
    pub(in crate::send) fn evaluate_probes(&mut self, now: Duration, paths: &mut AssociationPaths) {
        for number in self.outstanding.numbers() {
            if let Some(probe) = self.outstanding.flight(number).probe.outstanding {
                self.evaluate_probe(number, &probe, now, paths);
            }
        }
    }

    /// Restarts the timers after a SACK.
    pub(in crate::send) fn schedule_probes(&mut self, now: Duration, paths: &AssociationPaths) {
        for number in self.outstanding.numbers() {
            let flight = self.outstanding.flight_mut(number);
            if flight.seen.acknowledged {
                // There is a new measurement of the round trip.
                flight.probe.computed = None;
                self.schedule_probe(number, now, paths);
            }
        }
    }

    /// Completes a probe that was answered; reduces the window if it repaired a loss (RFC 8985
    /// §7.4).
    fn evaluate_probe(
        &mut self,
        number: u8,
        probe: &SentProbe,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let (flight, chunks) = self.outstanding.flight_and_chunks(number);
        let Some(tsn) = probe.retransmitted else {
            // New data: its acknowledgement reveals losses before it.
            let newest = flight.seen.newest;
            if newest.is_some_and(|newest| !is_newer(probe.packet, newest)) {
                flight.probe.outstanding = None;
            }
            return;
        };
        let chunk = chunks.get(tsn);
        let waits = chunk
            .is_some_and(|chunk| matches!(chunk.state, ChunkState::InFlight | ChunkState::Lost));
        if waits {
            return;
        }
        flight.probe.outstanding = None;
        let min_rtt = flight.path.and_then(|id| paths.get(id)).and_then(|path| path.rto.min_rtt());
        let is_first = min_rtt.is_none_or(|min_rtt| now.saturating_sub(probe.sent) < min_rtt);
        let is_abandoned = chunk.is_some_and(|chunk| chunk.state == ChunkState::Abandoned);
        if !probe.received_twice && !is_first && !is_abandoned {
            self.begin_recovery(number, 1, probe.packet, now, paths);
        }
    }

    /// Restarts the timer of a path, if it may have one (RFC 8985 §7.2).
    pub(in crate::send) fn schedule_probe(
        &mut self,
        number: u8,
        now: Duration,
        paths: &AssociationPaths,
    ) {
        if self.rules.detection != LossDetection::Rack {
            return;
        }
        let sack_delay = self.rules.sack_delay;
        let flight = self.outstanding.flight_mut(number);
        let timer = flight.probe.timer.take();
        let Some(path) = flight.path.and_then(|id| paths.get(id)) else { return };
        let is_wanted = path.outstanding() > 0
            && flight.recovery.is_none()
            && flight.pending_retransmissions() == 0
            && !flight.probe.is_outstanding()
            && flight.rack.timer.is_none();
        if !is_wanted {
            return;
        }
        if timer.is_some() && flight.probe.computed == Some(now) {
            flight.probe.timer = timer;
            return;
        }
        let mut wait = path
            .rto
            .smoothed()
            .map_or(TIMEOUT_WITHOUT_RTT, |smoothed| smoothed.saturating_add(smoothed));
        let has_one_packet = flight.has_one_packet();
        if has_one_packet {
            wait = wait.saturating_add(sack_delay);
        }
        flight.probe.computed = Some(now).filter(|_| !has_one_packet);
        let at = now.saturating_add(wait);
        // T3 does everything that a probe could do.
        flight.probe.timer = Some(at).filter(|at| path.t3.is_none_or(|t3| *at < t3));
    }

    /// Handles the timer: sends new data if there is some, or else retransmits the last chunk (RFC
    /// 8985 §7.3).
    pub(super) fn send_probe(&mut self, number: u8, now: Duration, paths: &mut AssociationPaths) {
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
        let mut retransmitted = None;
        if !(has_new && is_taken) {
            retransmitted = flight.last_in_flight(number, chunks);
            let Some(tsn) = retransmitted else { return };
            self.lose(tsn, id, RetransmitReason::NotLost, now, paths);
        }
        let probe = SentProbe { packet, sent: now, retransmitted, received_twice: false };
        self.outstanding.flight_mut(number).probe.outstanding = Some(probe);
        if let Some(path) = paths.get_mut(id) {
            path.grant_packet();
        }
    }
}

impl PathFlight {
    /// Returns whether everything in flight was sent in one packet.
    pub(super) fn has_one_packet(&self) -> bool {
        let ends = self.oldest_and_newest_run();
        ends.is_some_and(|(oldest, newest)| oldest.packet == newest.packet)
    }

    /// Returns the most recently sent chunk that is in flight.
    fn last_in_flight(&self, number: u8, chunks: &OutstandingChunks) -> Option<Tsn> {
        self.runs().rev().find_map(|run| {
            (0..u32::from(run.count))
                .rev()
                .map(|offset| run.first.plus(offset))
                .find(|tsn| chunks.get(*tsn).is_some_and(|chunk| in_run(chunk, run, number)))
        })
    }
}
