//! Paths that have fallen silent: if there is another path, data does not wait for T3, which is a
//! second at least, but moves when a tail loss probe has gone unanswered: three round trips plus
//! their variation after the last sign of life.
//!
//! Nothing is counted as lost and no window is reduced: the path becomes potentially failed (RFC
//! 7829 §3.2), a heartbeat checks it, and data returns to it when that is answered.

use core::time::Duration;

use super::super::AssociationSender;
use super::super::multipath::path_instead_of;
use super::super::retransmission::RetransmitReason;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, PathState};

/// The minimum time from now to a doubt: outdated SACKs arrive in quick succession.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// The minimum silence that casts doubt on a path: hosts pause for that long.
const MIN_SILENCE: Duration = Duration::from_millis(100);

impl AssociationSender {
    /// Starts to wait for a sign of life of a path with data in flight; restarts if it was `alive`
    /// at some time.
    pub(in crate::send) fn schedule_doubt(
        &mut self,
        number: u8,
        now: Duration,
        alive: Option<Duration>,
        paths: &AssociationPaths,
    ) {
        let is_only = paths.len() < 2 || !self.rules.suspects_silence;
        let flight = self.outstanding.flight_mut(number);
        let path = flight.path.filter(|_| !is_only).and_then(|id| paths.get(id));
        let waits = path.filter(|path| path.outstanding() > 0);
        let Some((path, smoothed)) = waits.and_then(|path| Some((path, path.rto.smoothed()?)))
        else {
            flight.doubt = None;
            return;
        };
        if flight.doubt.is_some() && alive.is_none() {
            return;
        }
        // A probe is sent after two round trips. Its response takes one plus the variation, but not
        // more than two: a large variation only means that there were few measurements.
        let varies = (path.rto.variance() * 4).clamp(smoothed / 4, smoothed);
        let answer = smoothed.saturating_add(varies);
        let mut silence = (smoothed * 2).saturating_add(answer).max(MIN_SILENCE);
        if flight.has_one_packet() {
            silence = silence.saturating_add(self.rules.sack_delay);
        }
        flight.doubt = Some(alive.unwrap_or(now).saturating_add(silence).max(now + MIN_WAIT));
    }

    /// Moves the data in flight to another active path, if there is one, after a long silence.
    pub(super) fn doubt(&mut self, number: u8, now: Duration, paths: &mut AssociationPaths) {
        let flight = self.outstanding.flight_mut(number);
        flight.doubt = None;
        let Some(id) = flight.path else { return };
        let is_waiting = paths.get(id).is_some_and(|path| path.outstanding() > 0);
        if !is_waiting || self.peer_window.is_probing(&self.outstanding) {
            return;
        }
        paths.suspect(id);
        let state = paths.get(id).map(crate::path::Path::state);
        let to = path_instead_of(self.multipath.as_deref(), id, paths);
        if state != Some(PathState::PotentiallyFailed) || to == id {
            return;
        }
        self.move_outstanding(number, to, now, paths);
    }

    /// Moves the data in flight on a path that does not respond to `to`.
    fn move_outstanding(
        &mut self,
        number: u8,
        to: PathId,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        while let Some(run) = self.outstanding.take_oldest_run(number) {
            self.lose_run(number, &run, to, RetransmitReason::NotLost, now, paths);
        }
        let must_run = self.must_forward();
        let flight = self.outstanding.flight_mut(number);
        flight.rack.restart();
        flight.probe.cancel();
        flight.doubt = None;
        if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
            path.t3 = path.t3.filter(|_| must_run);
        }
    }

    /// Handles a path that works again, perhaps after none did. Data in flight on a failed path was
    /// sent there for lack of a better one and moves to `to`; on a path that recovered it was lost
    /// while the path was down, and waits no longer than the current timeout.
    pub(in crate::send) fn catch_up(
        &mut self,
        number: u8,
        to: PathId,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let works = |id| paths.get(id).is_some_and(|path| path.state() == PathState::Active);
        let Some(id) = self.outstanding.path_of(number).filter(|_| self.rules.recovers_immediately)
        else {
            return;
        };
        if works(id) {
            if let Some(path) = paths.get_mut(id) {
                let soon = now.saturating_add(path.rto.current());
                path.t3 = path.t3.map(|t3| t3.min(soon));
            }
        } else if works(to) && !self.peer_window.is_probing(&self.outstanding) {
            self.move_outstanding(number, to, now, paths);
        }
    }
}
