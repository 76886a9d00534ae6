//! `cargo eyas-bench instructions`: instructions per operation of the race engine, of a whole
//! connect with it, of SCTP and of QPACK, counted by callgrind.
//!
//! Unlike a time, a count is the same in every run, even on a busy machine. Each case runs with two
//! numbers of repetitions; the difference excludes the start-up.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::options::Options;
use crate::page;
use crate::run::{command, output, works};

/// Additional repetitions of the longer run.
const REPETITIONS: u64 = 500;
/// The programs with the cases: package and name.
const BENCHES: [(&str, &str); 4] = [
    ("eyas-race", "instructions"),
    ("eyas", "connect"),
    ("eyas-sctp", "instructions"),
    ("eyas-h3", "instructions"),
];

/// Runs the benchmark and writes its table.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    if !works("valgrind", &["--version"]) {
        return Err("valgrind is missing (Debian: valgrind)".into());
    }
    let mut text = page::circumstances("cargo eyas-bench instructions");
    text.push_str("\n| case | instructions per operation |\n| --- | ---: |\n");
    for (package, bench) in BENCHES {
        let binary = build(package, bench)?;
        if options.build {
            continue;
        }
        let cases = output(&mut command(&binary.to_string_lossy(), &["list"]))?;
        for case in cases.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let base = instructions(&binary, case, 1)?;
            let more = instructions(&binary, case, 1 + REPETITIONS)?;
            let each = more.saturating_sub(base) / REPETITIONS;
            println!("{case}: {each}");
            text.push_str(&format!("| {case} | {} |\n", grouped(each)));
        }
    }
    if options.build {
        return Ok(());
    }
    page::publish("instructions", &text, options.dry)
}

/// Builds the benchmark and returns where cargo has placed it.
fn build(package: &str, bench: &str) -> Result<PathBuf, String> {
    let args = ["bench", "--no-run", "--message-format=json", "-p", package, "--bench", bench];
    let messages = output(&mut command("cargo", &args))?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == bench)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.ok_or_else(|| "cargo does not report the benchmark's executable".into())
}

/// Returns the instructions of one run, from the summary of callgrind's file.
fn instructions(binary: &Path, case: &str, repetitions: u64) -> Result<u64, String> {
    let file = std::env::temp_dir().join(format!("eyas-callgrind-{}", std::process::id()));
    let mut valgrind = command("valgrind", &["--tool=callgrind", "--quiet"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display()));
    output(valgrind.arg(binary).args([case, &repetitions.to_string()]))?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file:?}: {error}"))?;
    std::fs::remove_file(&file).map_err(|error| format!("{file:?}: {error}"))?;
    summary(&text).ok_or_else(|| format!("callgrind gave no summary for {case}"))
}

/// Returns the count of instructions in a file of callgrind.
pub(crate) fn summary(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Formats `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_callgrind_is_parsed() {
        assert_eq!(summary("events: Ir\nsummary: 1234\n"), Some(1234));
        assert_eq!(summary("events: Ir\ntotals: 77\n"), Some(77));
        assert_eq!(summary("events: Ir\n"), None);
    }

    #[test]
    fn digits_are_grouped_in_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
