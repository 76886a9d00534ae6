//! `cargo xtask bench relay`: what programs that know nothing of eyas get from it, beside what does the
//! like.
//!
//! | module | job |
//! | --- | --- |
//! | `gateway` | `eyas serve --upstream` |
//! | `programs` | where the programs are, and which are installed |
//! | `proxy` | `eyas proxy` on a path where all is well |
//! | `traffic` | the server behind a proxy, and the clients before it |
//! | `tables` | what was measured, as tables |

mod gateway;
mod programs;
mod proxy;
mod tables;
mod traffic;

use super::arena::{self, Arena};
use super::{Options, page, verdict};
use crate::run::{command, works};
use programs::Programs;

/// Rounds, if the caller does not say how many.
const ROUNDS: usize = 5;

/// Runs the benchmark and writes its tables, in namespaces of its own, which this program enters by
/// starting itself again.
pub(super) fn main(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    if !options.inside {
        Programs::install()?;
        if options.build {
            return Ok(());
        }
        return arena::enter(&[&["bench", "relay", "--inside"], words].concat());
    }
    raise_limit();
    let programs = Programs::find();
    let versions = programs.versions()?;
    let arena = Arena::lay()?;
    arena.certify(&programs.python)?;
    let amounts = Amounts::of(&options);
    let healthy = proxy::measure(&programs, &arena, &amounts.proxy)?;
    let gateway = gateway::measure(&programs, &arena, &amounts.gateway)?;
    let wishes: Vec<_> = healthy.wishes().into_iter().chain(gateway.wishes()).collect();
    let mut text =
        page::circumstances(&format!("cargo xtask bench relay --rounds {}", amounts.rounds));
    for table in [healthy.table(), gateway.table(), versions.table(), verdict::table(&wishes)] {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("relay", &text, options.dry)
}

/// How much is measured.
struct Amounts {
    rounds: usize,
    proxy: proxy::Amounts,
    gateway: gateway::Amounts,
}

impl Amounts {
    fn of(options: &Options) -> Self {
        let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
        let (first_bytes, bytes, connections, open) =
            if options.quick { (20, 64 << 20, 200, 500) } else { (400, 2 << 30, 4000, 10_000) };
        let (requests, seconds) = if options.quick { (1000, 1) } else { (20_000, 2) };
        Self {
            rounds,
            proxy: proxy::Amounts { rounds, first_bytes, bytes, connections, open },
            gateway: gateway::Amounts { rounds, requests, seconds },
        }
    }
}

/// Lets this process and those that it starts have as many descriptors as they may: both ends of every
/// connection are here.
fn raise_limit() {
    let id = std::process::id().to_string();
    let hard = crate::run::output(&mut command("sh", &["-c", "ulimit -Hn"]));
    let most = hard.map(|text| format!("--nofile={}", text.trim())).unwrap_or_default();
    if !works("prlimit", &["--pid", &id, &most]) {
        println!("the limit on descriptors stays as it is: there are fewer connections at once");
    }
}
