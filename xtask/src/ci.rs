//! `cargo xtask ci`: all checks of the main branch.
//!
//! Each step prints its name, its duration and its CPU time; a table follows at the end. A step whose tool is not
//! installed is reported as skipped, never as passed.

pub(crate) mod emulated;
mod fuzz;
pub(crate) mod platforms;
mod steps;

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use steps::{ON_REQUEST, STEPS};

/// How a step ended.
pub(crate) enum Outcome {
    /// It passed.
    Passed,
    /// It was not run; the text states what was missing.
    Skipped(String),
}

/// One check.
pub(crate) struct Step {
    /// Its name for `--only` and `--skip`.
    pub(crate) name: &'static str,
    /// A description for readers.
    pub(crate) about: &'static str,
    /// Runs it.
    pub(crate) run: fn() -> Result<Outcome, String>,
}

struct Row {
    name: &'static str,
    result: Result<Outcome, String>,
    duration: Duration,
    /// The CPU time of the step and of the programs that it started and waited for, user and system.
    cpu_time: Duration,
}

/// Runs the steps that the options select.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    if options == ["--list"] {
        for step in STEPS {
            println!("{:<14} {}", step.name, step.about);
        }
        for step in ON_REQUEST {
            println!("{:<14} {}; only with --only", step.name, step.about);
        }
        return Ok(());
    }
    let chosen = choose(options)?;
    let mut rows = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("\n== {}/{} {}: {}", index + 1, chosen.len(), step.name, step.about);
        let (start, before) = (Instant::now(), cpu_time());
        let result = (step.run)();
        let duration = start.elapsed();
        let cpu_time = cpu_time().saturating_sub(before);
        let took = format!("{:.1} s, CPU {:.1} s", seconds(duration), seconds(cpu_time));
        match &result {
            Ok(Outcome::Passed) => println!("-- {} passed in {took}", step.name),
            Ok(Outcome::Skipped(why)) => println!("-- {} SKIPPED: {why}", step.name),
            Err(why) => println!("-- {} FAILED in {took}: {why}", step.name),
        }
        rows.push(Row { name: step.name, result, duration, cpu_time });
    }
    summary(&rows)
}

fn choose(options: &[&str]) -> Result<Vec<&'static Step>, String> {
    let mut only = Vec::new();
    let mut skip = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let list = match *option {
            "--only" => &mut only,
            "--skip" => &mut skip,
            other => {
                return Err(format!("ci takes --only STEP, --skip STEP and --list, not {other}"));
            }
        };
        let name = *rest.next().ok_or_else(|| format!("{option} needs the name of a step"))?;
        if !known_steps().any(|step| step.name == name) {
            let names: Vec<_> = known_steps().map(|step| step.name).collect();
            return Err(format!("there is no step {name}; steps are {}", names.join(", ")));
        }
        list.push(name);
    }
    let chosen = match only.is_empty() {
        true => STEPS.iter().collect(),
        false => known_steps().filter(|step| only.contains(&step.name)).collect::<Vec<_>>(),
    };
    Ok(chosen.into_iter().filter(|step| !skip.contains(&step.name)).collect())
}

fn known_steps() -> impl Iterator<Item = &'static Step> {
    STEPS.iter().chain(ON_REQUEST)
}

fn summary(rows: &[Row]) -> Result<(), String> {
    println!("\n{:<14} {:<8} {:>8} {:>8}", "step", "result", "seconds", "CPU");
    let mut failed = Vec::new();
    for row in rows {
        let (word, note) = match &row.result {
            Ok(Outcome::Passed) => ("passed", ""),
            Ok(Outcome::Skipped(why)) => ("skipped", why.as_str()),
            Err(why) => ("FAILED", why.as_str()),
        };
        let (duration, cpu_time) = (seconds(row.duration), seconds(row.cpu_time));
        println!("{:<14} {word:<8} {duration:>8.1} {cpu_time:>8.1}  {note}", row.name);
        if row.result.is_err() {
            failed.push(row.name);
        }
    }
    let total: Duration = rows.iter().map(|row| row.duration).sum();
    let cpu_time: Duration = rows.iter().map(|row| row.cpu_time).sum();
    println!("{:<14} {:<8} {:>8.1} {:>8.1}", "all", "", seconds(total), seconds(cpu_time));
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Returns the CPU time of this program and of all that it started and waited for.
fn cpu_time() -> Duration {
    used_by(UsageWho::RUSAGE_SELF) + used_by(UsageWho::RUSAGE_CHILDREN)
}

/// Returns the CPU time, user and system.
fn used_by(who: UsageWho) -> Duration {
    // Fails only for a question that the system does not know.
    let Ok(usage) = getrusage(who) else { return Duration::ZERO };
    let times = [usage.user_time(), usage.system_time()];
    times.iter().map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs())).sum()
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_name() {
        let mut names: Vec<_> = known_steps().map(|step| step.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn only_and_skip_select_steps() {
        let all = choose(&[]).unwrap();
        assert_eq!(all.len(), STEPS.len());
        let one = choose(&["--only", "tidy"]).unwrap();
        assert_eq!(one.iter().map(|step| step.name).collect::<Vec<_>>(), ["tidy"]);
        let requested = choose(&["--only", "feature-tests"]).unwrap();
        assert_eq!(requested.iter().map(|step| step.name).collect::<Vec<_>>(), ["feature-tests"]);
        let rest = choose(&["--skip", "tidy", "--skip", "test"]).unwrap();
        assert_eq!(rest.len(), STEPS.len() - 2);
    }

    #[test]
    fn an_unknown_step_is_named() {
        assert!(choose(&["--only", "tydy"]).err().unwrap().contains("tydy"));
        assert!(choose(&["--only"]).is_err());
        assert!(choose(&["--verbose"]).is_err());
    }

    /// A new step would otherwise be run by nobody but `.ci/run`.
    #[test]
    fn the_workflows_run_every_step_and_no_other() {
        let workflows =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.github/workflows");
        let mut called = std::collections::BTreeSet::new();
        for entry in std::fs::read_dir(workflows).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let names = text.split("--only ").skip(1);
            called
                .extend(names.filter_map(|rest| Some(rest.split_whitespace().next()?.to_owned())));
        }
        let known = known_steps().map(|step| step.name.to_owned()).collect();
        assert_eq!(called, known);
    }

    #[test]
    fn the_cpu_time_of_finished_programs_counts() {
        let own_before = used_by(UsageWho::RUSAGE_SELF);
        let before = cpu_time();
        let counts = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", counts]).status().unwrap().success());
        let all = cpu_time() - before;
        assert!(all > used_by(UsageWho::RUSAGE_SELF) - own_before);
    }

    #[test]
    fn one_failure_fails_the_run() {
        let zero = Duration::ZERO;
        let row = |result| Row { name: "tidy", result, duration: zero, cpu_time: zero };
        assert!(summary(&[row(Ok(Outcome::Passed))]).is_ok());
        assert!(summary(&[row(Ok(Outcome::Skipped("no tool".into())))]).is_ok());
        assert!(summary(&[row(Ok(Outcome::Passed)), row(Err("no".into()))]).is_err());
    }
}
