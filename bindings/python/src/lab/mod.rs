//! Experiments: `eyas.lab`.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | plans, and runs in this process |
//! | `tasks` | runs that travel to whoever has a processor free |
//! | `outcome` | what came out |
//! | `arrow`, `buffers` | the table of all runs, for other programs in this process |

mod arrow;
mod buffers;
mod outcome;
mod tasks;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
};

use eyas_lab::{
    plan::{Extent, Options, Plan, from_json, shipped},
    runner::{self, Event, Job, Progress},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use serde_json::json;

use crate::{ending::Begun, wait::SIGNALS};
pub(crate) use outcome::LabOutcome;
pub(crate) use tasks::{LabWorklist, lab_task};

/// The commit that this module was built from, or `unknown`.
const COMMIT: &str = env!("EYAS_COMMIT");

/// An exception of `eyas.lab`, by the name of its class.
fn raise(class: &str, message: impl std::fmt::Display) -> PyErr {
    let message = message.to_string();
    Python::attach(|py| {
        let made = py
            .import("eyas.lab._errors")
            .and_then(|errors| errors.getattr(class))
            .and_then(|class| class.call1((message,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Plans that come with eyas: their names and texts.
#[pyfunction]
pub(crate) fn lab_plans() -> Vec<(&'static str, &'static str)> {
    shipped().iter().map(|plan| (plan.name, plan.text)).collect()
}

/// The text of a plan that was written as JSON.
#[pyfunction]
pub(crate) fn lab_text(json: &str) -> PyResult<String> {
    from_json(json).map_err(|cause| raise("PlanError", cause))
}

/// Names the code of this module, which lies in this file.
#[pyfunction]
pub(crate) fn lab_version(file: PathBuf) -> String {
    runner::code_version(COMMIT, &file)
}

/// How runs are done, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    out: PathBuf,
    jobs: usize,
    seed: u64,
    version: String,
}

impl From<Wanted> for Job {
    fn from(wanted: Wanted) -> Self {
        let Wanted { out, jobs, seed, version } = wanted;
        Self { out, jobs, seed, version }
    }
}

/// A plan, ready to be run.
#[pyclass(frozen)]
pub(crate) struct LabPlan {
    plan: Plan,
}

#[pymethods]
impl LabPlan {
    /// Reads one. `extent` is `quick`, `standard` or `full`; each of `set` is `PARAMETER=VALUE`.
    #[new]
    fn new(text: &str, extent: &str, runs: Option<u32>, set: Vec<String>) -> PyResult<Self> {
        let extent = match extent {
            "quick" => Extent::Quick,
            "standard" => Extent::Standard,
            _ => Extent::Full,
        };
        let options = Options { extent, runs, set, ..Options::default() };
        let plan = Plan::parse(text, &options).map_err(|cause| raise("PlanError", cause))?;
        Ok(Self { plan })
    }

    /// What it is, as JSON.
    fn facts(&self) -> String {
        let plan = &self.plan;
        json!({
            "name": plan.name, "title": plan.title, "about": plan.about, "live": plan.is_live(),
            "points": plan.grid.points.len(), "runs": plan.grid.runs, "claims": plan.claims.len(),
        })
        .to_string()
    }

    /// Where its results go if nothing is said.
    fn directory(&self) -> PathBuf {
        self.plan.directory()
    }

    /// Runs it in this process, and calls `tell` with what is done, found and wanted as often as
    /// something changes. What a signal's handler or `tell` raises ends it; what is finished is kept.
    fn run(&self, py: Python<'_>, wanted: Wanted, tell: Py<PyAny>) -> PyResult<LabOutcome> {
        let (job, stop) = (Job::from(wanted), AtomicBool::new(false));
        if self.plan.is_live() {
            return Err(raise("LabError", runner::RunError::LiveShard));
        }
        py.detach(|| {
            thread::scope(|scope| {
                let (sender, events) = mpsc::channel();
                let work = scope.spawn(|| {
                    runner::run(&self.plan, &job, &stop, move |event| {
                        if let Event::Progress(now) = event {
                            // Who listens no longer has said so by `stop`.
                            let _ = sender.send(now);
                        }
                    })
                });
                let told = listen(&events, &tell);
                // It ended by itself, unless this is an exception.
                stop.store(told.is_err(), Ordering::Relaxed);
                let ended = work.join();
                told?;
                let results = ended
                    .map_err(|_| PyRuntimeError::new_err("a run came to a wrong end"))?
                    .map_err(|cause| raise("LabError", cause))?;
                Ok(LabOutcome::new(&self.plan, &results, runner::seeds(&self.plan, job.seed)))
            })
        })
    }
}

/// Tells of what is finished until everything is, and looks for signals meanwhile.
fn listen(events: &Receiver<Progress>, tell: &Py<PyAny>) -> PyResult<()> {
    let begun = Begun::now();
    loop {
        let event = events.recv_timeout(SIGNALS);
        begun.stay_if_python_ends();
        match event {
            Ok(now) => Python::attach(|py| {
                tell.call1(py, (now.done, now.found, now.total))?;
                py.check_signals()
            })?,
            Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
