//! Runs each fuzz target for some seconds, and checks what it reached.
//!
//! A target that finds nothing has tested everything, or nothing. Each target therefore reports its
//! coverage, what it has to reach (`to reach: NAME`) and what it has reached (`reached: NAME: COUNT`). The
//! step fails if something was never reached, or if a target does not report its coverage or its goals.

use std::{collections::BTreeMap, sync::Mutex};

use super::Outcome;
use crate::run::{check, command, output, works, workspace};

/// Seconds that each target runs, unless its seeds alone take longer; before a release, run each for ten
/// minutes. The seeds, which are always executed, reach every goal of a target, even on a busy machine.
const SECONDS: u32 = 5;
/// The seed of the fuzzer, so that a failure is due to a change and not to chance.
const SEED: u32 = 9260;
/// No address sanitizer, because the fuzzed code has no unsafe code: without it the targets build faster
/// and execute more inputs. Manual runs have it.
const SANITIZER: &str = "--sanitizer=none";
/// As many as Cargo's default for a release: cargo-fuzz's own, 1, takes longer to compile than it saves here.
const CODEGEN_UNITS: &str = "--codegen-units=16";

/// Builds all targets, runs them, and checks what they reached.
pub(super) fn run() -> Result<Outcome, String> {
    let manifest = workspace().join("fuzz").join("Cargo.toml");
    if !manifest.exists() {
        return Ok(Outcome::Skipped("there is no fuzz/".into()));
    }
    if !works("cargo", &["+nightly", "--version"]) {
        return Ok(Outcome::Skipped("no nightly Rust: rustup toolchain install nightly".into()));
    }
    if !works("cargo", &["+nightly", "fuzz", "--version"]) {
        let how = "cargo-fuzz is missing: cargo install --locked cargo-fuzz";
        return Ok(Outcome::Skipped(how.into()));
    }
    let targets = output(&mut command("cargo", &["+nightly", "fuzz", "list"]))?;
    let targets: Vec<_> = targets.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    check(&mut command("cargo", &["+nightly", "fuzz", "build", SANITIZER, CODEGEN_UNITS]))?;
    // Each keeps one core busy.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = Mutex::new(targets.iter());
    let worker = || {
        let mut reports = Vec::new();
        loop {
            // The lock is not held while a target runs.
            let target = next.lock().map_err(|_| "a run of another target panicked")?.next();
            let Some(target) = target else { return Ok::<_, String>(reports) };
            reports.push((*target, run_target(target)?));
        }
    };
    let mut reports = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            reports.extend(worker.join().map_err(|_| "the run of a target panicked")??);
        }
        Ok::<_, String>(())
    })?;
    reports.sort_by_key(|(target, _)| *target);
    judge(&reports)
}

/// Runs a built target, and prints its output in one piece.
fn run_target(target: &str) -> Result<FuzzReport, String> {
    let folder = |kind: &str| format!("fuzz/{kind}/{target}");
    let (corpus, seeds) = (folder("corpus"), folder("seeds"));
    let created = std::fs::create_dir_all(workspace().join(&corpus));
    created.map_err(|cause| format!("cannot create {corpus}: {cause}"))?;
    let mut args = vec!["+nightly", "fuzz", "run", SANITIZER, CODEGEN_UNITS, target, &corpus];
    if workspace().join(&seeds).exists() {
        args.push(&seeds);
    }
    let (time, seed) = (format!("-max_total_time={SECONDS}"), format!("-seed={SEED}"));
    args.extend(["--", &time, &seed]);
    let ran = command("cargo", &args).output();
    let ran = ran.map_err(|error| format!("cannot start the target {target}: {error}"))?;
    let [out, err] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("$ cargo {}\n{out}{err}", args.join(" "));
    match ran.status.success() {
        true => Ok(FuzzReport::read(&err)),
        false => Err(format!("the target {target} ended with {}", ran.status)),
    }
}

/// The report of a run.
#[derive(Debug, Default, PartialEq)]
struct FuzzReport {
    /// The covered edges of the code, and their features (`cov:`, `ft:`).
    coverage: Option<(u64, u64)>,
    /// The goals, and the minimum number of times that each was reached.
    reached: BTreeMap<String, u64>,
}

impl FuzzReport {
    fn read(output: &str) -> Self {
        let mut reports = Self::default();
        for line in output.lines() {
            if let Some(name) = line.strip_prefix("to reach: ") {
                reports.reached.entry(name.to_owned()).or_default();
            } else if let Some((name, count)) =
                line.strip_prefix("reached: ").and_then(|rest| rest.rsplit_once(": "))
            {
                let reached = reports.reached.entry(name.to_owned()).or_default();
                *reached = count.parse().unwrap_or(0).max(*reached);
            } else if let (Some(edges), Some(features)) = (after(line, "cov:"), after(line, "ft:"))
            {
                reports.coverage = Some((edges, features));
            }
        }
        reports
    }

    fn unreached(&self) -> impl Iterator<Item = &str> {
        self.reached.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str())
    }
}

/// Returns the number after a word.
fn after(line: &str, word: &str) -> Option<u64> {
    let mut args = line.split_whitespace().skip_while(|next| *next != word);
    args.nth(1)?.parse().ok()
}

/// Prints a table, and returns what is missing as an error.
fn judge(reports: &[(&str, FuzzReport)]) -> Result<Outcome, String> {
    let mut errors = Vec::new();
    println!("{:<20} {:>8} {:>8}  reached", "target", "edges", "features");
    for (target, reports) in reports {
        let reached = reports.reached.values().filter(|count| **count > 0).count();
        let of = reports.reached.len();
        match reports.coverage {
            Some((edges, features)) => {
                println!("{target:<20} {edges:>8} {features:>8}  {reached} of {of}");
            }
            None => errors.push(format!("{target} does not report its coverage")),
        }
        if reports.reached.is_empty() {
            errors.push(format!("{target} does not report its goals"));
        }
        errors.extend(reports.unreached().map(|name| format!("{target} never reached: {name}")));
    }
    match errors.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(errors.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
INFO: Seed: 9260
#2  INITED cov: 30 ft: 31 corp: 1/1b exec/s: 0 rss: 40Mb
to reach: FORWARD-TSN: moves
to reach: ASCONF
reached: ASCONF: 1
reached: ASCONF: 10
#999  DONE   cov: 1234 ft: 5678 corp: 100/5Kb lim: 99 exec/s: 90 rss: 50Mb
Done 999 runs in 11 second(s)
";

    #[test]
    fn the_output_of_a_target_is_parsed() {
        let reports = FuzzReport::read(OUTPUT);
        assert_eq!(reports.coverage, Some((1234, 5678)));
        assert_eq!(reports.reached["ASCONF"], 10);
        assert_eq!(reports.unreached().collect::<Vec<_>>(), ["FORWARD-TSN: moves"]);
    }

    #[test]
    fn unreached_code_fails() {
        let run = |coverage, count: u64| {
            let reached = BTreeMap::from([("ASCONF".to_owned(), count)]);
            judge(&[("sctp", FuzzReport { coverage, reached })])
        };
        assert!(run(Some((30, 31)), 1).is_ok());
        assert!(run(Some((30, 31)), 0).err().unwrap().contains("sctp never reached: ASCONF"));
        let silent =
            judge(&[("sctp", FuzzReport { coverage: Some((30, 31)), ..FuzzReport::default() })]);
        assert!(silent.err().unwrap().contains("does not report its goals"));
        assert!(run(None, 1).err().unwrap().contains("does not report its coverage"));
    }
}
