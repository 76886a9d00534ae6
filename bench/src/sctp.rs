//! `cargo eyas-bench sctp`: messages over an association, compared with other SCTP stacks.
//!
//! Every stack is a program that transfers a number of bytes in messages of one size and reports the
//! cost. A round is one run of each program in each column, so that other load of the machine affects
//! all of them equally; ratios are taken within a round, and their median counts.
//!
//! | module | purpose |
//! | --- | --- |
//! | `programs` | the programs, and how they are built and run |
//! | `run` | one run of one program, in memory or as two processes over UDP |
//! | `tables` | the measurements as tables |
//! | `expectations` | whether the target ratios hold |

mod expectations;
mod programs;
mod run;
mod tables;

use std::collections::BTreeMap;

use crate::options::Options;
use crate::page;
use crate::transfer::TransferReport;
use programs::{OURS, Program, Programs};

/// The default number of rounds.
const ROUNDS: usize = 5;
/// The number of rounds with `--quick`.
const QUICK_ROUNDS: usize = 1;
/// Sizes of messages, in bytes. 1,452 does not fit in one packet with the headers.
const SIZES: [usize; 5] = [64, 1024, 1452, 16_384, 65_536];
/// Bytes of the first run of a program in a column, from which the length of later runs is derived.
const FIRST_BYTES: u64 = 4 << 20;
/// The intended CPU time of a run, in seconds.
const TARGET_CPU: f64 = 0.4;
/// The maximum number of bytes of one run.
const MAX_BYTES: u64 = 512 << 20;
/// Associations of one run in memory.
const ASSOCIATIONS: u64 = 5000;
/// Associations of one run over sockets.
const ON_ONE_SOCKET: u64 = 10_000;

/// One column of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    /// Messages of that size, both ends in one process.
    Memory(usize),
    /// Messages of that size, two processes on loopback.
    Udp(usize),
    /// Associations set up in one process, then idle.
    Associations,
    /// Associations set up between two UDP sockets, both in one process, then idle.
    Sockets,
}

/// The runs of each program in each column, in the order of the rounds; `None` where one failed.
type Results = BTreeMap<(&'static str, Column), Vec<Option<TransferReport>>>;

/// Runs the benchmark and writes its tables.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let rounds = options.rounds.unwrap_or(if options.quick { QUICK_ROUNDS } else { ROUNDS });
    let programs = Programs::build()?;
    if options.build {
        return Ok(());
    }
    let versions = programs.versions()?;
    let results = measure(&programs.all, rounds);
    let links = programs.links()?;
    let names: Vec<_> = programs.all.iter().map(|program| program.name).collect();
    let mut text = page::circumstances(&format!("cargo eyas-bench sctp --rounds {rounds}"));
    for table in [
        tables::costs(&names, &results),
        tables::speeds(&names, &results),
        tables::associations(&names, &results),
        tables::sockets(&results),
        tables::links(&links),
        versions.table(),
        expectations::text(&results, &links),
    ] {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("sctp", &text, options.dry)
}

fn measure(programs: &[Program], rounds: usize) -> Results {
    let columns: Vec<Column> = SIZES
        .into_iter()
        .flat_map(|size| [Column::Memory(size), Column::Udp(size)])
        .chain([Column::Associations, Column::Sockets])
        .collect();
    let mut results = Results::new();
    let mut bytes: BTreeMap<(&str, Column), u64> = BTreeMap::new();
    for round in 0..=rounds {
        println!("round {round} of {rounds}");
        for column in &columns {
            for turn in 0..programs.len() {
                let program = &programs[(turn + round) % programs.len()];
                // The other programs use one socket per association.
                if *column == Column::Sockets && program.name != OURS {
                    continue;
                }
                let key = (program.name, *column);
                let amount = *bytes.entry(key).or_insert(FIRST_BYTES);
                let answer = run::once(program, *column, amount);
                if let Err(error) = &answer {
                    println!("{}, {column:?}: {error}", program.name);
                }
                // The first round is too short to count: it only determines how much to transfer.
                if round == 0 {
                    bytes.insert(key, answer.map_or(FIRST_BYTES, |answer| bytes_for(&answer)));
                } else {
                    results.entry(key).or_default().push(answer.ok());
                }
            }
        }
    }
    results
}

/// Returns the number of bytes that take about the intended time.
fn bytes_for(answer: &TransferReport) -> u64 {
    let bytes = answer.bytes as f64 * TARGET_CPU / answer.cpu.max(1e-6);
    (bytes as u64).clamp(FIRST_BYTES, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_run_follows_the_first_one() {
        let answer = |cpu| TransferReport { bytes: FIRST_BYTES, cpu, ..TransferReport::default() };
        assert_eq!(bytes_for(&answer(TARGET_CPU)), FIRST_BYTES);
        assert_eq!(bytes_for(&answer(TARGET_CPU / 4.0)), 4 * FIRST_BYTES);
        assert_eq!(bytes_for(&answer(0.0)), MAX_BYTES);
        assert_eq!(bytes_for(&answer(100.0)), FIRST_BYTES);
    }
}
