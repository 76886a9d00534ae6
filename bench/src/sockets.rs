//! `cargo eyas-bench sockets`: programs written for the kernel's SCTP, under `eyas sctp run`.
//!
//! One is our own, in C, and one is iperf3. For comparison, the same messages are sent with usrsctp's own
//! API, and with the eyas driver for Rust; everything over UDP on loopback, between two processes, each of
//! which has its own `eyas sctp run` process where it is used. A round is one run of each. Beside `receive` and
//! `send` (see `sctp::programs`), the one in C has `echo` and `ping` for round trips of 64 bytes, `hold` and `open` for
//! simultaneous associations, `turns` and `churn` for consecutive ones, and `tcp`, both ends of a TCP connection in one
//! process.
//!
//! | module | purpose |
//! | --- | --- |
//! | `run` | one run: its processes, their output and their cost |
//! | `tables` | the measurements as tables, and whether the targets are met |

mod run;
mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::options::Options;
use crate::page;
use crate::programs::{build_ours, build_usrsctp, cache, our_example, our_program};
use crate::run::{check, command};
use crate::transfer::TransferReport;
use run::{AfterClosing, ConcurrentAssociations};

/// The default number of rounds.
const ROUNDS: usize = 5;
/// Sizes of messages, in bytes.
const SIZES: [usize; 3] = [1024, 16_384, 65_536];

/// Messages below this size, in bytes, are small.
const SMALL: usize = 4096;
/// The target number of concurrent associations.
const ASSOCIATIONS: u64 = 20_000;
/// Descriptors that a process needs for other things, with a margin.
const OTHER_DESCRIPTORS: u64 = 200;

/// The stack that carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stack {
    /// The program in C under `eyas sctp run`.
    Sockets,
    /// iperf3 under `eyas sctp run`.
    Iperf,
    /// usrsctp's own API.
    Usrsctp,
    /// The driver of eyas.
    Driver,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    /// Messages of that size.
    Messages(usize),
    /// Messages of 64 bytes, sent back by the receiver.
    RoundTrips,
    /// `sendmsg` and `recvmsg` on TCP: without `eyas sctp run` if the stack is [`Stack::Driver`].
    Tcp,
}

/// The runs of each stack, in the order of the rounds.
type Results = BTreeMap<(Stack, Column), Vec<TransferReport>>;

/// How much is measured.
struct Amounts {
    rounds: usize,
    /// Bytes of large messages.
    bytes: u64,
    round_trips: u64,
    tcp: u64,
    associations: u64,
    turns: u64,
    seconds: u32,
}

impl Amounts {
    fn of(options: &Options) -> Self {
        let (bytes, round_trips, tcp) = (256 << 20, 20_000, 200_000);
        let (associations, turns, seconds) = (ASSOCIATIONS, 10_000, 5);
        let all = Self { rounds: ROUNDS, bytes, round_trips, tcp, associations, turns, seconds };
        let (bytes, round_trips, tcp) = (8 << 20, 300, 20_000);
        let (associations, turns, seconds) = (300, 300, 1);
        let quick = Self { rounds: 1, bytes, round_trips, tcp, associations, turns, seconds };
        let chosen = if options.quick { quick } else { all };
        let associations = chosen.associations.min(max_associations());
        Self { rounds: options.rounds.unwrap_or(chosen.rounds), associations, ..chosen }
    }

    /// Returns the bytes to send in messages of this size: small ones take longer.
    fn of_size(&self, size: usize) -> u64 {
        if size < SMALL { self.bytes / 4 } else { self.bytes }
    }
}

/// Returns how many concurrent associations a process can have: each needs a descriptor, and `ulimit -Hn`
/// is the limit.
fn max_associations() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    max_descriptors(&limits).map_or(u64::MAX, |most| most.saturating_sub(OTHER_DESCRIPTORS))
}

/// Parses the hard limit of descriptors from the limits of a process; `None` if it is unlimited.
fn max_descriptors(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The paths of the programs.
struct Programs {
    eyas: PathBuf,
    sockets: PathBuf,
    driver: PathBuf,
    usrsctp: Option<PathBuf>,
}

impl Programs {
    /// Builds whatever is not up to date. usrsctp is left out, with a message, if it is not installed.
    fn build() -> Result<Self, String> {
        check(build_ours().args(["-p", "eyas-cli"]))?;
        let driver = ["-p", "eyas-sctp-tokio", "--example", "sctp-transfer"];
        check(build_ours().args(driver))?;
        std::fs::create_dir_all(cache()).map_err(|error| format!("{:?}: {error}", cache()))?;
        let sockets = cache().join("sockets");
        let source = "bench/rivals/sockets/transfer.c";
        check(command("cc", &["-O2", "-Wall", "-Wextra", source, "-o"]).arg(&sockets))?;
        let usrsctp = build_usrsctp().map_err(|why| println!("usrsctp is left out: {why}")).ok();
        let eyas = our_program("eyas");
        Ok(Self { eyas, sockets, driver: our_example("sctp-transfer"), usrsctp })
    }
}

/// Runs the benchmark and writes its tables.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let amounts = Amounts::of(&options);
    let programs = Programs::build()?;
    if options.build {
        return Ok(());
    }
    let results = measure(&programs, &amounts)?;
    println!("{} associations at once", amounts.associations);
    let concurrent: ConcurrentAssociations = run::concurrent(&programs, amounts.associations)?;
    println!("{} associations opened and closed", amounts.turns);
    let after_closing: AfterClosing = run::open_and_close(&programs, amounts.turns)?;
    let line = format!("cargo eyas-bench sockets --rounds {}", amounts.rounds);
    let mut text = page::circumstances(&line);
    for table in [
        tables::messages(&results),
        tables::answers(&results),
        tables::concurrent(&concurrent),
        tables::after_closing(&after_closing),
        tables::expectations(&results, &concurrent, &after_closing),
    ] {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("sockets", &text, options.dry)
}

fn measure(programs: &Programs, amounts: &Amounts) -> Result<Results, String> {
    let mut results = Results::new();
    for round in 1..=amounts.rounds {
        println!("round {round} of {}", amounts.rounds);
        let mut add = |key, answer: Result<TransferReport, String>| match answer {
            Ok(answer) => {
                results.entry(key).or_default().push(answer);
                Ok(())
            }
            Err(error) => Err(format!("{key:?}: {error}")),
        };
        for stack in [Stack::Sockets, Stack::Usrsctp, Stack::Driver] {
            if stack == Stack::Usrsctp && programs.usrsctp.is_none() {
                continue;
            }
            for size in SIZES {
                let messages = run::messages(programs, stack, size, amounts.of_size(size));
                add((stack, Column::Messages(size)), messages)?;
            }
        }
        add((Stack::Iperf, Column::Messages(65_536)), run::iperf(programs, amounts.seconds))?;
        for stack in [Stack::Sockets, Stack::Driver] {
            add(
                (stack, Column::RoundTrips),
                run::round_trips(programs, stack, amounts.round_trips),
            )?;
            add((stack, Column::Tcp), run::tcp(programs, stack, amounts.tcp))?;
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_counts() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
            Max cpu time  unlimited  unlimited  seconds\nMax open files  1024  20000  files\n";
        assert_eq!(max_descriptors(limits), Some(20_000));
        assert_eq!(max_descriptors("Max open files  1024  unlimited  files"), None);
    }
}
