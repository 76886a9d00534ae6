//! `eyas lab run --shard` and `eyas lab merge`: the runs of a plan on several machines.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eyas_lab::plan::{Plan, PlanOptions};
use eyas_lab::results::{ResultsDocument, ResultsTable};
use eyas_lab::runner::{self, MergeError, PlanJob, PlanShard};
use serde_json::json;

use super::{COMMIT, FinishedPlan, RunWatcher, read_failure, write_failure};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, LabMergeFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine, counted, time};

/// The runs of a plan that this machine executes.
pub(super) struct ShardAssignment {
    /// The plan's text.
    pub(super) text: String,
    pub(super) options: PlanOptions,
    pub(super) shard: PlanShard,
}

impl ShardAssignment {
    /// Runs the shard to completion, and reports the runs that can be merged.
    pub(super) async fn run(self, job: PlanJob, common: CommonFlags) -> Result<(), Failure> {
        let (started_at, out, shard) = (Instant::now(), job.out.clone(), self.shard);
        let watcher = RunWatcher {
            out: out.clone(),
            watched: !common.json,
            color: common.color,
            is_live: false,
        };
        let work = watcher.finish_or_stop(move |stop, progress| {
            runner::run_shard(&self.text, &self.options, shard, &job, stop, progress)
        });
        let finished = work.await?;
        if common.json {
            return output::object(&json!({
                "shard": shard, "runs": finished.total, "out": out.display().to_string(),
            }));
        }
        let style = OutputStyle::of_stdout(common.color);
        output::page(&summary(shard, finished.total, &out, started_at.elapsed()), style)
    }
}

/// Returns the default directory of a shard.
pub(super) fn directory(plan: &Plan, shard: PlanShard) -> PathBuf {
    let mut directory = plan.directory().into_os_string();
    directory.push(format!("-shard-{}", shard.to_string().replace('/', "-of-")));
    directory.into()
}

fn summary(shard: PlanShard, runs: usize, out: &Path, elapsed: Duration) -> Vec<PaintedLine> {
    let directory = out.display();
    let runs = counted(runs as u64, "run");
    let finished = format!("shard {shard}: {runs} in {}, kept in {directory}", time(elapsed));
    let next = "eyas lab merge with the directories of all shards creates the result";
    vec![
        PaintedLine::new().with_span(Paint::Plain, finished),
        PaintedLine::new().with_span(Paint::Dim, next),
    ]
}

/// Merges shards and reports as a single run would.
pub(super) fn merge(flags: &LabMergeFlags, common: &CommonFlags) -> Result<(), Failure> {
    let started_at = Instant::now();
    let version = super::code_version();
    let merged =
        runner::merge(&flags.directories, &version).map_err(|cause| merge_failure(&cause))?;
    let out = flags.out.clone().unwrap_or_else(|| merged.plan.directory());
    merged.keep(&out, &version).map_err(|cause| write_failure(&cause))?;
    let table = ResultsTable::new(&merged.plan, &merged.results, &merged.seeds);
    let document = ResultsDocument::new(&merged.plan, &merged.results, COMMIT, merged.seeds);
    let outcome = FinishedPlan { document: &document, table: &table, format: flags.format };
    super::publish(&outcome, &out, started_at, common)?;
    super::check_if_requested(flags.check, &document)
}

fn merge_failure(cause: &MergeError) -> Failure {
    let what = match cause {
        MergeError::Results(cause) => read_failure(cause),
        _ => Failure::new(FailureKind::Read, cause.to_string()),
    };
    what.hint(match cause {
        MergeError::OtherCode { .. } => {
            "run all shards, and merge them, with the same build of eyas"
        }
        MergeError::Incomplete { .. } => {
            "run what is missing with --shard and the same options; finished runs are not run again"
        }
        MergeError::Contradiction { .. } => {
            "a run is determined by its seed: one of the machines computes wrongly, or a file was changed"
        }
        _ => "give the output directories of all shards of one 'eyas lab run --shard'",
    })
}
