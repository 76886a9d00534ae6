//! The outcomes of the attempts of a load.

use eyas::AttemptCounts;
use serde::{Deserialize, Serialize};

/// The outcomes of the attempts over one transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportAttempts {
    /// Attempts started.
    pub started: u64,
    /// Attempts whose handshakes all completed, whether they won or not.
    pub completed: u64,
    /// Attempts that became a connection.
    pub used: u64,
    /// Attempts that failed, rather than being closed.
    pub failed: u64,
}

impl From<AttemptCounts> for TransportAttempts {
    fn from(counts: AttemptCounts) -> Self {
        let AttemptCounts { started, completed, used, failed, .. } = counts;
        Self { started, completed, used, failed }
    }
}

impl TransportAttempts {
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            started: self.started.saturating_sub(before.started),
            completed: self.completed.saturating_sub(before.completed),
            used: self.used.saturating_sub(before.used),
            failed: self.failed.saturating_sub(before.failed),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.used += other.used;
        self.failed += other.failed;
    }
}
