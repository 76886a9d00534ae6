//! What `[quick]` and `[standard]` run of a plan, and how.

use eyas_emulator::units::TimeSpan;
use serde::Deserialize;
use toml::{Table, Value};

use super::{PlanError, layers};

/// The differences from the full plan.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanExtract {
    pub(super) runs: Option<u32>,
    warm_up: Option<TimeSpan>,
    duration: Option<TimeSpan>,
    /// The remaining values of the axis.
    values: Option<Vec<Value>>,
    /// The remaining points; all if there are no groups.
    #[serde(default)]
    points: Vec<PointGroup>,
    /// Settings that scenes and curves override.
    #[serde(default)]
    set: Table,
}

/// A group of points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointGroup {
    /// The scenes; all if not given.
    scenes: Option<Vec<String>>,
    /// The curves; all if not given.
    curves: Option<Vec<String>>,
    /// The values on the axis; all if not given.
    values: Option<Vec<Value>>,
    /// Settings that override scenes and curves.
    #[serde(default)]
    set: Table,
}

impl PointGroup {
    fn has(&self, scene: &str, curve: &str, value: &Value) -> bool {
        let named = |names: &Option<Vec<String>>, id: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|name| name == id))
        };
        named(&self.scenes, scene)
            && named(&self.curves, curve)
            && self.values.as_ref().is_none_or(|values| values.contains(value))
    }
}

impl PlanExtract {
    /// Restores all points.
    pub(super) fn take_all_points(&mut self) {
        self.values = None;
        self.points.clear();
    }

    /// Returns whether this point is run.
    pub(super) fn runs_at(&self, scene: &str, curve: &str, value: &Value) -> bool {
        let on_axis = self.values.as_ref().is_none_or(|values| values.contains(value));
        let grouped = self.points.is_empty() || self.group(scene, curve, value).is_some();
        on_axis && grouped
    }

    /// Returns whether runs are shorter than in the full plan.
    pub(super) fn shortens(&self) -> bool {
        let live = self.set.get("live").and_then(Value::as_table);
        let sets = |key: &str| live.is_some_and(|live| live.contains_key(key));
        self.warm_up.is_some() || self.duration.is_some() || sets("warm_up") || sets("duration")
    }

    /// Returns the settings that scenes and curves override.
    pub(super) fn below(&self) -> Table {
        let mut below = self.times();
        layers::merge(&mut below, &self.set);
        below
    }

    /// Returns the settings that override scenes and curves at this point.
    pub(super) fn above(&self, scene: &str, curve: &str, value: &Value) -> Option<&Table> {
        self.group(scene, curve, value).map(|group| &group.set)
    }

    /// Returns the first group that contains this point.
    fn group(&self, scene: &str, curve: &str, value: &Value) -> Option<&PointGroup> {
        self.points.iter().find(|group| group.has(scene, curve, value))
    }

    fn times(&self) -> Table {
        let mut times = Table::new();
        let mut put = |key: &str, time: &Option<TimeSpan>| {
            if let Some(time) = time {
                times.insert(key.to_owned(), Value::String(time.to_string()));
            }
        };
        put("warm_up", &self.warm_up);
        put("duration", &self.duration);
        match times.is_empty() {
            true => times,
            false => layers::nest("time", Value::Table(times)),
        }
    }

    /// Rejects groups that name unknown scenes, curves or values.
    pub(super) fn check(
        &self,
        table: &str,
        scenes: &[&str],
        curves: &[&str],
        values: &[&Value],
    ) -> Result<(), PlanError> {
        let unknown = |names: &Option<Vec<String>>, there: &[&str]| {
            names.iter().flatten().find(|name| !there.contains(&name.as_str())).cloned()
        };
        for group in &self.points {
            let value = group.values.iter().flatten().find(|value| !values.contains(value));
            let wrong = unknown(&group.scenes, scenes)
                .map(|id| format!("scene {id:?}"))
                .or_else(|| unknown(&group.curves, curves).map(|id| format!("curve {id:?}")))
                .or_else(|| value.map(|value| format!("value {value}")));
            if let Some(wrong) = wrong {
                return Err(PlanError(format!("[[{table}.points]]: there is no {wrong}")));
            }
        }
        Ok(())
    }
}
