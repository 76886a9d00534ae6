//! What connections, races and plans say about themselves, as the JSON that `eyas --json` prints
//! (`docs/json.md`): the classes of Python are made from it.

use eyas::{
    ConnectionInfo, ConnectionInfoJson,
    race::{
        plan::Plan,
        report::{PlanJson, RaceJson, Report},
        trace::Trace,
    },
};
use pyo3::{PyResult, exceptions::PyRuntimeError};
use serde_json::{Value, json};

/// A connection: what it is, when what was reached, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!(ConnectionInfoJson::from(info))
}

/// A race, as far as it has run, with the plan that it runs by.
pub(crate) fn race(trace: &Trace) -> PyResult<Value> {
    // A race that this very code has run replays, or a rule of the core is broken.
    let report = Report::from_trace(trace)
        .map_err(|error| PyRuntimeError::new_err(format!("the race cannot be told: {error}")))?;
    let mut race = json!(RaceJson::from(&report));
    race["plan"] = plan(&report.plan);
    Ok(race)
}

/// A plan: what would be tried, what would not, and why.
pub(crate) fn plan(plan: &Plan) -> Value {
    json!(PlanJson::from(plan))
}
