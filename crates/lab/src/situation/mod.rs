//! What is simulated or emulated: every set-up as represented in plans and results, its validation,
//! and its measures. Nothing here executes anything.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | one situation, simulated or live |
//! | `grid` | situations side by side and along an axis |
//! | `setup`, `association` | one to be simulated |
//! | `mode` | the form of packets: bytes or values |
//! | `bound` | the maximum payload that a situation allows |
//! | `queue_info` | the queue information that the application uses |
//! | [`live`] | one on real sockets |

mod association;
mod bound;
mod grid;
pub mod live;
mod mode;
mod queue_info;
mod setup;

use serde::{Deserialize, Serialize};

pub use association::{AssociationSetup, Mapping, ProfileName, ReceiveOrderName};
pub use bound::{Bound, LinkBound, Phase};
pub use grid::{Axis, Grid, Named, Point};
pub use mode::Mode;
pub use queue_info::QueueInfo;
pub use setup::{
    AccessSetup, ApplicationSetup, BackEventSetup, BackSetup, EventSetup, PathSetup, RivalSetup,
    Setup, Times,
};

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
    /// Returns the simulated situation; `None` if it is live.
    #[must_use]
    pub fn simulated(&self) -> Option<&Setup> {
        match self {
            Self::Simulated(setup) => Some(setup),
            Self::Live(_) => None,
        }
    }

    /// Returns the live situation; `None` if it is simulated.
    #[must_use]
    pub fn live(&self) -> Option<&live::Setup> {
        match self {
            Self::Live(setup) => Some(setup),
            Self::Simulated(_) => None,
        }
    }

    /// Returns whether nothing else may run meanwhile.
    pub(crate) fn runs_alone(&self) -> bool {
        self.live().is_some_and(live::Setup::runs_alone)
    }
}
