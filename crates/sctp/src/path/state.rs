//! Whether a path works: error counts, and the states of RFC 7829 §3.2.

use super::Path;
use crate::config::AssociationConfig;
use crate::event::PathChange;

/// What is believed of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// The peer has not shown yet that it can be reached there (RFC 9260 §5.4). No data goes.
    Unconfirmed,
    /// It works.
    Active,
    /// It did not answer lately: used only if nothing better is there (RFC 7829 §3.2).
    PotentiallyFailed,
    /// It did not answer for long (RFC 9260 §8.2).
    Inactive,
}

impl PathState {
    /// What JSON calls it.
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
    /// What is believed of the path.
    #[must_use]
    pub fn state(&self) -> PathState {
        self.state
    }

    /// Errors in a row (RFC 9260 §8.2).
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Something sent on the path was not answered in time. Says if that changed its state. An
    /// unconfirmed path stays unconfirmed: no data may go there.
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

    /// The path works: data sent on it was acknowledged, or a heartbeat was answered. Says if that
    /// changed its state. Does nothing for an unconfirmed path: only [`Self::confirm`] does.
    pub fn on_answer(&mut self) -> Option<PathChange> {
        self.errors = 0;
        if self.state == PathState::Unconfirmed { None } else { self.enter(PathState::Active) }
    }

    /// The peer has shown that it can be reached here.
    pub fn confirm(&mut self) -> Option<PathChange> {
        self.errors = 0;
        if self.state != PathState::Unconfirmed {
            return self.enter(PathState::Active);
        }
        self.state = PathState::Active;
        Some(PathChange::Confirmed)
    }

    /// A probe for lost data at the tail went unanswered: better use another path, though nothing
    /// is counted against this one yet.
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
