//! Arbitrary lines as a recorded race: it replays, diverges or is set aside, and never panics.
#![no_main]

use eyas_race::report::Report;
use eyas_race::trace::{Header, HeaderVersion, Step, Trace, replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let Ok(version) = serde_json::from_slice::<HeaderVersion>(first) else { return };
    if version.check().is_err() {
        return;
    }
    let Ok(header) = serde_json::from_slice::<Header>(first) else { return };
    let steps: Vec<Step> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let trace = Trace { header, steps };
    assert_eq!(replay(&trace).is_ok(), Report::from_trace(&trace).is_ok());
});
