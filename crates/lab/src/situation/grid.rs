//! Scenes, and points along an axis.

use serde::{Deserialize, Serialize};

use super::Situation;

/// All situations of an experiment.
#[derive(Clone, Debug)]
pub struct SituationGrid {
    /// The axis.
    pub axis: GridAxis,
    /// The scenes; a single unnamed one if the plan has none.
    pub scenes: Vec<NamedLabel>,
    /// The curves.
    pub curves: Vec<NamedLabel>,
    /// Every situation that is run.
    pub points: Vec<GridPoint>,
    /// The number of runs per point; each has its own seed.
    pub runs: u32,
}

/// An identifier and a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedLabel {
    /// The identifier in expressions and files.
    pub id: String,
    /// The label in legends.
    pub label: String,
}

/// The axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridAxis {
    /// The parameter, as a dotted key.
    pub parameter: String,
    /// The label, without the unit.
    pub label: String,
    /// The unit of the numbers.
    pub unit: String,
}

/// One situation of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPoint {
    /// The identifier: unique in the plan, and suitable as a file name.
    pub id: String,
    /// The scene; empty if the plan has none.
    pub scene: String,
    /// The curve.
    pub curve: String,
    /// The place on the axis, in its unit.
    pub x: f64,
    /// What is simulated or emulated.
    pub situation: Situation,
}

impl SituationGrid {
    /// Returns whether it runs on real sockets, in real time.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.points.iter().any(|point| matches!(point.situation, Situation::Live(_)))
    }

    /// Returns whether the runs of a point consist of trials, which are evaluated together.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.points.iter().any(|point| !matches!(point.situation, Situation::Simulated(_)))
    }

    /// Returns the point with this identifier.
    #[must_use]
    pub fn point(&self, id: &str) -> Option<&GridPoint> {
        self.points.iter().find(|point| point.id == id)
    }

    /// Returns the points of one curve of one scene, in the order of the axis.
    pub fn points_of_curve<'a>(
        &'a self,
        scene: &'a str,
        curve: &'a str,
    ) -> impl Iterator<Item = &'a GridPoint> {
        self.points.iter().filter(move |point| point.scene == scene && point.curve == curve)
    }
}
