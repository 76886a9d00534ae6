//! The kinds of plans, and the tables that make a situation of each.

use eyas_emulator::units::in_words_of_the_file;
use serde::Deserialize;
use toml::Table;

use crate::situation::live::{self, LiveSetupError};
use crate::situation::{RandomSetup, RandomSetupError, SetupError, SimulationSetup, Situation};

/// Why a point has no situation that can be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum SituationError {
    /// A table that is not as the kind of plan has it.
    #[error("{}", in_words_of_the_file(.0))]
    Table(#[from] toml::de::Error),
    #[error("a {kind} plan needs a table [{kind}]")]
    NoTable { kind: &'static str },
    #[error("mode is for simulated plans; a live one sends real packets")]
    LiveMode,
    #[error(transparent)]
    Simulated(#[from] SetupError),
    #[error(transparent)]
    Random(#[from] RandomSetupError),
    #[error(transparent)]
    Live(#[from] LiveSetupError),
}

/// How a plan is run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PlanKind {
    #[default]
    Simulated,
    Live,
    Random,
}

impl PlanKind {
    /// Returns the situation of a point, whose tables have all layers merged.
    pub(super) fn situation(self, mut table: Table) -> Result<Situation, SituationError> {
        let no_table = |kind| SituationError::NoTable { kind };
        match self {
            Self::Simulated => {
                let setup: SimulationSetup = table.try_into()?;
                setup.check()?;
                Ok(Situation::Simulated(Box::new(setup)))
            }
            Self::Random => {
                let random = table.remove("random").ok_or(no_table("random"))?;
                let setup: RandomSetup = random.try_into()?;
                setup.check()?;
                Ok(Situation::Random(Box::new(setup)))
            }
            Self::Live => {
                let live = table.remove("live").ok_or(no_table("live"))?;
                if table.contains_key("mode") {
                    return Err(SituationError::LiveMode);
                }
                let setup: live::LiveSetup = live.try_into()?;
                setup.check()?;
                Ok(Situation::Live(Box::new(setup)))
            }
        }
    }
}
