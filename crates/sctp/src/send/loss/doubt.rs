//! A path that has fallen silent: with another one at hand, data does not wait for T3, which is a
//! second at least, but moves on when a tail-loss probe has gone unanswered: three round trips after
//! the last sign of life, and as much as round trips vary.
//!
//! Nothing is counted as lost and no window is cut: the path becomes potentially failed
//! (RFC 7829 §3.2), a heartbeat asks it, and with the answer data goes there again.

use core::time::Duration;

use super::super::Sender;
use super::super::multipath::path_instead_of;
use super::super::retransmission::Meaning;
use crate::identifier::PathId;
use crate::path::{PathState, Paths};

/// The shortest time from now to a doubt: old news comes in one SACK after the other.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// The shortest silence that casts doubt on a path: hosts pause for that long.
const LEAST_SILENCE: Duration = Duration::from_millis(100);

impl Sender {
    /// Begins to wait for a sign of life of a path that has data under way; anew if it was `alive` at
    /// some time.
    pub(in crate::send) fn schedule_doubt(
        &mut self,
        number: u8,
        now: Duration,
        alive: Option<Duration>,
        paths: &Paths,
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
        // A probe goes after two round trips. Its answer takes one and what round trips vary by, but
        // not more than two: they vary much only while little is known of them.
        let varies = (path.rto.variance() * 4).clamp(smoothed / 4, smoothed);
        let answer = smoothed.saturating_add(varies);
        let mut silence = (smoothed * 2).saturating_add(answer).max(LEAST_SILENCE);
        if flight.has_one_packet() {
            silence = silence.saturating_add(self.rules.sack_delay);
        }
        flight.doubt = Some(alive.unwrap_or(now).saturating_add(silence).max(now + LEAST_WAIT));
    }

    /// Nothing came back for long: what is under way is sent on another path, if one works.
    pub(super) fn doubt(&mut self, number: u8, now: Duration, paths: &mut Paths) {
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
        self.leave_silent(number, to, now, paths);
    }

    /// What is under way on a path that does not answer is sent on `to`.
    fn leave_silent(&mut self, number: u8, to: PathId, now: Duration, paths: &mut Paths) {
        while let Some(run) = self.outstanding.take_oldest_run(number) {
            self.lose_run(number, &run, to, Meaning::Nothing, now, paths);
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

    /// A path works, after a time in which perhaps none did. What is under way on one that failed
    /// was sent there for want of a better one, and is sent again on `to`; on one that is back it was
    /// lost while that was away, and waits no longer than timeouts last now.
    pub(in crate::send) fn catch_up(
        &mut self,
        number: u8,
        to: PathId,
        now: Duration,
        paths: &mut Paths,
    ) {
        let works = |id| paths.get(id).is_some_and(|path| path.state() == PathState::Active);
        let Some(id) = self.outstanding.path_of(number).filter(|_| self.rules.returns_at_once)
        else {
            return;
        };
        if works(id) {
            if let Some(path) = paths.get_mut(id) {
                let soon = now.saturating_add(path.rto.current());
                path.t3 = path.t3.map(|t3| t3.min(soon));
            }
        } else if works(to) && !self.peer_window.is_probing(&self.outstanding) {
            self.leave_silent(number, to, now, paths);
        }
    }
}
