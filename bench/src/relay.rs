//! `cargo eyas-bench relay`: eyas for unmodified programs, compared with similar programs.
//!
//! | module | purpose |
//! | --- | --- |
//! | `gateway` | `eyas serve --upstream` |
//! | `faults` | programs with and without `eyas proxy` on networks with faults |
//! | `tunnel` | `eyas tunnel` over two lines and over loopback |
//! | `lines` | the two sides of those lines |
//! | `programs` | where the programs are, and which are installed |
//! | `proxy` | `eyas proxy` on a path without a fault |
//! | `traffic` | the server behind a proxy, and the clients before it |

mod faults;
mod gateway;
mod lines;
mod programs;
mod proxy;
mod traffic;
mod tunnel;

use std::path::Path;

use crate::arena::{self, Arena};
use crate::options::Options;
use crate::run::{command, works};
use crate::{page, verdict};
use programs::Programs;

/// The default number of rounds.
const ROUNDS: usize = 3;

/// Runs the benchmark and writes its tables. It runs in its own namespaces, which this program enters by
/// starting itself again.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    if let Some(done) = side(args) {
        return done;
    }
    let options = Options::parse(args)?;
    if !options.inside {
        Programs::install()?;
        if options.build {
            return Ok(());
        }
        return arena::enter(&[&["relay", "--inside"], args].concat());
    }
    raise_limit();
    let programs = Programs::find();
    let versions = programs.versions()?;
    let arena = Arena::set_up()?;
    arena.create_certificates(&programs.python)?;
    let amounts = Amounts::of(&options);
    let healthy = proxy::measure(&programs, &arena, &amounts.proxy)?;
    let gateway = gateway::measure(&programs, &arena, &amounts.gateway)?;
    let faults = faults::measure(&programs, &arena, amounts.rounds)?;
    let tunnel = tunnel::measure(&programs, &arena, &amounts.tunnel)?;
    let expectations: Vec<_> = [
        healthy.expectations(),
        faults::expectations(&faults),
        gateway.expectations(),
        tunnel.expectations(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut text =
        page::circumstances(&format!("cargo eyas-bench relay --rounds {}", amounts.rounds));
    let front = [healthy.table(), faults::table(&faults), gateway.table()]
        .into_iter()
        .chain(tunnel.tables());
    for table in front.chain([versions.table(), verdict::table(&expectations)]) {
        text.push('\n');
        text.push_str(&table);
    }
    page::publish("relay", &text, options.dry)
}

/// Runs the part of this program that runs in a namespace of `eyas netem run`, if these arguments
/// request one.
fn side(args: &[&str]) -> Option<Result<(), String>> {
    let number = |arg: &str| arg.parse::<u64>().map_err(|error| format!("{arg}: {error}"));
    let programs = Programs::find;
    Some(match args {
        ["--far", directory] => lines::far(&programs(), Path::new(directory)),
        ["--near", directory, bytes, keystrokes] => number(bytes).and_then(|bytes| {
            let amounts = lines::Amounts { bytes, keystrokes: number(keystrokes)? as usize };
            lines::near(&programs(), Path::new(directory), &amounts)
        }),
        ["--far-fault", directory, fault] => faults::far(&programs(), Path::new(directory), fault),
        ["--near-fault", directory, fault, rounds] => number(rounds).and_then(|rounds| {
            faults::near(&programs(), Path::new(directory), fault, rounds as usize)
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

/// Raises the limit of descriptors of this process and its children to the hard limit, because both
/// ends of every connection are here.
fn raise_limit() {
    let id = std::process::id().to_string();
    let hard = crate::run::output(&mut command("sh", &["-c", "ulimit -Hn"]));
    let limit = hard.map(|text| format!("--nofile={}", text.trim())).unwrap_or_default();
    if !works("prlimit", &["--pid", &id, &limit]) {
        println!("the limit of descriptors cannot be raised: fewer connections are measured");
    }
}
