//! Connections, races and plans in the JSON of `eyas --json` (`docs/reference/json.md`), from which the Python classes are
//! created.

use eyas::{
    ConnectionInfo, ConnectionInfoJson,
    race::{
        plan::Plan,
        report::{PlanJson, RaceJson, RaceReport},
        trace::Trace,
    },
};
use pyo3::{PyResult, exceptions::PyRuntimeError};
use serde_json::{Value, json};

/// Describes a connection: its properties, its timings, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!(ConnectionInfoJson::from(info))
}

/// Describes a race so far, and its plan.
pub(crate) fn race(trace: &Trace) -> PyResult<Value> {
    // The trace of a race of this process can always be replayed; anything else is a bug.
    let report = RaceReport::from_trace(trace).map_err(|error| {
        PyRuntimeError::new_err(format!("the race cannot be replayed: {error}"))
    })?;
    let mut race = json!(RaceJson::from(&report));
    race["plan"] = plan(&report.plan);
    Ok(race)
}

/// Describes a plan: what would be tried, what would not, and why.
pub(crate) fn plan(plan: &Plan) -> Value {
    json!(PlanJson::from(plan))
}
