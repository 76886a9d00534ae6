//! `cargo eyas-bench h3`: HTTP/3 by eyas-h3 with the driver of eyas-http, beside h3 with h3-quinn, and QUIC alone, all
//! over the same quinn (`bench/rivals/h3`).
//!
//! Instructions are counted by callgrind at one end while the other runs as usual. How packets and acknowledgements
//! fall depends on the time, so counts vary by some percent: each is measured several times.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::instructions::summary;
use crate::options::Options;
use crate::process::{cpu_time, resident};
use crate::programs::{build, cache};
use crate::rival::Rival;
use crate::run::{check, works};
use crate::tables::{Figures, expectation, ratio};
use crate::verdict::{self, Bound, Expectation};
use crate::{page, versions};

/// The default number of rounds.
const ROUNDS: usize = 5;
/// Requests of the shorter and of the longer run whose instructions are compared.
const REQUESTS: [u64; 2] = [100, 1100];
/// Requests whose bytes are counted.
const ON_THE_WIRE: u64 = 1000;
/// Connections of one batch that is kept open; memory is measured with one batch and with two.
const BATCH: u64 = 300;
/// The content that is transferred, in bytes.
const TIMED: u64 = 1_000_000_000;
/// The same with `--quick`.
const QUICK: u64 = 50_000_000;

const EYAS: &str = "eyas-h3";
const H3: &str = "h3";
const QUIC: &str = "QUIC alone";
/// The stacks with their names in the program.
const STACKS: [(&str, &str); 3] = [(EYAS, "eyas"), (H3, "h3"), (QUIC, "quic")];

const CLIENT: &str = "client, instructions per request";
const SERVER: &str = "server, instructions per request";
const WIRE: &str = "bytes in UDP per request, both ways";
const CLIENT_MEMORY: &str = "client, KiB per idle connection";
const SERVER_MEMORY: &str = "server, KiB per idle connection";
const DOWN: &str = "1 GB down, MB/s";
const UP: &str = "1 GB up, MB/s";
const DOWN_CPU: &str = "1 GB down, ms of CPU, both ends";
const UP_CPU: &str = "1 GB up, ms of CPU, both ends";
const KINDS: [&str; 9] =
    [CLIENT, SERVER, WIRE, CLIENT_MEMORY, SERVER_MEMORY, DOWN, DOWN_CPU, UP, UP_CPU];

/// Runs the benchmark and writes its tables.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    if !works("valgrind", &["--version"]) {
        return Err("valgrind is missing (Debian: valgrind)".into());
    }
    check(&mut build(Path::new("bench/rivals/h3/Cargo.toml"), &cache().join("target")))?;
    if options.build {
        return Ok(());
    }
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let bytes = if options.quick { QUICK } else { TIMED };
    let mut figures = Figures::default();
    for round in 0..rounds {
        for turn in 0..STACKS.len() {
            let (name, stack) = STACKS[(round + turn) % STACKS.len()];
            println!("{name}: round {} of {rounds}", round + 1);
            for (kind, figure) in measure(stack, bytes) {
                figures.add(name, kind, figure);
            }
        }
    }
    let lock = |crates: &[&str]| versions::locked("bench/rivals/h3/Cargo.lock", crates);
    let programs = versions::Versions(vec![
        (EYAS, lock(&["eyas-h3", "quinn", "rustls", "tokio"])?),
        (H3, lock(&["h3", "h3-quinn"])?),
    ]);
    let circumstances = page::circumstances(&format!("cargo eyas-bench h3 --rounds {rounds}"));
    let targets = verdict::table(&expectations(&figures));
    let tables = [circumstances, table(&figures), programs.table(), targets];
    page::publish("h3", &tables.join("\n"), options.dry)
}

/// A stack's server, and its client.
struct Pair {
    server: Rival,
    client: Rival,
}

/// Which end of a pair runs under callgrind, and the file that it then writes.
#[derive(Clone, Copy)]
enum Counted<'a> {
    Neither,
    Client(&'a Path),
    Server(&'a Path),
}

impl Pair {
    fn start(stack: &str, counted: Counted<'_>) -> Result<Self, String> {
        let certificate = cache().join(format!("h3-{}.pem", std::process::id()));
        let command = |file: Option<&Path>, role: &str| {
            let program = cache().join("target/release/rival-h3");
            let mut command = match file {
                Some(file) => callgrind(&program, file),
                None => Command::new(program),
            };
            command.args([stack, role]).arg(&certificate);
            command
        };
        let (client, server) = match counted {
            Counted::Neither => (None, None),
            Counted::Client(file) => (Some(file), None),
            Counted::Server(file) => (None, Some(file)),
        };
        let mut server = Rival::start("rival-h3 server", command(server, "server"))?;
        let port = server.query("port")?;
        let mut client = command(client, "client");
        client.arg(format!("{port:.0}"));
        let mut client = Rival::start("rival-h3 client", client)?;
        // Once it is connected, the certificate is of no use any more.
        client.query("get 1")?;
        std::fs::remove_file(&certificate).map_err(|error| format!("{certificate:?}: {error}"))?;
        Ok(Self { server, client })
    }

    /// Returns what both ends have spent, in milliseconds.
    fn cpu_time(&self) -> Result<f64, String> {
        Ok(cpu_time(self.client.id())? + cpu_time(self.server.id())?)
    }

    fn end(&mut self) -> Result<(), String> {
        self.client.end()?;
        self.server.end()
    }
}

fn callgrind(program: &Path, file: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display())).arg(program);
    valgrind
}

/// Measures everything of a stack once.
fn measure(stack: &str, bytes: u64) -> Vec<(&'static str, Result<f64, String>)> {
    let file = cache().join(format!("h3-callgrind-{}", std::process::id()));
    let mut figures = vec![
        (CLIENT, instructions(stack, Counted::Client(&file), &file)),
        (SERVER, instructions(stack, Counted::Server(&file), &file)),
    ];
    match Pair::start(stack, Counted::Neither) {
        Ok(mut pair) => {
            let bytes_of = pair.client.query(&format!("wire {ON_THE_WIRE}"));
            figures.push((WIRE, bytes_of.map(|bytes| bytes / ON_THE_WIRE as f64)));
            for (command, kind, cpu_kind) in [("down", DOWN, DOWN_CPU), ("up", UP, UP_CPU)] {
                let [speed, cpu] = each(transfer(&mut pair, command, bytes));
                figures.extend([(kind, speed), (cpu_kind, cpu)]);
            }
            let [client, server] = each(memory(&mut pair));
            figures.extend([(CLIENT_MEMORY, client), (SERVER_MEMORY, server)]);
            if let Err(error) = pair.end() {
                println!("{error}");
            }
        }
        Err(error) => figures.push((WIRE, Err(error))),
    }
    figures
}

/// Returns the instructions of a request at one end: the difference between a longer run and a shorter one.
fn instructions(stack: &str, counted: Counted<'_>, file: &PathBuf) -> Result<f64, String> {
    let mut counts = [0.0; 2];
    for (count, requests) in counts.iter_mut().zip(REQUESTS) {
        let mut pair = Pair::start(stack, counted)?;
        pair.client.query(&format!("get {requests}"))?;
        pair.end()?;
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file:?}: {error}"))?;
        std::fs::remove_file(file).map_err(|error| format!("{file:?}: {error}"))?;
        *count = summary(&text).ok_or("callgrind gave no summary")? as f64;
    }
    Ok((counts[1] - counts[0]) / (REQUESTS[1] - REQUESTS[0]) as f64)
}

/// Transfers a content, and returns the speed in MB/s and the CPU time of both ends for a GB, in milliseconds.
fn transfer(pair: &mut Pair, command: &str, bytes: u64) -> Result<[f64; 2], String> {
    let before = pair.cpu_time()?;
    let milliseconds = pair.client.query(&format!("{command} {bytes}"))?;
    let spent = pair.cpu_time()? - before;
    Ok([bytes as f64 / 1000.0 / milliseconds, spent * TIMED as f64 / bytes as f64])
}

/// Returns the memory of an idle connection at the client and at the server. What the first batch needed to connect is
/// reused by the second.
fn memory(pair: &mut Pair) -> Result<[f64; 2], String> {
    let mut after = || {
        pair.client.query(&format!("hold {BATCH}"))?;
        Ok::<_, String>([resident(pair.client.id())?, resident(pair.server.id())?])
    };
    let (first, second) = (after()?, after()?);
    Ok(std::array::from_fn(|end| (second[end] - first[end]) / BATCH as f64))
}

/// Returns each figure, or for each why there is none.
fn each(figures: Result<[f64; 2], String>) -> [Result<f64, String>; 2] {
    match figures {
        Ok(figures) => figures.map(Ok),
        Err(error) => [Err(error.clone()), Err(error)],
    }
}

/// Returns the medians with the smallest and largest figures.
fn table(figures: &Figures) -> String {
    let head: Vec<&str> = STACKS.iter().map(|(name, _)| *name).collect();
    let mut text =
        format!("| figure | {} |\n| --- |{}\n", head.join(" | "), " ---: |".repeat(head.len()));
    for kind in KINDS {
        text.push_str(&format!("| {kind} |"));
        for (name, _) in STACKS {
            let rounds = figures.rounds(name, kind);
            let shown = rounds.and_then(|rounds| {
                let least = rounds.times.iter().copied().fold(f64::INFINITY, f64::min);
                let most = rounds.times.iter().copied().fold(0.0, f64::max);
                Some(format!("{:.0} ({least:.0} to {most:.0})", rounds.median()?))
            });
            text.push_str(&format!(" {} |", shown.unwrap_or_else(|| "–".to_owned())));
        }
        text.push('\n');
    }
    text
}

fn expectations(figures: &Figures) -> Vec<Expectation> {
    let compared = |kind| ratio(figures.median(EYAS, kind), figures.median(H3, kind));
    // What HTTP adds to QUIC.
    let added = |kind| {
        let added = |name| Some(figures.median(name, kind)? - figures.median(QUIC, kind)?);
        ratio(added(EYAS), added(H3))
    };
    let mut expectations = Vec::new();
    for kind in [CLIENT, SERVER] {
        let target = format!("{kind}: at most 0.7 × h3");
        expectations.push(expectation(&target, compared(kind), Bound::AtMost(0.7), ""));
        let target = format!("{kind}, beyond QUIC: at most 0.7 × h3");
        expectations.push(expectation(&target, added(kind), Bound::AtMost(0.7), ""));
    }
    for (kind, bound, words) in [
        (WIRE, Bound::AtMost(0.5), "at most 0.5 × h3"),
        (CLIENT_MEMORY, Bound::AtMost(1.0), "no more than h3"),
        (SERVER_MEMORY, Bound::AtMost(1.0), "no more than h3"),
        (DOWN, Bound::AtLeast(1.3), "at least 1.3 × h3"),
        (UP, Bound::AtLeast(1.3), "at least 1.3 × h3"),
    ] {
        expectations.push(expectation(&format!("{kind}: {words}"), compared(kind), bound, ""));
    }
    expectations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_http_adds_is_compared_without_quic() {
        let mut figures = Figures::default();
        for (name, count) in [(EYAS, 130.0), (H3, 160.0), (QUIC, 100.0)] {
            figures.add(name, CLIENT, Ok(count));
            figures.add(name, CLIENT, Ok(count + 2.0));
            figures.add(name, CLIENT, Ok(count));
        }
        let rows: String = expectations(&figures).iter().map(Expectation::row).collect();
        assert!(rows.contains("per request: at most 0.7 × h3 | 0.81 | **no** |"), "{rows}");
        assert!(rows.contains("beyond QUIC: at most 0.7 × h3 | 0.50 | yes |"), "{rows}");
        assert!(table(&figures).contains("| 130 (130 to 132) | 160 (160 to 162) | 100 (100 to"));
    }
}
