//! Runs on executors: the worklist of a plan on one side, and the workers on the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use eyas_lab::runner::{KeepError, PlanJob, RunTask, RunWorklist, TaskError, TaskOutcome};
use pyo3::{prelude::*, types::PyBytes};

use super::{LabOutcome, LabPlan, RunOptions, lab_error};
use crate::finalization::CallStart;

/// Why a task stopped early.
enum Interruption {
    Task(TaskError),
    /// The exception of a signal handler.
    Signal(PyErr),
}

impl From<TaskError> for Interruption {
    fn from(cause: TaskError) -> Self {
        Self::Task(cause)
    }
}

impl From<Interruption> for PyErr {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Task(cause) => task_error(&cause),
            Interruption::Signal(raised) => raised,
        }
    }
}

fn task_error(cause: &TaskError) -> PyErr {
    let class = match cause {
        TaskError::OtherCode { .. } => "OtherCodeError",
        _ => "LabError",
    };
    lab_error(class, cause)
}

/// Runs a task without the GIL and returns its outcome. Signals are checked before each run.
#[pyfunction]
pub(crate) fn lab_task<'py>(
    py: Python<'py>,
    task: &[u8],
    version: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let task = RunTask::read(task).map_err(|cause| task_error(&cause))?;
    let start = CallStart::now();
    let outcome = py.detach(|| -> Result<_, Interruption> {
        let signals = || {
            start.park_if_exiting();
            Python::attach(|py| py.check_signals()).map_err(Interruption::Signal)
        };
        Ok(task.run(version, signals)?.write()?)
    })?;
    Ok(PyBytes::new(py, &outcome))
}

/// The runs of a plan that an executor performs.
#[pyclass(frozen)]
pub(crate) struct LabWorklist(Mutex<RunWorklist>);

impl LabWorklist {
    fn list(&self) -> MutexGuard<'_, RunWorklist> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LabWorklist {
    /// Opens the worklist, with the finished runs of the output directory.
    #[new]
    fn new(plan: &LabPlan, options: RunOptions) -> PyResult<Self> {
        let list = RunWorklist::open(plan.plan.clone(), &PlanJob::from(options))
            .map_err(|cause| lab_error("LabError", cause))?;
        Ok(Self(Mutex::new(list)))
    }

    /// Returns the number of open runs at the time when the worklist was opened.
    fn __len__(&self) -> usize {
        self.list().len()
    }

    /// Returns the numbers of runs that are done, were found done, and are needed in total.
    fn progress(&self) -> (usize, usize, usize) {
        let now = self.list().progress();
        (now.done, now.found, now.total)
    }

    /// Returns a task of `count` runs, beginning with number `start`.
    fn task<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let task = self.list().task(start, count);
        Ok(PyBytes::new(py, &task.write().map_err(|cause| task_error(&cause))?))
    }

    /// Stores the outcome of a task.
    fn keep(&self, outcome: &[u8]) -> PyResult<()> {
        let outcome = TaskOutcome::read(outcome).map_err(|cause| task_error(&cause))?;
        match self.list().keep(outcome) {
            Ok(_) => Ok(()),
            Err(KeepError::Task(cause)) => Err(task_error(&cause)),
            Err(other) => Err(lab_error("LabError", other)),
        }
    }

    /// Returns the result, once all runs are finished.
    fn outcome(&self) -> PyResult<LabOutcome> {
        let list = self.list();
        let results = list.results().map_err(|cause| lab_error("LabError", cause))?;
        Ok(LabOutcome::new(list.plan(), &results, list.seeds().to_vec()))
    }
}
