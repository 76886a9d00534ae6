//! The runs of a plan that is executed elsewhere: open runs are handed out as tasks, finished ones
//! are stored as they arrive.

use std::collections::{BTreeMap, BTreeSet};

use super::task::{RunOutcome, RunTask, TaskError, TaskOutcome, TaskRun, check_version};
use super::{PlanJob, RunError, RunProgress, collect, in_rounds, seeds};
use crate::plan::Plan;
use crate::results::{ResultsError, RunStore};
use crate::run::{RunResult, RunResults};
use crate::situation::GridPoint;

/// All runs of a plan, whoever executes them and in whatever order.
#[derive(Debug)]
pub struct RunWorklist {
    plan: Plan,
    seeds: Vec<u64>,
    version: String,
    store: RunStore,
    /// The indices of the plan's points by their identifiers.
    points: BTreeMap<String, usize>,
    /// The open runs: indices of points, and seeds.
    open: BTreeSet<(usize, u64)>,
    /// The same, in the order of execution.
    order: Vec<(usize, u64)>,
    progress: RunProgress,
}

/// Why the outcome of a task was not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// It belongs to something else.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The output directory cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl RunWorklist {
    /// Opens the output directory of a plan, with the runs that are finished there.
    ///
    /// # Errors
    /// If the plan is live, or the directory cannot be created.
    pub fn open(plan: Plan, job: &PlanJob) -> Result<Self, RunError> {
        if plan.is_live() {
            return Err(RunError::LiveShard);
        }
        let mut store = RunStore::open(&job.out, &job.version)?;
        for point in &plan.grid.points {
            store.load(point);
        }
        let seeds = seeds(&plan, job.seed);
        let name = |(place, point): (usize, &GridPoint)| (point.id.clone(), place);
        let points: BTreeMap<String, usize> =
            plan.grid.points.iter().enumerate().map(name).collect();
        let all: Vec<_> = in_rounds(&plan, &seeds).collect();
        let open = all.iter().filter(|(point, seed)| store.get(&point.id, *seed).is_none());
        let order: Vec<_> =
            open.filter_map(|(point, seed)| Some((*points.get(&point.id)?, *seed))).collect();
        let found = all.len() - order.len();
        let progress = RunProgress { done: found, found, total: all.len() };
        let open = order.iter().copied().collect();
        Ok(Self { seeds, version: job.version.clone(), store, points, open, order, progress, plan })
    }

    /// Returns the progress.
    #[must_use]
    pub const fn progress(&self) -> RunProgress {
        self.progress
    }

    /// Returns the number of runs that were open when it was opened: tasks are made of these, in
    /// the order of execution.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether everything was finished when it was opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns a task of `count` of these runs, starting at `from`; fewer at the end.
    #[must_use]
    pub fn task(&self, from: usize, count: usize) -> RunTask {
        let runs = self.order.iter().skip(from).take(count).filter_map(|(place, seed)| {
            let point = self.plan.grid.points.get(*place)?;
            let (situation, point) = (point.situation.clone(), point.id.clone());
            Some(TaskRun { point, situation, seed: *seed })
        });
        RunTask { version: self.version.clone(), runs: runs.collect() }
    }

    /// Stores the outcome of a task, all of it or nothing. Existing runs are kept as they are,
    /// because engines repeat tasks whose outcomes they have lost.
    ///
    /// # Errors
    /// If it is of other code or another plan, or the output directory cannot be written.
    pub fn keep(&mut self, outcome: TaskOutcome) -> Result<RunProgress, KeepError> {
        check_version(&self.version, &outcome.version)?;
        let mut of_points: BTreeMap<usize, Vec<(u64, RunResult)>> = BTreeMap::new();
        for RunOutcome { point, seed, result } in outcome.runs {
            match self.points.get(&point) {
                Some(place) if self.seeds.contains(&seed) => {
                    of_points.entry(*place).or_default().push((seed, result));
                }
                _ => return Err(TaskError::UnknownRun { point, seed }.into()),
            }
        }
        for (place, mut runs) in of_points {
            runs.retain(|(seed, _)| self.open.remove(&(place, *seed)));
            let Some(point) = self.plan.grid.points.get(place) else { continue };
            self.progress.done += runs.len();
            self.store.keep_all(&point.id, runs)?;
        }
        Ok(self.progress)
    }

    /// Returns the results, if everything is finished.
    ///
    /// # Errors
    /// If runs are still open.
    pub fn results(&self) -> Result<RunResults, RunError> {
        if !self.open.is_empty() {
            return Err(RunError::Stopped(self.progress));
        }
        Ok(collect(&self.plan, &self.seeds, &self.store))
    }

    /// Returns the plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the seeds of the runs of each point, in order.
    #[must_use]
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }
}
