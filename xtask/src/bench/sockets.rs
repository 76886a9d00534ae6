//! `cargo xtask bench sockets`: programs that were written for the kernel's SCTP, under `eyas sctp run`.
//!
//! One is ours, in C, and one is iperf3. Beside them the same messages go through usrsctp's own API, and
//! through the driver that eyas has for Rust; everything over UDP on loopback, two processes and, where
//! there is one, the process of `eyas sctp run` beside each. A round is one run of each.
//!
//! | module | job |
//! | --- | --- |
//! | `run` | one run: which processes, what they said, what they took |
//! | `tables` | what was measured, as tables, and whether what we want holds |

mod run;
mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::programs::{build_ours, cache, our_example, our_target};
use super::sctp::programs::usrsctp;
use super::sctp::run::Answer;
use super::{Options, page};
use crate::run::{check, command};
use run::{Kept, Many};

/// Rounds, if the caller does not say how many.
const ROUNDS: usize = 5;
/// Sizes of messages, in bytes.
const SIZES: [usize; 3] = [1024, 16_384, 65_536];

/// Messages below this size, in bytes, are small.
const SMALL: usize = 4096;
/// Associations that are wanted at once.
const AT_ONCE: u64 = 20_000;
/// Descriptors that a process has for other things, and some to spare.
const OTHER_DESCRIPTORS: u64 = 200;

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// The program in C under `eyas sctp run`.
    Sockets,
    /// iperf3 under `eyas sctp run`.
    Iperf,
    /// usrsctp's own API.
    Usrsctp,
    /// The driver of eyas.
    Driver,
}

/// What is measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    /// Messages of that size.
    Messages(usize),
    /// Messages of 64 bytes, there and back.
    Asked,
    /// `sendmsg` and `recvmsg` on TCP: by the program alone where the way is [`Way::Driver`].
    Tcp,
}

/// The runs of each way, in the order of the rounds.
type Results = BTreeMap<(Way, Column), Vec<Answer>>;

/// How much is measured.
struct Amounts {
    rounds: usize,
    /// Of large messages.
    bytes: u64,
    asked: u64,
    tcp: u64,
    associations: u64,
    turns: u64,
    seconds: u32,
}

impl Amounts {
    fn of(options: &Options) -> Self {
        let (bytes, asked, tcp) = (256 << 20, 20_000, 200_000);
        let (associations, turns, seconds) = (AT_ONCE, 10_000, 5);
        let all = Self { rounds: ROUNDS, bytes, asked, tcp, associations, turns, seconds };
        let (bytes, asked, tcp) = (8 << 20, 300, 20_000);
        let (associations, turns, seconds) = (300, 300, 1);
        let little = Self { rounds: 1, bytes, asked, tcp, associations, turns, seconds };
        let chosen = if options.quick { little } else { all };
        let associations = chosen.associations.min(possible());
        Self { rounds: options.rounds.unwrap_or(chosen.rounds), associations, ..chosen }
    }

    /// Bytes in messages of this size: small ones take longer.
    fn of_size(&self, size: usize) -> u64 {
        if size < SMALL { self.bytes / 4 } else { self.bytes }
    }
}

/// How many associations a process can have at once: each takes a descriptor, of as many as `ulimit -Hn`
/// says.
fn possible() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    most_descriptors(&limits).map_or(u64::MAX, |most| most.saturating_sub(OTHER_DESCRIPTORS))
}

/// The hard limit of descriptors among the limits of a process; of one that has none, nothing.
fn most_descriptors(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Where the programs are.
struct Programs {
    eyas: PathBuf,
    sockets: PathBuf,
    driver: PathBuf,
    usrsctp: Option<PathBuf>,
}

impl Programs {
    /// Builds whatever is not up to date. usrsctp is left out, aloud, where it is not installed.
    fn build() -> Result<Self, String> {
        check(build_ours().args(["-p", "eyas-cli"]))?;
        let driver = ["-p", "eyas", "--features", "sctp", "--example", "sctp-transfer"];
        check(build_ours().args(driver))?;
        std::fs::create_dir_all(cache()).map_err(|error| format!("{:?}: {error}", cache()))?;
        let sockets = cache().join("sockets");
        let source = "bench/rivals/sockets/transfer.c";
        check(command("cc", &["-O2", "-Wall", "-Wextra", source, "-o"]).arg(&sockets))?;
        let usrsctp = usrsctp().map_err(|why| println!("usrsctp is left out: {why}")).ok();
        let eyas = our_target().join("measured/eyas");
        Ok(Self { eyas, sockets, driver: our_example("sctp-transfer"), usrsctp })
    }
}

/// Runs the benchmark and writes its tables.
pub(super) fn main(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    let amounts = Amounts::of(&options);
    let programs = Programs::build()?;
    if options.build {
        return Ok(());
    }
    let results = measure(&programs, &amounts)?;
    println!("{} associations at once", amounts.associations);
    let many: Many = run::many(&programs, amounts.associations)?;
    println!("{} associations opened and closed", amounts.turns);
    let kept: Kept = run::opened_and_closed(&programs, amounts.turns)?;
    let line = format!("cargo xtask bench sockets --rounds {}", amounts.rounds);
    let mut text = page::circumstances(&line);
    for table in [
        tables::messages(&results),
        tables::answers(&results),
        tables::many(&many),
        tables::kept(&kept),
        tables::expectations(&results, &many, &kept),
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
        let mut keep = |key, answer: Result<Answer, String>| match answer {
            Ok(answer) => {
                results.entry(key).or_default().push(answer);
                Ok(())
            }
            Err(error) => Err(format!("{key:?}: {error}")),
        };
        for way in [Way::Sockets, Way::Usrsctp, Way::Driver] {
            if way == Way::Usrsctp && programs.usrsctp.is_none() {
                continue;
            }
            for size in SIZES {
                let carried = run::carried(programs, way, size, amounts.of_size(size));
                keep((way, Column::Messages(size)), carried)?;
            }
        }
        keep((Way::Iperf, Column::Messages(65_536)), run::iperf(programs, amounts.seconds))?;
        for way in [Way::Sockets, Way::Driver] {
            keep((way, Column::Asked), run::asked(programs, way, amounts.asked))?;
            keep((way, Column::Tcp), run::tcp(programs, way, amounts.tcp))?;
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
        assert_eq!(most_descriptors(limits), Some(20_000));
        assert_eq!(most_descriptors("Max open files  1024  unlimited  files"), None);
    }
}
