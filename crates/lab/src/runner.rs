//! All runs of a plan, on all cores; what is finished is kept, so that an interrupted experiment
//! goes on where it stood.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::live::{self, LiveError};
use crate::plan::{Plan, Point, Situation};
use crate::results::{Results, ResultsError, RunResult, Store};
use crate::simulation;

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct Job {
    /// The output directory; finished runs are kept in it, and found again.
    pub out: PathBuf,
    /// How many runs at a time; one where any of them wants the machine for itself.
    pub jobs: usize,
    /// Of the first run of each point; the others follow it.
    pub seed: u64,
    /// Names the code: runs of another version are not taken from the output directory.
    pub version: String,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are finished.
    pub done: usize,
    /// Of these, the ones that were found finished.
    pub found: usize,
    /// All runs.
    pub total: usize,
}

/// Why a plan was not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was asked to stop; what is finished is kept.
    #[error("stopped with {} of {} runs finished", .0.done, .0.total)]
    Stopped(Progress),
    /// The output directory.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A live run; what was finished before it is kept.
    #[error("{point}: {cause}")]
    Live {
        /// Of which point.
        point: String,
        /// Why.
        cause: LiveError,
    },
}

/// Of all runs of a point, in their order.
#[must_use]
pub fn seeds(plan: &Plan, first: u64) -> Vec<u64> {
    (0..u64::from(plan.runs)).map(|run| first.wrapping_add(run)).collect()
}

/// Runs a plan. `progress` is called after each run; when `stop` is set, no more are begun.
///
/// # Errors
/// If it was stopped, or the output directory cannot be written.
pub fn run(
    plan: &Plan,
    job: &Job,
    stop: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> Result<Results, RunError> {
    let seeds = seeds(plan, job.seed);
    let mut store = Store::open(&job.out, &job.version)?;
    for point in &plan.points {
        store.load(point);
    }
    let open: Vec<(&Point, u64)> = in_rounds(plan, &seeds)
        .filter(|(point, seed)| store.get(&point.id, *seed).is_none())
        .collect();
    let total = plan.points.len() * seeds.len();
    let found = total - open.len();
    let mut now = Progress { done: found, found, total };
    progress(now);
    let mut skipped: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let at_once = at_once(plan, job);
    let next = AtomicUsize::new(0);
    let (finished, results) = mpsc::channel::<(&str, u64, Result<RunResult, LiveError>)>();
    thread::scope(|scope| -> Result<(), RunError> {
        for _ in 0..at_once.min(open.len()) {
            let (finished, open, next) = (finished.clone(), &open, &next);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some((point, seed)) = open.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let result = one(&point.situation, *seed, stop);
                    if finished.send((&point.id, *seed, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(finished);
        for (point, seed, result) in &results {
            let result = match result {
                Ok(result) => store.keep(point, seed, result),
                Err(LiveError::Stopped) => continue,
                Err(LiveError::Missing(what)) => {
                    leave_out(&mut skipped, point, what);
                    Ok(())
                }
                Err(cause) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(RunError::Live { point: point.to_owned(), cause });
                }
            };
            if let Err(cause) = result {
                // Nobody needs the other runs any more.
                stop.store(true, Ordering::Relaxed);
                return Err(cause.into());
            }
            now.done += 1;
            progress(now);
        }
        Ok(())
    })?;
    if now.done < total {
        return Err(RunError::Stopped(now));
    }
    let runs = |point: &Point| {
        let runs = seeds.iter().filter_map(|seed| store.get(&point.id, *seed).cloned());
        (point.id.clone(), runs.collect())
    };
    Ok(Results { points: plan.points.iter().map(runs).collect(), skipped, at_once })
}

fn at_once(plan: &Plan, job: &Job) -> usize {
    match plan.points.iter().any(|point| point.situation.runs_alone()) {
        true => 1,
        false => job.jobs.max(1),
    }
}

/// Says aloud that a point is left out. Nothing is kept, for what is missing may be there the next
/// time.
fn leave_out(skipped: &mut BTreeMap<String, BTreeSet<String>>, point: &str, what: String) {
    eprintln!("SKIPPED {point}: {what}");
    skipped.entry(what).or_default().insert(point.to_owned());
}

fn one(situation: &Situation, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
    match situation {
        Situation::Simulated(setup) => Ok(simulation::run(setup, seed)),
        Situation::Live(setup) => live::run(setup, seed, stop),
    }
}

/// The first run of every point, then the second of every point: the time that is left can be told
/// early. What is compared, the curves at one place, follows one another: a machine is not as fast at
/// all times.
fn in_rounds<'a>(plan: &'a Plan, seeds: &'a [u64]) -> impl Iterator<Item = (&'a Point, u64)> {
    let scene = |point: &Point| plan.scenes.iter().position(|scene| scene.id == point.scene);
    let mut points: Vec<&Point> = plan.points.iter().collect();
    points.sort_by(|one, other| {
        scene(one).cmp(&scene(other)).then_with(|| one.x.total_cmp(&other.x))
    });
    seeds.iter().flat_map(move |seed| points.clone().into_iter().map(move |point| (point, *seed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, shipped};

    #[test]
    fn what_takes_its_time_from_the_machine_runs_alone() {
        let jobs = |name: &str| {
            let shipped = shipped().iter().find(|plan| plan.name == name).unwrap();
            let job = Job { out: PathBuf::new(), jobs: 4, seed: 1, version: String::new() };
            at_once(&Plan::parse(shipped.text, &Options::default()).unwrap(), &job)
        };
        assert_eq!(["h3-delay", "he-cost", "he-six", "h3-policies"].map(jobs), [1; 4]);
        assert_eq!(["cmt-live", "cmt-delay"].map(jobs), [4; 2]);
    }

    #[test]
    fn curves_at_one_place_follow_one_another() {
        let text = "name = 'p'\ntitle = 't'\nabout = 'a'\nruns = 2
            time = { warm_up = '1.1 s', duration = '8 s' }
            path.A = { rate = '10 Mbit/s', delay = '10 ms' }
            sweep = { parameter = 'association.buffer', values = ['1 KiB', '2 KiB'] }
            scene = [{ id = 's' }, { id = 'a' }]
            curve = [{ id = 'd' }, { id = 'c' }]";
        let plan = Plan::parse(text, &Options::default()).unwrap();
        let run = |point: &Point| format!("{}{}{}", point.scene, point.x, point.curve);
        let order: Vec<String> = in_rounds(&plan, &[7, 8])
            .map(|(point, seed)| format!("{}@{seed}", run(point)))
            .collect();
        let first = ["s1d@7", "s1c@7", "s2d@7", "s2c@7", "a1d@7", "a1c@7", "a2d@7", "a2c@7"];
        assert_eq!(order[..8], first);
        assert_eq!(order[8], "s1d@8");
        assert_eq!(order.len(), 16);
    }
}
