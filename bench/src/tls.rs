//! `cargo eyas-bench tls`: full handshakes of TLS 1.3 and QUIC with the cryptography of eyas, ring's with ML-KEM of
//! libcrux, beside ring's alone and aws-lc-rs, in memory, by one certificate of P-256; and what a build of each takes
//! (`bench/rivals/tls`). Then requests over distances, with one ClientHello and the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod distances;

use crate::arena::{self, Arena};
use crate::options::Options;
use crate::page;
use crate::programs::{self as clients, build, cache};
use crate::run::{check, command, output, works};
use crate::tables::{Column, Figures};
use crate::verdict;
use crate::versions::{Versions, locked};

/// The default number of rounds.
const ROUNDS: usize = 7;
const MANIFEST: &str = "bench/rivals/tls/Cargo.toml";

const RING: &str = "ring, X25519";
const EYAS: &str = "ring and libcrux, X25519MLKEM768";
const AWS: &str = "aws-lc-rs, X25519";
const AWS_HYBRID: &str = "aws-lc-rs, X25519MLKEM768";
/// The features of the program, and what it calls the providers that it has with each. The first is that of the build.
const BUILDS: [(&str, &[&str]); 3] =
    [("ring", &[RING]), ("eyas", &[EYAS]), ("aws-lc-rs", &[AWS, AWS_HYBRID])];

const TLS: &str = "TLS";
const QUIC: &str = "QUIC";
const BUILD: &str = "first build, s of CPU";
const SIZE: &str = "program, MB";
const COLUMNS: [Column; 4] = [
    Column { name: TLS, digits: 0 },
    Column { name: QUIC, digits: 0 },
    Column { name: BUILD, digits: 0 },
    Column { name: SIZE, digits: 1 },
];

/// Runs the benchmark and writes its tables. It runs in its own namespaces, which this program enters by
/// starting itself again.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    if let Some(result) = distances::side(args) {
        return result;
    }
    let options = Options::parse(args)?;
    if !options.inside {
        if !works("openssl", &["version"]) {
            return Err("openssl is missing: it makes the certificate (Debian: openssl)".into());
        }
        distances::install()?;
        // Downloads are not the build, and inside there is nothing to download from.
        check(&mut command("cargo", &["fetch", "--locked", "--manifest-path", MANIFEST]))?;
        return if options.build {
            Ok(())
        } else {
            arena::enter(&[&["tls", "--inside"], args].concat())
        };
    }
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { ROUNDS });
    let handshakes = measure_handshakes(rounds)?;
    let lock = |crates: &[&str]| locked("bench/rivals/tls/Cargo.lock", crates);
    let programs = Versions(vec![
        (EYAS, lock(&["ring", "libcrux-ml-kem", "rustls"])?),
        (AWS, lock(&["aws-lc-rs", "aws-lc-sys"])?),
        ("Caddy, the server", clients::Programs::installed().caddy_version()),
    ]);
    let arena = Arena::set_up()?;
    let distant = distances::measure(&arena, rounds)?;
    let names: Vec<_> = BUILDS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let tables = [
        page::circumstances(&format!("cargo eyas-bench tls --rounds {rounds}")),
        handshakes.table("µs of CPU per handshake, both ends", &names, &COLUMNS),
        distances::table(&distant),
        programs.table(),
        verdict::table(&distances::expectations(&distant)),
    ];
    page::publish("tls", &tables.join("\n"), options.dry)
}

/// Builds each program, and has it make handshakes.
fn measure_handshakes(rounds: usize) -> Result<Figures, String> {
    let mut figures = Figures::default();
    for (feature, names) in BUILDS {
        let seconds = first_build(feature)?;
        let bytes = fs::metadata(program(feature)).map_err(|error| error.to_string())?.len();
        figures.add(names[0], BUILD, Ok(seconds));
        figures.add(names[0], SIZE, Ok(bytes as f64 / 1e6));
    }
    let (key, certificate) = key_and_certificate()?;
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        for turn in 0..BUILDS.len() {
            let (feature, _) = BUILDS[(round + turn) % BUILDS.len()];
            let mut rival = Command::new(program(feature));
            figures.take(&output(rival.args([&key, &certificate]))?, &[TLS, QUIC]);
        }
    }
    Ok(figures)
}

/// Builds the program from nothing, and returns the CPU time of that in seconds.
fn first_build(feature: &str) -> Result<f64, String> {
    let directory = directory(feature);
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    let mut cargo = build(Path::new(MANIFEST), &directory);
    cargo.args(["--features", feature]);
    let line = std::iter::once(cargo.get_program())
        .chain(cargo.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ");
    // The second line that the shell prints is the time of what it has started.
    let times = output(&mut command("bash", &["-c", &format!("{line} >&2 && times")]))?;
    let of_children = times.lines().nth(1).unwrap_or_default();
    of_children
        .split_whitespace()
        .map(seconds)
        .sum::<Option<f64>>()
        .ok_or_else(|| format!("bash printed {times:?}"))
}

/// Reads minutes and seconds, such as `1m2.5s`.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

fn directory(feature: &str) -> PathBuf {
    cache().join(format!("tls-{feature}"))
}

fn program(feature: &str) -> PathBuf {
    directory(feature).join("release/rival-tls")
}

fn key_and_certificate() -> Result<(PathBuf, PathBuf), String> {
    let file = |name: &str| cache().join(name);
    let (pem, key, certificate) = (file("tls.pem"), file("tls-key.der"), file("tls.der"));
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
               -subj /CN=localhost -addext subjectAltName=DNS:localhost \
               -addext basicConstraints=critical,CA:FALSE -outform DER";
    let words: Vec<_> = new.split_whitespace().collect();
    check(command("openssl", &words).arg("-keyout").arg(&pem).arg("-out").arg(&certificate))?;
    let convert = ["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"];
    check(command("openssl", &convert).arg("-in").arg(&pem).arg("-out").arg(&key))?;
    Ok((key, certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_shell_are_read() {
        assert_eq!(seconds("1m2.500s"), Some(62.5));
        assert_eq!(seconds("0m0.010s"), Some(0.01));
        assert_eq!(seconds("12"), None);
    }
}
