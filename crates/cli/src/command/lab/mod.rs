//! `eyas lab`: experiments in simulated and emulated networks.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | list, show, run, report |
//! | `page` | claims and figures on a terminal |

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use eyas_lab::claim::Outcome;
use eyas_lab::live::LiveError;
use eyas_lab::plan::{Extent, Options, Plan, shipped};
use eyas_lab::results::{Document, ResultsError, to_csv};
use eyas_lab::runner::{self, Job, RunError};
use eyas_lab::{report, results};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::flags::{ColorChoice, CommonFlags, LabAction, LabFlags, LabRunFlags};
use crate::output::{self, Progress};
use crate::terminal::{Line, Look, Paint};

/// How long a live run may take to remove its hosts and links once it is interrupted.
const TIME_TO_TAKE_DOWN: Duration = Duration::from_secs(5);

/// The commit that this program was built from, or `unknown`.
const COMMIT: &str = env!("EYAS_COMMIT");

/// Lists, shows, runs or reports.
pub(super) fn run(flags: LabFlags, common: CommonFlags) -> Result<(), Failure> {
    match flags.action {
        LabAction::List => list(&common),
        LabAction::Show { name } => show(&name),
        LabAction::Report { directory } => report_again(&directory, &common),
        LabAction::Run(flags) => {
            let plan = plan(&flags)?;
            if plan.is_live() {
                // Before the runtime, which has threads.
                make_networks_possible()?;
            }
            super::on_runtime(experiment(plan, flags, common))
        }
    }
}

/// Lets this program make hosts and links, whoever runs it.
fn make_networks_possible() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    eyas_lab::emulator::become_root().map_err(super::netem::refused)?;
    Ok(())
}

fn list(common: &CommonFlags) -> Result<(), Failure> {
    let plans: Vec<Plan> = shipped()
        .iter()
        .map(|shipped| Plan::parse(shipped.text, &Options::default()))
        .collect::<Result<_, _>>()
        .map_err(|cause| Failure::new(Kind::Usage, cause.to_string()))?;
    if common.json {
        let row = |plan: &Plan| {
            json!({
                "name": plan.name, "title": plan.title, "points": plan.points.len(),
                "runs": plan.runs, "claims": plan.claims.len(),
            })
        };
        return output::object(&json!({ "plans": plans.iter().map(row).collect::<Vec<_>>() }));
    }
    let look = Look::of_stdout(common.color);
    output::page(&page::plans(&plans, look), look)
}

fn show(name: &str) -> Result<(), Failure> {
    let found = shipped().iter().find(|shipped| shipped.name == name);
    let shipped = found.ok_or_else(|| no_such_plan(name, "these can be shown:"))?;
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(shipped.text.lines().map(|line| Line::new().with(Paint::Plain, line)));
    output::page(&lines, Look::of_stdout(ColorChoice::Never))
}

fn no_such_plan(name: &str, instead: &str) -> Failure {
    let names: Vec<&str> = shipped().iter().map(|shipped| shipped.name).collect();
    Failure::new(Kind::Usage, format!("there is no plan {name:?}"))
        .hint(format!("{instead} {}", names.join(", ")))
}

/// The plan's text: a shipped one, or a file.
fn text(name: &str) -> Result<String, Failure> {
    if let Some(shipped) = shipped().iter().find(|shipped| shipped.name == name) {
        return Ok(shipped.text.to_owned());
    }
    match fs::read_to_string(name) {
        Ok(text) => Ok(text),
        Err(_) if !name.contains(['/', '.']) => Err(no_such_plan(name, "name a file, or one of")),
        Err(cause) => Err(Failure::read(name, &cause)),
    }
}

const fn extent(flags: &LabRunFlags) -> Extent {
    match (flags.quick, flags.standard) {
        (true, _) => Extent::Quick,
        (_, true) => Extent::Standard,
        _ => Extent::Full,
    }
}

/// The plan that is to be run.
fn plan(flags: &LabRunFlags) -> Result<Plan, Failure> {
    let options = Options { extent: extent(flags), runs: flags.runs, set: flags.set.clone() };
    Plan::parse(&text(&flags.plan)?, &options).map_err(|cause| {
        Failure::new(Kind::Usage, format!("{}: {cause}", flags.plan))
            .hint("docs/lab.md explains every key; 'eyas lab show cmt-delay' is an example")
    })
}

async fn experiment(plan: Plan, flags: LabRunFlags, common: CommonFlags) -> Result<(), Failure> {
    let out = flags.out.clone().unwrap_or_else(|| {
        let name = match extent(&flags).name() {
            Some(extent) => format!("{}-{extent}", plan.name),
            None => plan.name.clone(),
        };
        PathBuf::from("eyas-lab").join(name)
    });
    let job = Job {
        jobs: flags.jobs.map_or_else(cores, usize::from),
        seed: flags.seed,
        version: code_version(),
        out: out.clone(),
    };
    let began = Instant::now();
    let document = finish_or_stop(plan, job, !common.json, common.color).await?;
    write(&document, &out)?;
    if common.json {
        output::object(&value(&document)?)?;
    } else {
        let look = Look::of_stdout(common.color);
        let mut lines = page::document(&document, look);
        lines.extend(page::places(&out, began.elapsed()));
        output::page(&lines, look)?;
    }
    match flags.check {
        true => check(&document),
        false => Ok(()),
    }
}

/// Runs the plan on threads of its own until it is done or Ctrl-C comes.
async fn finish_or_stop(
    plan: Plan,
    job: Job,
    watched: bool,
    color: ColorChoice,
) -> Result<Document, Failure> {
    let mut interruption = super::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, out, is_live) = (stop.clone(), job.out.clone(), plan.is_live());
    let mut work = tokio::task::spawn_blocking(move || {
        let mut bar: Option<Progress> = None;
        let results = runner::run(&plan, &job, &asked, |now| match &bar {
            None => bar = Some(Progress::of_runs(now.total, now.done, watched, color)),
            Some(bar) => bar.add(1),
        })?;
        let seeds = runner::seeds(&plan, job.seed);
        Ok::<_, RunError>(Document::new(&plan, &results, COMMIT, seeds))
    });
    tokio::select! {
        finished = &mut work => match finished {
            Ok(Ok(document)) => Ok(document),
            Ok(Err(RunError::Results(cause))) => Err(refused(&cause)),
            Ok(Err(cause @ RunError::Live { .. })) => Err(not_emulated(&cause)),
            Ok(Err(other)) => Err(Failure::new(Kind::Interrupted, other.to_string())),
            Err(cause) => Err(Failure::new(Kind::Interrupted, cause.to_string())),
        },
        kind = interruption.next() => {
            stop.store(true, Ordering::Relaxed);
            if is_live {
                // What was set up is taken down in good order.
                let _ = tokio::time::timeout(TIME_TO_TAKE_DOWN, work).await;
            }
            let kept = format!(
                "interrupted; finished runs are in {}, the same command goes on from there",
                out.display(),
            );
            if watched {
                let line = Line::new().with(Paint::Plain, &kept);
                output::aside(&[line], Look::of_stderr(color));
            }
            Err(Failure::new(kind, kept))
        }
    }
}

fn not_emulated(cause: &RunError) -> Failure {
    let kind = match cause {
        RunError::Live { cause: LiveError::Bed(_), .. } => Kind::Emulator,
        _ => Kind::Connect,
    };
    Failure::new(kind, cause.to_string())
        .hint("finished runs are kept: the same command goes on with the run that failed")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Names the code that runs: its commit, and the program file, which changes when the code was
/// changed without a commit.
fn code_version() -> String {
    let file = std::env::current_exe().and_then(fs::metadata);
    let built = file
        .and_then(|file| Ok((file.len(), file.modified()?)))
        .ok()
        .and_then(|(length, time)| Some((length, time.duration_since(UNIX_EPOCH).ok()?)));
    match built {
        Some((length, time)) => format!("{COMMIT} {length} {}", time.as_nanos()),
        None => COMMIT.to_owned(),
    }
}

fn write(document: &Document, out: &Path) -> Result<(), Failure> {
    document.write(out).map_err(|cause| refused(&cause))?;
    let csv = out.join("result.csv");
    fs::write(&csv, to_csv(document))
        .map_err(|cause| Failure::write(&csv.display().to_string(), &cause))?;
    report::write(document, out).map_err(|cause| refused(&cause))
}

fn refused(cause: &ResultsError) -> Failure {
    match cause {
        results::ResultsError::Content { .. } => Failure::new(Kind::Read, cause.to_string()),
        _ => Failure::new(Kind::Write, cause.to_string())
            .hint("name a directory that can be written with --out"),
    }
}

fn value(document: &Document) -> Result<Value, Failure> {
    serde_json::to_value(document)
        .map_err(|cause| Failure::new(Kind::Write, format!("cannot write JSON: {cause}")))
}

fn report_again(directory: &Path, common: &CommonFlags) -> Result<(), Failure> {
    let document = Document::read(directory).map_err(|cause| {
        Failure::new(Kind::Read, cause.to_string())
            .hint("name the output directory of a finished 'eyas lab run'")
    })?;
    report::write(&document, directory).map_err(|cause| refused(&cause))?;
    if common.json {
        return output::object(&value(&document)?);
    }
    let look = Look::of_stdout(common.color);
    let mut lines = page::document(&document, look);
    lines.extend(page::report_place(directory));
    output::page(&lines, look)
}

/// What `--check` says. What was not measured, as with `--quick`, is told on the page and fails
/// nothing.
fn check(document: &Document) -> Result<(), Failure> {
    let of = |outcome: Outcome| -> Vec<&str> {
        let claims = document.claims.iter().filter(|claim| claim.outcome == outcome);
        claims.map(|claim| claim.id.as_str()).collect()
    };
    let (refused, undecided) = (of(Outcome::Refused), of(Outcome::Undecided));
    if !refused.is_empty() {
        return Err(Failure::new(Kind::Claim, format!("refused: claim {}", refused.join(", ")))
            .hint("report.html says what was measured"));
    }
    if !undecided.is_empty() {
        let cause = format!("undecided: claim {}", undecided.join(", "));
        return Err(Failure::new(Kind::Undecided, cause).hint(
            "an interval spans its bound: more runs decide it (--runs, or without --quick)",
        ));
    }
    Ok(())
}
