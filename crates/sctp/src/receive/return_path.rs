//! On which path a SACK goes (RFC 9260 §6.4, [`SackPath`]).

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::{AssociationConfig, SackPath};
use crate::identifier::PathId;
use crate::path::{Path, PathState, Paths};

/// The most paths that are remembered; those heard last stay.
const MAX_HEARD: usize = 64;

/// The least time for which a path counts as heard: packets come in bursts.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// How long a path counts as heard whose round trip is not known.
const UNMEASURED_PATIENCE: Duration = Duration::from_millis(100);

/// A path that packets came on.
#[derive(Clone, Copy, Debug)]
struct Heard {
    path: PathId,
    /// When the last packet came.
    at: Duration,
    /// Whether data came since the last SACK.
    data: bool,
    /// The number of the last SACK that went there; 0 for none.
    turn: u64,
}

/// Which paths were heard, and where SACKs went.
#[derive(Debug)]
pub(crate) struct ReturnPath {
    policy: SackPath,
    /// The path that the last packet with data came on.
    last: Option<PathId>,
    /// The one of the first since the last SACK.
    first: Option<PathId>,
    /// The path of the last SACK.
    sack: Option<PathId>,
    /// How many SACKs went.
    turn: u64,
    /// In the order in which they were first heard. Empty where only the last packet counts.
    heard: Vec<Heard>,
}

impl ReturnPath {
    /// As the association is configured; without CMT, where the last data came from.
    pub(crate) fn of(config: &AssociationConfig) -> Self {
        let multipath = config.multipath.as_ref();
        let policy = multipath.map_or(SackPath::LastArrival, |multipath| multipath.sack_path);
        Self { policy, last: None, first: None, sack: None, turn: 0, heard: Vec::new() }
    }

    /// A packet came, with data or without.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Duration, path: PathId, has_data: bool) {
        if has_data {
            self.last = Some(path);
            self.first.get_or_insert(path);
        }
        if matches!(self.policy, SackPath::InTurn | SackPath::LowestRtt) {
            self.note(now, path, has_data);
        }
    }

    fn note(&mut self, now: Duration, path: PathId, has_data: bool) {
        if let Some(heard) = self.heard.iter_mut().find(|heard| heard.path == path) {
            heard.at = now;
            heard.data |= has_data;
            return;
        }
        if self.heard.len() >= MAX_HEARD {
            let oldest = self.heard.iter().enumerate().min_by_key(|(_, heard)| heard.at);
            if let Some((index, _)) = oldest {
                self.heard.remove(index);
            }
        }
        self.heard.push(Heard { path, at: now, data: has_data, turn: 0 });
    }

    /// A SACK went on `path`.
    #[inline]
    pub(crate) fn on_sack(&mut self, path: PathId) {
        self.sack = Some(path);
        self.first = None;
        self.turn += 1;
        for heard in &mut self.heard {
            heard.data = false;
            if heard.path == path {
                heard.turn = self.turn;
            }
        }
    }

    /// The path for the next SACK; `doubtful`: data came twice, so SACKs may have been lost.
    pub(crate) fn choose(&self, now: Duration, paths: &Paths, doubtful: bool) -> Option<PathId> {
        let wanted = match self.policy {
            SackPath::LastArrival => None,
            SackPath::First => self.first,
            SackPath::InTurn => self.in_turn(|heard| heard.data),
            SackPath::LowestRtt if doubtful => {
                let lately = |heard: &Heard| is_heard(heard, now, paths);
                self.in_turn(|heard| lately(heard) && Some(heard.path) != self.sack)
            }
            SackPath::LowestRtt => self.quickest(now, paths),
        };
        let exists = |path: &PathId| paths.get(*path).is_some();
        wanted.filter(exists).or(self.last).filter(exists)
    }

    /// Of the paths that count, the one on which a SACK went least lately.
    fn in_turn(&self, counts: impl Fn(&Heard) -> bool) -> Option<PathId> {
        let counting = self.heard.iter().filter(|heard| counts(heard));
        counting.min_by_key(|heard| heard.turn).map(|heard| heard.path)
    }

    /// The quickest of the paths that work and were heard lately: one that has just died is not
    /// noticed by who only receives.
    fn quickest(&self, now: Duration, paths: &Paths) -> Option<PathId> {
        let heard = self.heard.iter().filter(|heard| is_heard(heard, now, paths));
        let round_trip = |heard: &&Heard| {
            let path = paths.get(heard.path);
            let rtt = path.and_then(Path::least_rtt);
            (rtt.is_none(), rtt, Some(heard.path) != self.last)
        };
        heard.min_by_key(round_trip).map(|heard| heard.path)
    }
}

fn is_heard(heard: &Heard, now: Duration, paths: &Paths) -> bool {
    let active = paths.get(heard.path).filter(|path| path.state() == PathState::Active);
    active.is_some_and(|path| {
        let rtt = path.least_rtt();
        let patience = rtt.map_or(UNMEASURED_PATIENCE, |rtt| rtt + rtt / 2).max(LEAST_PATIENCE);
        now.saturating_sub(heard.at) <= patience
    })
}

#[cfg(test)]
mod tests;
