//! Runs to be executed elsewhere: each situation as text with its seed, for any free processor.

use serde::{Deserialize, Serialize};

use crate::printable::printable;
use crate::run::RunResult;
use crate::simulation;
use crate::situation::Situation;

/// Runs for another process to execute, serialised as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTask {
    /// The version of the code that is to execute them.
    pub(super) version: String,
    pub(super) runs: Vec<TaskRun>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskRun {
    pub(super) point: String,
    pub(super) situation: Situation,
    pub(super) seed: u64,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// The version of the code that executed them.
    pub(super) version: String,
    pub(super) runs: Vec<RunOutcome>,
}

/// The outcome of one of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunOutcome {
    pub(super) point: String,
    pub(super) seed: u64,
    pub(super) result: RunResult,
}

/// Why a task or its outcome is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// Other code, whose measurements may differ.
    #[error("the runs are for eyas {required}, and this is eyas {running}")]
    OtherCode {
        /// The code that requests the runs.
        required: String,
        /// The code that executed them, or was to.
        running: String,
    },
    /// Live runs, which measure the machine that they run on.
    #[error(
        "{0} is a live run: it measures the machine that it runs on, and cannot be executed elsewhere"
    )]
    Live(String),
    /// A run that does not belong to the plan.
    #[error("{point} with seed {seed} is not a run of this plan")]
    UnknownRun {
        /// The point that it names.
        point: String,
        /// Its seed.
        seed: u64,
    },
    /// The text is not a task or an outcome.
    #[error("not written by eyas: {0}")]
    Text(String),
}

/// The cause may quote the text, which may be anybody's.
impl From<serde_json::Error> for TaskError {
    fn from(cause: serde_json::Error) -> Self {
        Self::Text(printable(&cause.to_string()))
    }
}

impl RunTask {
    /// Parses a task.
    ///
    /// # Errors
    /// If the text is not a task.
    pub fn read(text: &[u8]) -> Result<Self, TaskError> {
        Ok(serde_json::from_slice(text)?)
    }

    /// Serialises the task.
    ///
    /// # Errors
    /// If a situation cannot be serialised, which does not happen with those parsed from a plan.
    pub fn write(&self) -> Result<Vec<u8>, TaskError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Executes its runs one after the other. `before_each` is called before each of them, and can
    /// end the task with an error.
    ///
    /// # Errors
    /// That error, or if the task is for other code or for a live run.
    pub fn run<E: From<TaskError>>(
        &self,
        version: &str,
        mut before_each: impl FnMut() -> Result<(), E>,
    ) -> Result<TaskOutcome, E> {
        check_version(&self.version, version)?;
        let mut runs = Vec::with_capacity(self.runs.len());
        for TaskRun { point, situation, seed } in &self.runs {
            before_each()?;
            let result = simulation::run_situation(situation, *seed)
                .ok_or_else(|| TaskError::Live(printable(point)))?;
            runs.push(RunOutcome { point: point.clone(), seed: *seed, result });
        }
        Ok(TaskOutcome { version: version.to_owned(), runs })
    }
}

impl TaskOutcome {
    /// Parses an outcome.
    ///
    /// # Errors
    /// If the text is not an outcome.
    pub fn read(text: &[u8]) -> Result<Self, TaskError> {
        Ok(serde_json::from_slice(text)?)
    }

    /// Serialises the outcome.
    ///
    /// # Errors
    /// If it cannot be serialised, which does not happen with outcomes of runs.
    pub fn write(&self) -> Result<Vec<u8>, TaskError> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// Checks that two versions of the code, named as in [`PlanJob`](super::PlanJob), are the same.
pub(super) fn check_version(required: &str, running: &str) -> Result<(), TaskError> {
    if required == running {
        return Ok(());
    }
    // The version that is required is text of somebody else's.
    Err(TaskError::OtherCode { required: printable(required), running: printable(running) })
}
