//! Details of connections, races, plans and associations as JSON, in the form of `docs/reference/json.md`
//! where it has them.

use std::{
    ffi::{CString, c_char},
    mem::MaybeUninit,
};

use eyas::{
    ConnectionInfo, ConnectionInfoJson,
    race::{
        plan::Plan,
        report::{PlanJson, RaceJson, RaceReport},
        trace::Trace,
    },
};
use serde_json::{Value, json};

use crate::{code::EYAS_BUG, error::Failure};

/// Converts to a C string; NUL characters are removed because C would lose what follows them.
pub(crate) fn c_string(mut text: String) -> CString {
    text.retain(|letter| letter != '\0');
    CString::new(text).unwrap_or_default()
}

pub(crate) fn c_text(value: Value) -> CString {
    c_string(value.to_string())
}

/// Returns a text to the caller, who frees it.
pub(crate) fn return_json(place: &mut MaybeUninit<*mut c_char>, value: Value) {
    place.write(c_text(value).into_raw());
}

/// Returns the details of a connection: its properties, its timings, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!(ConnectionInfoJson::from(info))
}

/// Returns the race so far, with its plan.
pub(crate) fn race(trace: &Trace) -> Result<Value, Failure> {
    // A race that this code has run can be replayed, unless the core has a bug.
    let report = RaceReport::from_trace(trace).map_err(|error| {
        Failure::new(
            EYAS_BUG,
            format_args!("the race cannot be reported: {error}; please report it"),
        )
    })?;
    let mut race = json!(RaceJson::from(&report));
    race["plan"] = plan(&report.plan);
    Ok(race)
}

/// Returns a plan: what would be tried, what would not, and why.
pub(crate) fn plan(plan: &Plan) -> Value {
    json!(PlanJson::from(plan))
}
