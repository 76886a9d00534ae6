//! Details of connections, races, plans and associations as JSON, in the form of `docs/json.md`
//! where it has them.

use std::{
    ffi::{CString, c_char},
    mem::MaybeUninit,
};

use eyas::{
    ConnectionInfo, ConnectionInfoJson,
    race::{
        plan::Plan,
        report::{PlanJson, RaceJson, Report},
        trace::Trace,
    },
};
use serde_json::{Value, json};

use crate::{code::EYAS_BUG, error::Failure};

/// A text as C has it: what follows a NUL would be lost there, so there is none.
pub(crate) fn c_string(mut text: String) -> CString {
    text.retain(|letter| letter != '\0');
    CString::new(text).unwrap_or_default()
}

pub(crate) fn c_text(value: Value) -> CString {
    c_string(value.to_string())
}

/// Gives a text to the caller, who frees it.
pub(crate) fn give(place: &mut MaybeUninit<*mut c_char>, value: Value) {
    place.write(c_text(value).into_raw());
}

/// A connection: what it is, when what was reached, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!(ConnectionInfoJson::from(info))
}

/// A race, as far as it has run, with the plan that it runs by.
pub(crate) fn race(trace: &Trace) -> Result<Value, Failure> {
    // A race that this very code has run replays, or a rule of the core is broken.
    let report = Report::from_trace(trace).map_err(|error| {
        Failure::new(EYAS_BUG, format_args!("the race cannot be told: {error}; please report it"))
    })?;
    let mut race = json!(RaceJson::from(&report));
    race["plan"] = plan(&report.plan);
    Ok(race)
}

/// A plan: what would be tried, what would not, and why.
pub(crate) fn plan(plan: &Plan) -> Value {
    json!(PlanJson::from(plan))
}
