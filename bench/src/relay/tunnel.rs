//! `eyas tunnel` over two emulated lines, compared with MPTCP with a SOCKS proxy, `ssh -D` and WireGuard;
//! and over loopback.

use std::fs;
use std::path::Path;

use super::lines::{
    self, BULK, EYAS, FIRST_FAILS, KEYSTROKE, LINES, MPTCP, SECOND_FAILS, SSH, WIREGUARD, bulk,
    join_tunnel, serve_tunnel,
};
use super::programs::Programs;
use super::traffic;
use super::traffic::Route;
use crate::arena::Arena;
use crate::run::{check, command, output};
use crate::tables::{Column, Figures, expectation};
use crate::verdict::{Bound, Expectation};

const NAMES: [&str; 4] = [EYAS, MPTCP, SSH, WIREGUARD];
const COLUMNS: [&str; 4] = [BULK, KEYSTROKE, FIRST_FAILS, SECOND_FAILS];

/// Pairs of lines: the rate of each in Mbit/s, and its round-trip time in milliseconds.
const LINE_PAIRS: [[(u32, u32); 2]; 2] = [[(20, 10), (5, 80)], [(10, 10), (10, 100)]];

/// The size of a packet on the line, and of its headers: IPv4, UDP, a record of DTLS 1.3 with its tag
/// (RFC 9147 §4), SCTP, and a DATA chunk (RFC 9260 §3.3.1), in bytes.
const PACKET: f64 = 1500.0;
const HEADERS: f64 = 20.0 + 8.0 + 22.0 + 12.0 + 16.0;
/// The size of a frame of the tunnel, and its overhead, in bytes.
const FRAME: f64 = 16_384.0;
const FRAME_OVERHEAD: f64 = 7.0;
/// The minimum share of the ceiling for a bulk transfer.
const MIN_SHARE: f64 = 0.9;
/// The maximum time without data when a line fails, and the maximum time of a keystroke in addition to the
/// round trip, in milliseconds.
const MAX_SILENCE: f64 = 500.0;
const MAX_ADDED: f64 = 20.0;
/// The minimum rate over loopback, in Mbit/s.
const MIN_LOOPBACK: f64 = 3000.0;

const LOOPBACK_SPEED: &str = "Mbit/s";
/// The carriers of the tunnel over loopback: the name in the table, and the prefix of the address.
const CARRIERS: [(&str, &str); 4] = [
    ("chosen by the race", ""),
    ("SCTP inside UDP", "sctp-udp://"),
    ("QUIC", "quic://"),
    ("TCP", "tcp://"),
];

/// How much is measured.
pub(super) struct Amounts {
    pub(super) lines: lines::Amounts,
    /// Runs over loopback, and the bytes of each.
    pub(super) rounds: usize,
    pub(super) bytes: u64,
}

/// The measurements.
pub(super) struct Measured {
    by_lines: Vec<Figures>,
    loopback: Figures,
}

/// Measures over all lines, and over loopback.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Measured, String> {
    // For the sockets of the programs, which would otherwise outlive them.
    check(&mut command("mount", &["-t", "tmpfs", "run", "/run"]))?;
    let mut by_lines = Vec::new();
    for (number, lines) in LINE_PAIRS.iter().enumerate() {
        println!("tunnel: {}", description(lines));
        let directory = arena.directory().join(format!("lines-{number}"));
        by_lines.push(measure_over(programs, &directory, lines, &amounts.lines)?);
    }
    let loopback = measure_over_loopback(programs, arena, amounts)?;
    Ok(Measured { by_lines, loopback })
}

fn measure_over(
    programs: &Programs,
    directory: &Path,
    lines: &[(u32, u32)],
    amounts: &lines::Amounts,
) -> Result<Figures, String> {
    fs::create_dir_all(directory).map_err(|error| format!("{directory:?}: {error}"))?;
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let (this, directory) = (this.to_string_lossy(), directory.to_string_lossy());
    let mut run = programs.eyas(&["netem", "run", "--quiet"]);
    for (name, (rate, trip)) in LINES.iter().zip(lines) {
        run.args(["--path", &format!("{name}:rate={rate}mbit,delay={}us", trip * 500)]);
    }
    run.args(["--server", &format!("exec '{this}' relay --far '{directory}'"), "--"]);
    run.args([&*this, "relay", "--near", &*directory]);
    run.args([amounts.bytes.to_string(), amounts.keystrokes.to_string()]);
    let mut figures = Figures::default();
    figures.take(&output(&mut run)?, &COLUMNS);
    Ok(figures)
}

fn measure_over_loopback(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Figures, String> {
    const LOCALHOST: &str = "127.0.0.1";
    traffic::serve(lines::PORT)?;
    let directory = arena.directory();
    let _server = serve_tunnel(programs, directory, &[LOCALHOST])?;
    let mut figures = Figures::default();
    for round in 0..amounts.rounds {
        println!("tunnel: loopback, round {} of {}", round + 1, amounts.rounds);
        for (name, carrier) in CARRIERS {
            let to = format!("{carrier}{LOCALHOST}:4433");
            let speed = join_tunnel(programs, directory, &to, &[LOCALHOST]).and_then(|_client| {
                let route = Route::At(lines::TUNNEL_AT);
                bulk(route, amounts.bytes / 16)?;
                bulk(route, amounts.bytes)
            });
            figures.add(name, LOOPBACK_SPEED, speed);
        }
    }
    Ok(figures)
}

fn description(lines: &[(u32, u32)]) -> String {
    let each = lines.iter().map(|(rate, trip)| format!("{rate}/{trip}"));
    each.collect::<Vec<_>>().join(" + ")
}

/// Returns the Mbit/s of the tunnel over these lines if headers are the only overhead.
fn ceiling(lines: &[(u32, u32)]) -> f64 {
    let rate: u32 = lines.iter().map(|(rate, _)| rate).sum();
    f64::from(rate) * (PACKET - HEADERS) / PACKET * FRAME / (FRAME + FRAME_OVERHEAD)
}

impl Measured {
    /// Returns a table for each pair of lines, and one for loopback.
    pub(super) fn tables(&self) -> Vec<String> {
        let columns =
            COLUMNS.map(|name| Column { name, digits: usize::from(!name.contains("fails")) });
        let by_lines = LINE_PAIRS.iter().zip(&self.by_lines).map(|(lines, figures)| {
            let measured = NAMES.into_iter().filter(|name| figures.rounds(name, BULK).is_some());
            figures.table(&description(lines), &measured.collect::<Vec<_>>(), &columns)
        });
        let speed = [Column { name: LOOPBACK_SPEED, digits: 0 }];
        let carriers = CARRIERS.map(|(name, _)| name);
        let loopback = self.loopback.table("tunnel over loopback", &carriers, &speed);
        by_lines.chain([loopback]).collect()
    }

    /// Returns the targets for the tunnel.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let mut expectations = Vec::new();
        for (lines, figures) in LINE_PAIRS.iter().zip(&self.by_lines) {
            let of = |column| figures.median(EYAS, column);
            let mut add = |target: String, measured, bound, unit| {
                let target = format!("tunnel, {}: {target}", description(lines));
                expectations.push(expectation(&target, measured, bound, unit));
            };
            let ceiling = ceiling(lines);
            let target = format!("bulk at least {MIN_SHARE} × {ceiling:.1} Mbit/s");
            let share = of(BULK).map(|speed| speed / ceiling);
            add(target, share, Bound::AtLeast(MIN_SHARE), "");
            let trip = lines.iter().map(|(_, trip)| f64::from(*trip)).fold(f64::INFINITY, f64::min);
            let max_delay = trip + MAX_ADDED;
            add(
                format!("a keystroke within {max_delay} ms"),
                of(KEYSTROKE),
                Bound::AtMost(max_delay),
                "ms",
            );
            for column in [FIRST_FAILS, SECOND_FAILS] {
                let line = column.split_once(',').map_or(column, |(line, _)| line);
                let target = format!("{line}: at most {MAX_SILENCE} ms of silence");
                add(target, of(column), Bound::AtMost(MAX_SILENCE), "ms");
            }
        }
        let (chosen, _) = CARRIERS[0];
        let speed = self.loopback.median(chosen, LOOPBACK_SPEED);
        let target = "tunnel over loopback: at least 3,000 Mbit/s";
        expectations.push(expectation(target, speed, Bound::AtLeast(MIN_LOOPBACK), "Mbit/s"));
        expectations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_excludes_headers() {
        assert_eq!(description(&LINE_PAIRS[0]), "20/10 + 5/80");
        let ceiling = ceiling(&LINE_PAIRS[0]);
        assert!((23.6..23.7).contains(&ceiling), "{ceiling}");
    }

    #[test]
    fn expectations_compare_each_pair_of_rows() {
        let mut first = Figures::default();
        for (column, figure) in [(BULK, 22.0), (KEYSTROKE, 31.0), (FIRST_FAILS, 300.0)] {
            first.add(EYAS, column, Ok(figure));
        }
        let measured =
            Measured { by_lines: vec![first, Figures::default()], loopback: Figures::default() };
        let rows: String = measured.expectations().iter().map(Expectation::row).collect();
        for row in [
            "| tunnel, 20/10 + 5/80: bulk at least 0.9 × 23.7 Mbit/s | 0.93 | yes |",
            "| tunnel, 20/10 + 5/80: a keystroke within 30 ms | 31.00 ms | **no** |",
            "| tunnel, 20/10 + 5/80: first line fails: at most 500 ms of silence | 300 ms | yes |",
            "| tunnel, 10/10 + 10/100: a keystroke within 30 ms | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        assert!(measured.tables()[0].contains("| eyas tunnel | 22.0 | 31.0 | 300 | – |"));
    }
}
