//! `cargo xtask bench relay`: what unmodified programs gain from eyas, compared with similar
//! programs.
//!
//! | module | job |
//! | --- | --- |
//! | `gateway` | `eyas serve --upstream` |
//! | `trouble` | `eyas proxy` and programs without it on networks where something fails |
//! | `tunnel` | `eyas tunnel` over two lines and over loopback |
//! | `lines` | what runs on either side of those lines |
//! | `programs` | where the programs are, and which are installed |
//! | `proxy` | `eyas proxy` on a path without a fault |
//! | `traffic` | the server behind a proxy, and the clients before it |
//! | `tables` | what was measured, as tables |

mod gateway;
mod lines;
mod programs;
mod proxy;
mod tables;
mod traffic;
mod trouble;
mod tunnel;

use std::path::Path;

use super::arena::{self, Arena};
use super::{Options, page, verdict};
use crate::run::{command, works};
use programs::Programs;

/// Rounds, if the caller does not say how many.
const ROUNDS: usize = 3;

/// Runs the benchmark and writes its tables, in namespaces of its own, which this program enters by
/// starting itself again.
pub(super) fn main(words: &[&str]) -> Result<(), String> {
    if let Some(done) = side(words) {
        return done;
    }
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
    let faults = trouble::measure(&programs, &arena, amounts.rounds)?;
    let tunnel = tunnel::measure(&programs, &arena, &amounts.tunnel)?;
    let expectations: Vec<_> = [
        healthy.expectations(),
        trouble::expectations(&faults),
        gateway.expectations(),
        tunnel.expectations(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut text =
        page::circumstances(&format!("cargo xtask bench relay --rounds {}", amounts.rounds));
    let front = [healthy.table(), trouble::table(&faults), gateway.table()]
        .into_iter()
        .chain(tunnel.tables());
    for table in front.chain([versions.table(), verdict::table(&expectations)]) {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("relay", &text, options.dry)
}

/// What this program is in a namespace of `eyas netem run`, if these words say so.
fn side(words: &[&str]) -> Option<Result<(), String>> {
    let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
    let programs = Programs::find;
    Some(match words {
        ["--far", place] => lines::far(&programs(), Path::new(place)),
        ["--near", place, bytes, typed] => number(bytes).and_then(|bytes| {
            let amounts = lines::Amounts { bytes, keystrokes: number(typed)? as usize };
            lines::near(&programs(), Path::new(place), &amounts)
        }),
        ["--far-fault", place, fault] => trouble::far(&programs(), Path::new(place), fault),
        ["--near-fault", place, fault, rounds] => number(rounds).and_then(|rounds| {
            trouble::near(&programs(), Path::new(place), fault, rounds as usize)
        }),
        _ => return None,
    })
}

/// How much is measured.
struct Amounts {
    rounds: usize,
    proxy: proxy::Amounts,
    gateway: gateway::Amounts,
    tunnel: tunnel::Amounts,
}

impl Amounts {
    fn of(options: &Options) -> Self {
        let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
        let (first_bytes, bytes, connections, open) =
            if options.quick { (20, 64 << 20, 200, 500) } else { (400, 2 << 30, 4000, 10_000) };
        let (carried, keystrokes, looped) =
            if options.quick { (2 << 20, 20, 64 << 20) } else { (12 << 20, 200, 512 << 20) };
        let (requests, seconds) = if options.quick { (1000, 1) } else { (20_000, 2) };
        Self {
            rounds,
            proxy: proxy::Amounts { rounds, first_bytes, bytes, connections, open },
            gateway: gateway::Amounts { rounds, requests, seconds },
            tunnel: tunnel::Amounts {
                lines: lines::Amounts { bytes: carried, keystrokes },
                rounds,
                bytes: looped,
            },
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
