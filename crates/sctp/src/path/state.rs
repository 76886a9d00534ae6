//! The reachability of a path: error counts, and the states of RFC 7829 §3.2.

use super::Path;
use crate::config::AssociationConfig;
use crate::event::PathChange;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// The peer has not yet been confirmed to be reachable there (RFC 9260 §5.4). No data is sent.
    Unconfirmed,
    /// It works.
    Active,
    /// It has not responded recently: only used if there is nothing better (RFC 7829 §3.2).
    PotentiallyFailed,
    /// It has not responded for a long time (RFC 9260 §8.2).
    Inactive,
}

impl PathState {
    /// Returns its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Active => "active",
            Self::PotentiallyFailed => "potentially-failed",
            Self::Inactive => "inactive",
        }
    }
}

impl Path {
    /// Returns the state of the path.
    #[must_use]
    pub fn state(&self) -> PathState {
        self.state
    }

    /// Returns the consecutive errors (RFC 9260 §8.2).
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Counts an error of the path. Returns the change of its state, if any. An unconfirmed path
    /// stays unconfirmed: no data may be sent there.
    pub fn on_error(&mut self, config: &AssociationConfig) -> Option<PathChange> {
        self.errors = self.errors.saturating_add(1);
        if self.state == PathState::Unconfirmed {
            return None;
        }
        if self.errors > config.path_max_retrans {
            return self.enter(PathState::Inactive);
        }
        if self.state == PathState::Active && self.errors > config.potentially_failed_max_retrans {
            return self.enter(PathState::PotentiallyFailed);
        }
        None
    }

    /// Records that the path works: data was acknowledged, or a heartbeat was answered. Returns the
    /// change of its state, if any. An unconfirmed path is only changed by [`Self::confirm`].
    pub fn on_answer(&mut self) -> Option<PathChange> {
        self.errors = 0;
        if self.state == PathState::Unconfirmed { None } else { self.enter(PathState::Active) }
    }

    /// Confirms that the peer can be reached here.
    pub fn confirm(&mut self) -> Option<PathChange> {
        self.errors = 0;
        if self.state != PathState::Unconfirmed {
            return self.enter(PathState::Active);
        }
        self.state = PathState::Active;
        Some(PathChange::Confirmed)
    }

    /// Marks the path as potentially failed after an unanswered tail loss probe: another path is
    /// better, though no error has been counted.
    pub fn suspect(&mut self) -> Option<PathChange> {
        if self.state == PathState::Active {
            self.enter(PathState::PotentiallyFailed)
        } else {
            None
        }
    }

    fn enter(&mut self, state: PathState) -> Option<PathChange> {
        if self.state == state {
            return None;
        }
        self.state = state;
        Some(match state {
            PathState::Unconfirmed => PathChange::Added,
            PathState::Active => PathChange::Active,
            PathState::PotentiallyFailed => PathChange::PotentiallyFailed,
            PathState::Inactive => PathChange::Inactive,
        })
    }
}
