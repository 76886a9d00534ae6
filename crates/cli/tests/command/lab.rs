//! Tests of `eyas lab` with a user's plan: resumed, judged and reported.

use std::fs;
use std::path::Path;

use crate::stage::{Eyas, validate};

const PLAN: &str = "name = 'mine'\ntitle = 'Mine'\nabout = 'One path, two sizes.'\nruns = 2
time = { warm_up = '2 s', duration = '2 s' }
path.A = { rate = '10 Mbit/s', delay = '10 ms' }
association = { profile = 'pfldnet2010' }
sweep = { parameter = 'association.buffer', values = ['8 KiB', '64 KiB'] }
curve = [{ id = 'one' }]
figure = [{ title = 'Rate', measure = 'throughput' }]
[[claim]]
id = 'full'
text = 'It fills the path.'
published = '9.6 Mbit/s'
check = [{ value = 'throughput[one, 64 KiB]', at_least = 9.4 }]
";

fn lab(directory: &Path, line: &str) -> Eyas {
    Eyas::new(&format!("lab {line}")).arg("--out").arg(directory.join("out").display().to_string())
}

fn plan(directory: &Path, text: &str) -> String {
    let file = directory.join("mine.toml");
    fs::write(&file, text).expect("a plan");
    format!("run {}", file.display())
}

#[test]
fn the_page_has_eighty_columns_and_the_letters_of_the_locale() {
    let directory = tempfile::tempdir().expect("a directory");
    let long = "which is so long that no line of eighty columns could hold all of it";
    let text = PLAN
        .replace("'Mine'", &format!("'Buffers σ ≥ 8 KiB, {long}'"))
        .replace("'Rate'", &format!("'Rate ± deviation, {long}'"))
        .replace("'9.6 Mbit/s'", &format!("'≈ 9.6 Mbit/s × 1, {long}'"));
    let line = plan(directory.path(), &text);
    let mut command = lab(directory.path(), &line).command();
    let run = command.env("LC_ALL", "C").output().expect("it runs");
    let page = String::from_utf8(run.stdout).expect("text");
    assert!(run.status.success() && page.contains("sigma >= 8 KiB"), "{page}");
    // Names of files are not wrapped.
    for line in page.lines().filter(|line| !line.contains(&directory.path().display().to_string()))
    {
        assert!(line.len() <= 80 && line.is_ascii(), "{line}");
    }
}

#[test]
fn a_users_plan_is_run_judged_and_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = plan(directory.path(), PLAN);
    let object = lab(directory.path(), &line).arg("--json").run().exits(0).json();
    validate("lab", &object);
    assert_eq!(object["claims"][0]["outcome"], "accepted", "{object:#}");
    assert_eq!(object["run"]["seeds"], serde_json::json!([1, 2]));
    let out = directory.path().join("out");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("It fills the path.") && page.contains("<svg"));
    assert!(out.join("result.csv").exists());
    let runs = fs::read_to_string(out.join("runs.csv")).expect("a table");
    let rates = runs.lines().filter(|line| line.contains(",throughput,"));
    assert_eq!(rates.count(), 4, "two places, two seeds: {runs}");
    // The second time all runs are already finished, and the result is the same.
    let second = lab(directory.path(), &line).run().exits(0).out;
    assert!(second.contains("accepted") && second.contains("report.html"), "{second}");
    fs::remove_file(out.join("report.html")).expect("removed");
    let report = format!("lab report {}", out.display());
    let reported = Eyas::new(&report).arg("--json").run().exits(0).json();
    assert_eq!(reported["points"], object["points"]);
    assert!(out.join("report.html").exists());
}

#[test]
fn a_refused_claim_fails_on_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = plan(directory.path(), &PLAN.replace("9.4", "11"));
    lab(directory.path(), &line).run().exits(0);
    let stderr = lab(directory.path(), &line).arg("--check").run().exits(112).err;
    assert!(stderr.contains("claim full"), "{stderr}");
}

#[test]
fn an_invalid_plan_is_reported_with_a_suggestion() {
    let directory = tempfile::tempdir().expect("a directory");
    let stderr = lab(directory.path(), "run cmt-dely").run().exits(2).err;
    assert!(stderr.contains("cmt-dely") && stderr.contains("did you mean cmt-delay?"), "{stderr}");
    let line = plan(directory.path(), &PLAN.replace("sweep", "sweap"));
    let stderr = lab(directory.path(), &line).run().exits(2).err;
    assert!(stderr.contains("sweap") && stderr.contains("line 8"), "{stderr}");
    let stderr = Eyas::new("lab report").arg("/nowhere").run().exits(26).err;
    assert!(stderr.contains("cannot read /nowhere") && stderr.contains("eyas lab run"), "{stderr}");
    let stderr = Eyas::new("lab run cmt-delay --out /dev/null").run().exits(23).err;
    assert!(stderr.contains("cannot write /dev/null"), "{stderr}");
}

#[test]
fn shipped_plans_are_listed_and_can_be_copied() {
    let object = Eyas::new("lab list").arg("--json").run().exits(0).json();
    validate("lab", &object);
    let names: Vec<&str> = object["plans"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|plan| plan["name"].as_str())
        .collect();
    assert!(names.contains(&"cmt-delay"), "{names:?}");
    assert!(Eyas::new("lab list").run().exits(0).out.contains("cmt-delay"));
    let keys = Eyas::new("lab show keys").run().exits(0).out;
    assert!(keys.contains("flight_cap = 110"), "{keys}");
    let text = Eyas::new("lab show cmt-delay").run().exits(0).out;
    assert!(text.contains("[[curve]]"), "{text}");
    let stderr = Eyas::new("lab show ./my.toml").run().exits(2).err;
    assert!(stderr.contains("eyas lab list"), "{stderr}");
}

#[test]
fn shards_produce_the_result_of_a_single_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = plan(directory.path(), PLAN);
    let output = |name: &str| directory.path().join(name).display().to_string();
    Eyas::new(&format!("lab {run}")).arg("--out").arg(output("whole")).run().exits(0);
    for part in 1..=4 {
        let line = format!("lab {run} --shard {part}/4 --json");
        let object =
            Eyas::new(&line).arg("--out").arg(output(&part.to_string())).run().exits(0).json();
        validate("lab", &object);
        assert_eq!(object["runs"], 1);
    }
    let merge = |parts: &[&str]| {
        let command =
            parts.iter().fold(Eyas::new("lab merge"), |line, part| line.arg(output(part)));
        command.arg("--out").arg(output("merged"))
    };
    let stderr = merge(&["4", "1", "2"]).run().exits(26).err;
    assert!(stderr.contains("1 of 4 runs is missing: shard 3/4 is not among them"), "{stderr}");
    assert!(!directory.path().join("merged").exists());
    let shown = merge(&["4", "1", "3", "2"]).arg("--check").run().exits(0).out;
    assert!(shown.contains("accepted") && shown.contains("report.html"), "{shown}");
    for file in ["result.json", "result.csv", "report.html"] {
        let read = |part: &str| fs::read(directory.path().join(part).join(file)).expect(file);
        assert!(read("merged") == read("whole"), "{file} differs");
    }
}

#[test]
fn an_invalid_shard_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let stderr = lab(directory.path(), "run cmt-delay --shard 5/4").run().exits(2).err;
    assert!(stderr.contains("write 1/4 for the first of four"), "{stderr}");
    let stderr = lab(directory.path(), "run h3-delay --shard 1/4").run().exits(2).err;
    assert!(stderr.contains("a live experiment"), "{stderr}");
    let stderr = Eyas::new("lab merge /nowhere").run().exits(26).err;
    assert!(stderr.contains("--shard"), "{stderr}");
}

/// Returns the number of runs stored in a directory. Every file must be complete.
#[cfg(unix)]
fn kept_runs(directory: &Path) -> usize {
    let files = fs::read_dir(directory.join("out/runs")).into_iter().flatten().flatten();
    let complete = files.filter(|file| file.path().extension().is_some_and(|end| end == "json"));
    let runs = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).expect("a file");
        let point: serde_json::Value = serde_json::from_str(&text).expect("a whole file");
        point["runs"].as_object().map_or(0, serde_json::Map::len)
    };
    complete.map(runs).sum()
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_resumes_where_it_stopped() {
    let text = PLAN.replace("runs = 2", "runs = 6");
    let reference = tempfile::tempdir().expect("a directory");
    let line = plan(reference.path(), &text);
    let uninterrupted = lab(reference.path(), &line).arg("--json").run().exits(0).json();
    for signal in ["INT", "KILL"] {
        let directory = tempfile::tempdir().expect("a directory");
        let line = format!("{} --jobs 1", plan(directory.path(), &text));
        let running = lab(directory.path(), &line).start();
        running.until("keeps a run", || kept_runs(directory.path()) > 0);
        running.signal(signal);
        let ended = running.end();
        // It may have ended before the signal.
        let expected = if signal == "INT" { Some(130) } else { None };
        assert!(ended.code == expected || ended.code == Some(0), "{signal}: {ended:?}");
        let kept = kept_runs(directory.path());
        assert!((1..=12).contains(&kept), "{kept}");
        let resumed = lab(directory.path(), &line).arg("--json").run().exits(0).json();
        assert_eq!(resumed["points"], uninterrupted["points"], "{signal}");
        assert_eq!(resumed["claims"], uninterrupted["claims"], "{signal}");
        assert_eq!(kept_runs(directory.path()), 12);
    }
}
