//! The page holds what it must, and nothing from elsewhere.

use super::page;
use crate::plan::{Options, Plan, shipped};
use crate::results::{Document, Results, RunResult, StreamResult};

/// A document of a shipped plan with made-up numbers that grow with the buffers.
fn document(name: &str) -> Document {
    let shipped = shipped().iter().find(|shipped| shipped.name == name).unwrap();
    let plan = Plan::parse(shipped.text, &Options { runs: Some(2), ..Options::default() }).unwrap();
    let run = |x: f64, more: u64| {
        let bytes = (x * 1e6) as u64 + more;
        let stream = StreamResult { bytes, messages: 1000, delay_ns: bytes };
        RunResult { streams: vec![stream; 7], ..RunResult::default() }
    };
    let runs = |x: f64| vec![run(x, 0), run(x, 50_000_000)];
    let points = plan.points.iter().map(|point| (point.id.clone(), runs(point.x))).collect();
    Document::new(&plan, &Results { points, ..Results::default() }, "<commit>", vec![1, 2])
}

#[test]
fn the_page_holds_claims_pictures_choices_and_sources() {
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

#[test]
fn the_page_needs_nothing_from_elsewhere() {
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
    assert!(page.contains("When the backup line joins [s]"));
    assert!(page.contains(">55</th>") && !page.contains("55,000"), "55 s");
}

#[test]
fn every_scene_gets_its_picture_where_that_is_wanted() {
    let document = document("cmt-auto");
    let pictures = page(&document).matches("<figure>").count();
    assert_eq!(pictures, document.figures.len() * document.scenes.len());
}
