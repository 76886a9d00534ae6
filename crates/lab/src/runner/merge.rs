//! Merges shards: the results are the same as if one program had executed everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::shard::{PlanShard, ShardFile};
use super::{in_rounds, seeds};
use crate::plan::{Plan, PlanError};
use crate::printable::printable;
use crate::results::{ResultsError, RunStore};
use crate::run::{RunResult, RunResults};
use crate::situation::GridPoint;

/// Why shards were not merged. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// An error of a directory, or of a file in it.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A plan that this code cannot parse.
    #[error("{}: {cause}", directory.display())]
    Plan {
        /// The directory of the shard.
        directory: PathBuf,
        /// The error.
        cause: PlanError,
    },
    /// A shard that was run by other code, whose measurements may differ from those of this code.
    #[error("{} was run by another version of eyas ({version}); this one is {running}", directory.display())]
    OtherCode {
        /// The directory of the shard.
        directory: PathBuf,
        /// The code that ran it.
        version: String,
        /// This code.
        running: String,
    },
    /// A shard of other runs.
    #[error("{} and {} are not shards of the same runs: {difference}", first.display(), other.display())]
    OtherRuns {
        /// The directory of the first shard.
        first: PathBuf,
        /// The directory of the shard that does not belong to it.
        other: PathBuf,
        /// What differs, with the values of both.
        difference: String,
    },
    /// A run for which two shards have different numbers.
    #[error("{} and {} differ in the run of {point} with seed {seed}", first.display(), other.display())]
    Contradiction {
        /// One directory.
        first: PathBuf,
        /// The other one.
        other: PathBuf,
        /// The point.
        point: String,
        /// The seed.
        seed: u64,
    },
    /// Runs that are in no shard.
    #[error("{missing} of {total} runs {} missing: {}", if *missing == 1 { "is" } else { "are" }, details.join("; "))]
    Incomplete {
        /// The number of missing runs.
        missing: usize,
        /// The number of all runs.
        total: usize,
        /// Which shards lack them, one text each.
        details: Vec<String>,
    },
}

/// All runs of a plan, from its shards.
#[derive(Debug)]
pub struct MergedRuns {
    /// The plan that was run.
    pub plan: Plan,
    /// The seeds of the runs of each point.
    pub seeds: Vec<u64>,
    /// The results.
    pub results: RunResults,
}

/// The directory of a shard.
struct ShardDirectory {
    directory: PathBuf,
    file: ShardFile,
}

/// Merges shards. `version` identifies the code, as in [`PlanJob`](super::PlanJob).
///
/// # Errors
/// If a directory does not contain a shard, shards are of other code or other runs, or runs are
/// missing.
pub fn merge(directories: &[PathBuf], version: &str) -> Result<MergedRuns, MergeError> {
    let shards = shards(directories, version)?;
    let Some(first) = shards.first() else {
        return Err(MergeError::Incomplete { missing: 0, total: 0, details: Vec::new() });
    };
    let plan = first
        .file
        .parse()
        .map_err(|cause| MergeError::Plan { directory: first.directory.clone(), cause })?;
    let seeds = seeds(&plan, first.file.seed);
    let runs = collect(&plan, &seeds, &shards)?;
    let missing = missing(&plan, &seeds, &runs, &shards);
    if let Some(missing) = missing {
        return Err(missing);
    }
    let of_point = |point: &GridPoint| {
        let runs = seeds.iter().filter_map(|seed| runs.get(&(point.id.as_str(), *seed)));
        (point.id.clone(), runs.map(|(_, run)| run.clone()).collect())
    };
    let points = plan.grid.points.iter().map(of_point).collect();
    let results = RunResults { points, ..RunResults::default() };
    Ok(MergedRuns { seeds, results, plan })
}

impl MergedRuns {
    /// Stores the runs in an output directory as if the whole plan had been run there, so that more
    /// runs can be added later.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, out: &Path, version: &str) -> Result<(), ResultsError> {
        let mut store = RunStore::open(out, version)?;
        for point in &self.plan.grid.points {
            store.load(point);
            let runs = self.results.points.get(&point.id).into_iter().flatten().cloned();
            store.keep_all(&point.id, self.seeds.iter().copied().zip(runs))?;
        }
        Ok(())
    }
}

/// Returns the shards, if they belong together.
fn shards(directories: &[PathBuf], version: &str) -> Result<Vec<ShardDirectory>, MergeError> {
    let mut shards: Vec<ShardDirectory> = Vec::new();
    for directory in directories {
        let file = ShardFile::read(directory)?;
        if file.version != version {
            return Err(MergeError::OtherCode {
                directory: directory.clone(),
                version: printable(&file.version),
                running: version.to_owned(),
            });
        }
        if let Some(first) = shards.first()
            && let Some(difference) = first.file.difference(&file)
        {
            return Err(MergeError::OtherRuns {
                first: first.directory.clone(),
                other: directory.clone(),
                difference: printable(&difference),
            });
        }
        shards.push(ShardDirectory { directory: directory.clone(), file });
    }
    Ok(shards)
}

/// Every run, with the directory that it is from.
type RunsByPoint<'a> = BTreeMap<(&'a str, u64), (&'a Path, RunResult)>;

fn collect<'a>(
    plan: &'a Plan,
    seeds: &[u64],
    shards: &'a [ShardDirectory],
) -> Result<RunsByPoint<'a>, MergeError> {
    let mut runs = RunsByPoint::new();
    for shard_directory in shards {
        let mut store =
            RunStore::open_existing(&shard_directory.directory, &shard_directory.file.version);
        for point in &plan.grid.points {
            store.load(point);
            for seed in seeds {
                let Some(run) = store.get(&point.id, *seed) else { continue };
                let found = runs
                    .entry((point.id.as_str(), *seed))
                    .or_insert_with(|| (shard_directory.directory.as_path(), run.clone()));
                if found.1 != *run {
                    return Err(MergeError::Contradiction {
                        first: found.0.to_owned(),
                        other: shard_directory.directory.clone(),
                        point: point.id.clone(),
                        seed: *seed,
                    });
                }
            }
        }
    }
    Ok(runs)
}

/// Describes which shards lack runs; `None` if there are all.
fn missing(
    plan: &Plan,
    seeds: &[u64],
    runs: &RunsByPoint<'_>,
    shards: &[ShardDirectory],
) -> Option<MergeError> {
    let of = shards.first()?.file.shard.count();
    let mut counts: BTreeMap<PlanShard, (usize, usize)> = BTreeMap::new();
    for (index, (point, seed)) in in_rounds(plan, seeds).enumerate() {
        let (missing, total) = counts.entry(PlanShard::from_place(index, of)).or_default();
        *total += 1;
        *missing += usize::from(!runs.contains_key(&(point.id.as_str(), seed)));
    }
    let missing: usize = counts.values().map(|(missing, _)| missing).sum();
    let total = counts.values().map(|(_, total)| total).sum();
    let describe = |(shard, (missing, total)): (&PlanShard, &(usize, usize))| match shards
        .iter()
        .find(|shard_directory| shard_directory.file.shard == *shard)
    {
        Some(shard_directory) => {
            let directory = shard_directory.directory.display();
            format!("{directory} (shard {shard}) lacks {missing} of {total}")
        }
        None => format!("shard {shard} is not among them"),
    };
    let details = counts.iter().filter(|(_, (missing, _))| *missing > 0).map(describe).collect();
    (missing > 0).then_some(MergeError::Incomplete { missing, total, details })
}
