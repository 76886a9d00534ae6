//! `cargo eyas-bench bulk`: a large body through `eyas get`, compared with curl, a small page as a whole process, and the
//! system calls that a large body costs at each door of eyas.
//!
//! | module | purpose |
//! | --- | --- |
//! | `speed` | `eyas get` and curl, to several kinds of output |
//! | `process` | the same for a small page: each as a whole process |
//! | `doors` | the programs whose calls are counted |
//! | `calls` | counting with strace |
//! | `programs` | where the programs are, and how they are built |

mod calls;
mod doors;
mod process;
mod programs;
mod speed;

use crate::arena::{self, Arena};
use crate::options::Options;
use crate::{page, verdict};
use programs::Programs;

/// The default number of rounds.
const ROUNDS: usize = 5;
/// The length of the body whose transfer is timed, and of the one whose calls are counted, in bytes.
const TIMED: u64 = 1_000_000_000;
const COUNTED: u64 = 100_000_000;
/// The first with `--quick`.
const QUICK: u64 = 100_000_000;

/// Runs the benchmark and writes its tables. It runs in its own namespaces, which this program enters by starting
/// itself again.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    if let [process::ONE, line @ ..] = args {
        return process::run_one(line);
    }
    let options = Options::parse(args)?;
    if !options.inside {
        Programs::install()?;
        if options.build {
            return Ok(());
        }
        return arena::enter(&[&["bulk", "--inside"], args].concat());
    }
    let programs = Programs::find();
    let mut arena = Arena::set_up()?;
    // A disk would be measured otherwise: eyas waits until a file is on it.
    arena.keep_files_in_memory()?;
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let bytes = if options.quick { QUICK } else { TIMED };
    let speed = speed::measure(&programs, &arena, rounds, bytes)?;
    let pages = process::measure(&programs, &arena, rounds)?;
    let doors = doors::measure(&programs, &arena, COUNTED)?;
    let circumstances = page::circumstances(&format!("cargo eyas-bench bulk --rounds {rounds}"));
    let mut tables = vec![circumstances, speed.table(), pages.table(), doors::table(&doors)];
    tables.extend(doors::not_measured(&doors));
    let mut expectations = speed.expectations();
    expectations.extend(pages.expectations());
    tables.extend([programs.versions()?.table(), verdict::table(&expectations)]);
    page::publish("bulk", &tables.join("\n"), options.dry)
}
