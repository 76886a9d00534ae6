//! RACK: a packet is lost if one that was sent later on the same path has arrived, and the
//! reordering window has passed (RFC 8985 §6).

use core::time::Duration;

use super::super::AssociationSender;
use super::super::acknowledgement::is_newer;
use super::super::multipath::{path_for_lost, sooner_path};
use super::super::outstanding::PathFlight;
use super::super::retransmission::RetransmitReason;
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::path::AssociationPaths;

/// The maximum number of quarters of the least round trip that reordering is given.
const MAX_STEPS: u8 = 16;

/// The number of recoveries after which a wider reordering window is reset (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;

/// The RACK state of a path.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct RackState {
    /// The most recently sent packet that has been delivered, and when it was sent.
    newest: Option<(PacketNumber, Duration)>,
    /// Its RTT.
    rtt: Duration,
    /// Whether reordering has been observed.
    reordering: bool,
    /// The reordering window, in quarters of the minimum RTT.
    steps: u8,
    /// The number of recoveries for which `steps` is kept.
    persist: u8,
    /// When to check again.
    pub(in crate::send) timer: Option<Duration>,
}

impl Default for RackState {
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

impl RackState {
    /// Restarts after T3: everything sent before is retransmitted anyway.
    pub(in crate::send) fn restart(&mut self) {
        self.newest = None;
        self.timer = None;
    }

    /// Records the end of a recovery.
    pub(in crate::send) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Records a spurious retransmission: widens the reordering window.
    pub(in crate::send) fn on_spurious(&mut self) {
        self.reordering = true;
        self.steps = (self.steps + 1).min(MAX_STEPS);
        self.persist = PERSISTENCE;
    }

    /// Returns the reordering window (`RACK.reo_wnd`).
    fn window(&self, min_rtt: Duration, smoothed: Duration, in_recovery: bool) -> Duration {
        if !self.reordering && in_recovery {
            return Duration::ZERO;
        }
        (min_rtt / 4 * u32::from(self.steps)).min(smoothed)
    }
}

impl PathFlight {
    /// Returns whether a packet with something retransmitted was sent so short a time ago that what
    /// arrived must be an earlier transmission (RFC 8985 §6.2 step 2).
    pub(in crate::send) fn is_too_soon(
        &self,
        packet: PacketNumber,
        now: Duration,
        min_rtt: Option<Duration>,
    ) -> bool {
        let (Some(sent), Some(min_rtt)) = (self.sent_at(packet), min_rtt) else { return true };
        now.saturating_sub(sent) < min_rtt
    }

    /// Updates RACK with what a SACK acknowledged (RFC 8985 §6.2 steps 2 and 3).
    pub(in crate::send) fn update_rack(&mut self, now: Duration) {
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

impl AssociationSender {
    /// Detects losses on a path (RFC 8985 §6.2 step 5).
    pub(super) fn detect_by_time(
        &mut self,
        number: u8,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let flight = self.outstanding.flight_mut(number);
        flight.rack.timer = None;
        let Some((newest, newest_sent)) = flight.rack.newest else { return };
        let Some(id) = flight.path else { return };
        let Some(path) = paths.get(id) else { return };
        let min_rtt = path.rto.min_rtt().unwrap_or(flight.rack.rtt);
        let smoothed = path.rto.smoothed().unwrap_or(flight.rack.rtt);
        let window = flight.rack.window(min_rtt, smoothed, flight.recovery.is_some());
        let timeout = flight.rack.rtt.saturating_add(window);
        let packet = path.mtu();
        let to = path_for_lost(self.multipath.as_deref(), id, paths);
        let mut sooner = self.sooner_path_with_room(id, paths);
        // What a truncated report omitted may have arrived.
        let conclusive_end = super::super::gap_blocks::last_conclusive(&self.reported.arrived);
        let mut lost = 0;
        let mut newest_lost = newest;
        loop {
            let (flight, chunks) = self.outstanding.flight_and_chunks(number);
            let Some(run) = flight.oldest(number, chunks) else { break };
            if run.sent > newest_sent || !is_newer(newest, run.packet) {
                break;
            }
            if conclusive_end.is_some_and(|conclusive_end| run.first.is_after(conclusive_end)) {
                break;
            }
            let deadline = run.sent.saturating_add(timeout);
            if deadline > now {
                flight.rack.timer = Some(deadline);
                break;
            }
            flight.drop_oldest();
            let to = take_room(&mut sooner, packet).unwrap_or(to);
            lost += self.lose_run(number, &run, to, RetransmitReason::Loss, now, paths);
            newest_lost = run.packet;
        }
        if lost > 0 {
            self.begin_recovery(number, lost, newest_lost, now, paths);
        }
    }

    /// Returns the path that delivers what `from` lost earlier, with the bytes that it has room for.
    /// Only what can be sent at once moves, lest all that a fast path lost waits for a slow one.
    fn sooner_path_with_room(
        &self,
        from: PathId,
        paths: &AssociationPaths,
    ) -> Option<(PathId, usize)> {
        let (to, room) = sooner_path(self.multipath.as_deref(), from, paths)?;
        let waiting = self.outstanding.flight_on(to).map_or(0, PathFlight::pending_retransmissions);
        (waiting == 0).then_some((to, room))
    }
}

/// Takes a packet from the room of a path, and returns that path; `None` once there is no room.
fn take_room(path: &mut Option<(PathId, usize)>, packet: usize) -> Option<PathId> {
    let (to, room) = path.as_mut().filter(|(_, room)| *room > 0)?;
    *room = room.saturating_sub(packet);
    Some(*to)
}
