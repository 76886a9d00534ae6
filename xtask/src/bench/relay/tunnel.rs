//! `eyas tunnel` over two emulated lines, beside MPTCP with a SOCKS proxy, `ssh -D` and WireGuard; and
//! over loopback.

use std::fs;
use std::path::Path;

use super::super::arena::Arena;
use super::super::verdict::{Bound, Expectation};
use super::lines::{self, LINES, bulk, join_tunnel, serve_tunnel};
use super::programs::Programs;
use super::tables::{Column, Figures, expectation};
use super::traffic;
use super::traffic::Way;
use crate::run::{check, command, output};

pub(super) const EYAS: &str = "eyas tunnel";
pub(super) const MPTCP: &str = "MPTCP, microsocks";
pub(super) const SSH: &str = "ssh -D";
pub(super) const WIREGUARD: &str = "WireGuard, first line";
const NAMES: [&str; 4] = [EYAS, MPTCP, SSH, WIREGUARD];

pub(super) const BULK: &str = "bulk, Mbit/s";
pub(super) const KEYSTROKE: &str = "keystroke, 99th percentile, ms";
pub(super) const FIRST_FAILS: &str = "first line fails, ms";
pub(super) const SECOND_FAILS: &str = "second line fails, ms";
const COLUMNS: [&str; 4] = [BULK, KEYSTROKE, FIRST_FAILS, SECOND_FAILS];

/// Two lines: the Mbit/s of each and its round trip in milliseconds.
const WORLDS: [[(u32, u32); 2]; 2] = [[(20, 10), (5, 80)], [(10, 10), (10, 100)]];

/// Bytes of a packet on the line, and what of them is the tunnel's: headers of IPv4, UDP and SCTP, and of a
/// DATA chunk (RFC 9260 §3.3.1).
const PACKET: f64 = 1500.0;
const HEADERS: f64 = 20.0 + 8.0 + 12.0 + 16.0;
/// Bytes of a frame of the tunnel, and what TLS 1.3 and the frame add to them.
const FRAME: f64 = 16_384.0;
const AROUND_FRAME: f64 = 7.0 + 22.0;
/// The share of that ceiling that bulk is to have.
const OF_CEILING: f64 = 0.9;
/// Milliseconds without anything when a line fails, and beyond the round trip for a keystroke.
const SILENT: f64 = 500.0;
const BEYOND: f64 = 20.0;
const LOOPBACK: f64 = 3000.0;

const LOOPBACK_SPEED: &str = "Mbit/s";
/// What carries the tunnel on loopback: what the table calls it, and what is put before the address.
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

/// What was measured.
pub(super) struct Measured {
    worlds: Vec<Figures>,
    loopback: Figures,
}

/// Measures over all lines, and over loopback.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Measured, String> {
    // Sockets and such of the programs, which outlive them there.
    check(&mut command("mount", &["-t", "tmpfs", "run", "/run"]))?;
    let mut worlds = Vec::new();
    for (number, lines) in WORLDS.iter().enumerate() {
        println!("tunnel: {}", called(lines));
        let directory = arena.directory().join(format!("lines-{number}"));
        worlds.push(over(programs, &directory, lines, &amounts.lines)?);
    }
    let loopback = over_loopback(programs, arena, amounts)?;
    Ok(Measured { worlds, loopback })
}

fn over(
    programs: &Programs,
    directory: &Path,
    lines: &[(u32, u32)],
    amounts: &lines::Amounts,
) -> Result<Figures, String> {
    fs::create_dir_all(directory).map_err(|error| format!("{directory:?}: {error}"))?;
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let (this, there) = (this.to_string_lossy(), directory.to_string_lossy());
    let mut run = programs.eyas(&["netem", "run", "--quiet"]);
    for (name, (rate, trip)) in LINES.iter().zip(lines) {
        run.args(["--path", &format!("{name}:rate={rate}mbit,delay={}us", trip * 500)]);
    }
    run.args(["--server", &format!("exec '{this}' bench relay --far '{there}'"), "--"]);
    run.args([&*this, "bench", "relay", "--near", &*there]);
    run.args([amounts.bytes.to_string(), amounts.keystrokes.to_string()]);
    let mut figures = Figures::default();
    figures.take(&output(&mut run)?, &COLUMNS);
    Ok(figures)
}

fn over_loopback(programs: &Programs, arena: &Arena, amounts: &Amounts) -> Result<Figures, String> {
    const HERE: &str = "127.0.0.1";
    traffic::serve(lines::PORT)?;
    let directory = arena.directory();
    let _server = serve_tunnel(programs, directory, &[HERE])?;
    let mut figures = Figures::default();
    for round in 0..amounts.rounds {
        println!("tunnel: loopback, round {} of {}", round + 1, amounts.rounds);
        for (name, carrier) in CARRIERS {
            let to = format!("{carrier}{HERE}:4433");
            let speed = join_tunnel(programs, directory, (&to, &[HERE])).and_then(|_client| {
                let way = Way::At(lines::TUNNEL_AT);
                bulk(way, amounts.bytes / 16)?;
                bulk(way, amounts.bytes)
            });
            figures.add(name, LOOPBACK_SPEED, speed);
        }
    }
    Ok(figures)
}

fn called(lines: &[(u32, u32)]) -> String {
    let each = lines.iter().map(|(rate, trip)| format!("{rate}/{trip}"));
    each.collect::<Vec<_>>().join(" + ")
}

/// Mbit/s that the tunnel has over these lines if nothing but headers is beside the bytes.
fn ceiling(lines: &[(u32, u32)]) -> f64 {
    let rate: u32 = lines.iter().map(|(rate, _)| rate).sum();
    f64::from(rate) * (PACKET - HEADERS) / PACKET * FRAME / (FRAME + AROUND_FRAME)
}

impl Measured {
    /// A table for each pair of lines, and one for loopback.
    pub(super) fn tables(&self) -> Vec<String> {
        let columns =
            COLUMNS.map(|name| Column { name, digits: usize::from(!name.contains("fails")) });
        let worlds = WORLDS.iter().zip(&self.worlds).map(|(lines, figures)| {
            let there = NAMES.into_iter().filter(|name| figures.rounds(name, BULK).is_some());
            figures.table(&called(lines), &there.collect::<Vec<_>>(), &columns)
        });
        let speed = [Column { name: LOOPBACK_SPEED, digits: 0 }];
        let carriers = CARRIERS.map(|(name, _)| name);
        let loopback = self.loopback.table("tunnel over loopback", &carriers, &speed);
        worlds.chain([loopback]).collect()
    }

    /// What is wanted of the tunnel.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let mut expectations = Vec::new();
        for (lines, figures) in WORLDS.iter().zip(&self.worlds) {
            let of = |column| figures.median(EYAS, column);
            let mut add = |wanted: String, seen, bound, unit| {
                let wanted = format!("tunnel, {}: {wanted}", called(lines));
                expectations.push(expectation(&wanted, seen, bound, unit));
            };
            let ceiling = ceiling(lines);
            let wanted = format!("bulk at least {OF_CEILING} × {ceiling:.1} Mbit/s");
            let share = of(BULK).map(|speed| speed / ceiling);
            add(wanted, share, Bound::AtLeast(OF_CEILING), "");
            let trip = lines.iter().map(|(_, trip)| f64::from(*trip)).fold(f64::INFINITY, f64::min);
            let most = trip + BEYOND;
            add(format!("a keystroke within {most} ms"), of(KEYSTROKE), Bound::AtMost(most), "ms");
            for column in [FIRST_FAILS, SECOND_FAILS] {
                let line = column.split_once(',').map_or(column, |(line, _)| line);
                let wanted = format!("{line}: at most {SILENT} ms of silence");
                add(wanted, of(column), Bound::AtMost(SILENT), "ms");
            }
        }
        let (chosen, _) = CARRIERS[0];
        let speed = self.loopback.median(chosen, LOOPBACK_SPEED);
        let wanted = "tunnel over loopback: at least 3,000 Mbit/s";
        expectations.push(expectation(wanted, speed, Bound::AtLeast(LOOPBACK), "Mbit/s"));
        expectations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_excludes_headers() {
        assert_eq!(called(&WORLDS[0]), "20/10 + 5/80");
        let ceiling = ceiling(&WORLDS[0]);
        assert!((24.0..24.1).contains(&ceiling), "{ceiling}");
    }

    #[test]
    fn expectations_compare_each_pair_of_rows() {
        let mut first = Figures::default();
        for (column, figure) in [(BULK, 22.0), (KEYSTROKE, 31.0), (FIRST_FAILS, 300.0)] {
            first.add(EYAS, column, Ok(figure));
        }
        let measured =
            Measured { worlds: vec![first, Figures::default()], loopback: Figures::default() };
        let rows: String = measured.expectations().iter().map(Expectation::row).collect();
        for row in [
            "| tunnel, 20/10 + 5/80: bulk at least 0.9 × 24.0 Mbit/s | 0.92 | yes |",
            "| tunnel, 20/10 + 5/80: a keystroke within 30 ms | 31.00 ms | **no** |",
            "| tunnel, 20/10 + 5/80: first line fails: at most 500 ms of silence | 300 ms | yes |",
            "| tunnel, 10/10 + 10/100: a keystroke within 30 ms | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        assert!(measured.tables()[0].contains("| eyas tunnel | 22.0 | 31.0 | 300 | – |"));
    }
}
