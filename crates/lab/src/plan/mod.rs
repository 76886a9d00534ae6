//! Plans: experiments as data.
//!
//! A plan is one TOML file: a situation (network, association, application), what is swept along
//! the axis, what else differs (scenes and curves), what is drawn, what is claimed. `docs/lab.md`
//! explains every key; the shipped ones are in `plans/`.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | the plan as it is read, its points |
//! | `file` | the keys of the file |
//! | `shorter` | what a shorter run takes of it |
//! | `layers` | scene, curve, sweep and `--set`, laid over one another |
//! | `situation` | one situation, simulated or live |
//! | `setup`, `association` | one to be simulated |
//! | `mode` | what travels: bytes or values |
//! | `bound` | the most that a situation allows |
//! | `queue_info` | what the application asks of its streams |
//! | `quantity` | amounts with units |
//! | `shipped` | the plans that come with eyas |

mod association;
mod bound;
mod file;
mod layers;
mod mode;
mod quantity;
mod queue_info;
mod setup;
mod shipped;
mod shorter;
mod situation;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Judged};

pub use association::{
    AssociationSetup, BurstName, CongestionName, CucName, LossDetectionName, Mapping,
    NrSackPolicyName, PathOrderName, ProfileName, ReceiveOrderName, ReschedulingName,
    RtxPolicyName, SackPathName, SchedulerName, SplittingName,
};
pub use bound::{Bound, LinkBound, Phase};
pub use file::{Drawing, Figure, PublishedRow, PublishedTable};
pub use mode::Mode;
pub(crate) use quantity::parse as parse_amount;
pub use quantity::{Kind, NotAnAmount, Part, Rate, Size, Time};
pub use queue_info::QueueInfo;
pub use setup::{
    AccessSetup, ApplicationSetup, EventSetup, Framing, Loss, NotAQueue, PathSetup, Queue,
    RivalSetup, Setup, Times,
};
pub use shipped::{Shipped, shipped};
pub use situation::Situation;

/// What cannot be made of a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub(crate) String);

/// How a plan is to be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How much is run.
    pub extent: Extent,
    /// How many runs of each point, instead of what the plan says.
    pub runs: Option<u32>,
    /// `PARAMETER=VALUE`: what is different from the plan.
    pub set: Vec<String>,
}

/// How much of a plan is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// The shape alone: fewer and shorter runs, as the plan's `[quick]` says.
    Quick,
    /// Enough to judge by, as the plan's `[standard]` says; everything if it has none.
    Standard,
    /// As long as the publication.
    #[default]
    Full,
}

impl Extent {
    /// The word in names of directories; none for everything.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Quick => Some("quick"),
            Self::Standard => Some("standard"),
            Self::Full => None,
        }
    }
}

/// An experiment, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One word.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// Where it comes from.
    pub sources: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// How many runs each point gets; each has a seed of its own.
    pub runs: u32,
    /// What is along the axis.
    pub axis: Axis,
    /// Situations side by side: identifier and label. One without a name if the plan has none.
    pub scenes: Vec<Named>,
    /// What is compared: identifier and label.
    pub curves: Vec<Named>,
    /// Every situation that is run.
    pub points: Vec<Point>,
    /// What is drawn.
    pub figures: Vec<Figure>,
    /// What is put beside the publication's tables.
    pub tables: Vec<PublishedTable>,
    /// What is claimed.
    pub claims: Vec<Claim>,
    /// Which points claims are judged by; all, if nothing is said.
    pub judged: Option<Judged>,
    /// What was set on the command line.
    pub set: Vec<String>,
    /// How much of it is run.
    pub extent: Extent,
}

/// An identifier and what people read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// In expressions and files.
    pub id: String,
    /// In legends.
    pub label: String,
}

/// What is along the axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The parameter, as a path of keys.
    pub parameter: String,
    /// What people read, without unit.
    pub label: String,
    /// The unit of the numbers.
    pub unit: String,
}

/// One situation of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Unique in the plan, and good as a file name.
    pub id: String,
    /// Its scene; empty if the plan has none.
    pub scene: String,
    /// Its curve.
    pub curve: String,
    /// Where on the axis, in the axis' unit.
    pub x: f64,
    /// What is simulated or emulated.
    pub situation: Situation,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or something in it cannot be simulated; the message
    /// says where.
    pub fn parse(text: &str, options: &Options) -> Result<Self, PlanError> {
        file::read(text, options)
    }

    /// Whether it runs on real sockets, in real time.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.points.iter().any(|point| matches!(point.situation, Situation::Live(_)))
    }

    /// The points of one curve of one scene, in the order of the axis.
    pub fn along<'a>(&'a self, scene: &'a str, curve: &'a str) -> impl Iterator<Item = &'a Point> {
        self.points.iter().filter(move |point| point.scene == scene && point.curve == curve)
    }

    /// The label of a scene.
    #[must_use]
    pub fn scene_label(&self, id: &str) -> &str {
        label(&self.scenes, id)
    }

    /// The label of a curve.
    #[must_use]
    pub fn curve_label(&self, id: &str) -> &str {
        label(&self.curves, id)
    }
}

fn label<'a>(names: &'a [Named], id: &str) -> &'a str {
    names.iter().find(|named| named.id == id).map_or("", |named| &named.label)
}
