//! Runs that travel: a plan's on one side, and on the other side whoever does them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use eyas_lab::runner::{Job, KeepError, Task, TaskError, TaskOutcome, Worklist};
use pyo3::{prelude::*, types::PyBytes};

use super::{LabOutcome, LabPlan, Wanted, raise};
use crate::ending::Begun;

/// Why a task ended early.
enum Ended {
    Task(TaskError),
    /// What the handler of a signal raised.
    Signal(PyErr),
}

impl From<TaskError> for Ended {
    fn from(cause: TaskError) -> Self {
        Self::Task(cause)
    }
}

impl From<Ended> for PyErr {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Task(cause) => refused(&cause),
            Ended::Signal(raised) => raised,
        }
    }
}

fn refused(cause: &TaskError) -> PyErr {
    let class = match cause {
        TaskError::OtherCode { .. } => "OtherCodeError",
        _ => "LabError",
    };
    raise(class, cause)
}

/// Does a task without the GIL, and gives back what came of it. Signals are looked for before each run.
#[pyfunction]
pub(crate) fn lab_task<'py>(
    py: Python<'py>,
    task: &[u8],
    version: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let task = Task::read(task).map_err(|cause| refused(&cause))?;
    let begun = Begun::now();
    let outcome = py.detach(|| -> Result<_, Ended> {
        let signals = || {
            begun.stay_if_python_ends();
            Python::attach(|py| py.check_signals()).map_err(Ended::Signal)
        };
        Ok(task.run(version, signals)?.write()?)
    })?;
    Ok(PyBytes::new(py, &outcome))
}

/// The runs of a plan that somebody else does.
#[pyclass(frozen)]
pub(crate) struct LabWorklist(Mutex<Worklist>);

impl LabWorklist {
    fn list(&self) -> MutexGuard<'_, Worklist> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LabWorklist {
    /// With what is finished in the output directory.
    #[new]
    fn new(plan: &LabPlan, wanted: Wanted) -> PyResult<Self> {
        let list = Worklist::open(plan.plan.clone(), &Job::from(wanted))
            .map_err(|cause| raise("LabError", cause))?;
        Ok(Self(Mutex::new(list)))
    }

    /// How many runs there were to do when it was opened.
    fn __len__(&self) -> usize {
        self.list().len()
    }

    /// What is done, was found done, and is wanted.
    fn progress(&self) -> (usize, usize, usize) {
        let now = self.list().progress();
        (now.done, now.found, now.total)
    }

    /// A task of so many runs from one on.
    fn task<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let task = self.list().task(start, count);
        Ok(PyBytes::new(py, &task.write().map_err(|cause| refused(&cause))?))
    }

    /// Keeps what came of a task.
    fn keep(&self, outcome: &[u8]) -> PyResult<()> {
        let outcome = TaskOutcome::read(outcome).map_err(|cause| refused(&cause))?;
        match self.list().keep(outcome) {
            Ok(_) => Ok(()),
            Err(KeepError::Task(cause)) => Err(refused(&cause)),
            Err(other) => Err(raise("LabError", other)),
        }
    }

    /// What came out, once everything is finished.
    fn outcome(&self) -> PyResult<LabOutcome> {
        let list = self.list();
        let results = list.results().map_err(|cause| raise("LabError", cause))?;
        Ok(LabOutcome::new(list.plan(), &results, list.seeds().to_vec()))
    }
}
