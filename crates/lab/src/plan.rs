//! Plans: experiments as data.
//!
//! A plan is one TOML file: a situation (network, association, application), the parameter along
//! the axis, other differences (scenes and curves), figures and claims. `docs/guide/lab.md` explains
//! every key; the built-in plans are in `plans/`.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the parsed plan and its points |
//! | `file` | the keys of the file |
//! | `kind` | the kinds of plans, and the situation of a point of each |
//! | `extract` | the part of it that a shorter run executes |
//! | `clients` | clients under test, which are curves of a plan |
//! | `matrix` | one table of all curves |
//! | `layers` | merging scene, curve, sweep and `--set` |
//! | `shipped` | the built-in plans |

mod clients;
mod extract;
mod file;
mod kind;
mod layers;
mod matrix;
mod shipped;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::claim::{Claim, JudgedPoints, JudgingBasis};
use crate::printable::printable;
use crate::situation::SituationGrid;

pub use file::{FigureDrawing, FigurePart, PlanFigure, PublishedRow, PublishedTable};
pub use matrix::{MatrixCell, MatrixColumn, MatrixRow, PlanMatrix};
pub use shipped::{EVERY_KEY, ShippedPlan, shipped};

/// The error of parsing a plan, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub(crate) String);

/// Converts a plan from JSON, with the keys of the file, to text.
///
/// # Errors
/// If it is not an object, or has nulls, which TOML does not support.
pub fn from_json(json: &str) -> Result<String, PlanError> {
    let refused = |cause: &dyn std::fmt::Display| PlanError(format!("not a plan: {cause}"));
    let table: toml::Table = serde_json::from_str(json).map_err(|cause| refused(&cause))?;
    toml::to_string(&table).map_err(|cause| refused(&cause))
}

/// How to run a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// How much to run.
    pub extent: PlanExtent,
    /// The number of runs per point, instead of the plan's.
    pub runs: Option<u32>,
    /// `PARAMETER=VALUE`: changes to the plan.
    pub set: Vec<String>,
    /// The texts of files of additional clients, for a plan that tests clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
}

/// How much of a plan is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanExtent {
    /// Only the shape of the curves: fewer and shorter runs, according to the plan's `[quick]`.
    Quick,
    /// Enough to judge the claims, according to the plan's `[standard]`; everything if it has none.
    Standard,
    /// As extensive as the publication.
    #[default]
    Full,
}

impl PlanExtent {
    /// Returns the suffix of directory names; `None` for the full extent.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Quick => Some("quick"),
            Self::Standard => Some("standard"),
            Self::Full => None,
        }
    }
}

/// An experiment that is ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name: one word.
    pub name: String,
    /// The title: one line.
    pub title: String,
    /// A description of what it shows.
    pub about: String,
    /// The sources.
    pub sources: Vec<String>,
    /// Notes for readers.
    pub notes: Vec<String>,
    /// Every situation that is run, and how often.
    pub grid: SituationGrid,
    /// The figures.
    pub figures: Vec<PlanFigure>,
    /// The tables of the publication.
    pub tables: Vec<PublishedTable>,
    /// One table of all curves; without columns if the plan has none.
    pub matrix: PlanMatrix,
    /// The claims.
    pub claims: Vec<Claim>,
    /// The conditions under which claims are judged by a point.
    pub(crate) judged: Vec<JudgedPoints>,
    /// Whether the runs are shorter than the claims require, as with [`PlanExtent::Quick`].
    pub shortened: bool,
    /// The settings of the command line.
    pub set: Vec<String>,
    /// The extent.
    pub extent: PlanExtent,
}

impl Plan {
    /// Parses a plan.
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or cannot be simulated; the message names the place.
    pub fn parse(text: &str, options: &PlanOptions) -> Result<Self, PlanError> {
        // An error quotes the text.
        file::read(text, options).map_err(|error| PlanError(printable(&error.0)))
    }

    /// Returns the default directory for its results: `eyas-lab/NAME`, with the extent as suffix.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        let name = match self.extent.name() {
            Some(extent) => format!("{}-{extent}", self.name),
            None => self.name.clone(),
        };
        Path::new("eyas-lab").join(name)
    }

    /// Returns whether it runs on real sockets, in real time.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.grid.is_live()
    }

    /// Returns the basis on which its claims are judged.
    pub(crate) fn basis(&self) -> JudgingBasis<'_> {
        JudgingBasis { grid: &self.grid, judged: &self.judged, shortened: self.shortened }
    }
}
