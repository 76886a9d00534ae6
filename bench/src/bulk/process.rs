//! `eyas get` and curl fetch a small page in turn, each as a whole process: from its start, with the memory of outcomes
//! and the certificate that it trusts, to its end.

use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::calls::limited;
use super::programs::Programs;
use super::speed::{
    CURL, EYAS, FILE_SERVER, VERSIONS, curl_version, is_of_curl, row, serve, table_of_clients,
};
use crate::arena::Arena;
use crate::run::{command, output};
use crate::tables::{Column, Figures, expectation, ratio};
use crate::verdict::{Bound, Expectation};

/// How often each client runs in a round.
const RUNS: usize = 20;
/// The length of the page, in bytes.
const PAGE: u64 = 1000;
/// The longest time of eyas, relative to curl.
const MOST_TIME: f64 = 1.0;
/// The largest peak of eyas's resident memory, in MB.
const MOST_MEMORY: f64 = 14.0;
const COLUMNS: [&str; 3] = ["time, ms", "CPU, ms", "peak memory, MB"];
/// What this program gets to run a single client.
pub(super) const ONE: &str = "--one";

/// The measurements.
pub(super) struct Measured {
    figures: Figures,
    curl_has_http3: bool,
}

/// Measures both clients in turn.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    rounds: usize,
) -> Result<Measured, String> {
    let directory = arena.directory();
    let roots = directory.join("page.pem");
    let _server =
        serve(programs, directory, FILE_SERVER, &["--save-cert", &roots.to_string_lossy()])?;
    let url = format!("https://{FILE_SERVER}/bytes/{PAGE}");
    let curl_has_http3 = programs.curl_has_http3;
    let mut figures = Figures::default();
    for round in 0..rounds {
        println!("a small page: round {} of {rounds}", round + 1);
        for _ in 0..RUNS {
            for version in VERSIONS {
                let mut eyas = programs.eyas(&["get", version.eyas]);
                // Where the memory is.
                eyas.env("XDG_STATE_HOME", directory);
                let mut clients = vec![(EYAS, eyas)];
                if is_of_curl(version, curl_has_http3) {
                    clients.push((CURL, command("curl", &["-f", version.curl])));
                }
                for (name, mut client) in clients {
                    client.args(["-s", "-o", "/dev/null", "--cacert"]).arg(&roots).arg(&url);
                    let lines = alone(&client).unwrap_or_else(|error| {
                        COLUMNS.map(|column| format!("{column}\t{error}")).join("\n")
                    });
                    for line in lines.lines() {
                        figures.take(&format!("{}\t{line}", row(version, name)), &COLUMNS);
                    }
                }
            }
        }
    }
    Ok(Measured { figures, curl_has_http3 })
}

/// Runs a client as the only child of another process of this program, and returns what [`run_one`] prints there.
fn alone(client: &Command) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut alone = command(&program.to_string_lossy(), &["bulk", ONE]);
    alone.arg(client.get_program()).args(client.get_args());
    alone.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
    output(&mut limited(&alone))
}

/// Runs a program to its end, and prints a column and a figure on each line. The kernel tells the CPU time and the peak
/// memory of all children of a process together, so this has a process of its own.
pub(super) fn run_one(line: &[&str]) -> Result<(), String> {
    let [program, args @ ..] = line else { return Err(format!("{ONE} needs a program")) };
    let mut client = command(program, args);
    let start = Instant::now();
    let status = client.stdout(Stdio::null()).status();
    let time = start.elapsed().as_secs_f64() * 1000.0;
    let status = status.map_err(|error| format!("{program}: {error}"))?;
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let cpu = (used.user_time() + used.system_time()).num_microseconds() as f64 / 1000.0;
    for (column, figure) in COLUMNS.iter().zip([time, cpu, used.max_rss() as f64 / 1024.0]) {
        println!("{column}\t{figure:.3}");
    }
    Ok(())
}

impl Measured {
    /// Returns a table with a row for each version and client.
    pub(super) fn table(&self) -> String {
        let columns = COLUMNS.map(|name| Column { name, digits: 1 });
        table_of_clients(&self.figures, "a small page, the whole process", &columns)
    }

    /// Returns the targets. Where curl has no HTTP/3, HTTP/3 is compared with its HTTP/2.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let mut expectations = Vec::new();
        for version in VERSIONS {
            let theirs = curl_version(version, self.curl_has_http3);
            let [time, _, memory] = COLUMNS;
            let median =
                |version, client: &str, column| self.figures.median(&row(version, client), column);
            let measured = ratio(median(version, EYAS, time), median(theirs, CURL, time));
            let target = format!(
                "a small page over {}: at most {MOST_TIME:.1} × the time of curl over {}",
                version.name, theirs.name
            );
            expectations.push(expectation(&target, measured, Bound::AtMost(MOST_TIME), ""));
            let target = format!("a small page over {}: at most {MOST_MEMORY} MB", version.name);
            let peak = median(version, EYAS, memory);
            expectations.push(expectation(&target, peak, Bound::AtMost(MOST_MEMORY), "MB"));
        }
        expectations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_compared_with_curl_and_memory_with_its_bound() {
        let mut figures = Figures::default();
        for (client, [time, memory]) in [(EYAS, [9.0, 15.0]), (CURL, [10.0, 12.0])] {
            figures.add(&row(VERSIONS[0], client), COLUMNS[0], Ok(time));
            figures.add(&row(VERSIONS[0], client), COLUMNS[2], Ok(memory));
        }
        let measured = Measured { figures, curl_has_http3: false };
        let rows: String = measured.expectations().iter().map(Expectation::row).collect();
        for row in [
            "| a small page over HTTP/1.1: at most 1.0 × the time of curl over HTTP/1.1 | 0.90 | yes |",
            "| a small page over HTTP/1.1: at most 14 MB | 15.00 MB | **no** |",
            "| a small page over HTTP/3: at most 1.0 × the time of curl over HTTP/2 | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        assert!(measured.table().contains("| HTTP/1.1, eyas get | 9.0 | – | 15.0 |"));
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        assert!(run_one(&["false"]).unwrap_err().contains("ended with"));
        assert!(run_one(&["/no/such/program"]).is_err());
        assert!(run_one(&[]).is_err());
    }
}
