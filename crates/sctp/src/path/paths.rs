//! All paths of an association: the primary one, the choice of one, what changed.

use alloc::{collections::VecDeque, vec::Vec};
use core::net::{IpAddr, SocketAddr};

use super::{Path, PathState, draw::Draw};
use crate::config::AssociationConfig;
use crate::congestion::{Member, Siblings, nanoseconds};
use crate::event::PathChange;
use crate::identifier::PathId;

/// The most changes of paths that wait to be fetched; the oldest go first.
const MAX_CHANGES: usize = 256;

/// The most paths of an association: the number of one, among those that carry data, is a byte.
pub(crate) const MAX_PATHS: usize = 255;

/// The paths of one association.
#[derive(Debug)]
pub struct Paths {
    pub(super) paths: Vec<Path>,
    primary: PathId,
    next_id: u16,
    /// Errors in a row on all paths together (RFC 9260 §8.1).
    errors: u32,
    changes: VecDeque<(PathId, PathChange)>,
    /// The slow-start threshold of paths that are added, in bytes.
    initial_threshold: Option<usize>,
    /// What nonces and jitter are drawn from.
    pub(super) draw: Draw,
    /// Whether heartbeats go.
    pub(super) running: bool,
    /// Before this time nothing is to be done about heartbeats, in nanoseconds.
    pub(super) due: u64,
    /// When addresses may be verified again, in nanoseconds.
    pub(super) verify_after: u64,
    /// Addresses whose verification was tried until then.
    pub(super) verifications: u16,
    /// Verifications that were not answered.
    pub(super) unanswered: u8,
    /// Whether somebody counts verifications over all associations.
    pub(super) permit: Permit,
    /// Addresses that were verified since that was last asked.
    pub(super) verified: u8,
    /// Whether the last path that worked has failed, and nobody has looked at the others since.
    pub(super) last_has_failed: bool,
}

/// Whether an address may be verified now, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Nobody counts.
    NotNeeded,
    /// It has to be asked for.
    Needed,
    /// There is one.
    Given,
}

impl Paths {
    /// With one path, the primary one, to an address that needs no verification: the one that the
    /// handshake runs over.
    #[must_use]
    pub fn new(
        remote: SocketAddr,
        local: Option<IpAddr>,
        config: &AssociationConfig,
        seed: [u8; 32],
    ) -> Self {
        let primary = PathId(0);
        let mut path = Path::new(primary, remote, local, config);
        path.confirm();
        path.beat.rest();
        let (paths, changes) = (alloc::vec![path], VecDeque::new());
        Self {
            paths,
            primary,
            next_id: 1,
            errors: 0,
            changes,
            initial_threshold: None,
            draw: Draw::new(seed),
            running: false,
            due: 0,
            verify_after: 0,
            verifications: 0,
            unanswered: 0,
            permit: Permit::NotNeeded,
            verified: 0,
            last_has_failed: false,
        }
    }

    /// One path.
    #[must_use]
    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.paths.iter().find(|path| path.id == id)
    }

    /// One path.
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.id == id)
    }

    /// All paths, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    /// All paths, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.paths.iter_mut()
    }

    /// How many there are; at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an association without a path is none")]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// The primary path (RFC 9260 §6.4).
    #[must_use]
    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// The path that a packet from `remote` belongs to. Several paths to one address are told
    /// apart by our own address, if it is known.
    #[must_use]
    pub fn by_remote(&self, remote: SocketAddr, local: Option<IpAddr>) -> Option<PathId> {
        let of_remote = || self.paths.iter().filter(|path| path.remote == remote);
        let exact = of_remote().find(|path| local.is_some() && path.local == local);
        exact.or_else(|| of_remote().next()).map(|path| path.id)
    }

    /// The path to an address of the peer, whatever the port of the encapsulation.
    #[must_use]
    pub fn by_address(&self, remote: IpAddr) -> Option<PathId> {
        self.paths.iter().find(|path| path.remote.ip() == remote).map(|path| path.id)
    }

    /// Slow start ends at this window at the latest, in bytes, on paths of which nothing is known:
    /// what there are, and what are added.
    pub fn begin_with_threshold(&mut self, bytes: usize) {
        self.initial_threshold = Some(bytes);
        for path in &mut self.paths {
            path.congestion.begin_with_threshold(bytes);
        }
    }

    /// Takes one address more, unconfirmed (RFC 9260 §5.4). `None` if there are 255 already, or no
    /// number is left; the path that is there already if it is not new.
    pub fn add(
        &mut self,
        remote: SocketAddr,
        local: Option<IpAddr>,
        config: &AssociationConfig,
    ) -> Option<PathId> {
        if let Some(known) = self.paths.iter().find(|path| path.remote == remote) {
            return Some(known.id);
        }
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        let id = PathId(self.next_id);
        self.next_id = self.next_id.checked_add(1)?;
        let mut path = Path::new(id, remote, local, config);
        if let Some(bytes) = self.initial_threshold {
            path.congestion.begin_with_threshold(bytes);
        }
        self.paths.push(path);
        self.note(id, PathChange::Added);
        Some(id)
    }

    /// Drops a path, unless it is the last one. If it was the primary one, the best of the others
    /// becomes that.
    pub fn remove(&mut self, id: PathId) -> Option<Path> {
        if self.paths.len() < 2 {
            return None;
        }
        let index = self.paths.iter().position(|path| path.id == id)?;
        let path = self.paths.remove(index);
        self.note(id, PathChange::Removed);
        if self.primary == id {
            let next = self.best().unwrap_or(self.paths[0].id);
            self.make_primary(next);
        }
        Some(path)
    }

    /// Makes a path the primary one (`SCTP_PRIMARY_ADDR`). Refuses one that is not confirmed
    /// (RFC 9260 §5.4).
    pub fn set_primary(&mut self, id: PathId) -> bool {
        match self.get(id) {
            Some(path) if path.state() != PathState::Unconfirmed => {
                if self.primary != id {
                    self.make_primary(id);
                }
                true
            }
            _ => false,
        }
    }

    /// A packet of the peer's came from another UDP port than before: a NAT has changed it
    /// (RFC 6951 §5.4). The packet must have been verified.
    pub fn rebind(&mut self, id: PathId, remote: SocketAddr) {
        let Some(path) = self.get_mut(id) else { return };
        let moved = path.is_encapsulated() && remote.port() != 0 && path.remote != remote;
        if moved && path.remote.ip() == remote.ip() {
            path.remote = remote;
            self.note(id, PathChange::Rebound);
        }
    }

    /// The path for new data: the preferred one, or the primary one, while it is active; else
    /// another active one, else a potentially failed one, else whichever had the least errors
    /// (RFC 9260 §6.4, RFC 7829 §3.2). Never an unconfirmed one.
    #[must_use]
    pub fn for_data(&self, preferred: Option<PathId>) -> Option<PathId> {
        for wanted in preferred.into_iter().chain([self.primary]) {
            if self.get(wanted).is_some_and(|path| path.state() == PathState::Active) {
                return Some(wanted);
            }
        }
        self.best()
    }

    /// The path for what was lost on `from`: another active one (RFC 9260 §6.4.1), else the one
    /// that new data would take.
    #[must_use]
    pub fn for_retransmission(&self, from: PathId) -> PathId {
        let other = |path: &&Path| path.id != from && path.state() == PathState::Active;
        if self.get(self.primary).is_some_and(|path| other(&path)) {
            return self.primary;
        }
        let active = self.paths.iter().filter(other).min_by_key(|path| path.errors());
        active.map(|path| path.id).or_else(|| self.for_data(None)).unwrap_or(from)
    }

    /// What had to be answered was not in time: data (T3), or a request. Counts for the path and,
    /// unless the path is unconfirmed, for the association (RFC 9260 §8.1, §8.2, §5.4).
    pub fn on_error(&mut self, id: PathId, config: &AssociationConfig) {
        let counts = self.get(id).is_some_and(|path| path.state() != PathState::Unconfirmed);
        self.count_error(id, counts, config);
    }

    /// A heartbeat was not answered in time. Counts for the path and, if that is the one which data
    /// would take, for the association: it works if that one does (RFC 9260 §8.1).
    pub(super) fn on_heartbeat_lost(&mut self, id: PathId, config: &AssociationConfig) {
        let counts = self.for_data(None) == Some(id);
        self.count_error(id, counts, config);
    }

    fn count_error(&mut self, id: PathId, counts: bool, config: &AssociationConfig) {
        let Some(path) = self.get_mut(id) else { return };
        let change = path.on_error(config);
        if counts {
            self.errors = self.errors.saturating_add(1);
        }
        self.note_all(id, change);
        self.switch_over(id, config);
    }

    /// A path worked: data sent on it was acknowledged.
    pub fn on_answer(&mut self, id: PathId) {
        self.errors = 0;
        let change = self.get_mut(id).and_then(Path::on_answer);
        self.note_all(id, change);
        // Data gets through: the MTU may be looked for.
        self.wake();
    }

    /// The peer was reached, whichever path that was (RFC 9260 §8.1).
    pub fn on_peer_alive(&mut self) {
        self.errors = 0;
    }

    /// The peer has shown that it can be reached on this path.
    pub fn confirm(&mut self, id: PathId) {
        let change = self.get_mut(id).and_then(Path::confirm);
        if change == Some(PathChange::Confirmed) {
            self.unanswered = self.unanswered.saturating_sub(1);
            self.verified = self.verified.saturating_add(1);
        }
        self.note_all(id, change);
    }

    /// A tail-loss probe on the path went unanswered: others are better, if there are any.
    pub fn suspect(&mut self, id: PathId) {
        let active = |path: &Path| path.id != id && path.state() == PathState::Active;
        if self.paths.iter().any(active) {
            let change = self.get_mut(id).and_then(Path::suspect);
            self.note_all(id, change);
        }
    }

    /// Whether data waits to be sent again on a path at once.
    pub fn set_resends(&mut self, id: PathId, resends: bool) {
        if let Some(path) = self.get_mut(id) {
            path.resends = resends;
        }
    }

    /// Whether the peer counts as gone: more than `Association.Max.Retrans` errors in a row
    /// (RFC 9260 §8.1).
    #[must_use]
    pub fn is_peer_unreachable(&self, config: &AssociationConfig) -> bool {
        self.errors > config.association_max_retrans
    }

    /// Errors in a row on all paths together.
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// The next change of a path that the user has not been told of.
    pub fn poll_change(&mut self) -> Option<(PathId, PathChange)> {
        self.changes.pop_front()
    }

    /// What a path is to know of the others that carry data. Nothing, if its congestion control does
    /// not ask.
    #[must_use]
    pub fn siblings(&self, id: PathId) -> Siblings {
        let Some(own) = self.get(id).filter(|path| path.congestion.is_coupled()) else {
            return Siblings::default();
        };
        let carries = |path: &&Path| {
            path.id == id || (path.state() == PathState::Active && path.last_sent().is_some())
        };
        Siblings::of(&member(own), self.paths.iter().filter(carries).map(member))
    }

    /// The best path; `None` if none is confirmed.
    fn best(&self) -> Option<PathId> {
        let rank = |state| match state {
            PathState::Active => 0,
            PathState::PotentiallyFailed => 1,
            PathState::Inactive | PathState::Unconfirmed => 2,
        };
        let usable = |path: &&Path| path.state() != PathState::Unconfirmed;
        // The primary path wins among equals, then the oldest.
        let key = |path: &&Path| (rank(path.state()), path.errors(), path.id != self.primary);
        self.paths.iter().filter(usable).min_by_key(key).map(|path| path.id)
    }

    /// Gives up the primary path for good after so many errors, if that is wished: the path that
    /// carries data instead becomes the primary one (RFC 7829 §5, `PSMR`).
    fn switch_over(&mut self, id: PathId, config: &AssociationConfig) {
        let Some(limit) = config.primary_switchover_max_retrans else { return };
        let limit = limit.max(config.potentially_failed_max_retrans);
        let failed = self.get(id).is_some_and(|path| path.errors() > limit);
        if id != self.primary || !failed {
            return;
        }
        if let Some(next) = self.for_data(None).filter(|next| *next != id) {
            self.make_primary(next);
        }
    }

    fn make_primary(&mut self, id: PathId) {
        self.primary = id;
        self.note(id, PathChange::MadePrimary);
    }

    fn note_all(&mut self, id: PathId, change: Option<PathChange>) {
        if let Some(change) = change {
            self.note(id, change);
        }
    }

    /// Has heartbeats looked at at the next opportunity.
    pub(super) fn wake(&mut self) {
        self.due = 0;
    }

    fn note(&mut self, id: PathId, change: PathChange) {
        if self.changes.len() >= MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((id, change));
        if change == PathChange::PotentiallyFailed
            && let Some(path) = self.get_mut(id)
        {
            // RFC 7829 §3.2: find out at once, and perhaps over another way out of here.
            path.beat.hasten();
            path.forget_local();
        }
        if change == PathChange::PotentiallyFailed {
            let others = self.iter_mut().filter(|path| path.id != id);
            others.for_each(|path| path.forget_answers_over(id));
        }
        if matches!(change, PathChange::PotentiallyFailed | PathChange::Inactive) {
            let works = |path: &Path| path.state() == PathState::Active;
            self.last_has_failed = !self.paths.iter().any(works);
        }
        self.wake();
    }
}

fn member(path: &Path) -> Member {
    Member {
        window: path.congestion.window(),
        mtu: path.mtu(),
        slow_start_threshold: path.congestion.slow_start_threshold(),
        smoothed_rtt: path.rto.smoothed().map_or(0, nanoseconds),
        loss_interval: path.congestion.loss_interval(),
    }
}

#[cfg(test)]
mod tests;
