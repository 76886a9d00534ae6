//! Tests of the page: it is complete and self-contained.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{NoChapterError, ResultsPage, figures, page};
use crate::claim::{CheckVerdict, ClaimOutcome, IntervalEstimate};
use crate::plan::{Plan, PlanExtent, PlanOptions, shipped};
use crate::results::{NumberGrade, ResultsDocument};
use crate::run::{
    PacketCourse, PacketLine, ProgramObservation, RunResult, RunResults, StreamResult,
};

/// A document of a shipped plan with made-up numbers that grow with the buffers.
fn document(name: &str) -> ResultsDocument {
    let shipped = shipped().iter().find(|shipped| shipped.name == name).unwrap();
    let plan = Plan::parse(shipped.text, &PlanOptions { runs: Some(2), ..PlanOptions::default() })
        .unwrap();
    let run = |x: f64, more: u64| {
        let bytes = (x * 1e6) as u64 + more;
        let stream = StreamResult { bytes, messages: 1000, delay_ns: bytes };
        RunResult { streams: vec![stream; 7], ..RunResult::default() }
    };
    let runs = |x: f64| vec![run(x, 0), run(x, 50_000_000)];
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), runs(point.x))).collect();
    ResultsDocument::new(
        &plan,
        &RunResults { points, ..RunResults::default() },
        "<commit>",
        vec![1, 2],
    )
}

#[test]
fn the_page_contains_claims_pictures_choices_and_sources() {
    let document = document("cmt-delay");
    let page = page(&document);
    for claim in &document.claims {
        assert!(page.contains(&super::escape(&claim.text)), "claim {}", claim.id);
    }
    assert_eq!(page.matches("<figure>").count(), document.figures.len());
    assert_eq!(page.matches("class=\"wide\"").count(), document.figures.len());
    assert!(page.contains("Send and receive buffer σ [KiB]"));
    assert!(page.contains("Figures 4 and 5.") && page.contains("†"));
    assert!(page.contains("&lt;commit&gt;") && !page.contains("<commit>"));
}

/// Something to open has a title, and something in it.
#[test]
fn no_disclosure_is_empty() {
    let without_results = |name: &str| {
        let shipped = shipped().iter().find(|shipped| shipped.name == name).unwrap();
        let plan = Plan::parse(shipped.text, &PlanOptions::default()).unwrap();
        ResultsDocument::new(&plan, &RunResults::default(), "commit", vec![1])
    };
    let mut seen = 0;
    for name in shipped().iter().map(|shipped| shipped.name) {
        for document in [document(name), without_results(name)] {
            let page = page(&document);
            for disclosure in page.split("<details").skip(1) {
                let (disclosure, _) = disclosure.split_once("</details>").unwrap();
                let (title, content) = disclosure.split_once("</summary>").unwrap();
                let (_, title) = title.split_once("<summary>").unwrap();
                let cells = content.split("<td").skip(1).chain(content.split("<dd").skip(1));
                let mut texts = cells.filter_map(|cell| cell.split_once('>'));
                let has_text = texts.any(|(_, text)| !text.starts_with("</"));
                assert!(!title.trim().is_empty() && has_text, "{name}: {disclosure}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn each_figure_has_its_own_page() {
    let document = document("cmt-delay");
    let figures = figures(&document);
    let titles: Vec<&str> = figures.iter().map(|(title, _)| title.as_str()).collect();
    let planned: Vec<&str> = document.figures.iter().map(|figure| figure.title.as_str()).collect();
    assert_eq!(titles, planned);
    for (title, page) in figures {
        assert_eq!(page.matches("<figure>").count(), 1, "{title}");
        assert!(page.contains("<style>") && !page.contains("<h1>"));
    }
}

#[test]
fn the_page_is_self_contained() {
    let page = page(&document("cmt-bandwidth"));
    for outside in ["<script", "<link", "<img", "@import", "url(", "http://", "https://"] {
        let without_names = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_names.contains(outside), "{outside}");
    }
}

#[test]
fn colours_are_those_of_the_style_sheet() {
    let page = page(&document("cmt-three-paths"));
    let pictures = &page[page.find("<figure>").unwrap()..];
    assert!(pictures.contains("stroke=\"var(--c3)\""));
    assert!(!pictures.contains("stroke=\"#") && !pictures.contains("fill=\"#"), "{pictures}");
}

#[test]
fn long_times_along_the_axis_are_seconds() {
    let page = page(&document("cmt-backup"));
    assert!(page.contains("When the backup path joins [s]"));
    assert!(page.contains(">55 s</th>") && !page.contains("55,000"), "55 s");
}

#[test]
fn every_scene_gets_its_picture_if_requested() {
    let document = document("cmt-auto");
    let pictures = page(&document).matches("<figure>").count();
    assert_eq!(pictures, document.figures.len() * document.scenes.len());
}

#[test]
fn published_curves_are_drawn_beside_ours() {
    let shipped = shipped().iter().find(|shipped| shipped.name == "h3-delay").unwrap();
    let plan = Plan::parse(shipped.text, &PlanOptions::default()).unwrap();
    let run = |x: f64| {
        let columns = [("time", vec![x + 3.0, x + 5.0]), ("adopted", vec![100.0, 100.0])];
        let columns = columns.map(|(name, trials)| (name.to_owned(), trials));
        vec![RunResult { columns: columns.into_iter().collect(), ..RunResult::default() }]
    };
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), run(point.x))).collect();
    let document = ResultsDocument::new(
        &plan,
        &RunResults { points, ..RunResults::default() },
        "commit",
        vec![1],
    );
    let page = page(&document);
    let curve = document.curves.iter().find(|curve| curve.id == "published-race").unwrap();
    let legend = format!("{}: published", curve.label);
    assert!(page.contains(&format!("{}</li>", super::escape(&legend))));
    assert!(page.contains(">3.2 ms <b>4.0 ms (3.0 to 5.0)</b></td>"), "units in the cells");
    assert!(page.contains(">99.7 % <b>100 % (34 to 100)</b></td>"), "a share of two trials");
}

/// A quick run of clients, in which wget got no response and all others got one after 200 ms.
fn clients() -> ResultsDocument {
    let shipped = shipped().iter().find(|shipped| shipped.name == "he-clients").unwrap();
    let quick = PlanOptions { extent: PlanExtent::Quick, ..PlanOptions::default() };
    let plan = Plan::parse(shipped.text, &quick).unwrap();
    let runs = |curve: &str| {
        let byte = [("byte".to_owned(), vec![200.0])];
        let what = "<http://t.lab.test>".to_owned();
        let line = PacketLine { at: 1.5, sent: true, what: "SYN to IPv6 no. 1".to_owned() };
        let courses = vec![PacketCourse { what, lines: vec![line], left_out: 2 }];
        let observed = Some(ProgramObservation { version: "v <1>".to_owned(), courses });
        let columns = byte.into_iter().filter(|_| curve != "wget").collect();
        vec![RunResult { columns, observed, ..RunResult::default() }]
    };
    let points = plan.grid.points.iter().map(|point| (point.id.clone(), runs(&point.curve)));
    let results = RunResults { points: points.collect(), ..RunResults::default() };
    ResultsDocument::new(&plan, &results, "commit", vec![1])
}

#[test]
fn every_cell_leads_to_its_packets() {
    let page = page(&clients());
    let of = |begin: &str| -> BTreeSet<String> {
        let parts = page.split(begin).skip(1).filter_map(|rest| rest.split_once('"'));
        parts.map(|(id, _)| id.to_owned()).collect()
    };
    let (links, anchors) = (of("href=\"#packets-"), of("id=\"packets-"));
    assert!(links.contains("v6-drop_wget_0ms") && links.is_subset(&anchors), "{links:?}");
    assert!(page.contains("v &lt;1&gt;") && page.contains("&lt;http://t.lab.test&gt;"));
    assert!(page.contains("→ SYN to IPv6 no. 1") && page.contains("and 2 more"));
}

#[test]
fn no_response_is_bad_and_a_missing_run_is_blank() {
    let matrix = clients().matrix.unwrap();
    let grade = |curve: &str, label: &str| {
        let index = matrix.columns.iter().position(|column| column.label == label).unwrap();
        let row = matrix.rows.iter().find(|row| row.curve == curve).unwrap();
        row.cells[index].grade(&matrix.columns[index])
    };
    assert_eq!(grade("node", "IPv6 swallowed"), NumberGrade::Good);
    assert_eq!(grade("node", "IPv6 refused"), NumberGrade::Slow);
    assert_eq!(grade("wget", "IPv6 swallowed"), NumberGrade::Bad);
    assert_eq!(grade("node", "no A answer"), NumberGrade::None);
    assert!(matrix.rows.iter().all(|row| row.curve != "chromium"), "it was not run");
}

#[test]
fn a_quick_run_states_what_it_does_not_decide() {
    let shipped = shipped().iter().find(|shipped| shipped.name == "cmt-delay").unwrap();
    let quick = PlanOptions { extent: PlanExtent::Quick, ..PlanOptions::default() };
    let plan = Plan::parse(shipped.text, &quick).unwrap();
    let page = page(&ResultsDocument::new(&plan, &RunResults::default(), "commit", vec![1]));
    let head = &page[..page.find("<h2>").unwrap()];
    assert!(
        head.contains("It does not decide claims 1, ") && head.contains("(not measured)"),
        "{head}"
    );
}

/// Rotated beside its axis, a long label would be cut off or overlap the numbers.
#[test]
fn axis_labels_are_never_rotated() {
    for name in ["cmt-delay", "cmt-backup"] {
        let page = page(&document(name));
        assert!(page.contains("<svg") && !page.contains("rotate("), "{name}");
    }
}

/// Returns the documents beside `docs/results/experiments.md`, and the page.
fn committed() -> (Vec<ResultsDocument>, String) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let entries =
        fs::read_dir(docs.join("experiments")).unwrap().map(|entry| entry.unwrap().path());
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut paths: Vec<PathBuf> = entries.filter(is_json).collect();
    paths.sort();
    let documents = paths.iter().map(|path| ResultsDocument::read_file(path).unwrap()).collect();
    (documents, fs::read_to_string(docs.join("experiments.md")).unwrap())
}

#[test]
fn the_page_of_results_shows_the_committed_ones() {
    let (documents, page) = committed();
    let new = ResultsPage::new(&page, "experiments", &documents).unwrap();
    assert!(new.text == page, "run: eyas lab results --into docs/results/experiments.md");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/experiments");
    for (name, content) in new.files {
        assert!(
            fs::read_to_string(docs.join(&name)).ok() == Some(content),
            "{name} is not current"
        );
    }
}

/// A claim is as good as its worst check, so the page has these, and the table beside it has all.
#[test]
fn a_page_shows_the_checks_that_decide_against_a_claim() {
    let (documents, page) = committed();
    let files = ResultsPage::new(&page, "experiments", &documents).unwrap().files;
    for document in &documents {
        let begin = format!("<!-- {}: eyas lab results -->", document.plan);
        let chapter = page.split(&begin).nth(1).and_then(|rest| rest.split("<!-- end -->").next());
        let is_against = |check: &&CheckVerdict| {
            !matches!(check.outcome, ClaimOutcome::Accepted | ClaimOutcome::ShownOnly)
        };
        for claim in &document.claims {
            let start = format!("| {}: ", claim.id);
            let row = chapter.unwrap().lines().find(|line| line.starts_with(&start)).unwrap();
            let against = claim.checks.iter().filter(is_against).count();
            assert_eq!(row.matches("<br>").count() + 1, against.max(1), "{row}");
        }
        let name = format!("{}-claims.csv", document.plan);
        let (_, table) = files.iter().find(|(file, _)| *file == name).unwrap();
        let checks: usize = document.claims.iter().map(|claim| claim.checks.len()).sum();
        assert_eq!(table.lines().count(), checks + 1, "{name}");
    }
}

#[test]
fn a_page_does_not_repeat_the_text_of_a_claim() {
    let page = "<!-- cmt-auto: eyas lab results -->\n<!-- end -->\n";
    let document = document("cmt-auto").compact();
    let text = ResultsPage::new(page, "results", &[document]).unwrap().text;
    assert!(text.contains("| dB10: 10/10 and 10/10: at least 97 % of the bound"), "{text}");
    assert!(text.contains("| dB50: 10/10 and 10/50: the same |"), "{text}");
}

#[test]
fn committed_verdicts_follow_the_rule() {
    for document in committed().0 {
        for check in document.claims.iter().flat_map(|claim| &claim.checks) {
            let interval = check.interval;
            let estimate = check.measured.map(|value| IntervalEstimate { value, interval });
            let by_rule = check.accept.judge(estimate);
            let is_open =
                check.outcome == ClaimOutcome::NotJudged && by_rule != ClaimOutcome::Accepted;
            assert!(is_open || check.outcome == by_rule, "{}: {check:?}", document.plan);
        }
    }
}

#[test]
fn a_plan_without_a_place_on_the_page_is_reported() {
    let document = document("cmt-delay").compact();
    let error = ResultsPage::new("# Results\n", "results", std::slice::from_ref(&document));
    assert_eq!(error, Err(NoChapterError { plan: "cmt-delay".to_owned() }));
    let page = "<!-- cmt-delay: eyas lab results -->\n<!-- end -->\n";
    let page = ResultsPage::new(page, "results", &[document]).unwrap();
    assert!(
        page.text.contains(
            "![Figure 4: throughput on paths of dissimilar delay](results/cmt-delay-1.svg)"
        )
    );
    assert!(page.text.contains("| 6: Delay grows linearly"));
    let names: Vec<&str> = page.files.iter().map(|(name, _)| name.as_str()).collect();
    let pictures = ["cmt-delay-1.svg", "cmt-delay-2.svg", "cmt-delay-3.svg"];
    let tables = ["cmt-delay-claims.csv", "cmt-delay-published.csv"];
    assert_eq!(names, [&pictures[..], &tables].concat());
    assert!(page.text.contains("[claims](results/cmt-delay-claims.csv)"));
    let claims = &page.files[3].1;
    assert!(claims.starts_with("claim,text,note,published,check,measured,accepted if,outcome\n"));
}
