//! Tests of stored runs, and of the output files.

use std::fs;

use super::{ResultsDocument, ResultsTable, RunStore, to_csv};
use crate::plan::{Plan, PlanOptions};
use crate::run::{RunResult, RunResults, StreamResult};
use crate::situation::Situation;

const PLAN: &str = "name = 'p'\ntitle = 't'\nabout = 'a'\nruns = 2
    time = { warm_up = '1.1 s', duration = '8 s' }
    path.A = { rate = '10 Mbit/s', delay = '10 ms' }
    sweep = { parameter = 'association.buffer', values = ['1 KiB', '2 KiB'] }
    curve = [{ id = 'c', label = 'one, two' }]";

fn plan() -> Plan {
    Plan::parse(PLAN, &PlanOptions::default()).unwrap()
}

fn sample_run(bytes: u64) -> RunResult {
    let stream = StreamResult { bytes, messages: 4, delay_ns: 8_000_000 };
    RunResult { streams: vec![stream, StreamResult::default()], ..RunResult::default() }
}

#[test]
fn delays_are_means_over_the_streams_with_data() {
    assert_eq!(sample_run(1).mean_delay_ms(), 2.0);
    assert!(RunResult::default().mean_delay_ms().is_nan());
}

#[test]
fn stored_runs_are_reused_unless_something_changed() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan();
    let point = &plan.grid.points[0];
    let open = |version: &str| {
        let mut store = RunStore::open(directory.path(), version).unwrap();
        store.load(point);
        store
    };
    let mut store = open("one");
    assert_eq!(store.get(&point.id, 7), None);
    store.keep(&point.id, 7, sample_run(1)).unwrap();
    store.keep(&point.id, 8, sample_run(2)).unwrap();
    assert_eq!(open("one").get(&point.id, 7), Some(&sample_run(1)));
    assert_eq!(open("two").get(&point.id, 7), None, "other code");
    let mut other = point.clone();
    let Situation::Simulated(setup) = &mut other.situation else { panic!("{other:?}") };
    setup.time.duration.0 *= 2;
    let mut store = open("one");
    store.load(&other);
    assert_eq!(store.get(&point.id, 7), None, "another situation");
    let file = directory.path().join("runs").join(format!("{}.json", point.id));
    fs::write(&file, "{ half a fi").unwrap();
    assert_eq!(open("one").get(&point.id, 7), None, "a broken file counts as absent");
}

fn document() -> ResultsDocument {
    let plan = plan();
    let runs = vec![sample_run(1_000_000), sample_run(3_000_000)];
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), runs.clone())).collect();
    ResultsDocument::new(&plan, &RunResults { points, ..RunResults::default() }, "abc", vec![1, 2])
}

#[test]
fn a_document_can_be_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let document = document();
    document.write(directory.path()).unwrap();
    assert_eq!(ResultsDocument::read(directory.path()).unwrap(), document);
    let path = directory.path().join("result.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"schema\": 2", "\"schema\": 99");
    fs::write(&path, text).unwrap();
    let error = ResultsDocument::read(directory.path()).unwrap_err().to_string();
    assert!(error.contains("not a result of this version"), "{error}");
}

#[test]
fn a_table_has_a_line_for_each_measure() {
    let text = to_csv(&document());
    assert!(text.starts_with(
        "scene,curve,association.buffer [KiB],measure,value,low,high,method,samples\n"
    ));
    // 1 and 3 MB in 8 s are 1 and 3 Mbit/s.
    let line = text.lines().find(|line| line.starts_with(",c,1,throughput,")).unwrap();
    assert!(line.starts_with(",c,1,throughput,2,-10.7"), "{line}");
    assert!(line.ends_with(",student-t,2"), "{line}");
    assert!(!text.contains("delay.1"), "nothing arrived on stream 1");
}

#[test]
fn every_run_has_its_rows() {
    let plan = plan();
    let (first, second) = (&plan.grid.points[0], &plan.grid.points[1]);
    let points = [
        (first.id.clone(), vec![sample_run(1_000_000), sample_run(3_000_000)]),
        (second.id.clone(), vec![sample_run(2_000_000)]),
    ];
    let results = RunResults { points: points.into(), ..RunResults::default() };
    let table = ResultsTable::new(&plan, &results, &[7, 8]);
    let text = table.to_csv();
    let rows = |measure: &str| -> Vec<&str> {
        text.lines().filter(|line| line.contains(&format!(",{measure},"))).collect()
    };
    assert!(text.starts_with("point,scene,curve,x,seed,measure,unit,value\n"));
    assert_eq!(text.lines().count(), table.len() + 1);
    let (one, two) = (&first.id, &second.id);
    assert_eq!(
        rows("throughput"),
        [
            format!("{one},,c,1,7,throughput,Mbit/s,1"),
            format!("{one},,c,1,8,throughput,Mbit/s,3"),
            format!("{two},,c,2,7,throughput,Mbit/s,2"),
        ]
    );
    assert_eq!(rows("slowest")[0], format!("{one},,c,1,7,slowest,,0"));
    assert_eq!(rows("delay.1")[0], format!("{one},,c,1,7,delay.1,ms,"), "nothing arrived");
}

/// The schema is `docs/reference/schema/lab.json`.
#[test]
fn a_document_matches_its_schema() {
    let schema =
        serde_json::from_str(include_str!("../../../../docs/reference/schema/lab.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut object = serde_json::to_value(document()).unwrap();
    assert!(validator.is_valid(&object), "{object:#}");
    object["claims"] = serde_json::json!([{ "id": "1" }]);
    assert!(!validator.is_valid(&object));
}

#[test]
fn the_packet_form_is_recorded() {
    let reported = |set: &str| {
        let options = PlanOptions { set: vec![set.to_owned()], ..PlanOptions::default() };
        let plan = Plan::parse(PLAN, &options).unwrap();
        let document = ResultsDocument::new(&plan, &RunResults::default(), "abc", vec![1]);
        let transport = document.emulated.iter().find(|line| line.starts_with("Transport"));
        transport.unwrap().clone()
    };
    assert!(reported("mode=wire").contains("encoded and parsed"));
    let values = reported("mode=struct");
    assert!(values.contains("values") && !values.contains("parsed"), "{values}");
}
