//! Selection of the path for a SACK (RFC 9260 §6.4, [`SackPath`]).

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::{AssociationConfig, SackPath};
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path, PathState};

/// The maximum number of paths that are remembered; the most recently used stay.
const MAX_TRACKED: usize = 64;

/// The minimum time for which a path counts as recently received on: packets come in bursts.
const MIN_RECENT: Duration = Duration::from_millis(20);

/// The time for which a path counts as recently received on while its RTT is unknown.
const UNMEASURED_RECENT: Duration = Duration::from_millis(100);

/// The bytes of data for which a path carries one byte of SACK: 5 %. All SACKs together are 3 % of
/// the data, so a path that delivers three fifths of it can carry all of them. A path alone carries
/// a SACK for every second packet, 2 %. In 60 networks drawn as in the test of random lines, 4 % and
/// 5 % slowed none, and 6 % one.
const DATA_PER_SACK_BYTE: usize = 20;

/// The bytes that a packet with data counts for. With one path there is a SACK for every second
/// packet, too, however small.
pub(super) const FULL_PACKET: usize = 1500;

/// The most that a path saves up, in bytes of SACKs: what it may carry at once after a pause.
const MAX_CREDIT: usize = 4096;

/// A path that packets arrived on.
#[derive(Clone, Copy, Debug)]
struct ReceivedOn {
    path: PathId,
    /// When the last packet arrived.
    at: Duration,
    /// Whether data has arrived since the last SACK.
    data: bool,
    /// The number of the last SACK sent there; 0 for none.
    turn: u64,
    /// The bytes of data for which no SACK has been sent there: negative once there were more.
    credit: i64,
}

/// The paths that packets arrived on and that SACKs were sent on.
#[derive(Debug)]
pub(crate) struct ReturnPath {
    policy: SackPath,
    /// The path of the last packet with data.
    last: Option<PathId>,
    /// The path of the first packet with data since the last SACK.
    first: Option<PathId>,
    /// The path of the last SACK.
    sack: Option<PathId>,
    /// The number of SACKs sent.
    turn: u64,
    /// In the order of the first packet. Empty where only the last packet counts.
    received_on: Vec<ReceivedOn>,
}

impl ReturnPath {
    /// Creates the state from the configuration; without CMT, SACKs go to the source of the last
    /// data.
    pub(crate) fn from_config(config: &AssociationConfig) -> Self {
        let multipath = config.multipath.as_ref();
        let policy = multipath.map_or(SackPath::LastArrival, |multipath| multipath.sack_path);
        Self { policy, last: None, first: None, sack: None, turn: 0, received_on: Vec::new() }
    }

    /// Records a received packet, with or without data.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Duration, path: PathId, has_data: bool) {
        if has_data {
            self.last = Some(path);
            self.first.get_or_insert(path);
        }
        if matches!(self.policy, SackPath::InTurn | SackPath::LowestRtt | SackPath::Budgeted) {
            self.record(now, path, has_data);
        }
    }

    fn record(&mut self, now: Duration, path: PathId, has_data: bool) {
        let earned = if has_data { FULL_PACKET as i64 } else { 0 };
        if let Some(received_on) =
            self.received_on.iter_mut().find(|received_on| received_on.path == path)
        {
            received_on.at = now;
            received_on.data |= has_data;
            received_on.credit = (received_on.credit + earned).min(most_credit());
            return;
        }
        if self.received_on.len() >= MAX_TRACKED {
            let oldest =
                self.received_on.iter().enumerate().min_by_key(|(_, received_on)| received_on.at);
            if let Some((index, _)) = oldest {
                self.received_on.remove(index);
            }
        }
        self.received_on.push(ReceivedOn {
            path,
            at: now,
            data: has_data,
            turn: 0,
            credit: earned,
        });
    }

    /// Records a SACK of `bytes` sent on `path`.
    #[inline]
    pub(crate) fn on_sack(&mut self, path: PathId, bytes: usize) {
        self.sack = Some(path);
        self.first = None;
        self.turn += 1;
        for received_on in &mut self.received_on {
            received_on.data = false;
            if received_on.path == path {
                received_on.turn = self.turn;
                let spent = (bytes * DATA_PER_SACK_BYTE) as i64;
                received_on.credit = (received_on.credit - spent).max(-most_credit());
            }
        }
    }

    /// Returns the path for the next SACK; `saw_duplicates`: data arrived twice, so SACKs may have
    /// been lost.
    pub(crate) fn choose(
        &self,
        now: Duration,
        paths: &AssociationPaths,
        saw_duplicates: bool,
    ) -> Option<PathId> {
        let wanted = match self.policy {
            SackPath::LastArrival => None,
            SackPath::First => self.first,
            SackPath::InTurn => self.in_turn(|received_on| received_on.data),
            SackPath::LowestRtt | SackPath::Budgeted if saw_duplicates => {
                let recently = |received_on: &ReceivedOn| is_recent(received_on, now, paths);
                self.in_turn(|received_on| {
                    recently(received_on) && Some(received_on.path) != self.sack
                })
            }
            SackPath::LowestRtt => self.fastest(now, paths, |_| true),
            SackPath::Budgeted => self
                .fastest(now, paths, |received_on| received_on.credit > 0)
                .or_else(|| self.richest(now, paths)),
        };
        let exists = |path: &PathId| paths.get(*path).is_some();
        wanted.filter(exists).or(self.last).filter(exists)
    }

    /// Returns the eligible path with the least recent SACK.
    fn in_turn(&self, is_eligible: impl Fn(&ReceivedOn) -> bool) -> Option<PathId> {
        let eligible = self.received_on.iter().filter(|received_on| is_eligible(received_on));
        eligible.min_by_key(|received_on| received_on.turn).map(|received_on| received_on.path)
    }

    /// Returns the path with the most credit of those that were recently received on.
    fn richest(&self, now: Duration, paths: &AssociationPaths) -> Option<PathId> {
        let received_on =
            self.received_on.iter().filter(|received_on| is_recent(received_on, now, paths));
        received_on.max_by_key(|received_on| received_on.credit).map(|received_on| received_on.path)
    }

    /// Returns the fastest eligible one of the active paths that were recently received on: a pure
    /// receiver does not otherwise notice that a path has failed.
    fn fastest(
        &self,
        now: Duration,
        paths: &AssociationPaths,
        is_eligible: impl Fn(&ReceivedOn) -> bool,
    ) -> Option<PathId> {
        let received_on = self
            .received_on
            .iter()
            .filter(|received_on| is_eligible(received_on) && is_recent(received_on, now, paths));
        let round_trip = |received_on: &&ReceivedOn| {
            let path = paths.get(received_on.path);
            let rtt = path.and_then(round_trip_now);
            (rtt.is_none(), rtt, Some(received_on.path) != self.last)
        };
        received_on.min_by_key(round_trip).map(|received_on| received_on.path)
    }
}

/// Returns the round-trip time of a path: with the queue of what this end sends there, if it does,
/// since SACKs wait behind that.
fn round_trip_now(path: &Path) -> Option<Duration> {
    let queued = path.rto.smoothed().filter(|_| path.outstanding() > 0);
    queued.max(path.min_rtt())
}

/// The most credit, in bytes of data.
fn most_credit() -> i64 {
    (MAX_CREDIT * DATA_PER_SACK_BYTE) as i64
}

fn is_recent(received_on: &ReceivedOn, now: Duration, paths: &AssociationPaths) -> bool {
    let active = paths.get(received_on.path).filter(|path| path.state() == PathState::Active);
    active.is_some_and(|path| {
        let rtt = path.min_rtt();
        let recent = rtt.map_or(UNMEASURED_RECENT, |rtt| rtt + rtt / 2).max(MIN_RECENT);
        now.saturating_sub(received_on.at) <= recent
    })
}

#[cfg(test)]
mod tests;
