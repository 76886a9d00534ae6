//! `eyas lab`: experiments in simulated and emulated networks.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | list, show, run, report |
//! | `work` | executing runs until they are done or interrupted by Ctrl-C |
//! | `shard` | the runs of a plan on several machines |
//! | `chapters` | the results of several plans as Markdown |
//! | `page` | claims and figures on a terminal |
//! | `matrix` | the table of all curves on a terminal |

mod chapters;
mod matrix;
mod page;
mod shard;
mod work;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use eyas_lab::claim::ClaimOutcome;
use eyas_lab::plan::{EVERY_KEY, Plan, PlanExtent, PlanOptions, shipped};
use eyas_lab::report;
use eyas_lab::results::{ResultsDocument, ResultsError, ResultsTable, write_parquet, write_tables};
use eyas_lab::runner::{self, PlanJob};
use serde_json::{Value, json};

use crate::failure::{Failure, FailureKind};
use crate::flags::{
    ColorChoice, CommonFlags, LabAction, LabFlags, LabRunFlags, TableFormat, nearest,
};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};
use crate::version::COMMIT;
use shard::ShardAssignment;
use work::RunWatcher;

/// The name by which the plan with every key is shown. It is no experiment, and cannot be run.
const KEYS: &str = "keys";

/// Lists, shows, runs or reports.
pub(super) fn run(flags: LabFlags, common: CommonFlags) -> Result<(), Failure> {
    match flags.action {
        LabAction::List => list(&common),
        LabAction::Show { name } => show(&name),
        LabAction::Report { directory } => rewrite_report(&directory, &common),
        LabAction::Results(flags) => chapters::run(&flags),
        LabAction::Merge(flags) => shard::merge(&flags, &common),
        LabAction::Run(flags) => {
            let text = text(&flags.plan)?;
            let options = PlanOptions {
                extent: extent(&flags),
                runs: flags.runs,
                set: flags.set.clone(),
                clients: clients(&flags)?,
            };
            let plan = plan(&flags.plan, &text, &options)?;
            if let Some(shard) = flags.shard {
                let assignment = ShardAssignment { text, options, shard };
                let job = job(&flags, || shard::directory(&plan, shard));
                return super::on_runtime(assignment.run(job, common));
            }
            if plan.is_live() {
                // This must happen before the runtime starts threads.
                enable_networks()?;
            }
            super::on_runtime(experiment(plan, flags, common))
        }
    }
}

/// Gives this program the privileges to create hosts and links.
fn enable_networks() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    eyas_emulator::become_root().map_err(super::netem::emulator_failure)?;
    #[cfg(not(target_os = "linux"))]
    return Err(super::absent::failure("a live experiment", super::absent::NAMESPACES)
        .hint("experiments in virtual time run everywhere"));
    #[cfg(target_os = "linux")]
    Ok(())
}

fn list(common: &CommonFlags) -> Result<(), Failure> {
    let plans: Vec<Plan> = shipped()
        .iter()
        .map(|shipped| Plan::parse(shipped.text, &PlanOptions::default()))
        .collect::<Result<_, _>>()
        .map_err(|cause| Failure::new(FailureKind::Usage, cause.to_string()))?;
    if common.json {
        let row = |plan: &Plan| {
            json!({
                "name": plan.name, "title": plan.title, "points": plan.grid.points.len(),
                "runs": plan.grid.runs, "claims": plan.claims.len(),
            })
        };
        return output::object(&json!({ "plans": plans.iter().map(row).collect::<Vec<_>>() }));
    }
    let style = OutputStyle::of_stdout(common.color);
    output::page(&page::plans(&plans, style), style)
}

fn show(name: &str) -> Result<(), Failure> {
    let found = shipped().iter().find(|shipped| shipped.name == name);
    let text = match found {
        Some(shipped) => shipped.text,
        None if name == KEYS => EVERY_KEY,
        None => return Err(no_such_plan(name)),
    };
    let mut lines: Vec<PaintedLine> = Vec::new();
    lines.extend(text.lines().map(|line| PaintedLine::new().with_span(Paint::Plain, line)));
    output::page(&lines, OutputStyle::of_stdout(ColorChoice::Never))
}

fn no_such_plan(name: &str) -> Failure {
    let all = "'eyas lab list' shows those that come with eyas";
    let suggestion = nearest(name, shipped().iter().map(|shipped| shipped.name));
    let hint = match suggestion {
        Some(suggestion) => format!("did you mean {suggestion}? {all}"),
        None => format!("{all}; for a plan of your own, give its file"),
    };
    Failure::new(FailureKind::Usage, format!("there is no plan {name:?}")).hint(hint)
}

/// Returns the text of a plan: a built-in one, or a file.
fn text(name: &str) -> Result<String, Failure> {
    if let Some(shipped) = shipped().iter().find(|shipped| shipped.name == name) {
        return Ok(shipped.text.to_owned());
    }
    match fs::read_to_string(name) {
        Ok(text) => Ok(text),
        Err(_) if !name.contains(['/', '.']) => Err(no_such_plan(name)),
        Err(cause) => Err(Failure::read(name, &cause)),
    }
}

/// Returns the texts of the client files.
fn clients(flags: &LabRunFlags) -> Result<Vec<String>, Failure> {
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|cause| Failure::read(&path.display().to_string(), &cause))
    };
    flags.client.iter().map(read).collect()
}

const fn extent(flags: &LabRunFlags) -> PlanExtent {
    match (flags.quick, flags.standard) {
        (true, _) => PlanExtent::Quick,
        (_, true) => PlanExtent::Standard,
        _ => PlanExtent::Full,
    }
}

/// Parses the plan that is to be run.
fn plan(name: &str, text: &str, options: &PlanOptions) -> Result<Plan, Failure> {
    Plan::parse(text, options).map_err(|cause| {
        Failure::new(FailureKind::Usage, format!("{name}: {cause}"))
            .hint("'eyas lab show keys' has every key; 'eyas lab show cmt-delay' is an example")
    })
}

fn job(flags: &LabRunFlags, out: impl FnOnce() -> PathBuf) -> PlanJob {
    PlanJob {
        jobs: flags.jobs.map_or_else(cores, usize::from),
        seed: flags.seed,
        version: code_version(),
        out: flags.out.clone().unwrap_or_else(out),
    }
}

async fn experiment(plan: Plan, flags: LabRunFlags, common: CommonFlags) -> Result<(), Failure> {
    let job = job(&flags, || plan.directory());
    let (started_at, out) = (Instant::now(), job.out.clone());
    let watcher = RunWatcher {
        out: out.clone(),
        watched: !common.json,
        color: common.color,
        is_live: plan.is_live(),
    };
    let work = watcher.finish_or_stop(move |stop, progress| {
        let results = runner::run(&plan, &job, stop, progress)?;
        let seeds = runner::seeds(&plan, job.seed);
        let table = ResultsTable::new(&plan, &results, &seeds);
        Ok((ResultsDocument::new(&plan, &results, COMMIT, seeds), table))
    });
    let (document, table) = work.await?;
    let outcome = FinishedPlan { document: &document, table: &table, format: flags.format };
    publish(&outcome, &out, started_at, &common)?;
    check_if_requested(flags.check, &document)
}

/// The results, and how their table is written.
struct FinishedPlan<'a> {
    document: &'a ResultsDocument,
    table: &'a ResultsTable,
    format: TableFormat,
}

/// Writes the result's files and shows it.
fn publish(
    outcome: &FinishedPlan<'_>,
    out: &Path,
    started_at: Instant,
    common: &CommonFlags,
) -> Result<(), Failure> {
    write_files(outcome, out).map_err(|cause| write_failure(&cause))?;
    if common.json {
        return output::object(&value(outcome.document)?);
    }
    let style = OutputStyle::of_stdout(common.color);
    let mut lines = page::document(outcome.document, style);
    lines.extend(page::locations(out, started_at.elapsed()));
    output::page(&lines, style)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the version of the running code.
fn code_version() -> String {
    runner::code_version(COMMIT, &std::env::current_exe().unwrap_or_default())
}

fn write_files(outcome: &FinishedPlan<'_>, out: &Path) -> Result<(), ResultsError> {
    let FinishedPlan { document, table, format } = *outcome;
    document.write(out)?;
    write_tables(document, table, out)?;
    if format == TableFormat::Parquet {
        write_parquet(table, &out.join("runs.parquet"))?;
    }
    report::write(document, out)
}

fn write_failure(cause: &ResultsError) -> Failure {
    match cause {
        ResultsError::Io { path, cause } => Failure::write(&path.display().to_string(), cause)
            .hint("choose a writable directory with --out"),
        other => Failure::new(FailureKind::Read, other.to_string()),
    }
}

fn read_failure(cause: &ResultsError) -> Failure {
    match cause {
        ResultsError::Io { path, cause } => Failure::read(&path.display().to_string(), cause),
        other => Failure::new(FailureKind::Read, other.to_string()),
    }
}

fn value(document: &ResultsDocument) -> Result<Value, Failure> {
    serde_json::to_value(document)
        .map_err(|cause| Failure::new(FailureKind::Write, format!("cannot write JSON: {cause}")))
}

fn rewrite_report(directory: &Path, common: &CommonFlags) -> Result<(), Failure> {
    let document = ResultsDocument::read(directory).map_err(|cause| {
        read_failure(&cause).hint("give the output directory of a finished 'eyas lab run'")
    })?;
    report::write(&document, directory).map_err(|cause| write_failure(&cause))?;
    if common.json {
        return output::object(&value(&document)?);
    }
    let style = OutputStyle::of_stdout(common.color);
    let mut lines = page::document(&document, style);
    lines.extend(page::report_location(directory));
    output::page(&lines, style)
}

fn check_if_requested(is_requested: bool, document: &ResultsDocument) -> Result<(), Failure> {
    if is_requested { check(document) } else { Ok(()) }
}

/// Returns the outcome of `--check`. Single claims that were not measured or not judged, as with
/// `--quick`, are reported on the page and do not fail.
fn check(document: &ResultsDocument) -> Result<(), Failure> {
    let of = |outcome: ClaimOutcome| -> Vec<&str> {
        let claims = document.claims.iter().filter(|claim| claim.outcome == outcome);
        claims.map(|claim| claim.id.as_str()).collect()
    };
    let (refused, undecided) = (of(ClaimOutcome::Refused), of(ClaimOutcome::Undecided));
    if !refused.is_empty() {
        return Err(Failure::new(
            FailureKind::Claim,
            format!("refused: claim {}", refused.join(", ")),
        )
        .hint("report.html shows what was measured"));
    }
    if !undecided.is_empty() {
        let cause = format!("undecided: claim {}", undecided.join(", "));
        return Err(Failure::new(FailureKind::Undecided, cause).hint(
            "an interval spans its bound: more runs will decide it (--runs, or without --quick)",
        ));
    }
    if of(ClaimOutcome::Accepted).is_empty() {
        return Err(Failure::new(FailureKind::NotJudged, "no claim was judged").hint(
            "the notes of report.html state why: run all of it (without --quick), on an idle machine",
        ));
    }
    Ok(())
}
