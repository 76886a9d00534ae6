//! `cargo xtask bench http`: time to first byte with fresh connections, beside other clients.
//!
//! Every client is one process that lives through the whole run. A round is one request by each
//! client in each scenario, so that whatever else the machine does falls on all of them alike; the
//! order of the clients turns by one from round to round.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arena::{Arena, Place, WELL, WITHOUT_IPV6, WITHOUT_UDP};
use super::rival::Rival;
use super::statistics::Rounds;
use super::{Options, cost, page, verdict};
use crate::run::{check, command, works, workspace};

/// Rounds, if the caller does not say how many.
const ROUNDS: usize = 200;
/// Rounds before counting starts: caches, lazily made tables and the server's own are warm then.
const WARM_UP: usize = 5;
/// A scenario in which something is waited for runs only in every so manieth round.
const SLOW_EVERY: usize = 5;

/// One column of the table.
pub(super) struct Scenario {
    /// The head of the column.
    pub(super) name: &'static str,
    /// What the clients are told to do.
    mode: &'static str,
    place: &'static Place,
    slow: bool,
}

/// All well; UDP swallowed, first and later; both swallowed on IPv6.
pub(super) const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "h1", mode: "h1", place: &WELL, slow: false },
    Scenario { name: "h2", mode: "h2", place: &WELL, slow: false },
    Scenario { name: "h3", mode: "h3", place: &WELL, slow: false },
    Scenario { name: "race", mode: "race", place: &WELL, slow: false },
    Scenario { name: "no UDP, first", mode: "race", place: &WITHOUT_UDP, slow: true },
    Scenario { name: "no UDP, later", mode: "later", place: &WITHOUT_UDP, slow: true },
    Scenario { name: "no IPv6", mode: "race", place: &WITHOUT_IPV6, slow: true },
];

/// The rounds of each client, by client and head of the column.
pub(super) type Results = BTreeMap<(&'static str, &'static str), Rounds>;

/// Runs the benchmark and writes its table.
pub(super) fn main(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let python = python()?;
    let arena = Arena::new(&caddy()?, &python)?;
    let mut rivals = start_rivals(&arena, &python)?;
    let results = run(&mut rivals, rounds);
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    let line = format!("cargo xtask bench http --rounds {rounds}");
    let mut text = page::circumstances(&line);
    text.push('\n');
    text.push_str(&table(&names, &results));
    text.push('\n');
    text.push_str(&verdict::text(&results));
    drop(rivals);
    let costs = cost::measure(&arena)?;
    text.push('\n');
    text.push_str(&cost::table(&costs));
    page::publish("http", &text, options.dry)
}

fn run(rivals: &mut [Rival], rounds: usize) -> Results {
    let mut results = Results::new();
    for round in 0..WARM_UP + rounds {
        if round >= WARM_UP && (round - WARM_UP).is_multiple_of(20) {
            println!("round {} of {rounds}", round - WARM_UP);
        }
        for scenario in &SCENARIOS {
            if scenario.slow && !round.is_multiple_of(SLOW_EVERY) {
                continue;
            }
            let url = scenario.place.url();
            for turn in 0..rivals.len() {
                let index = (turn + round) % rivals.len();
                let rival = &mut rivals[index];
                let answer = rival.round(scenario.mode, &url);
                if round >= WARM_UP {
                    results.entry((rival.name, scenario.name)).or_default().add(answer);
                }
            }
        }
    }
    results
}

/// Medians with the 95th percentiles behind them, in milliseconds.
fn table(names: &[&str], results: &Results) -> String {
    let mut text = String::from("| client |");
    for scenario in &SCENARIOS {
        let _ = write!(text, " {} |", scenario.name);
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(SCENARIOS.len()));
    text.push('\n');
    for name in names {
        let _ = write!(text, "| {name} |");
        for scenario in &SCENARIOS {
            let rounds = results
                .iter()
                .find(|((client, column), _)| (client, column) == (name, &scenario.name));
            let _ = write!(text, " {} |", rounds.map_or("–".into(), |(_, rounds)| cell(rounds)));
        }
        text.push('\n');
    }
    text
}

fn cell(rounds: &Rounds) -> String {
    match (rounds.median(), rounds.p95()) {
        (Some(median), Some(p95)) => {
            let lost = rounds.errors.len();
            let lost = if lost == 0 { String::new() } else { format!(", {lost} failed") };
            format!("{median:.2} ({p95:.2}{lost})")
        }
        _ => "–".into(),
    }
}

/// The bench client of eyas-http.
pub(super) fn start_eyas(arena: &Arena) -> Result<Rival, String> {
    let words = ["-p", "eyas-http", "--example", "ttfb"];
    let binary = built(Path::new("Cargo.toml"), &words)?.join("examples/ttfb");
    start(arena, "eyas", arena.inside(&binary))
}

/// A client that is a Rust package of its own below `bench/rivals`.
pub(super) fn start_package(arena: &Arena, name: &'static str) -> Result<Rival, String> {
    let manifest = Path::new("bench/rivals").join(name).join("Cargo.toml");
    let binary = built(&manifest, &[])?.join(format!("rival-{name}"));
    start(arena, name, arena.inside(&binary))
}

fn start_rivals(arena: &Arena, python: &Path) -> Result<Vec<Rival>, String> {
    let mut rivals = vec![start_eyas(arena)?];
    for (name, script) in [("libcurl", "libcurl_rounds.py"), ("niquests", "niquests_rounds.py")] {
        let mut command = arena.inside(python);
        command.arg(workspace().join("bench/rivals").join(script));
        rivals.push(start(arena, name, command)?);
    }
    rivals.push(start_package(arena, "reqwest")?);
    match go() {
        Ok(binary) => rivals.push(start(arena, "Go", arena.inside(&binary))?),
        Err(why) => println!("Go is left out: {why}"),
    }
    Ok(rivals)
}

/// Every client is told whom to trust, and the addresses of every place.
fn start(arena: &Arena, name: &'static str, mut command: Command) -> Result<Rival, String> {
    let places = [&WELL, &WITHOUT_UDP, &WITHOUT_IPV6].map(Place::resolve);
    command.arg(arena.authority()).args(places);
    Rival::start(name, command)
}

/// Builds a package of Rust with optimisation; the directory in which its binaries are.
fn built(manifest: &Path, words: &[&str]) -> Result<PathBuf, String> {
    let ours = manifest == Path::new("Cargo.toml");
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) if ours => workspace().join(directory),
        None if ours => workspace().join("target"),
        _ => workspace().join("bench/.cache/target"),
    };
    let mut cargo = command("cargo", &["build", "--release", "--manifest-path"]);
    if !ours {
        // reqwest has HTTP/3 for those who say that they know it to be unstable.
        cargo.env("RUSTFLAGS", "--cfg reqwest_unstable");
    }
    check(cargo.arg(manifest).args(words).arg("--target-dir").arg(&target))?;
    Ok(target.join("release"))
}

fn go() -> Result<PathBuf, String> {
    if !works("go", &["version"]) {
        return Err("go is not installed".into());
    }
    let binary = workspace().join("bench/.cache/rival-go");
    let mut build: Command = command("go", &["build", "-o"]);
    check(build.arg(&binary).arg(".").current_dir(workspace().join("bench/rivals/go")))?;
    Ok(binary)
}

/// Caddy, from where the interop run installs it.
fn caddy() -> Result<PathBuf, String> {
    check(&mut command("interop/install", &["caddy"]))?;
    let peers = std::env::var_os("EYAS_PEERS")
        .map_or_else(|| workspace().join("interop/.peers"), PathBuf::from);
    let binary = peers.join("bin/caddy");
    if binary.exists() { Ok(binary) } else { Err("Caddy could not be installed".into()) }
}

/// A virtual environment with the rivals from PyPI.
fn python() -> Result<PathBuf, String> {
    let home = workspace().join("bench/.cache/venv");
    let python = home.join("bin/python");
    if !python.exists() {
        check(command("python3", &["-m", "venv"]).arg(&home))?;
    }
    let requirements = "bench/rivals/requirements.txt";
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    check(command(&python.to_string_lossy(), &words).arg(requirements))?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_cell_for_every_column() {
        let mut results = Results::new();
        let mut rounds = Rounds::default();
        rounds.add(Ok(1.0));
        rounds.add(Ok(3.0));
        rounds.add(Err("no".into()));
        results.insert(("eyas", "h2"), rounds);
        let text = table(&["eyas"], &results);
        let row = text.lines().last().unwrap();
        assert_eq!(row, "| eyas | – | 1.00 (3.00, 1 failed) | – | – | – | – | – |");
        assert!(text.lines().all(|line| line.matches('|').count() == SCENARIOS.len() + 2));
    }
}
