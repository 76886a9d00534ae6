//! `cargo xtask bench lab`: one sweep in each of the ways of `docs/clusters.md`: what each costs, and
//! whether the same comes out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::page;
use super::verdict::{self, Expectation};
use super::{Options, verdict::Bound};
use crate::python::{environment, install, wheel};
use crate::run::{command, output, target};

/// Where the table is.
pub(super) const PAGE: &str = "docs/clusters.md";
/// Its mark.
pub(super) const MARK: &str = "sweep";
const TESTS: &str = "bindings/python/tests";
/// How much more CPU time than one machine alone Dask may take, scheduler and all.
const RATIO: f64 = 1.15;

/// The ways of `sweep.py`, and what the table calls them.
const WAYS: [(&str, &str); 5] = [
    ("local", "one process, `eyas.lab.run`"),
    ("processes", "`ProcessPoolExecutor` with two workers"),
    ("dask", "Dask: a scheduler and two workers"),
    ("shards", "four shards of the command, then `merge`"),
    ("dask-killed", "Dask, one of its workers killed during the run"),
];

/// What `sweep.py` says of a way.
#[derive(Debug)]
struct Way {
    way: String,
    /// Seconds of CPU time, of all processes.
    cpu: f64,
    /// Seconds.
    took: f64,
    /// Of all files that came out.
    digest: String,
}

/// Runs the sweep and writes the table.
pub(super) fn main(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    let Some(wheel) = wheel()? else { return Ok(()) };
    let place = target().join("python");
    let python = environment(&place.join("sweep"))?;
    install(&python, &["-r", &format!("{TESTS}/requirements-dask.txt")])?;
    install(&python, &["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])?;
    if options.build {
        return Ok(());
    }
    let directory = place.join("sweep-runs");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    let mut sweep = command(&python.to_string_lossy(), &[format!("{TESTS}/sweep.py")]);
    sweep.arg(&directory).env("PYTHONDONTWRITEBYTECODE", "1");
    if options.quick {
        sweep.arg("--quick");
    }
    let ways = read(&output(&mut sweep)?)?;
    let tables = [
        page::circumstances("cargo xtask bench lab"),
        table(&ways),
        verdict::table(&expectations(&ways)),
    ];
    page::publish_in(PAGE, MARK, &tables.join("\n"), options.dry)
}

fn read(text: &str) -> Result<Vec<Way>, String> {
    let read = |line| way(line).ok_or_else(|| format!("sweep.py said {line:?}"));
    text.lines().map(read).collect()
}

fn way(line: &str) -> Option<Way> {
    let said: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    let number = |key: &str| said[key].as_f64();
    Some(Way {
        way: text("way")?,
        cpu: number("cpu")?,
        took: number("took")?,
        digest: text("digest")?,
    })
}

fn table(ways: &[Way]) -> String {
    let mut text = String::from("| | CPU time | took |\n| --- | ---: | ---: |\n");
    for way in ways {
        let name = WAYS.iter().find(|(name, _)| *name == way.way).map_or(&*way.way, |(_, it)| it);
        let _ = writeln!(text, "| {name} | {:.1} s | {:.1} s |", way.cpu, way.took);
    }
    text
}

fn expectations(ways: &[Way]) -> [Expectation; 2] {
    let all_there = WAYS.iter().all(|(name, _)| ways.iter().any(|way| way.way == *name));
    let different: BTreeSet<_> = ways.iter().map(|way| &way.digest).collect();
    let seen =
        all_there.then(|| (format!("{} in {}", different.len(), ways.len()), different.len() == 1));
    let cpu = |name| ways.iter().find(|way| way.way == name).map(|way| way.cpu);
    let (dask, local) = (cpu("dask"), cpu("local"));
    let ratio = dask.zip(local).map(|(dask, local)| {
        let ratio = dask / local;
        let seen = format!("{dask:.1} s / {local:.1} s = {ratio:.2}");
        (seen, Bound::AtMost(RATIO).holds(ratio))
    });
    [
        Expectation {
            wanted: "all ways: one `result.json`, one `runs.csv`, one report".into(),
            seen,
        },
        Expectation {
            wanted: format!("Dask: at most {RATIO} × the CPU time of one process"),
            seen: ratio,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::workspace;

    fn ways(digests: [&str; 5], dask: f64) -> Vec<Way> {
        let way = |((name, _), digest): (&(&str, &str), &str)| Way {
            way: (*name).to_owned(),
            cpu: if *name == "dask" { dask } else { 100.0 },
            took: 50.0,
            digest: digest.to_owned(),
        };
        WAYS.iter().zip(digests).map(way).collect()
    }

    #[test]
    fn a_differing_result_is_detected() {
        let text = verdict::table(&expectations(&ways(["a"; 5], 115.0)));
        assert!(text.contains("| 1 in 5 | yes |"), "{text}");
        assert!(text.contains("115.0 s / 100.0 s = 1.15 | yes |"), "{text}");
        let text = verdict::table(&expectations(&ways(["a", "a", "a", "a", "b"], 116.0)));
        assert!(text.contains("| 2 in 5 | **no** |"), "{text}");
        assert!(text.contains("= 1.16 | **no** |"), "{text}");
    }

    #[test]
    fn an_unavailable_runner_is_not_measured() {
        let text = verdict::table(&expectations(&ways(["a"; 5], 1.0)[..2]));
        assert_eq!(text.matches("not measured").count(), 2, "{text}");
    }

    #[test]
    fn the_output_of_the_script_is_parsed() {
        let line = r#"{"way": "dask", "cpu": 1.5, "took": 2, "digest": "00ff"}"#;
        let ways = read(line).unwrap();
        let Way { way, cpu, took, digest } = &ways[0];
        assert_eq!((&**way, *cpu, *took, &**digest), ("dask", 1.5, 2.0, "00ff"));
        assert!(read("Traceback").is_err());
    }

    #[test]
    fn the_script_has_the_same_runners() {
        let script = workspace().join(TESTS).join("sweep.py");
        let script = fs::read_to_string(script).unwrap();
        for (name, _) in WAYS {
            assert!(script.contains(&format!("    \"{name}\": ")), "{name}");
        }
        assert_eq!(script.matches(": Sweep.").count(), WAYS.len());
    }
}
