//! Executes all runs of a plan on all cores; finished runs are kept, so that an interrupted
//! experiment can be resumed.
//!
//! | file | purpose |
//! | --- | --- |
//! | `runner` | runs a plan, or a shard of it |
//! | `shard` | which share of which runs an output directory contains |
//! | `merge` | merging shards |
//! | `task` | runs as text, to be executed elsewhere |
//! | `worklist` | a plan whose runs are such tasks |
//! | `version` | the identity of the code |

mod merge;
mod shard;
mod task;
mod version;
mod worklist;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Scope};

use crate::live::{self, LiveError};
use crate::plan::{Plan, PlanError, PlanOptions};
use crate::results::{ResultsError, RunStore};
use crate::run::{RunResult, RunResults};
use crate::simulation;
use crate::situation::{GridPoint, Situation};

pub use merge::{MergeError, MergedRuns, merge};
pub use shard::{ParseShardError, PlanShard, ShardFile};
pub use task::{RunTask, TaskError, TaskOutcome};
pub use version::code_version;
pub use worklist::{KeepError, RunWorklist};

/// How to execute a plan.
#[derive(Clone, Debug)]
pub struct PlanJob {
    /// The output directory, in which finished runs are kept and found again.
    pub out: PathBuf,
    /// The number of concurrent runs; one if any of them must run alone.
    pub jobs: usize,
    /// The seed of the first run of each point; the others use the following ones.
    pub seed: u64,
    /// Identifies the code: runs of another version are not reused.
    pub version: String,
}

/// The progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// The number of finished runs.
    pub done: usize,
    /// Of these, those that had been finished before.
    pub found: usize,
    /// The number of all runs.
    pub total: usize,
}

/// An event during execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent<'a> {
    /// The progress: at the start, and after each run.
    Progress(RunProgress),
    /// The first run that was skipped because this machine lacks a certain requirement.
    Skipped {
        /// The point.
        point: &'a str,
        /// A description of what is missing.
        missing: &'a str,
    },
}

/// Why a plan was not executed completely.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was stopped; finished runs are kept.
    #[error("stopped with {} of {} runs finished", .0.done, .0.total)]
    Stopped(RunProgress),
    /// An error of the output directory.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// An error of the plan of a shard.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A live plan cannot be run in shards or as tasks.
    #[error("a live experiment measures the machine that it runs on: it has no shards")]
    LiveShard,
    /// A live run failed; runs finished before are kept.
    #[error("{point}: {cause}")]
    Live {
        /// The point.
        point: String,
        /// The cause.
        cause: LiveError,
    },
}

/// Returns the seeds of all runs of a point, in order.
#[must_use]
pub fn seeds(plan: &Plan, first: u64) -> Vec<u64> {
    (0..u64::from(plan.grid.runs)).map(|run| first.wrapping_add(run)).collect()
}

/// Executes a plan. `report` is called after each run; when `stop` is set, no more runs are started.
///
/// # Errors
/// If it was stopped, or the output directory cannot be written.
pub fn run(
    plan: &Plan,
    job: &PlanJob,
    stop: &AtomicBool,
    report: impl FnMut(RunEvent<'_>),
) -> Result<RunResults, RunError> {
    let seeds = seeds(plan, job.seed);
    let all = in_rounds(plan, &seeds).collect();
    let (store, skipped) = execute(plan, all, job, stop, report)?;
    Ok(RunResults {
        skipped,
        concurrent_runs: concurrent_runs(plan, job),
        ..collect(plan, &seeds, &store)
    })
}

/// Returns the finished runs of each point, in the order of their seeds.
fn collect(plan: &Plan, seeds: &[u64], store: &RunStore) -> RunResults {
    let runs = |point: &GridPoint| {
        let runs = seeds.iter().filter_map(|seed| store.get(&point.id, *seed).cloned());
        (point.id.clone(), runs.collect())
    };
    let points = plan.grid.points.iter().map(runs).collect();
    RunResults { points, ..RunResults::default() }
}

/// Executes the runs of one shard, and returns the progress. The runs are kept in the output
/// directory, for [`merge`].
///
/// # Errors
/// If the plan is live, it was stopped, or the output directory belongs to another shard or cannot
/// be written.
pub fn run_shard(
    text: &str,
    options: &PlanOptions,
    shard: PlanShard,
    job: &PlanJob,
    stop: &AtomicBool,
    mut report: impl FnMut(RunEvent<'_>),
) -> Result<RunProgress, RunError> {
    let plan = Plan::parse(text, options)?;
    if plan.is_live() {
        return Err(RunError::LiveShard);
    }
    let file = ShardFile {
        shard,
        name: plan.name.clone(),
        version: job.version.clone(),
        seed: job.seed,
        options: options.clone(),
        plan: text.to_owned(),
    };
    file.claim(&job.out)?;
    let seeds = seeds(&plan, job.seed);
    let numbered = in_rounds(&plan, &seeds).enumerate();
    let own_runs =
        numbered.filter(|(index, _)| PlanShard::from_place(*index, shard.count()) == shard);
    let mut last = RunProgress::default();
    execute(&plan, own_runs.map(|(_, run)| run).collect(), job, stop, |event| {
        if let RunEvent::Progress(now) = event {
            last = now;
        }
        report(event);
    })?;
    Ok(last)
}

/// A run to be executed: its point and its seed.
type PlannedRun<'a> = (&'a GridPoint, u64);
/// Points that were left out, by what they would have required.
type SkippedPoints = BTreeMap<String, BTreeSet<String>>;

/// Executes these runs, except those that are already finished.
fn execute<'a>(
    plan: &'a Plan,
    runs: Vec<PlannedRun<'a>>,
    job: &PlanJob,
    stop: &AtomicBool,
    mut report: impl FnMut(RunEvent<'_>),
) -> Result<(RunStore, SkippedPoints), RunError> {
    let mut store = RunStore::open(&job.out, &job.version)?;
    for point in &plan.grid.points {
        store.load(point);
    }
    let total = runs.len();
    let is_open = |(point, seed): &PlannedRun<'_>| store.get(&point.id, *seed).is_none();
    let open: Vec<PlannedRun<'_>> = runs.into_iter().filter(is_open).collect();
    let found = total - open.len();
    let mut now = RunProgress { done: found, found, total };
    report(RunEvent::Progress(now));
    let mut skipped = SkippedPoints::new();
    thread::scope(|scope| -> Result<(), RunError> {
        for (point, seed, result) in spawn_workers(scope, &open, concurrent_runs(plan, job), stop) {
            let kept = match result {
                Ok(result) => store.keep(point, seed, result),
                Err(LiveError::Stopped) => continue,
                // Nothing is stored, because the missing requirement may be met the next time.
                Err(LiveError::Missing(missing)) => {
                    // Many points may lack the same requirement; it is reported once, and the
                    // result names all of them.
                    if !skipped.contains_key(&missing) {
                        report(RunEvent::Skipped { point, missing: &missing });
                    }
                    skipped.entry(missing).or_default().insert(point.to_owned());
                    Ok(())
                }
                Err(cause) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(RunError::Live { point: point.to_owned(), cause });
                }
            };
            if let Err(cause) = kept {
                // The other runs are not needed any more.
                stop.store(true, Ordering::Relaxed);
                return Err(cause.into());
            }
            now.done += 1;
            report(RunEvent::Progress(now));
        }
        Ok(())
    })?;
    if now.done < total {
        return Err(RunError::Stopped(now));
    }
    Ok((store, skipped))
}

/// The result of one run: its point, its seed, the result.
type FinishedRun<'a> = (&'a str, u64, Result<RunResult, LiveError>);

/// Starts runs on this number of threads; each takes the next run when it is done. Results are
/// delivered in the order in which runs finish; the channel closes when no more runs are started.
fn spawn_workers<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    open: &'env [PlannedRun<'env>],
    concurrent_runs: usize,
    stop: &'env AtomicBool,
) -> mpsc::IntoIter<FinishedRun<'env>> {
    let (finished, results) = mpsc::channel();
    let next = Arc::new(AtomicUsize::new(0));
    for _ in 0..concurrent_runs.min(open.len()) {
        let (finished, next) = (finished.clone(), Arc::clone(&next));
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((point, seed)) = open.get(index) else { break };
                let result = execute_run(&point.situation, *seed, stop);
                if finished.send((point.id.as_str(), *seed, result)).is_err() {
                    break;
                }
            }
        });
    }
    results.into_iter()
}

fn concurrent_runs(plan: &Plan, job: &PlanJob) -> usize {
    match plan.grid.points.iter().any(|point| point.situation.runs_alone()) {
        true => 1,
        false => job.jobs.max(1),
    }
}

fn execute_run(
    situation: &Situation,
    seed: u64,
    stop: &AtomicBool,
) -> Result<RunResult, LiveError> {
    match situation {
        Situation::Live(setup) => live::run(setup, seed, stop),
        simulated => Ok(simulation::run_situation(simulated, seed).unwrap_or_default()),
    }
}

/// Returns the first run of every point, then the second of every point, so that the remaining time
/// can be estimated early. The curves at one place, which are compared, follow one another, because
/// the speed of a machine changes over time.
fn in_rounds<'a>(plan: &'a Plan, seeds: &'a [u64]) -> impl Iterator<Item = (&'a GridPoint, u64)> {
    let scene =
        |point: &GridPoint| plan.grid.scenes.iter().position(|scene| scene.id == point.scene);
    let mut points: Vec<&GridPoint> = plan.grid.points.iter().collect();
    points.sort_by(|left, right| {
        scene(left).cmp(&scene(right)).then_with(|| left.x.total_cmp(&right.x))
    });
    seeds.iter().flat_map(move |seed| points.clone().into_iter().map(move |point| (point, *seed)))
}
