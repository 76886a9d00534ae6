//! Reviewed tables of every published figure, and of some plans without a paper, at a few places, in
//! short runs with one seed. Any change in what is sent on a path changes a number here, and shows as
//! a difference.
//!
//! `INSTA_UPDATE=always cargo test -p eyas-lab --test figures` writes them again, for review.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use eyas_lab::measure::Measure;
use eyas_lab::plan::{Plan, PlanOptions, shipped};
use eyas_lab::runner::{PlanJob, run};

/// Long enough for every path to be past its slow start.
const TIMES: [&str; 2] = ["time.warm_up=4 s", "time.duration=6 s"];

fn table(name: &str, values: &str, measures: &[&str]) -> String {
    table_of(name, values, &[], measures)
}

/// The same only for points whose identifiers start with one of these, if any are given.
fn table_of(name: &str, values: &str, points: &[&str], measures: &[&str]) -> String {
    table_with(&[], name, values, points, measures)
}

/// The same with more parameters.
fn table_with(
    more: &[&str],
    name: &str,
    values: &str,
    points: &[&str],
    measures: &[&str],
) -> String {
    let mut set: Vec<String> = TIMES.iter().map(|text| (*text).to_owned()).collect();
    set.push(format!("sweep.values={values}"));
    set.extend(more.iter().map(|text| (*text).to_owned()));
    let plan = shipped().iter().find(|shipped| shipped.name == name).expect("a shipped plan");
    let options = PlanOptions { runs: Some(1), set, ..PlanOptions::default() };
    let mut plan = Plan::parse(plan.text, &options).expect("a plan");
    let wanted: Vec<f64> = plan.grid.points.iter().map(|point| point.x).collect();
    let places: Vec<f64> = wanted.into_iter().filter(|x| values.contains(&x.to_string())).collect();
    plan.grid.points.retain(|point| {
        let is_wanted = |name: &&str| point.id.starts_with(name);
        points.iter().any(is_wanted) || (points.is_empty() && places.contains(&point.x))
    });
    let out = tempfile::tempdir().expect("a directory");
    let job = PlanJob { out: out.path().to_owned(), jobs: 2, seed: 1, version: String::new() };
    let results = run(&plan, &job, &AtomicBool::new(false), |_| {}).expect("all runs");
    let measures: Vec<Measure> =
        measures.iter().map(|measure| measure.parse().expect("a measure")).collect();
    let mut text = format!("{:<24}", "point");
    for measure in &measures {
        let _ = write!(text, "{:>14}", measure.to_string());
    }
    for point in &plan.grid.points {
        let _ = write!(text, "\n{:<24}", point.id);
        for measure in &measures {
            let _ = write!(
                text,
                "{:>14.3}",
                measure.value(&point.situation, &results.points[&point.id][0])
            );
        }
    }
    text
}

#[test]
fn figures_4_and_5() {
    let values = "['64 KiB', '192 KiB', '288 KiB']";
    let measures = ["throughput", "delay.0", "delay.1"];
    insta::assert_snapshot!(table("cmt-delay", values, &measures));
}

#[test]
fn figure_6() {
    let values = "['64 KiB', '256 KiB']";
    let measures = ["throughput", "throughput.0", "throughput.1"];
    insta::assert_snapshot!(table("cmt-bandwidth", values, &measures));
}

#[test]
fn figure_7() {
    let values = "['128 KiB', '256 KiB']";
    let measures = ["throughput", "delay", "slowest"];
    let figure = table("cmt-three-paths", values, &measures);
    insta::assert_snapshot!(figure);
    // The other figures have packets in one form only: simulation/tests/modes.rs compares the two packet by packet.
    assert_eq!(table_with(&["mode=wire"], "cmt-three-paths", values, &[], &measures), figure);
}

#[test]
fn coupled_control() {
    let points =
        ["disjoint_olia", "shared_cmt-rp-v2", "shared_lia", "shared_olia", "shared-red_olia"];
    let measures = ["throughput", "rival.single", "dropped.A"];
    insta::assert_snapshot!(table_of("cmt-coupling", "['10 Mbit/s']", &points, &measures));
}

#[test]
fn options() {
    let points = ["three_cap", "delay_sack", "delay_rescheduling", "lossy_rescheduling"];
    let measures = ["throughput", "delay"];
    insta::assert_snapshot!(table_of("cmt-options", "['192 KiB']", &points, &measures));
}

#[test]
fn a_backup_line() {
    let measures = ["throughput", "path.C", "gap"];
    insta::assert_snapshot!(table_of("cmt-backup", "['6 s']", &["up_published"], &measures));
}

#[test]
fn schedulers() {
    let points = ["lossy_rtx", "lossy_order-space", "lossy_fcfs"];
    let measures = ["throughput", "delay"];
    insta::assert_snapshot!(table_of("cmt-schedulers", "['192 KiB']", &points, &measures));
}

#[test]
fn the_automatic_mapping() {
    let measures = ["throughput", "bound", "delay", "slowest"];
    let points: Vec<String> = ["dB50", "dB75", "rB50", "three", "wide", "held-two", "held-three"]
        .iter()
        .flat_map(|scene| ["64KiB", "128KiB"].map(|size| format!("{scene}_auto_{size}")))
        .collect();
    let points: Vec<&str> = points.iter().map(String::as_str).collect();
    let values = "['64 KiB', '128 KiB']";
    insta::assert_snapshot!(table_of("cmt-auto", values, &points, &measures));
}
