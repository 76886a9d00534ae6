//! RACK: a packet is lost if one that was sent later on the same path has arrived, and the time
//! that reordering may take has passed (RFC 8985 §6).

use core::time::Duration;

use super::super::Sender;
use super::super::acknowledgement::is_newer;
use super::super::multipath::path_for_lost;
use super::super::outstanding::Flight;
use super::super::retransmission::Meaning;
use crate::congestion::PacketNumber;
use crate::path::Paths;

/// The most quarters of the least round trip that reordering is given.
const MAX_STEPS: u8 = 16;

/// Recoveries after which a wider window for reordering is given up again (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;

/// What RACK knows of a path.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Rack {
    /// The packet sent last of those that arrived, and when it was sent.
    newest: Option<(PacketNumber, Duration)>,
    /// Its round trip.
    rtt: Duration,
    /// Whether packets were ever seen to arrive out of order.
    reordering: bool,
    /// Quarters of the least round trip that reordering is given.
    steps: u8,
    /// Recoveries for which `steps` stays as it is.
    persist: u8,
    /// When to look again.
    pub(in crate::send) timer: Option<Duration>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            reordering: false,
            steps: 1,
            persist: 0,
            timer: None,
        }
    }
}

impl Rack {
    /// After T3: all that was sent before is to be sent again anyway.
    pub(in crate::send) fn restart(&mut self) {
        self.newest = None;
        self.timer = None;
    }

    /// A recovery has ended.
    pub(in crate::send) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Something had arrived that was believed lost: wait longer from now on.
    pub(in crate::send) fn on_spurious(&mut self) {
        self.reordering = true;
        self.steps = (self.steps + 1).min(MAX_STEPS);
        self.persist = PERSISTENCE;
    }

    /// How long reordering may take (`RACK.reo_wnd`).
    fn window(&self, least: Duration, smoothed: Duration, in_recovery: bool) -> Duration {
        if !self.reordering && in_recovery {
            return Duration::ZERO;
        }
        (least / 4 * u32::from(self.steps)).min(smoothed)
    }
}

impl Flight {
    /// Whether a packet with something retransmitted was sent so short a time ago that what
    /// arrived must be an earlier transmission (RFC 8985 §6.2 step 2).
    pub(in crate::send) fn is_too_soon(
        &self,
        packet: PacketNumber,
        now: Duration,
        least: Option<Duration>,
    ) -> bool {
        let (Some(sent), Some(least)) = (self.sent_at(packet), least) else { return true };
        now.saturating_sub(sent) < least
    }

    /// Takes in what a SACK acknowledged (RFC 8985 §6.2 steps 2 and 3).
    pub(in crate::send) fn note_newest(&mut self, now: Duration) {
        self.rack.reordering |= self.seen.late;
        let Some(packet) = self.seen.newest else { return };
        if self.rack.newest.is_some_and(|(known, _)| !is_newer(packet, known)) {
            return;
        }
        if let Some(sent) = self.sent_at(packet) {
            self.rack.newest = Some((packet, sent));
            self.rack.rtt = now.saturating_sub(sent);
        }
    }
}

impl Sender {
    /// Finds what was lost on a path (RFC 8985 §6.2 step 5).
    pub(super) fn detect_by_time(&mut self, number: u8, now: Duration, paths: &mut Paths) {
        let flight = self.outstanding.flight_mut(number);
        flight.rack.timer = None;
        let Some((newest, newest_sent)) = flight.rack.newest else { return };
        let Some(id) = flight.path else { return };
        let Some(path) = paths.get(id) else { return };
        let least = path.rto.least().unwrap_or(flight.rack.rtt);
        let smoothed = path.rto.smoothed().unwrap_or(flight.rack.rtt);
        let window = flight.rack.window(least, smoothed, flight.recovery.is_some());
        let patience = flight.rack.rtt.saturating_add(window);
        let to = path_for_lost(self.multipath.as_deref(), id, paths);
        // What a report left out for want of room may have arrived.
        let cut = super::super::gap_blocks::deniable(&self.reported.arrived);
        let mut lost = 0;
        let mut newest_lost = newest;
        loop {
            let (flight, chunks) = self.outstanding.flight_and_chunks(number);
            let Some(run) = flight.oldest(number, chunks) else { break };
            if run.sent > newest_sent || !is_newer(newest, run.packet) {
                break;
            }
            if cut.is_some_and(|cut| run.first.is_after(cut)) {
                break;
            }
            let deadline = run.sent.saturating_add(patience);
            if deadline > now {
                flight.rack.timer = Some(deadline);
                break;
            }
            flight.drop_oldest();
            lost += self.lose_run(number, &run, to, Meaning::Loss, now, paths);
            newest_lost = run.packet;
        }
        if lost > 0 {
            self.begin_recovery(number, lost, newest_lost, now, paths);
        }
    }
}
