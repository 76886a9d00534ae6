//! Experiments: `eyas.lab`.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | plans, and runs in this process |
//! | `tasks` | runs on other processes and machines |
//! | `outcome` | results |
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
    plan::{Plan, PlanExtent, PlanOptions, from_json, shipped},
    runner::{self, PlanJob, RunEvent, RunProgress},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use serde_json::json;

use crate::{finalization::CallStart, wait::SIGNALS};
pub(crate) use outcome::LabOutcome;
pub(crate) use tasks::{LabWorklist, lab_task};

/// The commit that this module was built from, or `unknown`.
const COMMIT: &str = env!("EYAS_COMMIT");

/// Returns an exception of `eyas.lab`, by the name of its class.
fn lab_error(class: &str, message: impl std::fmt::Display) -> PyErr {
    let message = message.to_string();
    Python::attach(|py| {
        let created = py
            .import("eyas.lab._errors")
            .and_then(|errors| errors.getattr(class))
            .and_then(|class| class.call1((message,)));
        created.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Returns the names and texts of the built-in plans.
#[pyfunction]
pub(crate) fn lab_plans() -> Vec<(&'static str, &'static str)> {
    shipped().iter().map(|plan| (plan.name, plan.text)).collect()
}

/// Converts a plan from JSON to TOML.
#[pyfunction]
pub(crate) fn lab_text(json: &str) -> PyResult<String> {
    from_json(json).map_err(|cause| lab_error("PlanError", cause))
}

/// Returns the version of the code of this module, whose file is `file`.
#[pyfunction]
pub(crate) fn lab_version(file: PathBuf) -> String {
    runner::code_version(COMMIT, &file)
}

/// The options of runs, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct RunOptions {
    out: PathBuf,
    jobs: usize,
    seed: u64,
    version: String,
}

impl From<RunOptions> for PlanJob {
    fn from(options: RunOptions) -> Self {
        let RunOptions { out, jobs, seed, version } = options;
        Self { out, jobs, seed, version }
    }
}

/// A plan that is ready to run.
#[pyclass(frozen)]
pub(crate) struct LabPlan {
    plan: Plan,
}

#[pymethods]
impl LabPlan {
    /// Parses a plan. `extent` is `quick`, `standard` or `full`; each item of `set` is `PARAMETER=VALUE`.
    #[new]
    fn new(text: &str, extent: &str, runs: Option<u32>, set: Vec<String>) -> PyResult<Self> {
        let extent = match extent {
            "quick" => PlanExtent::Quick,
            "standard" => PlanExtent::Standard,
            _ => PlanExtent::Full,
        };
        let options = PlanOptions { extent, runs, set, ..PlanOptions::default() };
        let plan = Plan::parse(text, &options).map_err(|cause| lab_error("PlanError", cause))?;
        Ok(Self { plan })
    }

    /// Describes the plan, as JSON.
    fn facts(&self) -> String {
        let plan = &self.plan;
        json!({
            "name": plan.name, "title": plan.title, "about": plan.about, "live": plan.is_live(),
            "points": plan.grid.points.len(), "runs": plan.grid.runs, "claims": plan.claims.len(),
        })
        .to_string()
    }

    /// Returns the default directory of its results.
    fn directory(&self) -> PathBuf {
        self.plan.directory()
    }

    /// Runs the plan in this process. Calls `report` with the numbers of runs that are done, were found done, and are
    /// needed in total, whenever they change. An exception of `report` or of a signal handler stops the plan; finished
    /// runs are kept.
    fn run(&self, py: Python<'_>, options: RunOptions, report: Py<PyAny>) -> PyResult<LabOutcome> {
        let (job, stop) = (PlanJob::from(options), AtomicBool::new(false));
        if self.plan.is_live() {
            return Err(lab_error("LabError", runner::RunError::LiveShard));
        }
        py.detach(|| {
            thread::scope(|scope| {
                let (sender, events) = mpsc::channel();
                let work = scope.spawn(|| {
                    runner::run(&self.plan, &job, &stop, move |event| {
                        if let RunEvent::Progress(now) = event {
                            // Without a receiver, `stop` is set as well.
                            let _ = sender.send(now);
                        }
                    })
                });
                let reported = forward(&events, &report);
                // Without an exception, the runs have already ended by themselves.
                stop.store(reported.is_err(), Ordering::Relaxed);
                let results = work.join();
                reported?;
                let results = results
                    .map_err(|_| PyRuntimeError::new_err("a run panicked"))?
                    .map_err(|cause| lab_error("LabError", cause))?;
                Ok(LabOutcome::new(&self.plan, &results, runner::seeds(&self.plan, job.seed)))
            })
        })
    }
}

/// Reports the progress until all runs are finished, and checks for signals.
fn forward(events: &Receiver<RunProgress>, report: &Py<PyAny>) -> PyResult<()> {
    let start = CallStart::now();
    loop {
        let event = events.recv_timeout(SIGNALS);
        start.park_if_exiting();
        match event {
            Ok(now) => Python::attach(|py| {
                report.call1(py, (now.done, now.found, now.total))?;
                py.check_signals()
            })?,
            Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
