//! The same experiment in virtual time.

use crate::run::RunResult;
use crate::simulation;
use crate::situation::live::{MultipathSetup, MultipathStack};

/// Executes one run, with columns like those of a live one.
pub(super) fn run(setup: &MultipathSetup, seed: u64) -> RunResult {
    let result = simulation::run(&setup.simulation(), seed);
    let seconds = setup.duration.0.as_secs_f64();
    let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
    let goodput = megabits(result.bytes());
    let (events, columns) = (result.events, result.columns.clone());
    let mut run = RunResult { events, columns, ..RunResult::default() };
    let mut put = |column: &str, number: f64| {
        run.columns.insert(column.to_owned(), vec![number]);
    };
    debug_assert_eq!(setup.stack, MultipathStack::Simulator);
    put("goodput", goodput);
    put("ceiling", setup.ceiling());
    put("share", 100.0 * goodput / setup.ceiling());
    put("gap", result.longest_gap_ms);
    let (mut packets, mut dropped) = (0, 0);
    for path in &result.paths {
        put(&format!("on-{}", path.name), megabits(path.bytes));
        put(&format!("back-{}", path.name), megabits(path.back_bytes));
        packets += path.packets + path.dropped;
        dropped += path.dropped;
    }
    put("dropped", 100.0 * dropped as f64 / packets.max(1) as f64);
    run
}
