//! One situation: simulated in virtual time, or live on real sockets.

use serde::{Deserialize, Serialize};

use super::Setup;
use crate::live;

/// One situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Situation {
    /// On real sockets, between network namespaces.
    Live(Box<live::Setup>),
    /// In virtual time.
    Simulated(Box<Setup>),
}

impl Situation {
    /// What is simulated; none if it is live.
    #[must_use]
    pub fn simulated(&self) -> Option<&Setup> {
        match self {
            Self::Simulated(setup) => Some(setup),
            Self::Live(_) => None,
        }
    }

    /// What is live; none if it is simulated.
    #[must_use]
    pub fn live(&self) -> Option<&live::Setup> {
        match self {
            Self::Live(setup) => Some(setup),
            Self::Simulated(_) => None,
        }
    }

    /// Whether nothing else may run meanwhile.
    pub(crate) fn runs_alone(&self) -> bool {
        self.live().is_some_and(live::Setup::runs_alone)
    }
}
