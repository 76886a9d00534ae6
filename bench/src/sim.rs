//! `cargo eyas-bench sim`: the cost of a simulated second, compared with ns-3.
//!
//! Two disjoint paths of 10 Mbit/s and 10 ms, each between access links of 1 Gbit/s. Ours simulates one
//! association with Concurrent Multipath Transfer, whose packets are values; ns-3, which has no SCTP,
//! simulates one TCP connection over each. Both run in one thread, in turn, so that other load
//! of the machine affects both equally; ratios are taken within a round, and their median counts.
//!
//! | module | purpose |
//! | --- | --- |
//! | `programs` | the programs, and how they are built and run |
//! | `tables` | the measurements as tables, and whether the targets are met |

mod programs;
mod tables;

use crate::options::Options;
use crate::page;
use programs::{Answer, Programs};

/// The default number of rounds.
const ROUNDS: usize = 3;
/// Simulated seconds of a run, normally and with `--quick`.
const SECONDS: u32 = 320;
const QUICK_SECONDS: u32 = 20;
/// Streams of the association in the first table.
const STREAMS: u32 = 2;
/// Streams of the runs that show the cost of streams.
const STREAM_COUNTS: [u32; 4] = [2, 10, 100, 1000];
/// Links of the worlds that show the cost of size.
const WORLD_SIZES: [u32; 5] = [1, 10, 100, 1000, 10_000];
/// Events of a run of such a world.
const WORLD_EVENTS: u64 = 4_000_000;

/// The measurements.
#[derive(Default)]
struct Results {
    /// One answer per round.
    ours: Vec<Answer>,
    /// The same for ns-3, if it is available.
    ns3: Vec<Answer>,
    /// For each number of streams, one answer per round.
    streams: Vec<(u32, Vec<Answer>)>,
    /// For each size of a world, one answer per round.
    worlds: Vec<(u32, Vec<Answer>)>,
}

/// Runs the benchmark and writes its tables.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let seconds = if options.quick { QUICK_SECONDS } else { SECONDS };
    let programs = Programs::build()?;
    if options.build {
        return Ok(());
    }
    let versions = programs.versions()?;
    let results = measure(&programs, rounds, seconds)?;
    let mut text = page::circumstances(&format!("cargo eyas-bench sim --rounds {rounds}"));
    for table in [
        tables::simulators(&results),
        tables::streams(&results.streams),
        tables::worlds(&results.worlds),
        versions.table(),
        tables::expectations(&results),
    ] {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("sim", &text, options.dry)
}

fn measure(programs: &Programs, rounds: usize, seconds: u32) -> Result<Results, String> {
    let mut results = Results {
        streams: STREAM_COUNTS.map(|count| (count, Vec::new())).into(),
        worlds: WORLD_SIZES.map(|size| (size, Vec::new())).into(),
        ..Results::default()
    };
    for round in 1..=rounds {
        println!("round {round} of {rounds}");
        results.ours.push(programs.ours(seconds, STREAMS)?);
        if let Some(answer) = programs.ns3(seconds) {
            results.ns3.push(answer?);
        }
        for (count, answers) in &mut results.streams {
            answers.push(programs.ours(seconds, *count)?);
        }
        for (size, answers) in &mut results.worlds {
            answers.push(programs.world(*size, WORLD_EVENTS)?);
        }
    }
    Ok(results)
}
