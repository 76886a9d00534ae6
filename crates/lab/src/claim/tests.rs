//! Expressions, bounds and verdicts, on a plan of three points.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{CheckBounds, ClaimExpression, ClaimOutcome};
use crate::measure::Measure;
use crate::plan::{Plan, PlanExtent, PlanOptions};
use crate::results::ResultsDocument;
use crate::run::{RunResult, RunResults, StreamResult};
use crate::statistics::IntervalMethod;

const PLAN: &str = "name = 'p'\ntitle = 't'\nabout = 'a'\nruns = 2
    time = { warm_up = '1.1 s', duration = '8 s' }
    path.A = { rate = '10 Mbit/s', delay = '10 ms' }
    sweep = { parameter = 'association.buffer', values = ['1 KiB', '2 KiB', '4 KiB'] }
    curve = [{ id = 'c' }, { id = 'd', values = ['1 KiB'] }]";

fn plan(more: &str) -> Plan {
    Plan::parse(&format!("{PLAN}\n{more}"), &PlanOptions::default()).unwrap()
}

/// Returns results with 3x Mbit/s at x KiB in the first run, and 1 Mbit/s more in the second.
fn results(plan: &Plan) -> RunResults {
    let run = |megabits: f64| {
        let stream = StreamResult { bytes: (megabits * 1e6) as u64, messages: 1, delay_ns: 0 };
        RunResult { streams: vec![stream], ..RunResult::default() }
    };
    let runs = |x: f64| vec![run(3.0 * x), run(3.0 * x + 1.0)];
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), runs(point.x)));
    RunResults { points: points.collect(), ..RunResults::default() }
}

fn compute(text: &str, run: usize) -> Option<f64> {
    let plan = plan("");
    let results = results(&plan);
    let expression = ClaimExpression::parse(text, &plan.grid).unwrap();
    let read = |point: &str, measure: &Measure| plan.basis().value(&results, point, measure, run);
    expression.evaluate(plan.basis(), &read)?.single()
}

#[test]
fn expressions_read_numbers_at_places() {
    assert_eq!(compute("1 + 2 * (3 - 1) / 4", 0), Some(2.0));
    assert_eq!(compute("throughput[c, 2 KiB]", 0), Some(6.0));
    assert_eq!(compute("throughput[c, largest] - throughput[c, 1 KiB]", 1), Some(9.0));
    assert_eq!(compute("throughput[c, 3 KiB]", 0), None, "nothing was measured there");
}

#[test]
fn series_are_reduced_by_functions() {
    assert!((compute("slope(throughput[c, ..])", 1).unwrap() - 3.0).abs() < 1e-12);
    assert!((compute("r2(throughput[c, ..])", 0).unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(compute("reach(throughput[c, ..], 6)", 0), Some(2.0));
    assert_eq!(compute("reach(throughput[c, ..], 99)", 0), Some(f64::INFINITY));
    assert_eq!(compute("least(throughput[c, 2 KiB..] / 3)", 0), Some(2.0));
    assert_eq!(compute("most(max(throughput[c, ..2 KiB], 5))", 0), Some(6.0));
    assert_eq!(compute("mean(min(throughput[c, 1 KiB..2 KiB], 5))", 0), Some(4.0));
    assert_eq!(compute("throughput[c, ..]", 0), None, "a series is not a number");
    assert_eq!(compute("most(throughput[c, ..] + throughput[d, ..])", 0), None);
}

const LIVE: &str = "kind = 'live'\nname = 'p'\ntitle = 't'\nabout = 'a'\nruns = 1
    live = { experiment = 'cost', rate = 1, trying = 'tcp', size = '1 KiB', warm_up = '0 s', duration = '1 s', sample = '1 s' }
    sweep = { parameter = 'live.rate', values = [1, 2, 3] }
    curve = [{ id = 'c', label = 'C' }, { id = 'd', label = 'D' }]
    judged = [{ measure = 'mean.late', at_most = 100, otherwise = 'too late' }]";

/// Returns results in which the CPU at x is x; curve d was late at 2, and both curves at 3.
fn partly_late() -> (Plan, RunResults) {
    let plan = Plan::parse(LIVE, &PlanOptions::default()).unwrap();
    let run = |cpu: f64, late: f64| {
        let columns = [("cpu", vec![cpu]), ("late", vec![late])];
        let columns = columns.map(|(name, trials)| (name.to_owned(), trials));
        vec![RunResult { columns: columns.into_iter().collect(), ..RunResult::default() }]
    };
    let is_late = |curve: &str, x: f64| x > 2.5 || (x > 1.5 && curve == "d");
    let late = |curve: &str, x: f64| if is_late(curve, x) { 100.1 } else { 100.0 };
    let points = plan.grid.points.iter();
    let points = points.map(|point| (point.id.clone(), run(point.x, late(&point.curve, point.x))));
    let results = RunResults { points: points.collect(), ..RunResults::default() };
    (plan, results)
}

#[test]
fn unjudged_points_are_left_out_of_series() {
    let (plan, results) = partly_late();
    let compute = |text: &str| {
        let expression = ClaimExpression::parse(text, &plan.grid).unwrap();
        super::trials::measure(&expression, plan.basis(), &results).map(|estimate| estimate.value)
    };
    assert_eq!(compute("most(mean.cpu[c, ..])"), Some(2.0));
    assert_eq!(compute("mean(mean.cpu[c, ..])"), Some(1.5));
    assert_eq!(compute("slope(mean.cpu[c, ..])"), Some(1.0));
    assert_eq!(compute("most(abs(mean.cpu[d, ..]))"), Some(1.0));
    assert_eq!(compute("reach(mean.cpu[d, ..], 2)"), None, "nowhere");
    assert_eq!(compute("most(mean.cpu[c, ..] / mean.cpu[d, ..])"), Some(1.0), "on both sides");
    assert_eq!(compute("most(max(mean.cpu[c, ..], mean.cpu[d, ..]))"), Some(1.0));
    assert_eq!(compute("mean.cpu[c, 2]"), Some(2.0));
    for nothing in ["mean.cpu[d, 2]", "mean.cpu[c, largest]", "mean(mean.cpu[d, 2..])"] {
        assert_eq!(compute(nothing), None, "{nothing}");
    }
}

#[test]
fn unjudged_points_are_listed() {
    let (plan, results) = partly_late();
    let note = plan.judged[0].excluded(&plan.grid, &results);
    assert_eq!(note.unwrap(), "Not judged: C at 3; D at 2, 3: too late.");
    let none = Plan { judged: Vec::new(), ..plan };
    let verdict = |plan: &Plan| {
        let expression = ClaimExpression::parse("most(mean.cpu[d, ..])", &plan.grid).unwrap();
        super::trials::measure(&expression, plan.basis(), &results).map(|estimate| estimate.value)
    };
    assert_eq!(verdict(&none), Some(3.0), "without the rule, every point is judged");
}

fn outcome_of(
    plan_text: &str,
    more: &str,
    options: &PlanOptions,
    columns: &[(&str, f64)],
) -> ClaimOutcome {
    let plan = Plan::parse(&format!("{plan_text}\n{more}"), options).unwrap();
    let columns = columns.iter().map(|(name, number)| ((*name).to_owned(), vec![*number]));
    let run = RunResult { columns: columns.collect(), ..RunResult::default() };
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), vec![run.clone()]));
    let results = RunResults { points: points.collect(), ..RunResults::default() };
    plan.claims[0].judge(plan.basis(), &results).outcome
}

const CLAIM: &str = "[[claim]]\nid = '1'\ntext = 't'\npublished = 'p'\n[[claim.check]]\n\
                     value = 'mean.kernel-memory[c, 1]'\nat_most = 10\n";

#[test]
fn what_was_measured_beside_other_work_is_not_judged() {
    let of = |late, memory, others| {
        let rule = "[[judged]]\nmeasure = 'mean.others-memory'\nat_most = 5\notherwise = 'o'\n\
                    columns = ['kernel-memory']\n";
        let plan = LIVE.replace("judged = [{", "# [{");
        let late_rule = "[[judged]]\nmeasure = 'mean.late'\nat_most = 100\notherwise = 'l'\n";
        let columns = [("kernel-memory", memory), ("late", late), ("others-memory", others)];
        outcome_of(&plan, &format!("{rule}{late_rule}{CLAIM}"), &PlanOptions::default(), &columns)
    };
    assert_eq!(
        [of(0.0, 8.0, 5.0), of(0.0, 12.0, 5.0)],
        [ClaimOutcome::Accepted, ClaimOutcome::Refused]
    );
    assert_eq!([of(0.0, 12.0, 6.0), of(101.0, 8.0, 0.0)], [ClaimOutcome::NotJudged; 2]);
}

#[test]
fn a_run_that_is_too_short_refuses_nothing() {
    let of = |quick: &str, memory, extent| {
        let options = PlanOptions { extent, ..PlanOptions::default() };
        let columns = [("kernel-memory", memory), ("late", 0.0)];
        outcome_of(LIVE, &format!("{quick}\n{CLAIM}"), &options, &columns)
    };
    let shorter = "quick = { set = { live = { duration = '1 s' } } }";
    assert_eq!(of(shorter, 12.0, PlanExtent::Quick), ClaimOutcome::NotJudged);
    assert_eq!(of(shorter, 8.0, PlanExtent::Quick), ClaimOutcome::Accepted);
    assert_eq!(of(shorter, 12.0, PlanExtent::Full), ClaimOutcome::Refused);
    assert_eq!(
        of("quick = { runs = 1 }", 12.0, PlanExtent::Quick),
        ClaimOutcome::Refused,
        "as long"
    );
}

#[test]
fn a_rule_that_cannot_hold_is_refused() {
    let error = |what: &str, instead: &str| {
        let text = LIVE.replace(what, instead);
        assert_ne!(text, LIVE);
        Plan::parse(&text, &PlanOptions::default()).unwrap_err().to_string()
    };
    for other in ["share", "mean.speed"] {
        let error = error("mean.late", other);
        assert!(error.contains(&format!("{other} is not a column of live runs")), "{error}");
    }
    assert!(error("at_most = 100", "at_most = nan").contains("judged.at_most"));
    assert!(error("'too late'", "' '").contains("judged.otherwise"));
}

/// Returns results with 40 trials at each point, all but `missed` of them over HTTP/3.
fn shares(missed: usize) -> (Plan, RunResults) {
    let plan = Plan::parse(LIVE, &PlanOptions::default()).unwrap();
    let adopted = (0..40).map(|trial| if trial < missed { 0.0 } else { 100.0 }).collect();
    let columns = [("adopted", adopted), ("late", vec![0.0]), ("packets", vec![12.0])];
    let columns = columns.map(|(name, trials)| (name.to_owned(), trials));
    let run = RunResult { columns: columns.into_iter().collect(), ..RunResult::default() };
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), vec![run.clone()]));
    let results = RunResults { points: points.collect(), ..RunResults::default() };
    (plan, results)
}

#[test]
fn each_quantity_has_one_interval() {
    let (plan, results) = shares(4);
    let estimate = |text: &str| {
        let expression = ClaimExpression::parse(text, &plan.grid).unwrap();
        super::trials::measure(&expression, plan.basis(), &results).unwrap()
    };
    let share = estimate("mean.adopted[c, 1]").interval.unwrap();
    assert_eq!(share.method, IntervalMethod::Wilson);
    let document = ResultsDocument::new(&plan, &results, "abc", vec![1]);
    let point = document.points_of_curve("", "c").next().unwrap();
    let in_table = |measure: &str| point.measures[&measure.parse::<Measure>().unwrap()];
    assert_eq!(in_table("mean.adopted").interval, Some(share), "the same in the table");
    let spread = estimate("deviation.adopted[c, 1]").interval.unwrap();
    assert_eq!(in_table("deviation.adopted").interval, Some(spread));
    assert_eq!(spread.method, IntervalMethod::Bootstrap);
    let missed = estimate("100 - mean.adopted[c, 1]").interval.unwrap();
    assert!((missed.low - (100.0 - share.high)).abs() < 1e-9, "{missed:?}");
    assert_eq!(estimate("mean.packets[c, 1]").interval, None, "one number for the run");
    assert_eq!(in_table("mean.packets").interval, None);
}

#[test]
fn a_share_of_all_trials_is_uncertain() {
    let (plan, results) = shares(0);
    let text = "mean.adopted[c, 1] - mean.adopted[d, 1]";
    let expression = ClaimExpression::parse(text, &plan.grid).unwrap();
    let estimate = super::trials::measure(&expression, plan.basis(), &results).unwrap();
    let interval = estimate.interval.unwrap();
    assert_eq!((estimate.value, interval.method), (0.0, IntervalMethod::Bootstrap));
    assert!(interval.low < -1.0 && interval.high > 1.0, "{interval:?}");
}

#[test]
fn invalid_expressions_are_reported() {
    let plan = plan("");
    let error = |text: &str| ClaimExpression::parse(text, &plan.grid).unwrap_err().to_string();
    assert!(error("speed[c, 1 KiB]").contains("measures are throughput,"));
    assert!(error("throughput[e, 1 KiB]").contains("no curve \"e\""));
    assert!(error("throughput[c]").contains("[curve, where]"));
    assert!(error("sum(1)").contains("functions are least,"));
    assert!(error("reach(1)").contains("1 arguments"));
    assert!(error("1 2").contains("unexpected input \"2\""));
    assert!(error("throughput[c, 1 KiX]").contains("KiX"));
    assert!(error(&"(".repeat(100)).contains("nested too deeply"));
    assert!(error("1 +").contains("expected a number"));
}

#[test]
fn verdicts_come_from_the_interval_of_the_mean_over_the_runs() {
    let claim = |bounds: &str, value: &str| {
        let plan = plan(&format!(
            "[[claim]]\nid = '1'\ntext = 't'\npublished = 'p'\n[[claim.check]]\nvalue = '{value}'\n{bounds}"
        ));
        plan.claims[0].judge(plan.basis(), &results(&plan))
    };
    let verdict = claim("at_least = 6.5\nbelow = 6.6", "throughput[c, 2 KiB]");
    assert_eq!((verdict.measured, verdict.outcome), (Some(6.5), ClaimOutcome::Undecided));
    // t(0.975, 1) = 12.706; the deviation of 6 and 7 is 0.7071.
    assert!((verdict.interval.unwrap().half_width() - 12.706 * 0.5).abs() < 1e-3);
    let outcome = |bounds: &str, value: &str| claim(bounds, value).outcome;
    assert_eq!(
        outcome("at_least = 0.1\nbelow = 13", "throughput[c, 2 KiB]"),
        ClaimOutcome::Accepted
    );
    assert_eq!(outcome("above = 12.9", "throughput[c, 2 KiB]"), ClaimOutcome::Refused);
    assert_eq!(outcome("above = 6.5", "throughput[c, 3 KiB]"), ClaimOutcome::NotMeasured);
}

#[test]
fn bounds_are_described() {
    let words = |text: &str| toml::from_str::<CheckBounds>(text).unwrap().describe();
    assert_eq!(words("at_least = 19"), "≥ 19");
    assert_eq!(words("at_least = 19\nat_most = 19.4"), "19 to 19.4");
    assert_eq!(words("below = 3"), "< 3");
    assert_eq!(words("above = 1\nat_most = 2"), "> 1 and ≤ 2");
    assert_eq!(words(""), "");
}

/// Returns results with these trials of the columns at every point of the plan.
fn with_trials(columns: &[(&str, Vec<f64>)]) -> (Plan, RunResults) {
    let plan = Plan::parse(LIVE, &PlanOptions::default()).unwrap();
    let all = columns.iter().map(|(name, trials)| ((*name).to_owned(), trials.clone()));
    let late = [("late".to_owned(), vec![0.0])];
    let run = RunResult { columns: all.chain(late).collect(), ..RunResult::default() };
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), vec![run.clone()]));
    let results = RunResults { points: points.collect(), ..RunResults::default() };
    (plan, results)
}

fn estimate_of(text: &str, plan: &Plan, results: &RunResults) -> super::verdict::IntervalEstimate {
    let expression = ClaimExpression::parse(text, &plan.grid).unwrap();
    super::trials::measure(&expression, plan.basis(), results).unwrap()
}

#[test]
fn the_maximum_of_few_trials_does_not_confirm_that_of_a_long_series() {
    let maximum = |count: u32| {
        let (plan, results) = with_trials(&[("time", (0..count).map(f64::from).collect())]);
        let estimate = estimate_of("most1000.time[c, 1]", &plan, &results);
        let interval = estimate.interval.unwrap();
        let judged = |at_most: f64| {
            let bounds = CheckBounds { at_most: Some(at_most), ..CheckBounds::default() };
            bounds.judge(Some(estimate))
        };
        (interval, judged(1e9), judged(1.0))
    };
    let (few, generous, strict) = maximum(200);
    assert_eq!((few.high, few.method), (f64::INFINITY, IntervalMethod::OrderStatistics));
    assert_eq!((generous, strict), (ClaimOutcome::Undecided, ClaimOutcome::Refused));
    // 1 - ½^(n/1000) is 0.975 at 5,322 trials.
    assert_eq!(maximum(5_321).0.high, f64::INFINITY);
    let (many, generous, _) = maximum(5_322);
    assert_eq!((many.high, generous), (5_321.0, ClaimOutcome::Accepted));
    let read = serde_json::from_str(&serde_json::to_string(&few).unwrap());
    assert_eq!(read.ok(), Some(few), "an infinite end is kept in result.json");
}

#[test]
fn a_maximum_has_no_interval_that_trials_cannot_show() {
    let (plan, results) = with_trials(&[("time", vec![1.0, 2.0, 9.0])]);
    for extreme in ["most.time[c, 1]", "least.time[c, 1] * 2", "most.time[c, 1] / mean.time[c, 1]"]
    {
        assert_eq!(estimate_of(extreme, &plan, &results).interval, None, "{extreme}");
    }
    let text = format!(
        "{LIVE}\n[[claim]]\nid = '1'\ntext = 't'\npublished = 'p'\n[[claim.check]]\n\
         value = 'most1000.time[c, 1] / mean.time[c, 1]'\nat_most = 1"
    );
    let error = Plan::parse(&text, &PlanOptions::default()).unwrap_err().to_string();
    assert!(error.contains("only by itself"), "{error}");
}

/// Expressions of the shapes that plans have.
const SHAPES: [&str; 10] = [
    "mean.time[c, 1]",
    "abs(mean.time[c, 1] / mean.time[d, 1] - 1)",
    "mean(abs(mean.time[c, ..] / mean.time[d, ..] - 1))",
    "most(p90.time[c, ..] - p50.time[c, ..])",
    "most1000.time[c, 1]",
    "mean.adopted[c, 1]",
    "abs(mean.adopted[c, 1] - 50)",
    "abs(100 - mean.adopted[c, 1]) * 2",
    "least(mean.adopted[c, ..])",
    "r2(mean.time[c, ..] + mean.adopted[d, ..])",
];

proptest! {
    // Each case draws hundreds of samples of every expression.
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn an_interval_contains_its_value(
        time in vec(0.0..1000.0_f64, 2..60),
        adopted in vec(prop_oneof![Just(0.0), Just(100.0)], 2..60),
        all in any::<bool>(),
    ) {
        let adopted = if all { vec![100.0; adopted.len()] } else { adopted };
        let (plan, results) = with_trials(&[("time", time), ("adopted", adopted)]);
        for shape in SHAPES {
            let expression = ClaimExpression::parse(shape, &plan.grid).unwrap();
            let estimate = super::trials::measure(&expression, plan.basis(), &results);
            let Some((value, interval)) = estimate.and_then(|e| Some((e.value, e.interval?))) else {
                continue;
            };
            prop_assert!(interval.low <= value && value <= interval.high, "{shape}: {interval:?} {value}");
        }
        let document = ResultsDocument::new(&plan, &results, "abc", vec![1]);
        for summary in document.points.iter().flat_map(|point| point.measures.values()) {
            let Some(interval) = summary.interval else { continue };
            prop_assert!(interval.low <= summary.value && summary.value <= interval.high);
        }
    }
}
