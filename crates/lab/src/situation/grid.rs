//! Situations side by side and along an axis.

use serde::{Deserialize, Serialize};

use super::Situation;

/// All situations of an experiment.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What is along the axis.
    pub axis: Axis,
    /// Situations side by side: identifier and label. One without a name if there are none.
    pub scenes: Vec<Named>,
    /// What is compared: identifier and label.
    pub curves: Vec<Named>,
    /// Every situation that is run.
    pub points: Vec<Point>,
    /// How many runs each point gets; each has a seed of its own.
    pub runs: u32,
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

impl Grid {
    /// Whether it runs on real sockets, in real time.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.points.iter().any(|point| matches!(point.situation, Situation::Live(_)))
    }

    /// The point with this identifier.
    #[must_use]
    pub fn point(&self, id: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.id == id)
    }

    /// The points of one curve of one scene, in the order of the axis.
    pub fn along<'a>(&'a self, scene: &'a str, curve: &'a str) -> impl Iterator<Item = &'a Point> {
        self.points.iter().filter(move |point| point.scene == scene && point.curve == curve)
    }
}
