//! The time to the first byte of a response over links with a delay, by the key exchange: does the second packet of the
//! ClientHello cost a round trip somewhere?

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::json;

use crate::arena::{self, Arena};
use crate::programs::{Programs, build_ours, our_example, our_program};
use crate::rival::Rival;
use crate::run::{check, command, output};
use crate::sides::{clear_ready, print_figure, signal_ready, wait_for_far};
use crate::tables::{Column, Figures, expectation};
use crate::verdict::{Bound, Expectation};

/// The name of the server, which the arena's certificate covers, and its address (`docs/guide/netem.md`).
const HOST: &str = "far.bench.test";
const AT: &str = "198.18.1.2:443";
/// What is requested of the client, as the rows of the table are called.
const HYBRID: &str = "X25519MLKEM768";
const CLASSICAL: &str = "X25519";
/// The versions of HTTP, and the columns of each round trip.
const MODES: [&str; 2] = ["h1", "h3"];
/// Round trips in milliseconds, with the columns of the versions.
const DISTANCES: [(u32, [&str; 2]); 3] = [
    (0, ["h1, 0 ms", "h3, 0 ms"]),
    (20, ["h1, 20 ms", "h3, 20 ms"]),
    (100, ["h1, 100 ms", "h3, 100 ms"]),
];
/// Requests of each client and version in a round of the benchmark.
const REQUESTS: usize = 20;
/// Requests that are not counted, until lazily created tables of client and server are warm.
const WARM_UP: usize = 3;
/// How many milliseconds the first byte may come later than with X25519.
const MOST: f64 = 1.0;

/// Builds and installs what is needed.
pub(super) fn install() -> Result<(), String> {
    check(build_ours().args(["-p", "eyas-http", "--example", "ttfb"]))?;
    check(build_ours().args(["-p", "eyas-cli"]))?;
    let programs = Programs::installed();
    programs.install_caddy()?;
    programs.install_python()
}

/// Runs the part of this program that runs in a namespace of `eyas netem run`, if these arguments request one.
pub(super) fn side(args: &[&str]) -> Option<Result<(), String>> {
    match args {
        ["--far", directory] => Some(far(Path::new(directory))),
        ["--near", directory, distance, requests] => {
            let number = requests.parse::<usize>().map_err(|error| format!("{requests}: {error}"));
            Some(number.and_then(|requests| near(Path::new(directory), distance, requests)))
        }
        _ => None,
    }
}

/// Measures at every distance.
pub(super) fn measure(arena: &Arena, rounds: usize) -> Result<Figures, String> {
    arena.create_certificates(&Programs::installed().python)?;
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let (this, directory) = (this.to_string_lossy(), arena.directory().to_string_lossy());
    let mut figures = Figures::default();
    for (distance, columns) in DISTANCES {
        println!("a round trip of {distance} ms");
        let mut run = command(&our_program("eyas").to_string_lossy(), &["netem", "run", "--quiet"]);
        run.arg("--delay").arg(format!("{}ms", distance / 2));
        run.args(["--server", &format!("exec '{this}' tls --far '{directory}'"), "--"]);
        run.args([&*this, "tls", "--near", &*directory, &distance.to_string()]);
        run.arg((rounds * REQUESTS).to_string());
        figures.take(&output(&mut run)?, &columns);
    }
    Ok(figures)
}

/// Runs the server until it is killed.
fn far(directory: &Path) -> Result<(), String> {
    let page = json!({ "handler": "static_response", "body": "well\n" });
    let at: SocketAddr = AT.parse().map_err(|_| "an address")?;
    let caddy = Programs::installed().caddy;
    let _caddy = arena::caddy(&caddy, directory, at, &[AT.to_owned()], &page)?;
    signal_ready(directory)?;
    loop {
        thread::park();
    }
}

/// Has both clients make this number of requests in turn.
fn near(directory: &Path, distance: &str, requests: usize) -> Result<(), String> {
    wait_for_far(directory)?;
    let found = DISTANCES.iter().find(|(known, _)| known.to_string() == distance);
    let (_, columns) = found.ok_or_else(|| format!("no column for {distance} ms"))?;
    let mut rivals = Vec::new();
    for group in [HYBRID, CLASSICAL] {
        let mut client = Command::new(our_example("ttfb"));
        client.args(["--key-exchange", group]).arg(directory.join("authority.pem"));
        client.arg(format!("{HOST}:443:{}", AT.trim_end_matches(":443")));
        rivals.push(Rival::start(group, client)?);
    }
    let url = format!("https://{HOST}/");
    for number in 0..WARM_UP + requests {
        for (mode, column) in MODES.into_iter().zip(columns) {
            for turn in 0..rivals.len() {
                let index = (turn + number) % rivals.len();
                let time = rivals[index].round(mode, &url);
                if number >= WARM_UP {
                    print_figure(rivals[index].name, column, time);
                }
            }
        }
    }
    clear_ready(directory)
}

/// Returns a table of medians.
pub(super) fn table(figures: &Figures) -> String {
    let columns = DISTANCES.map(|(_, columns)| columns.map(|name| Column { name, digits: 2 }));
    figures.table(
        "ms until the first byte, by round trip",
        &[HYBRID, CLASSICAL],
        columns.as_flattened(),
    )
}

pub(super) fn expectations(figures: &Figures) -> Vec<Expectation> {
    let columns = DISTANCES.iter().flat_map(|(_, columns)| columns);
    let expectations = columns.map(|column| {
        let [hybrid, classical] = [HYBRID, CLASSICAL].map(|name| figures.median(name, column));
        let later = hybrid.zip(classical).map(|(hybrid, classical)| hybrid - classical);
        let target = format!("{column}: at most {MOST} ms later than with {CLASSICAL}");
        expectation(&target, later, Bound::AtMost(MOST), "ms")
    });
    expectations.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_more_is_a_missed_target() {
        let mut figures = Figures::default();
        for (name, column, figure) in [
            (HYBRID, "h1, 20 ms", 61.5),
            (CLASSICAL, "h1, 20 ms", 61.0),
            (HYBRID, "h3, 20 ms", 60.9),
            (CLASSICAL, "h3, 20 ms", 40.8),
        ] {
            figures.add(name, column, Ok(figure));
        }
        let rows: String = expectations(&figures).iter().map(Expectation::row).collect();
        for row in [
            "| h1, 20 ms: at most 1 ms later than with X25519 | 0.50 ms | yes |",
            "| h3, 20 ms: at most 1 ms later than with X25519 | 20.10 ms | **no** |",
            "| h3, 100 ms: at most 1 ms later than with X25519 | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
    }
}
