//! Runs that travel: each situation as text, its seed beside it, to whoever has a processor free.

use serde::{Deserialize, Serialize};

use crate::run::RunResult;
use crate::simulation;
use crate::situation::Situation;

/// Runs for somebody else to do, as JSON says them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The code that is to run them.
    pub(super) version: String,
    pub(super) runs: Vec<TaskRun>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskRun {
    pub(super) point: String,
    pub(super) situation: Situation,
    pub(super) seed: u64,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// The code that ran them.
    pub(super) version: String,
    pub(super) runs: Vec<RunOutcome>,
}

/// What came of one of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunOutcome {
    pub(super) point: String,
    pub(super) seed: u64,
    pub(super) result: RunResult,
}

/// Why a task, or what came of one, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// What it measured need not be what the other code measures.
    #[error("the runs are for eyas {wanted}, and this is eyas {here}")]
    OtherCode {
        /// The code that asks for the runs.
        wanted: String,
        /// The code that ran them, or was to.
        here: String,
    },
    /// Live runs measure the machine that they run on.
    #[error("{0} is a live run: it measures the machine that it runs on, and cannot travel")]
    Live(String),
    /// A run that is none of the plan's.
    #[error("{point} with seed {seed} is not a run of this plan")]
    Stranger {
        /// The point that it names.
        point: String,
        /// Its seed.
        seed: u64,
    },
    /// It is not written as tasks and their outcomes are.
    #[error("this was not written by eyas: {0}")]
    Text(String),
}

impl Task {
    /// Reads one.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(text: &[u8]) -> Result<Self, TaskError> {
        serde_json::from_slice(text).map_err(|cause| TaskError::Text(cause.to_string()))
    }

    /// As it travels.
    ///
    /// # Errors
    /// If a situation cannot be written, which none that was read from a plan is.
    pub fn write(&self) -> Result<Vec<u8>, TaskError> {
        serde_json::to_vec(self).map_err(|cause| TaskError::Text(cause.to_string()))
    }

    /// Does its runs, one after the other. `before_each` is asked before each of them, and ends the
    /// task by an error.
    ///
    /// # Errors
    /// That error, or if the task is for other code or for a live run.
    pub fn run<E: From<TaskError>>(
        &self,
        version: &str,
        mut before_each: impl FnMut() -> Result<(), E>,
    ) -> Result<TaskOutcome, E> {
        same_code(&self.version, version)?;
        let mut runs = Vec::with_capacity(self.runs.len());
        for TaskRun { point, situation, seed } in &self.runs {
            before_each()?;
            let setup = situation.simulated().ok_or_else(|| TaskError::Live(point.clone()))?;
            let result = simulation::run(setup, *seed);
            runs.push(RunOutcome { point: point.clone(), seed: *seed, result });
        }
        Ok(TaskOutcome { version: version.to_owned(), runs })
    }
}

impl TaskOutcome {
    /// Reads one.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(text: &[u8]) -> Result<Self, TaskError> {
        serde_json::from_slice(text).map_err(|cause| TaskError::Text(cause.to_string()))
    }

    /// As it travels.
    ///
    /// # Errors
    /// If it cannot be written, which no run's outcome is.
    pub fn write(&self) -> Result<Vec<u8>, TaskError> {
        serde_json::to_vec(self).map_err(|cause| TaskError::Text(cause.to_string()))
    }
}

/// Holds code against other code, both named as in [`Job`](super::Job).
pub(super) fn same_code(wanted: &str, here: &str) -> Result<(), TaskError> {
    if wanted == here {
        return Ok(());
    }
    Err(TaskError::OtherCode { wanted: wanted.to_owned(), here: here.to_owned() })
}
