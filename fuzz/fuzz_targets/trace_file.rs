//! Arbitrary lines as a recorded race: it replays, diverges or is rejected, and never panics.
#![no_main]

use eyas_race::report::RaceReport;
use eyas_race::trace::{HeaderVersion, Trace, TraceHeader, TraceStep, replay};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<3> =
    Reach::new(["a recording replays", "a recording diverges", "an invalid line"]);

fuzz_target!(|bytes: &[u8]| {
    REACH.begin();
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let Ok(version) = serde_json::from_slice::<HeaderVersion>(first) else { return };
    if version.check().is_err() {
        return;
    }
    let Ok(header) = serde_json::from_slice::<TraceHeader>(first) else { return };
    let lines: Vec<&[u8]> = lines.collect();
    let steps = lines.iter().filter_map(|line| serde_json::from_slice(line).ok());
    let steps: Vec<TraceStep> = steps.collect();
    if steps.len() < lines.len() {
        REACH.hit("an invalid line");
    }
    let is_empty = steps.is_empty();
    let trace = Trace { header, steps };
    let replays = replay(&trace).is_ok();
    assert_eq!(replays, RaceReport::from_trace(&trace).is_ok());
    if !is_empty {
        REACH.hit(if replays { "a recording replays" } else { "a recording diverges" });
    }
});
