//! Each fuzz target for some seconds, and what it reached.
//!
//! A target that finds nothing has looked everywhere, or nowhere. So each says how much of the code it
//! has been through, what it has to reach (`to reach: NAME`) and what it has reached
//! (`reached: NAME: COUNT`). The step fails where something was never reached, or where a target does
//! not say what it went through or what it is for.

use std::{collections::BTreeMap, sync::Mutex};

use super::Outcome;
use crate::run::{check, command, output, works, workspace};

/// Seconds that each target runs here, unless its seeds alone take longer; a release wants ten minutes each.
/// The seeds, which are always read, lead to everything that a target has to reach: on a busy machine too.
const SECONDS: u32 = 5;
/// Where fuzzing begins: what runs here is to fail for a change, not by luck.
const SEED: u32 = 9260;
/// The address sanitizer watches unsafe code, of which nothing that is fuzzed here has any: without it the
/// targets take less time to build and try more. A run by hand has it.
const SANITIZER: &str = "--sanitizer=none";

/// Builds all targets, runs them, and looks at what they reached.
pub(super) fn run() -> Result<Outcome, String> {
    let manifest = workspace().join("fuzz").join("Cargo.toml");
    if !manifest.exists() {
        return Ok(Outcome::Skipped("there is no fuzz/ yet".into()));
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
    check(&mut command("cargo", &["+nightly", "fuzz", "build", SANITIZER]))?;
    // Each keeps one core busy.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = Mutex::new(targets.iter());
    let in_turn = || {
        let mut told = Vec::new();
        loop {
            // Not held while a target runs.
            let target = next.lock().map_err(|_| "a run of another target panicked")?.next();
            let Some(target) = target else { return Ok::<_, String>(told) };
            told.push((*target, one(target)?));
        }
    };
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(in_turn)).collect();
        for worker in workers {
            told.extend(worker.join().map_err(|_| "the run of a target panicked")??);
        }
        Ok::<_, String>(())
    })?;
    told.sort_by_key(|(target, _)| *target);
    judge(&told)
}

/// Runs a target that is built, and shows what it said in one piece.
fn one(target: &str) -> Result<FuzzReport, String> {
    let folder = |kind: &str| format!("fuzz/{kind}/{target}");
    let (corpus, seeds) = (folder("corpus"), folder("seeds"));
    let made = std::fs::create_dir_all(workspace().join(&corpus));
    made.map_err(|cause| format!("cannot make {corpus}: {cause}"))?;
    let mut words = vec!["+nightly", "fuzz", "run", SANITIZER, target, &corpus];
    if workspace().join(&seeds).exists() {
        words.push(&seeds);
    }
    let (time, seed) = (format!("-max_total_time={SECONDS}"), format!("-seed={SEED}"));
    words.extend(["--", &time, &seed]);
    let ran = command("cargo", &words).output();
    let ran = ran.map_err(|error| format!("cannot start the target {target}: {error}"))?;
    let [out, err] = [&ran.stdout, &ran.stderr].map(|said| String::from_utf8_lossy(said));
    println!("$ cargo {}\n{out}{err}", words.join(" "));
    match ran.status.success() {
        true => Ok(FuzzReport::read(&err)),
        false => Err(format!("the target {target} ended with {}", ran.status)),
    }
}

/// What a run said of itself.
#[derive(Debug, Default, PartialEq)]
struct FuzzReport {
    /// Edges of the code that it went through, and features of them (`cov:`, `ft:`).
    coverage: Option<(u64, u64)>,
    /// What there was to reach, and how often it was, at least.
    reached: BTreeMap<String, u64>,
}

impl FuzzReport {
    fn read(said: &str) -> Self {
        let mut told = Self::default();
        for line in said.lines() {
            if let Some(name) = line.strip_prefix("to reach: ") {
                told.reached.entry(name.to_owned()).or_default();
            } else if let Some((name, count)) =
                line.strip_prefix("reached: ").and_then(|rest| rest.rsplit_once(": "))
            {
                let reached = told.reached.entry(name.to_owned()).or_default();
                *reached = count.parse().unwrap_or(0).max(*reached);
            } else if let (Some(edges), Some(features)) = (after(line, "cov:"), after(line, "ft:"))
            {
                told.coverage = Some((edges, features));
            }
        }
        told
    }

    fn never(&self) -> impl Iterator<Item = &str> {
        self.reached.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str())
    }
}

/// The number after a word.
fn after(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip_while(|next| *next != word);
    words.nth(1)?.parse().ok()
}

/// Prints the table, and says what is missing from it.
fn judge(told: &[(&str, FuzzReport)]) -> Result<Outcome, String> {
    let mut wrong = Vec::new();
    println!("{:<20} {:>8} {:>8}  reached", "target", "edges", "features");
    for (target, told) in told {
        let reached = told.reached.values().filter(|count| **count > 0).count();
        let of = told.reached.len();
        match told.coverage {
            Some((edges, features)) => {
                println!("{target:<20} {edges:>8} {features:>8}  {reached} of {of}");
            }
            None => wrong.push(format!("{target} does not say what it went through")),
        }
        if told.reached.is_empty() {
            wrong.push(format!("{target} does not say what it has to reach"));
        }
        wrong.extend(told.never().map(|name| format!("{target} never reached: {name}")));
    }
    match wrong.is_empty() {
        true => Ok(Outcome::Passed),
        false => Err(wrong.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
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
        let told = FuzzReport::read(SAID);
        assert_eq!(told.coverage, Some((1234, 5678)));
        assert_eq!(told.reached["ASCONF"], 10);
        assert_eq!(told.never().collect::<Vec<_>>(), ["FORWARD-TSN: moves"]);
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
        assert!(silent.err().unwrap().contains("does not say what it has to reach"));
        assert!(run(None, 1).err().unwrap().contains("does not say"));
    }
}
