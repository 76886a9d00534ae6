//! `cargo eyas-bench lab`: one sweep with each of the runners of `docs/guide/clusters.md`: the cost of each,
//! and whether the results are the same.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::environment::{PythonEnvironment, build_wheel};
use crate::options::Options;
use crate::page;
use crate::run::{command, output, target};
use crate::verdict::{self, Bound, Expectation};

const TESTS: &str = "bindings/python/tests";
/// The maximum CPU time of Dask, including its scheduler, relative to a single process.
const RATIO: f64 = 1.15;

/// The runners of `sweep.py`, and their names in the table.
const RUNNERS: [(&str, &str); 5] = [
    ("local", "one process, `eyas.lab.run`"),
    ("processes", "`ProcessPoolExecutor` with two workers"),
    ("dask", "Dask: a scheduler and two workers"),
    ("shards", "four shards of the command, then `merge`"),
    ("dask-killed", "Dask, one of its workers killed during the run"),
];

/// The report of `sweep.py` about a runner.
#[derive(Debug)]
struct Report {
    runner: String,
    /// Seconds of CPU time, of all processes.
    cpu: f64,
    /// Seconds.
    took: f64,
    /// The hash of all output files.
    digest: String,
}

/// Runs the sweep and writes the table.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let Some(wheel) = build_wheel()? else { return Ok(()) };
    let directory = target().join("python");
    let environment = PythonEnvironment::new(&directory.join("sweep"))?;
    environment.install(&["-r", &format!("{TESTS}/requirements-dask.txt")])?;
    environment.install_wheel(&wheel)?;
    if options.build {
        return Ok(());
    }
    let runs = directory.join("sweep-runs");
    if runs.exists() {
        fs::remove_dir_all(&runs).map_err(|error| error.to_string())?;
    }
    let python = environment.interpreter().to_string_lossy();
    let mut sweep = command(&python, &[format!("{TESTS}/sweep.py")]);
    sweep.arg(&runs).env("PYTHONDONTWRITEBYTECODE", "1");
    if options.quick {
        sweep.arg("--quick");
    }
    let reports = read(&output(&mut sweep)?)?;
    let tables = [
        page::circumstances("cargo eyas-bench lab"),
        table(&reports),
        verdict::table(&expectations(&reports)),
    ];
    page::publish("lab", &tables.join("\n"), options.dry)
}

fn read(text: &str) -> Result<Vec<Report>, String> {
    let read = |line| report(line).ok_or_else(|| format!("sweep.py printed {line:?}"));
    text.lines().map(read).collect()
}

fn report(line: &str) -> Option<Report> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let number = |key: &str| value[key].as_f64();
    Some(Report {
        runner: text("runner")?,
        cpu: number("cpu")?,
        took: number("took")?,
        digest: text("digest")?,
    })
}

fn table(reports: &[Report]) -> String {
    let mut text = String::from("| runner | CPU time | took |\n| --- | ---: | ---: |\n");
    for report in reports {
        let name = RUNNERS
            .iter()
            .find(|(name, _)| *name == report.runner)
            .map_or(&*report.runner, |(_, it)| it);
        let _ = writeln!(text, "| {name} | {:.1} s | {:.1} s |", report.cpu, report.took);
    }
    text
}

fn expectations(reports: &[Report]) -> [Expectation; 2] {
    let all_measured =
        RUNNERS.iter().all(|(name, _)| reports.iter().any(|report| report.runner == *name));
    let different: BTreeSet<_> = reports.iter().map(|report| &report.digest).collect();
    let measured = all_measured
        .then(|| (format!("{} in {}", different.len(), reports.len()), different.len() == 1));
    let cpu = |name| reports.iter().find(|report| report.runner == name).map(|report| report.cpu);
    let (dask, local) = (cpu("dask"), cpu("local"));
    let ratio = dask.zip(local).map(|(dask, local)| {
        let ratio = dask / local;
        let measured = format!("{dask:.1} s / {local:.1} s = {ratio:.2}");
        (measured, Bound::AtMost(RATIO).holds(ratio))
    });
    [
        Expectation {
            target: "all runners: one `result.json`, one `runs.csv`, one report".into(),
            measured,
        },
        Expectation {
            target: format!("Dask: at most {RATIO} × the CPU time of one process"),
            measured: ratio,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::workspace;

    fn reports(digests: [&str; 5], dask: f64) -> Vec<Report> {
        let report = |((name, _), digest): (&(&str, &str), &str)| Report {
            runner: (*name).to_owned(),
            cpu: if *name == "dask" { dask } else { 100.0 },
            took: 50.0,
            digest: digest.to_owned(),
        };
        RUNNERS.iter().zip(digests).map(report).collect()
    }

    #[test]
    fn a_differing_result_is_detected() {
        let text = verdict::table(&expectations(&reports(["a"; 5], 115.0)));
        assert!(text.contains("| 1 in 5 | yes |"), "{text}");
        assert!(text.contains("115.0 s / 100.0 s = 1.15 | yes |"), "{text}");
        let text = verdict::table(&expectations(&reports(["a", "a", "a", "a", "b"], 116.0)));
        assert!(text.contains("| 2 in 5 | **no** |"), "{text}");
        assert!(text.contains("= 1.16 | **no** |"), "{text}");
    }

    #[test]
    fn an_unavailable_runner_is_not_measured() {
        let text = verdict::table(&expectations(&reports(["a"; 5], 1.0)[..2]));
        assert_eq!(text.matches("not measured").count(), 2, "{text}");
    }

    #[test]
    fn the_output_of_the_script_is_parsed() {
        let line = r#"{"runner": "dask", "cpu": 1.5, "took": 2, "digest": "00ff"}"#;
        let reports = read(line).unwrap();
        let Report { runner, cpu, took, digest } = &reports[0];
        assert_eq!((&**runner, *cpu, *took, &**digest), ("dask", 1.5, 2.0, "00ff"));
        assert!(read("Traceback").is_err());
    }

    #[test]
    fn the_script_has_the_same_runners() {
        let script = workspace().join(TESTS).join("sweep.py");
        let script = fs::read_to_string(script).unwrap();
        for (name, _) in RUNNERS {
            assert!(script.contains(&format!("    \"{name}\": ")), "{name}");
        }
        assert_eq!(script.matches(": Sweep.").count(), RUNNERS.len());
    }
}
