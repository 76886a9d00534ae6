//! The sessions that a client opens by itself, when the first packet is sent on a path.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::io::PeerIdentity;

use super::identity::DtlsIdentity;
use super::session::DtlsTrust;
use super::session_path::SessionPath;

/// The maximum number of packets that wait for the session of their path: a HEARTBEAT or two, and
/// what is sent with them. More are lost, as on any path.
const MAX_WAITING: usize = 4;
/// The maximum number of paths of one socket for which sessions are opened.
pub(super) const MAX_PATHS: usize = 64;
/// The pause before the session of a path is opened again after it failed; doubled each time, up to
/// the second value.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));

/// How a client opens sessions.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) identity: DtlsIdentity,
    pub(crate) trust: DtlsTrust,
    /// When the first flight is retransmitted, if a round-trip time is known.
    pub(crate) initial_rto: Option<Duration>,
}

/// The paths on which a client has sent something.
#[derive(Debug)]
pub(super) struct OnDemand {
    pub(super) opening: Opening,
    paths: BTreeMap<SessionPath, Demand>,
}

#[derive(Debug)]
struct Demand {
    /// Who the session must be with; anyone whom the client trusts if `None`.
    peer: Option<PeerIdentity>,
    /// Packets that wait until the session is up, and whom they are for.
    waiting: VecDeque<(Option<PeerIdentity>, Bytes)>,
    /// Whether there is a session, of which no failure has been recorded yet.
    is_open: bool,
    /// When a failed session may be opened again.
    not_before: Option<Instant>,
    /// The pause after the next failure.
    pause: Duration,
}

impl Default for Demand {
    fn default() -> Self {
        let (peer, waiting) = (None, VecDeque::new());
        Self { peer, waiting, is_open: false, not_before: None, pause: PAUSES.0 }
    }
}

impl OnDemand {
    pub(super) fn new(opening: Opening) -> Self {
        Self { opening, paths: BTreeMap::new() }
    }

    /// Returns whether there are too many paths for this one to be added.
    pub(super) fn is_full_for(&self, path: SessionPath) -> bool {
        self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&path)
    }

    /// Returns whether the path has a session, up or not.
    pub(super) fn is_open(&self, path: SessionPath) -> bool {
        self.paths.get(&path).is_some_and(|demand| demand.is_open)
    }

    /// Returns whether a session may be opened now, and records that it is.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        path: SessionPath,
        peer: Option<PeerIdentity>,
    ) -> bool {
        let demand = self.paths.entry(path).or_default();
        let may_begin = demand.not_before.is_none_or(|time| time <= now);
        if may_begin {
            (demand.peer, demand.is_open, demand.not_before) = (peer, true, None);
        }
        may_begin
    }

    /// Returns whether the session of this path is to be replaced when something is sent there.
    pub(super) fn is_stale(&self, now: Instant, path: SessionPath) -> bool {
        let not_before = self.paths.get(&path).and_then(|demand| demand.not_before);
        not_before.is_some_and(|time| time <= now)
    }

    /// Keeps packets until the session of their path is up.
    pub(super) fn wait<'a>(
        &mut self,
        path: SessionPath,
        peer: Option<PeerIdentity>,
        packets: impl Iterator<Item = &'a [u8]>,
    ) {
        let Some(demand) = self.paths.get_mut(&path) else { return };
        let room = MAX_WAITING.saturating_sub(demand.waiting.len());
        let mut packets = packets.map(|packet| (peer, Bytes::copy_from_slice(packet)));
        demand.waiting.extend(packets.by_ref().take(room));
        let lost = packets.count();
        if lost > 0 {
            tracing::trace!(?path, lost, "packets for a path whose DTLS handshake is under way");
        }
    }

    /// Returns who the session of this path must be with, if that is known.
    pub(super) fn expected_peer(&self, path: SessionPath) -> Option<PeerIdentity> {
        self.paths.get(&path)?.peer
    }

    /// Returns the packets that have waited for the session.
    pub(super) fn take_waiting(
        &mut self,
        path: SessionPath,
    ) -> VecDeque<(Option<PeerIdentity>, Bytes)> {
        let demand = self.paths.get_mut(&path);
        demand.map(|demand| std::mem::take(&mut demand.waiting)).unwrap_or_default()
    }

    /// Records that packets arrive on this path: the next failure is the first one.
    pub(super) fn works(&mut self, path: SessionPath) {
        if let Some(demand) = self.paths.get_mut(&path) {
            (demand.is_open, demand.pause, demand.not_before) = (true, PAUSES.0, None);
        }
    }

    /// Records that the session of this path has failed, or that nothing arrives through it.
    pub(super) fn fail(&mut self, now: Instant, path: SessionPath) {
        let Some(demand) = self.paths.get_mut(&path) else { return };
        if std::mem::take(&mut demand.is_open) {
            demand.not_before = Some(now + demand.pause);
            demand.pause = (2 * demand.pause).min(PAUSES.1);
            demand.waiting.clear();
        }
    }

    /// Forgets a path that no longer exists.
    pub(super) fn forget(&mut self, path: SessionPath) {
        self.paths.remove(&path);
    }
}
