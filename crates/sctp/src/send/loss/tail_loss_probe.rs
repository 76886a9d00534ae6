//! Tail-loss probes: if the last packets of a flight are lost, nothing that arrives later can tell;
//! so something is sent again, long before T3 would run out (RFC 8985 §7).

use core::time::Duration;

use super::super::Sender;
use super::super::flight::Flight;
use super::super::outstanding::Outstanding;
use super::super::retransmission::Meaning;
use crate::config::LossDetection;
use crate::path::Paths;
use crate::serial::Tsn;

/// How long to wait on a path whose round trip is not known.
const WITHOUT_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The probe of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct TailLossProbe {
    /// When to send one.
    pub(in crate::send) timer: Option<Duration>,
    /// The last TSN outstanding when one was sent, until it is acknowledged: one at a time
    /// (`TLP.end_seq`).
    end: Option<Tsn>,
}

impl TailLossProbe {
    /// No probe is wanted any more.
    pub(in crate::send) fn cancel(&mut self) {
        *self = Self::default();
    }
}

impl Sender {
    /// After a SACK: probes end, timers start anew.
    pub(in crate::send) fn schedule_probes(&mut self, now: Duration, paths: &Paths) {
        if self.detection != LossDetection::Rack {
            return;
        }
        let cumulative = self.cumulative_tsn_acked();
        for number in 0..self.flights.len() as u8 {
            let flight = &mut self.flights[usize::from(number)];
            if flight.probe.end.is_some_and(|end| end.is_at_or_before(cumulative)) {
                flight.probe.end = None;
            }
            if flight.seen.acknowledged {
                self.schedule_probe(number, now, paths);
            }
        }
    }

    /// Starts the timer of a path anew, if it may have one (RFC 8985 §7.2).
    pub(in crate::send) fn schedule_probe(&mut self, number: u8, now: Duration, paths: &Paths) {
        if self.detection != LossDetection::Rack {
            return;
        }
        let sack_delay = self.sack_delay;
        let flight = &mut self.flights[usize::from(number)];
        flight.probe.timer = None;
        let Some(path) = flight.path.and_then(|id| paths.get(id)) else { return };
        let is_wanted = path.outstanding() > 0
            && flight.recovery.is_none()
            && flight.waiting == 0
            && flight.probe.end.is_none()
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
        let has_new = self.unsent > 0 && self.peer_window.left(self.in_flight) > 0;
        let last = self.next_tsn().previous();
        let path = self.flights[usize::from(number)].path;
        let is_taken = match path {
            Some(id) if self.is_multipath() => self.may_carry_new(id, paths),
            id => id.is_some() && paths.for_data(None) == id,
        };
        let flight = &mut self.flights[usize::from(number)];
        flight.probe.timer = None;
        let Some(id) = flight.path else { return };
        flight.probe.end = Some(last);
        if !(has_new && is_taken) {
            let Some(tsn) = flight.last_under_way(number, &self.outstanding) else { return };
            self.lose(tsn, id, Meaning::Nothing, now, paths);
        }
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
    fn last_under_way(&self, number: u8, chunks: &Outstanding) -> Option<Tsn> {
        self.runs().rev().find_map(|run| {
            (0..u32::from(run.count)).rev().map(|offset| run.first.plus(offset)).find(|tsn| {
                chunks
                    .get(*tsn)
                    .is_some_and(|chunk| super::super::flight::in_run(chunk, run, number))
            })
        })
    }
}
