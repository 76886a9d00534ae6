//! What is simulated or emulated: every set-up as represented in plans and results, its validation,
//! and its measures. Nothing here executes anything.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | one situation, simulated or live |
//! | `grid` | situations side by side and along an axis |
//! | `setup`, `association` | one to be simulated |
//! | `mode` | the form of packets: bytes or values |
//! | `error` | why a simulated set-up cannot be run |
//! | `bound` | the maximum payload that a situation allows |
//! | `random` | one whose network is drawn from a seed |
//! | `queue_info` | the queue information that the application uses |
//! | [`live`] | one on real sockets |

mod association;
mod bound;
mod error;
mod grid;
pub mod live;
mod mode;
mod queue_info;
pub(crate) mod random;
mod setup;

use serde::{Deserialize, Serialize};

pub use association::{AssociationSetup, MappingSetup, ReceiveOrderName};
pub use bound::{LinkBound, PayloadBound, SteadyPhase};
pub(crate) use error::RandomSetupError;
pub use error::{AssociationSetupError, PathSetupError, SetupError};
pub use grid::{GridAxis, GridPoint, NamedLabel, SituationGrid};
pub use mode::PacketMode;
pub use queue_info::QueueInfo;
pub use random::RandomSetup;
pub use setup::{
    AccessSetup, ApplicationSetup, BackEventSetup, EventSetup, PathSetup, RivalSetup,
    SimulationSetup, SimulationTimes,
};

/// One situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Situation {
    /// On real sockets, between network namespaces.
    Live(Box<live::LiveSetup>),
    /// In virtual time.
    Simulated(Box<SimulationSetup>),
    /// In virtual time, in a network that is drawn from the seed of the run.
    Random(Box<RandomSetup>),
}

/// Returns the columns of all kinds of runs, with their axis labels.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    live::columns().chain(random::COLUMNS.iter().copied())
}

/// Returns whether a column is 100 or 0 for each trial.
pub(crate) fn is_share(column: &str) -> bool {
    live::is_share(column) || random::is_share(column)
}

impl Situation {
    /// Returns the simulated situation; `None` if it is live.
    #[must_use]
    pub fn simulated(&self) -> Option<&SimulationSetup> {
        match self {
            Self::Simulated(setup) => Some(setup),
            Self::Live(_) | Self::Random(_) => None,
        }
    }

    /// Returns what the networks are drawn from; `None` if they are not.
    #[must_use]
    pub fn random(&self) -> Option<&RandomSetup> {
        match self {
            Self::Random(setup) => Some(setup),
            Self::Live(_) | Self::Simulated(_) => None,
        }
    }

    /// Returns the live situation; `None` if it is simulated.
    #[must_use]
    pub fn live(&self) -> Option<&live::LiveSetup> {
        match self {
            Self::Live(setup) => Some(setup),
            Self::Simulated(_) | Self::Random(_) => None,
        }
    }

    /// Returns whether nothing else may run meanwhile.
    pub(crate) fn runs_alone(&self) -> bool {
        self.live().is_some_and(live::LiveSetup::runs_alone)
    }
}
