//! What connections, races and plans say about themselves, as the JSON that `eyas --json` prints
//! (`docs/json.md`): the classes of Python are made from it.

use std::time::Duration;

use eyas::{
    ConnectionInfo, Timings,
    race::{
        plan::Plan,
        report::{PlanJson, RaceJson, Report},
        trace::Trace,
    },
};
use pyo3::{PyResult, exceptions::PyRuntimeError};
use serde_json::{Value, json};

/// Milliseconds, with microseconds after the point.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// A connection: what it is, when what was reached, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!({
        "transport": info.transport.name(),
        "fell_back": info.fell_back,
        "security": info.security.name(),
        "protocol": info.protocol,
        "cipher_suite": info.cipher_suite,
        "local": info.local.map(|local| local.to_string()),
        "remote": info.remote.to_string(),
        "alpn": info.alpn,
        "rtt_ms": info.rtt.map(millis),
        "from_memory": info.from_memory,
        "reasons": info.reasons,
        "timings": timings(&info.timings),
    })
}

fn timings(timings: &Timings) -> Value {
    json!({
        "dns_ms": timings.dns.map(millis),
        "started_ms": millis(timings.started),
        "answered_ms": timings.answered.map(millis),
        "transport_ms": timings.transport.map(millis),
        "security_ms": timings.security.map(millis),
    })
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
