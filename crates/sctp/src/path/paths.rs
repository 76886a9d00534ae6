//! All paths of an association: the primary path, path selection, and path changes.

use alloc::{collections::VecDeque, vec::Vec};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::{Path, PathState, nonces::NonceGenerator};
use crate::config::AssociationConfig;
use crate::congestion::{SiblingPath, SiblingPaths, nanoseconds};
use crate::event::PathChange;
use crate::identifier::PathId;

/// The maximum number of changes of paths that wait to be fetched; the oldest go first.
const MAX_CHANGES: usize = 256;

/// The maximum number of paths of an association: the index of a path with data is a byte.
pub(crate) const MAX_PATHS: usize = 255;

/// The most packets in flight on a path that carries no bulk.
const SPARSE_PACKETS: usize = 4;

/// The paths of one association.
#[derive(Debug)]
pub struct AssociationPaths {
    pub(super) paths: Vec<Path>,
    primary: PathId,
    next_id: u16,
    /// Consecutive errors on all paths together (RFC 9260 §8.1).
    errors: u32,
    changes: VecDeque<(PathId, PathChange)>,
    /// The slow-start threshold of paths that are added, in bytes.
    initial_threshold: Option<usize>,
    /// The generator of nonces and jitter.
    pub(super) nonces: NonceGenerator,
    /// Whether heartbeats are sent.
    pub(super) is_running: bool,
    /// The time before which there is nothing to do about heartbeats, in nanoseconds.
    pub(super) due: u64,
    /// When addresses may be verified again, in nanoseconds.
    pub(super) verify_after: u64,
    /// The number of verifications started until then.
    pub(super) verifications: u16,
    /// The number of unanswered verifications.
    pub(super) unanswered_verifications: u8,
    /// Whether verifications need a permit that is limited over all associations.
    pub(super) permit: VerificationPermit,
    /// The number of addresses verified since the last query.
    pub(super) verified: u8,
    /// Whether the last active path has failed, and the others have not been probed since.
    pub(super) last_active_failed: bool,
}

/// Whether a verification is permitted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerificationPermit {
    /// No permit is needed.
    NotNeeded,
    /// A permit has to be requested.
    Needed,
    /// A permit has been granted.
    Given,
}

impl AssociationPaths {
    /// Creates one path, the primary one, to an address that needs no verification: that of the
    /// handshake.
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
        path.heartbeats.reschedule();
        let (paths, changes) = (alloc::vec![path], VecDeque::new());
        Self {
            paths,
            primary,
            next_id: 1,
            errors: 0,
            changes,
            initial_threshold: None,
            nonces: NonceGenerator::new(seed),
            is_running: false,
            due: 0,
            verify_after: 0,
            verifications: 0,
            unanswered_verifications: 0,
            permit: VerificationPermit::NotNeeded,
            verified: 0,
            last_active_failed: false,
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

    /// Returns the number of paths; at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an association has at least one path")]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the primary path (RFC 9260 §6.4).
    #[must_use]
    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// Returns the path that a packet from `remote` belongs to. Several paths to one address are
    /// distinguished by our own address, if it is known.
    #[must_use]
    pub fn by_remote(&self, remote: SocketAddr, local: Option<IpAddr>) -> Option<PathId> {
        if let [only] = self.paths.as_slice() {
            return (only.remote == remote).then_some(only.id);
        }
        let to_remote = || self.paths.iter().filter(|path| path.remote == remote);
        let exact = to_remote().find(|path| local.is_some() && path.local == local);
        exact.or_else(|| to_remote().next()).map(|path| path.id)
    }

    /// Returns the path to an address of the peer, regardless of the encapsulation port.
    #[must_use]
    pub fn by_address(&self, remote: IpAddr) -> Option<PathId> {
        self.paths.iter().find(|path| path.remote.ip() == remote).map(|path| path.id)
    }

    /// Sets the slow-start threshold in bytes of all paths without measurements, current and
    /// future.
    pub fn set_initial_threshold(&mut self, bytes: usize) {
        self.initial_threshold = Some(bytes);
        for path in &mut self.paths {
            path.congestion.begin_with_threshold(bytes);
        }
    }

    /// Adds an unconfirmed address (RFC 9260 §5.4), or returns the existing path. Returns `None` if
    /// there are 255 paths, or no identifier is left.
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
        self.push_change(id, PathChange::Added);
        Some(id)
    }

    /// Removes a path, unless it is the last one. If it was the primary path, the best of the
    /// others becomes primary.
    pub fn remove(&mut self, id: PathId) -> Option<Path> {
        if self.paths.len() < 2 {
            return None;
        }
        let index = self.paths.iter().position(|path| path.id == id)?;
        let path = self.paths.remove(index);
        self.push_change(id, PathChange::Removed);
        if self.primary == id {
            let next = self.best().unwrap_or(self.paths[0].id);
            self.make_primary(next);
        }
        Some(path)
    }

    /// Makes a path primary (`SCTP_PRIMARY_ADDR`). Returns false if it is not confirmed (RFC 9260
    /// §5.4).
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

    /// Handles a packet from a new UDP port of the peer, as after a change of a NAT mapping (RFC
    /// 6951 §5.4). The packet must have been verified.
    pub fn rebind(&mut self, id: PathId, remote: SocketAddr) {
        let Some(path) = self.get_mut(id) else { return };
        let moved = path.is_encapsulated() && remote.port() != 0 && path.remote != remote;
        if moved && path.remote.ip() == remote.ip() {
            path.remote = remote;
            self.push_change(id, PathChange::Rebound);
        }
    }

    /// Returns the path for new data: the preferred one or the primary one, while it is active;
    /// otherwise another active one, a potentially failed one, or the one with the fewest errors
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

    /// Returns the path for chunks that may take any: that for new data or, before any is confirmed,
    /// the primary one.
    pub(crate) fn default_path(&self) -> PathId {
        self.for_data(None).unwrap_or(self.primary)
    }

    /// Returns the next path after `last`, cyclically, that is suitable.
    pub(crate) fn next_after(&self, last: PathId, is_suitable: impl Fn(&Path) -> bool) -> PathId {
        let others = || self.paths.iter().filter(|path| is_suitable(path));
        let later = others().find(|path| path.id > last);
        later.or_else(|| others().next()).map_or(last, |path| path.id)
    }

    /// Returns the path for data lost on `from`: another active one (RFC 9260 §6.4.1), otherwise
    /// the one for new data.
    #[must_use]
    pub fn for_retransmission(&self, from: PathId) -> PathId {
        let other = |path: &&Path| path.id != from && path.state() == PathState::Active;
        if self.get(self.primary).is_some_and(|path| other(&path)) {
            return self.primary;
        }
        let active = self.paths.iter().filter(other).min_by_key(|path| path.errors());
        active.map(|path| path.id).or_else(|| self.for_data(None)).unwrap_or(from)
    }

    /// Counts an error: data (T3) or a request was not answered in time. It counts for the path
    /// and, unless that is unconfirmed, for the association (RFC 9260 §8.1, §8.2, §5.4).
    pub fn on_error(&mut self, id: PathId, config: &AssociationConfig) {
        let counts_for_association =
            self.get(id).is_some_and(|path| path.state() != PathState::Unconfirmed);
        self.count_error(id, counts_for_association, config);
    }

    /// Counts a control request that was not answered in time: ASCONF, RE-CONFIG.
    pub(crate) fn on_request_timeout(&mut self, id: PathId, config: &AssociationConfig) {
        if let Some(path) = self.get_mut(id) {
            path.back_off();
        }
        self.on_error(id, config);
    }

    /// Counts a lost heartbeat. It counts for the path and, if that is the one for new data, for
    /// the association, which works if that path does (RFC 9260 §8.1).
    pub(super) fn on_heartbeat_lost(&mut self, id: PathId, config: &AssociationConfig) {
        let counts_for_association = self.for_data(None) == Some(id);
        self.count_error(id, counts_for_association, config);
    }

    fn count_error(
        &mut self,
        id: PathId,
        counts_for_association: bool,
        config: &AssociationConfig,
    ) {
        let fewest = self.fewest_errors();
        let Some(path) = self.get_mut(id) else { return };
        let change = path.on_error(config);
        // RFC 9260 §8.1 counts the timeouts of all paths together, but has data on one path at a
        // time. Where all paths carry data, an outage of all of them makes each of their timers
        // expire, and would end the association the sooner the more paths it has. So an error counts
        // there once no path has fewer.
        let is_repetition = config.multipath.is_some() && self.fewest_errors() == fewest;
        if counts_for_association && !is_repetition {
            self.errors = self.errors.saturating_add(1);
        }
        self.push_changes(id, change);
        self.switch_over(id, config);
    }

    /// Returns the consecutive errors of the confirmed path that has the fewest.
    fn fewest_errors(&self) -> u32 {
        let confirmed = self.paths.iter().filter(|path| path.state() != PathState::Unconfirmed);
        confirmed.map(Path::errors).min().unwrap_or(0)
    }

    /// Records that data sent on a path was acknowledged.
    pub fn on_answer(&mut self, id: PathId) {
        self.errors = 0;
        let change = self.get_mut(id).and_then(Path::on_answer);
        self.push_changes(id, change);
        // Data gets through: a search for the MTU may start.
        self.wake();
    }

    /// Records that the peer was reached on some path (RFC 9260 §8.1).
    pub fn on_peer_alive(&mut self) {
        self.errors = 0;
    }

    /// Confirms that the peer can be reached on this path.
    pub fn confirm(&mut self, id: PathId) {
        let change = self.get_mut(id).and_then(Path::confirm);
        if change == Some(PathChange::Confirmed) {
            self.unanswered_verifications = self.unanswered_verifications.saturating_sub(1);
            self.verified = self.verified.saturating_add(1);
        }
        self.push_changes(id, change);
    }

    /// Marks a path as potentially failed after an unanswered tail loss probe, if there are other
    /// active paths.
    pub fn suspect(&mut self, id: PathId) {
        let active = |path: &Path| path.id != id && path.state() == PathState::Active;
        if self.paths.iter().any(active) {
            let change = self.get_mut(id).and_then(Path::suspect);
            self.push_changes(id, change);
        }
    }

    /// Sets whether retransmissions are pending on a path.
    pub fn set_retransmits(&mut self, id: PathId, retransmits: bool) {
        if let Some(path) = self.get_mut(id) {
            path.retransmits = retransmits;
        }
    }

    /// Returns whether the peer counts as unreachable: after more than `Association.Max.Retrans`
    /// consecutive errors (RFC 9260 §8.1).
    #[must_use]
    pub fn is_peer_unreachable(&self, config: &AssociationConfig) -> bool {
        self.errors > config.association_max_retrans
    }

    /// Returns whether an established association gives the peer up. RFC 9260 §8.1 counts the errors
    /// of all destinations together: where failed paths are probed often, data visits each of them
    /// within the first timeouts of an outage, which would end the association the sooner the more
    /// paths it has. So each path may have as many errors there. With data on all paths, an outage is
    /// counted once.
    #[must_use]
    pub fn is_peer_given_up(&self, config: &AssociationConfig) -> bool {
        let visits_each = config.max_probe_interval.is_some() && config.multipath.is_none();
        if !visits_each {
            return self.is_peer_unreachable(config);
        }
        let confirmed = self.iter().filter(|path| path.state() != PathState::Unconfirmed);
        let paths = u32::try_from(confirmed.count()).unwrap_or(u32::MAX);
        self.errors > config.association_max_retrans.saturating_mul(paths.max(1))
    }

    /// Returns the consecutive errors on all paths together.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Returns the next path change to report to the user.
    pub fn poll_change(&mut self) -> Option<(PathId, PathChange)> {
        self.changes.pop_front()
    }

    /// Returns what a path's coupled congestion control needs to know about the others that carry
    /// data; empty if it is not coupled.
    #[must_use]
    pub fn siblings(&self, id: PathId) -> SiblingPaths {
        let Some(own) = self.get(id).filter(|path| path.congestion.is_coupled()) else {
            return SiblingPaths::default();
        };
        let carries = |path: &&Path| {
            path.id == id || (path.state() == PathState::Active && path.last_sent().is_some())
        };
        SiblingPaths::new(&member(own), self.paths.iter().filter(carries).map(member))
    }

    /// Returns whether more is in flight on a path than sparse messages leave there.
    #[must_use]
    pub fn carry_bulk(&self) -> bool {
        self.iter().any(|path| path.outstanding() > SPARSE_PACKETS * path.mtu())
    }

    /// Returns whether the peer sends data on any path.
    #[must_use]
    pub fn peer_sends(&self, now: Duration) -> bool {
        self.iter().any(|path| path.peer_sends(now))
    }

    /// Returns the best path; `None` if none is confirmed.
    fn best(&self) -> Option<PathId> {
        let rank = |state| match state {
            PathState::Active => 0,
            PathState::PotentiallyFailed => 1,
            PathState::Inactive | PathState::Unconfirmed => 2,
        };
        let usable = |path: &&Path| path.state() != PathState::Unconfirmed;
        // The primary path wins ties, then the oldest path.
        let key = |path: &&Path| (rank(path.state()), path.errors(), path.id != self.primary);
        self.paths.iter().filter(usable).min_by_key(key).map(|path| path.id)
    }

    /// Abandons the primary path permanently after enough errors, if configured: the path that
    /// carries data instead becomes primary (RFC 7829 §5, `PSMR`).
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
        self.push_change(id, PathChange::MadePrimary);
    }

    fn push_changes(&mut self, id: PathId, change: Option<PathChange>) {
        if let Some(change) = change {
            self.push_change(id, change);
        }
    }

    /// Checks heartbeats at the next opportunity.
    pub(super) fn wake(&mut self) {
        self.due = 0;
    }

    fn push_change(&mut self, id: PathId, change: PathChange) {
        if self.changes.len() >= MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((id, change));
        if change == PathChange::PotentiallyFailed
            && let Some(path) = self.get_mut(id)
        {
            // RFC 7829 §3.2: probe it immediately, and perhaps from another local address.
            path.heartbeats.send_soon();
            path.forget_local();
        }
        if change == PathChange::PotentiallyFailed {
            let others = self.iter_mut().filter(|path| path.id != id);
            others.for_each(|path| path.forget_return_path(id));
        }
        if matches!(change, PathChange::PotentiallyFailed | PathChange::Inactive) {
            let works = |path: &Path| path.state() == PathState::Active;
            self.last_active_failed = !self.paths.iter().any(works);
        }
        self.wake();
    }
}

fn member(path: &Path) -> SiblingPath {
    SiblingPath {
        window: path.congestion.window(),
        mtu: path.mtu(),
        slow_start_threshold: path.congestion.slow_start_threshold(),
        smoothed_rtt: path.rto.smoothed().map_or(0, nanoseconds),
        loss_interval: path.congestion.loss_interval(),
    }
}

#[cfg(test)]
mod tests;
