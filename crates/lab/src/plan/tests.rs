//! Tests of the built-in plans, and of the errors for an invalid file.

use std::collections::BTreeMap;

use eyas_emulator::units::ByteSize;

use super::{EVERY_KEY, Plan, PlanExtent, PlanOptions, from_json, shipped};
use crate::claim::ClaimOutcome;
use crate::run::{RivalResult, RunResult, RunResults, StreamResult};
use crate::situation::{self, GridPoint, MappingSetup, live};

/// Options with these changes (`PARAMETER=VALUE`), for the full plan.
fn full(set: &[&str]) -> PlanOptions {
    let set = set.iter().map(|change| (*change).to_owned()).collect();
    PlanOptions { set, ..PlanOptions::default() }
}

/// The same for `--standard`.
fn standard(set: &[&str]) -> PlanOptions {
    PlanOptions { extent: PlanExtent::Standard, ..full(set) }
}

/// The same for `--quick`.
fn quick(set: &[&str]) -> PlanOptions {
    PlanOptions { extent: PlanExtent::Quick, ..full(set) }
}

/// Returns the text of a built-in plan.
fn shipped_text(name: &str) -> &'static str {
    shipped().iter().find(|shipped| shipped.name == name).unwrap().text
}

fn shipped_plan(name: &str, options: &PlanOptions) -> Plan {
    Plan::parse(shipped_text(name), options).unwrap()
}

#[test]
fn built_in_plans_are_valid_and_named_after_their_files() {
    for shipped in shipped() {
        for options in [full(&[]), standard(&[]), quick(&[])] {
            let plan = Plan::parse(shipped.text, &options)
                .unwrap_or_else(|error| panic!("{}: {error}", shipped.name));
            assert_eq!(plan.name, shipped.name);
            assert!(!plan.sources.is_empty() && !plan.figures.is_empty(), "{}", plan.name);
        }
    }
}

#[test]
fn the_plan_of_every_key_is_valid() {
    let plan = Plan::parse(EVERY_KEY, &full(&[])).unwrap();
    assert_eq!((plan.name.as_str(), plan.grid.points.len()), ("keys", 2));
}

/// Expressions are for authors of plans; readers of a page need a description.
#[test]
fn every_check_of_a_claim_has_a_description() {
    for shipped in shipped() {
        let plan = Plan::parse(shipped.text, &full(&[])).unwrap();
        for claim in &plan.claims {
            let nameless = claim.checks.iter().find(|check| check.about.is_empty());
            assert!(nameless.is_none(), "{}, claim {}: {nameless:?}", shipped.name, claim.id);
        }
    }
}

/// A label is looked up by the column's name alone, whatever the plan.
#[test]
fn a_column_has_one_label_in_all_plans() {
    let mut labels = BTreeMap::new();
    for (column, label) in situation::columns() {
        assert_eq!(*labels.entry(column).or_insert(label), label, "column {column}");
    }
}

/// Every claim of every plan reads existing points, in the full plan and with `--standard`.
#[test]
fn every_claim_can_be_measured() {
    for shipped in shipped() {
        for options in [full(&[]), standard(&[])] {
            let plan = Plan::parse(shipped.text, &options).unwrap();
            let results = invented_results(&plan);
            for claim in &plan.claims {
                let verdict = claim.judge(plan.basis(), &results);
                let is_open =
                    [ClaimOutcome::NotMeasured, ClaimOutcome::NotJudged].contains(&verdict.outcome);
                assert!(!is_open, "{} claim {}: {verdict:?}", plan.name, claim.id);
            }
        }
    }
}

/// Returns results with a number for everything that a run of this plan measures.
fn invented_results(plan: &Plan) -> RunResults {
    let points = plan.grid.points.iter().enumerate().map(|(index, point)| {
        let run = invented_run(index, point);
        (point.id.clone(), vec![run; plan.grid.runs as usize])
    });
    RunResults { points: points.collect(), ..RunResults::default() }
}

fn invented_run(index: usize, point: &GridPoint) -> RunResult {
    let stream = StreamResult { bytes: 600_000_000, messages: 400_000, delay_ns: 20_000_000 };
    let simulated = point.situation.simulated();
    let rivals = simulated.into_iter().flat_map(|setup| setup.rival.keys());
    let rivals = rivals.map(|name| RivalResult { name: name.clone(), bytes: 1_000_000 });
    // All points differ, so that nothing is divided by zero.
    let least = 10.0 + (index * index) as f64 / 1e4;
    let column = |(name, _): (&str, &str)| {
        // On a machine that does nothing else, no run counts as disturbed.
        let is_of_machine = live::MACHINE.iter().any(|(column, _)| *column == name);
        let unit = if is_of_machine { 0.0 } else { least };
        (name.to_owned(), vec![unit, 2.0 * unit, 3.0 * unit])
    };
    let columns = match simulated {
        Some(_) => BTreeMap::new(),
        None => situation::columns().map(column).collect(),
    };
    RunResult {
        streams: vec![stream; 7],
        rivals: rivals.collect(),
        columns,
        ..RunResult::default()
    }
}

#[test]
fn live_plans_layer_their_settings() {
    let plan = shipped_plan("h3-loss", &standard(&[]));
    assert!(plan.is_live() && plan.grid.runs == 1);
    let setup = |id: &str| {
        let point = plan.grid.points.iter().find(|point| point.id == id).unwrap();
        match point.situation.live().unwrap() {
            live::LiveSetup::Connect(setup) => setup.clone(),
            other => panic!("{other:?}"),
        }
    };
    let far = setup("far_eyas-warm_25pc");
    assert_eq!(
        (far.link.delay.to_string(), far.link.loss.to_string()),
        ("100 ms".into(), "25 %".into())
    );
    assert_eq!(
        (far.memory, far.strategy, far.trials),
        (live::ClientMemory::Warm, live::ClientStrategy::Race, 200)
    );
    assert_eq!(setup("near_published-race_3pc").strategy, live::ClientStrategy::PublishedRace);
    for (change, expected) in [("live.trials=0", "from 1 to 500"), ("live.wey=1", "wey")] {
        let error = Plan::parse(shipped_text("h3-loss"), &full(&[change])).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// `he-cache` has points in groups: `--standard` runs some of them at a lower rate, others at two values
/// of the axis only, and others not at all.
#[test]
fn a_shorter_run_takes_groups_of_points() {
    let shorter = |set: &[&str]| shipped_plan("he-cache", &standard(set));
    let rates = |plan: &Plan, scene: &str, curve: &str| -> Vec<(f64, f64)> {
        let rate = |point: &GridPoint| match point.situation.live().unwrap() {
            live::LiveSetup::Cost(setup) => (point.x, setup.rate),
            other => panic!("{other:?}"),
        };
        plan.grid.points_of_curve(scene, curve).map(rate).collect()
    };
    let some = shorter(&[]);
    assert_eq!(rates(&some, "plain-1", "he-tcp").len(), 6);
    assert_eq!(rates(&some, "tls-1", "he-tcp"), [(0.0, 400.0), (80.0, 400.0)]);
    assert_eq!(rates(&some, "tls-1", "he-50"), []);
    let all = shorter(&["standard.points=[]"]);
    assert_eq!(all.grid.points.len(), shipped_plan("he-cache", &full(&[])).grid.points.len());
    assert_eq!(rates(&all, "tls-1", "he-tcp")[0], (0.0, 1000.0));
    let chosen = shorter(&["sweep.values=[\"30 %\"]"]);
    assert_eq!(rates(&chosen, "tls-35", "he-50"), [(30.0, 1000.0)]);
    // A value that a group names is treated like any other.
    let chosen = shorter(&["sweep.values=[\"30 %\", \"80 %\"]"]);
    assert_eq!(rates(&chosen, "tls-1", "he-tcp"), [(30.0, 1000.0), (80.0, 1000.0)]);
}

#[test]
fn values_of_the_command_line_reach_every_scene_and_curve() {
    for shipped in shipped() {
        let all = Plan::parse(shipped.text, &full(&[])).unwrap().grid;
        let table: toml::Table = toml::from_str(shipped.text).unwrap();
        let change = format!("sweep.values=[{}]", table["sweep"]["values"][0]);
        for options in [full, standard, quick].map(|options| options(&[&change])) {
            let chosen = Plan::parse(shipped.text, &options).unwrap().grid;
            for point in &all.points {
                let along = chosen.points_of_curve(&point.scene, &point.curve);
                assert_eq!(along.count(), 1, "{}: {} {}", shipped.name, point.scene, point.curve);
            }
        }
    }
}

/// The plans for the figures of one paper (Dreibholz et al., PFLDNeT 2010) number its statements
/// together.
#[test]
fn all_thirteen_statements_of_the_paper_have_a_claim() {
    let mut ids: Vec<u32> = ["cmt-delay", "cmt-bandwidth", "cmt-three-paths"]
        .iter()
        .flat_map(|name| shipped_plan(name, &full(&[])).claims)
        .map(|claim| claim.id.parse().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, Vec::from_iter(1..=13));
}

#[test]
fn scenes_curves_and_the_sweep_override_the_plan() {
    let plan = shipped_plan("cmt-delay", &full(&[]));
    assert_eq!(plan.grid.runs, 24);
    let point = plan.grid.points.iter().find(|point| point.id == "dB75_fixed_224KiB").unwrap();
    assert_eq!(point.situation.simulated().unwrap().path["B"].delay.to_string(), "75 ms");
    assert_eq!(point.situation.simulated().unwrap().association.buffer, Some(ByteSize(224 * 1024)));
    let table = MappingSetup::Table(vec!["A".to_owned(), "B".to_owned()]);
    assert_eq!(point.situation.simulated().unwrap().association.mapping, Some(table));
    assert_eq!((point.x, plan.grid.axis.unit.as_str()), (224.0, "KiB"));
}

#[test]
fn overrides_take_precedence() {
    let options = quick(&["path.B.delay=33 ms", "time.duration=5 s", "sweep.values=[\"64 KiB\"]"]);
    let plan = shipped_plan("cmt-delay", &options);
    assert_eq!(plan.grid.points.len(), 6);
    for point in &plan.grid.points {
        assert_eq!(point.situation.simulated().unwrap().path["B"].delay.to_string(), "33 ms");
        assert_eq!(point.situation.simulated().unwrap().time.duration.to_string(), "5 s");
    }
}

/// Returns the error for `plans/cmt-delay.toml` after a change.
fn refusal(from: &str, to: &str, set: &[&str]) -> String {
    let text = shipped_text("cmt-delay");
    assert!(text.contains(from), "{from}");
    Plan::parse(&text.replacen(from, to, 1), &full(set)).unwrap_err().to_string()
}

#[test]
fn errors_name_the_place() {
    let error = refusal("queue = ", "kueue = ", &[]);
    assert!(error.contains("kueue") && error.contains("line 2"), "{error}");
    assert!(error.contains("expected one of") && error.contains("`queue`"), "{error}");
    let error = refusal("delay = \"10 ms\"", "delay = \"10 mm\"", &[]);
    assert!(error.contains("\"10 mm\" is not a time, such as \"50 ms\""), "{error}");
    let error = refusal("\"round-robin\"", "\"robin\"", &[]);
    assert!(error.contains("dB10_rr_32KiB") && error.contains("\"automatic\""), "{error}");
    let error = refusal("[\"A\", \"B\"]", "[\"A\", \"X\"]", &[]);
    assert!(error.contains("names path \"X\"; there are A, B"), "{error}");
    let error = refusal("throughput[dB10, rr,", "throughput[dB11, rr,", &[]);
    assert!(error.contains("claim \"1\"") && error.contains("no scene \"dB11\""), "{error}");
    let error = refusal("[quick]", "[[quick.points]]\nscenes = ['x']\n[quick]", &[]);
    assert!(error.contains("[[quick.points]]: there is no scene \"x\""), "{error}");
    let error = refusal("name = ", "name = ", &["association.buffer=64 KiB"]);
    assert!(error.contains("sweep.values="), "{error}");
    let error = refusal("name = ", "name = ", &["path.B.dely=64 ms"]);
    assert!(error.contains("dely"), "{error}");
}

/// The first block of TOML in `docs/guide/lab.md` is a complete plan.
#[test]
fn the_plan_in_the_manual_is_valid() {
    let manual = include_str!("../../../../docs/guide/lab.md");
    let (_, block) = manual.split_once("```toml\n").unwrap();
    let (text, _) = block.split_once("```").unwrap();
    let plan = Plan::parse(text, &full(&[])).unwrap();
    assert_eq!((plan.grid.points.len(), plan.claims.len()), (8, 1));
}

#[test]
fn text_that_a_terminal_obeys_is_refused() {
    let plan = shipped_text("cmt-delay");
    let escaped = plan.replacen("title = \"", "title = \"\\u001b[2J", 1);
    let raw = plan.replacen("title = \"", "title = \"\u{1b}[2J", 1);
    for text in [escaped, raw] {
        let error = Plan::parse(&text, &full(&[])).unwrap_err().to_string();
        assert!(error.contains("[2J") && !error.contains('\u{1b}'), "{error}");
    }
    for set in ["title=\u{1b}c", "title='\u{9b}2J'"] {
        let Err(error) = Plan::parse(plan, &quick(&[set])) else { panic!("{set:?}") };
        assert!(!error.to_string().contains(['\u{1b}', '\u{9b}']), "{error}");
    }
}

#[test]
fn a_plan_can_be_json() {
    let json = r#"{ "name": "p", "title": "t", "about": "a", "runs": 2,
        "sweep": { "parameter": "association.buffer", "values": ["1 KiB", "2 KiB"] },
        "time": { "warm_up": "1.1 s", "duration": "8 s" },
        "path": { "A": { "rate": "10 Mbit/s", "delay": "10 ms" } },
        "curve": [{ "id": "c", "set": { "path": { "A": { "delay": "3 ms" } } } }] }"#;
    let plan = Plan::parse(&from_json(json).unwrap(), &full(&[])).unwrap();
    assert_eq!((plan.grid.points.len(), plan.grid.runs), (2, 2));
    assert_eq!(plan.directory().to_str(), Some("eyas-lab/p"));
    let shorter = shipped_plan("cmt-delay", &quick(&[]));
    assert_eq!(shorter.directory().to_str(), Some("eyas-lab/cmt-delay-quick"));
    for none in ["[]", "{", r#"{ "name": null }"#] {
        assert!(from_json(none).unwrap_err().to_string().starts_with("not a plan: "), "{none}");
    }
}

/// Published results depend on it: it changes with the plan, never silently.
#[test]
fn a_seed_draws_the_same_network_in_every_version() {
    let plan = shipped_plan("cmt-random", &full(&[]));
    let drawn = plan.grid.points[0].situation.random().unwrap().draw(3);
    let expected = "A: 34.5 Mbit/s and 89 Mbit/s back, 3.81 ms and 2.25 ms back, queues 23 packets red and 46.725 kB, loss 1 %; \
                    B: 75.2 Mbit/s and 121 Mbit/s back, 47.9 ms and 28 ms back, queues 167 packets red and 4885.375 kB, loss 0.1 %; \
                    B at 7459.5 ms: 237 Mbit/s and 38.3 Mbit/s back; \
                    messages of 27200 bytes one way";
    assert_eq!(drawn.describe(), expected);
}
