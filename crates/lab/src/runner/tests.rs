//! Tests of the order of runs, of shards, and of tasks.

use std::fs;
use std::path::Path;

use super::*;
use crate::plan::{PlanOptions, shipped};
use crate::results::ResultsDocument;

#[test]
fn timing_sensitive_runs_are_not_parallel() {
    let jobs = |name: &str| {
        let shipped = shipped().iter().find(|plan| plan.name == name).unwrap();
        let job = PlanJob { out: PathBuf::new(), jobs: 4, seed: 1, version: String::new() };
        concurrent_runs(&Plan::parse(shipped.text, &PlanOptions::default()).unwrap(), &job)
    };
    assert_eq!(["h3-delay", "he-cost", "he-six", "h3-policies"].map(jobs), [1; 4]);
    assert_eq!(["cmt-live", "cmt-delay"].map(jobs), [4; 2]);
}

#[test]
fn curves_at_one_place_follow_one_another() {
    let text = "name = 'p'\ntitle = 't'\nabout = 'a'\nruns = 2
        time = { warm_up = '1.1 s', duration = '8 s' }
        path.A = { rate = '10 Mbit/s', delay = '10 ms' }
        sweep = { parameter = 'association.buffer', values = ['1 KiB', '2 KiB'] }
        scene = [{ id = 's' }, { id = 'a' }]
        curve = [{ id = 'd' }, { id = 'c' }]";
    let plan = Plan::parse(text, &PlanOptions::default()).unwrap();
    let run = |point: &GridPoint| format!("{}{}{}", point.scene, point.x, point.curve);
    let order: Vec<String> =
        in_rounds(&plan, &[7, 8]).map(|(point, seed)| format!("{}@{seed}", run(point))).collect();
    let first = ["s1d@7", "s1c@7", "s2d@7", "s2c@7", "a1d@7", "a1c@7", "a2d@7", "a2c@7"];
    assert_eq!(order[..8], first);
    assert_eq!(order[8], "s1d@8");
    assert_eq!(order.len(), 16);
}

/// Four points with two runs each, which take only an instant.
const SMALL: &str = "name = 'small'\ntitle = 't'\nabout = 'a'\nruns = 2
    time = { warm_up = '1.1 s', duration = '1 s' }
    path.A = { rate = '10 Mbit/s', delay = '10 ms' }
    sweep = { parameter = 'association.buffer', values = ['8 KiB', '16 KiB'] }
    curve = [{ id = 'c' }, { id = 'd', set.path.A.delay = '3 ms' }]";

fn job(out: &Path, version: &str) -> PlanJob {
    PlanJob { out: out.to_owned(), jobs: 2, seed: 3, version: version.to_owned() }
}

/// Runs one shard of the small plan, with its own output directory.
fn shard(root: &Path, name: &str) -> PathBuf {
    let out = root.join(name.replace('/', "-"));
    let (shard, options) = (name.parse().unwrap(), PlanOptions::default());
    let stop = AtomicBool::new(false);
    run_shard(SMALL, &options, shard, &job(&out, "v"), &stop, |_| {}).unwrap();
    out
}

#[test]
fn shards_give_the_same_result_as_one_program() {
    let root = tempfile::tempdir().unwrap();
    let shards: Vec<PathBuf> =
        ["2/3", "1/3", "3/3"].iter().map(|name| shard(root.path(), name)).collect();
    let merged = merge(&shards, "v").unwrap();
    let plan = Plan::parse(SMALL, &PlanOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let whole = run(&plan, &job(&root.path().join("whole"), "v"), &stop, |_| {}).unwrap();
    assert_eq!(merged.results.points, whole.points);
    let document = |plan, results, seeds: &[u64]| {
        let document = ResultsDocument::new(plan, results, "c", seeds.to_vec());
        serde_json::to_string(&document).unwrap()
    };
    assert_eq!(
        document(&merged.plan, &merged.results, &merged.seeds),
        document(&plan, &whole, &[3, 4])
    );
    // What was merged is kept as if it had been run there.
    merged.keep(&root.path().join("kept"), "v").unwrap();
    let mut reported = Vec::new();
    let report = |event: RunEvent<'_>| match event {
        RunEvent::Progress(now) => reported.push(now),
        RunEvent::Skipped { point, .. } => panic!("{point} was left out"),
    };
    run(&plan, &job(&root.path().join("kept"), "v"), &stop, report).unwrap();
    assert_eq!(reported, [RunProgress { done: 8, found: 8, total: 8 }]);
}

#[test]
fn a_missing_shard_is_named() {
    let root = tempfile::tempdir().unwrap();
    let shards = ["1/3", "3/3"].map(|name| shard(root.path(), name));
    let error = merge(&shards, "v").unwrap_err().to_string();
    assert_eq!(error, "3 of 8 runs are missing: shard 2/3 is not among them");
    fs::remove_dir_all(shards[1].join("runs")).unwrap();
    let error = merge(&shards, "v").unwrap_err().to_string();
    assert!(error.contains("5 of 8") && error.contains("3-3 (shard 3/3) lacks 2 of 2"), "{error}");
}

#[test]
fn mismatched_shards_are_refused_with_a_reason() {
    let root = tempfile::tempdir().unwrap();
    let [one, two, four] = ["1/2", "2/2", "2/4"].map(|name| shard(root.path(), name));
    let error = |directories: &[&PathBuf], version: &str| {
        let directories: Vec<PathBuf> =
            directories.iter().map(|directory| (*directory).clone()).collect();
        merge(&directories, version).unwrap_err().to_string()
    };
    let other = error(&[&one, &four], "v");
    assert!(
        other.contains("the number of shards is \"2\" in the first and \"4\" in the second"),
        "{other}"
    );
    assert!(error(&[&one, &two], "w").contains("another version of eyas (v)"));
    assert!(error(&[&root.path().join("nowhere")], "v").contains("shard.json"));
    // Simulated runs are pure: with the same seed they cannot differ.
    let changed = root.path().join("changed");
    let options = PlanOptions::default();
    run_shard(
        SMALL,
        &options,
        PlanShard::new(1, 2).unwrap(),
        &job(&changed, "v"),
        &false.into(),
        |_| {},
    )
    .unwrap();
    for file in fs::read_dir(changed.join("runs")).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        fs::write(file.path(), text.replace("\"events\":", "\"events\":1")).unwrap();
    }
    assert!(error(&[&one, &changed], "v").contains("differ in the run of"));
}

/// Directories of runs may be anybody's: what a terminal would obey does not reach it.
#[test]
fn escape_sequences_of_stored_files_are_not_shown() {
    let root = tempfile::tempdir().unwrap();
    let [one, two] = ["1/2", "2/2"].map(|name| shard(root.path(), name));
    let original = fs::read_to_string(two.join("shard.json")).unwrap();
    for (from, to) in [
        ("\"v\"", "\"\\u001b[2Jv\""),
        ("\"small\"", "\"\\u009b2Jsmall\""),
        ("\"full\"", "\"\\u001bc\""),
        ("\"name\"", "\"\\u001bname\""),
    ] {
        fs::write(two.join("shard.json"), original.replacen(from, to, 1)).unwrap();
        let Err(error) = merge(&[one.clone(), two.clone()], "v") else { continue };
        assert!(!error.to_string().contains(['\u{1b}', '\u{9b}']), "{from}: {error:?}");
    }
    let task = RunTask { version: "\u{1b}c".to_owned(), runs: Vec::new() };
    let error = task.run("v", || Ok::<(), TaskError>(())).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
    let Err(error) = RunTask::read(b"{ \"version\": 1, \"\\u001b[2J\": 2 }") else {
        panic!("a task")
    };
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
}

#[test]
fn a_directory_belongs_to_one_shard() {
    let root = tempfile::tempdir().unwrap();
    let out = shard(root.path(), "1/2");
    let (second, stop) = (PlanShard::new(2, 2).unwrap(), AtomicBool::new(false));
    let error = run_shard(SMALL, &PlanOptions::default(), second, &job(&out, "v"), &stop, |_| {});
    assert!(error.unwrap_err().to_string().contains("belongs to shard 1/2"));
}

#[test]
fn live_experiments_have_no_shards() {
    let root = tempfile::tempdir().unwrap();
    let live = shipped().iter().find(|plan| plan.name == "h3-delay").unwrap();
    let (first, stop) = (PlanShard::new(1, 2).unwrap(), AtomicBool::new(false));
    let job = job(root.path(), "v");
    let error = run_shard(live.text, &PlanOptions::default(), first, &job, &stop, |_| {});
    assert!(matches!(error, Err(RunError::LiveShard)));
}

/// Executes all open runs of a plan as tasks of `size` runs, and returns the outcomes as text.
fn outcomes(worklist: &RunWorklist, size: usize) -> Vec<Vec<u8>> {
    let tasks = (0..worklist.len()).step_by(size).map(|from| worklist.task(from, size));
    let done = tasks.map(|task| {
        let text = task.write().unwrap();
        let outcome = RunTask::read(&text).unwrap().run("v", || Ok::<(), TaskError>(()));
        outcome.unwrap().write().unwrap()
    });
    done.collect()
}

fn worklist(out: &Path) -> RunWorklist {
    let plan = Plan::parse(SMALL, &PlanOptions::default()).unwrap();
    RunWorklist::open(plan, &job(out, "v")).unwrap()
}

#[test]
fn tasks_give_the_same_result_as_one_program_in_any_order() {
    let root = tempfile::tempdir().unwrap();
    let plan = Plan::parse(SMALL, &PlanOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let whole = run(&plan, &job(&root.path().join("whole"), "v"), &stop, |_| {}).unwrap();
    for size in [1, 3, 100] {
        let out = root.path().join(size.to_string());
        let mut list = worklist(&out);
        let mut outcomes = outcomes(&list, size);
        outcomes.reverse();
        for outcome in &outcomes {
            // An engine that has lost an outcome repeats the task.
            for _ in 0..2 {
                list.keep(TaskOutcome::read(outcome).unwrap()).unwrap();
            }
        }
        assert_eq!(list.progress(), RunProgress { done: 8, found: 0, total: 8 });
        assert_eq!(list.results().unwrap().points, whole.points);
        let kept = |name: &str| {
            let runs = root.path().join(name).join("runs");
            let files = fs::read_dir(runs).unwrap().map(|file| file.unwrap());
            let texts = files.map(|file| (file.file_name(), fs::read(file.path()).unwrap()));
            texts.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(kept(&size.to_string()), kept("whole"));
    }
}

#[test]
fn finished_runs_are_not_handed_out_again() {
    let root = tempfile::tempdir().unwrap();
    let mut list = worklist(root.path());
    let outcomes = outcomes(&list, 3);
    list.keep(TaskOutcome::read(&outcomes[1]).unwrap()).unwrap();
    let error = list.results().unwrap_err().to_string();
    assert_eq!(error, "stopped with 3 of 8 runs finished");
    let reopened = worklist(root.path());
    assert_eq!(reopened.progress(), RunProgress { done: 3, found: 3, total: 8 });
    assert_eq!(reopened.len(), 5);
}

#[test]
fn outcomes_of_other_code_and_other_plans_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut list = worklist(root.path());
    let task = list.task(0, 1);
    let other = task.run("w", || Ok::<(), TaskError>(())).unwrap_err();
    assert_eq!(other.to_string(), "the runs are for eyas v, and this is eyas w");
    let good = String::from_utf8(outcomes(&list, 1).remove(0)).unwrap();
    let mut refused = |from: &str, to: &str| {
        let text = good.replace(from, to);
        assert_ne!(text, good);
        list.keep(TaskOutcome::read(text.as_bytes()).unwrap()).unwrap_err().to_string()
    };
    assert!(refused("\"version\":\"v\"", "\"version\":\"w\"").contains("this is eyas w"));
    assert!(refused("\"seed\":3", "\"seed\":5").contains("with seed 5 is not a run of this plan"));
    assert!(refused("\"point\":\"", "\"point\":\"x").contains("is not a run of this plan"));
    assert!(TaskOutcome::read(b"{").is_err() && RunTask::read(b"[]").is_err());
    assert_eq!(list.progress().done, 0);
}

#[test]
fn live_runs_are_not_handed_out() {
    let root = tempfile::tempdir().unwrap();
    let live = shipped().iter().find(|plan| plan.name == "h3-delay").unwrap();
    let plan = Plan::parse(live.text, &PlanOptions::default()).unwrap();
    let situation = serde_json::to_value(&plan.grid.points[0].situation).unwrap();
    let error = RunWorklist::open(plan, &job(root.path(), "v")).unwrap_err();
    assert!(matches!(error, RunError::LiveShard));
    let runs = serde_json::json!([{ "point": "p", "situation": situation, "seed": 1 }]);
    let task = serde_json::json!({ "version": "v", "runs": runs }).to_string();
    let error = RunTask::read(task.as_bytes()).unwrap().run("v", || Ok::<(), TaskError>(()));
    assert_eq!(error.unwrap_err(), TaskError::Live("p".to_owned()));
}
