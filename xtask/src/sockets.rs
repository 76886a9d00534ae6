//! `cargo xtask sockets`: random calls on SCTP sockets, compared with models of the kernel, and arbitrary
//! requests of programs to their supervisor, for as long as requested.
//!
//! Each round of calls has its own seed, which is printed: `PROPTEST_RNG_SEED` repeats the same calls.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::run::{check, command};

/// The tests whose calls are random (`crates/sockets/tests/stack/`).
const TESTS: [&str; 5] = ["many::", "model::", "buffers::", "life::", "random_calls::"];
/// Series of calls of each test in one round, which takes about a minute.
const SERIES: u32 = 2000;
/// The target that is fuzzed (`fuzz/fuzz_targets/`).
const TARGET: &str = "socket_requests";

struct Options {
    minutes: u64,
    fuzz: u64,
}

/// Runs the tests, and stops at the first difference.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let Options { minutes, fuzz } = Options::parse(args)?;
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < Duration::from_secs(60 * minutes) {
        round(first.wrapping_add(rounds))?;
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs();
    println!(
        "{rounds} rounds of {SERIES} series of calls for each test in {seconds} s, seeds from {first}"
    );
    if fuzz > 0 {
        let time = format!("-max_total_time={}", 60 * fuzz);
        let seed = format!("-seed={}", u32::try_from(first).unwrap_or(1));
        check(&mut command("cargo", &["+nightly", "fuzz", "run", TARGET, "--", &time, &seed]))?;
    }
    Ok(())
}

/// Runs all tests once, with a seed.
fn round(seed: u64) -> Result<(), String> {
    println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={SERIES}");
    let args =
        ["test", "--quiet", "--release", "--package", "eyas-sockets", "--test", "stack", "--"];
    let mut tests = command("cargo", &[&args[..], &TESTS[..]].concat());
    tests.env("PROPTEST_RNG_SEED", seed.to_string()).env("PROPTEST_CASES", SERIES.to_string());
    check(&mut tests)
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self { minutes: 30, fuzz: 10 };
        for pair in args.chunks(2) {
            let value = match pair[0] {
                "--minutes" => &mut options.minutes,
                "--fuzz" => &mut options.fuzz,
                other => {
                    return Err(format!("sockets takes --minutes N and --fuzz N, not {other}"));
                }
            };
            let number = pair.get(1).and_then(|number| number.parse().ok());
            *value = number.ok_or_else(|| format!("{} needs a number of minutes", pair[0]))?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_as_minutes() {
        let of =
            |args: &[&str]| Options::parse(args).map(|options| (options.minutes, options.fuzz));
        assert_eq!(of(&[]), Ok((30, 10)));
        assert_eq!(of(&["--fuzz", "0", "--minutes", "5"]), Ok((5, 0)));
        assert!(
            of(&["--minutes"]).is_err()
                && of(&["--minutes", "all"]).is_err()
                && of(&["5"]).is_err()
        );
    }
}
