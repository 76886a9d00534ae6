//! `cargo eyas-bench python`: the Python package, compared with other Python clients.
//!
//! Rounds and sites are those of `http`. Then each client in turn makes many requests over one
//! connection, one after another.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::arena::{self, Arena, HEALTHY, WITHOUT_UDP};
use crate::environment::{PythonEnvironment, build_wheel};
use crate::options::Options;
use crate::page;
use crate::programs::{self, NIQUESTS, Programs};
use crate::rival::Rival;
use crate::run::workspace;
use crate::scenario::{self, Scenario};
use crate::statistics::{Results, Rounds};
use crate::verdict::{self, Expectation};
use crate::versions::{self, Versions};

/// The default number of rounds.
const ROUNDS: usize = 500;
/// The number of rounds with `--quick`.
const QUICK_ROUNDS: usize = 10;
/// How often each client makes its requests over one connection, and their number.
const TURNS: usize = 7;
const QUICK_TURNS: usize = 1;
const REQUESTS: u32 = 300;
/// The maximum time of eyas relative to the fastest of the others, over HTTP/1.1 and HTTP/2.
const RATIO: f64 = 1.10;
/// The minimum of the requests per second of `AsyncClient`, relative to aiohttp.
const AWAITED_RATE: f64 = 0.9;
/// The maximum time to the first response of a client without memory, in milliseconds.
const FIRST: f64 = 60.0;

const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "h1", mode: "h1", site: &HEALTHY },
    Scenario { name: "h2", mode: "h2", site: &HEALTHY },
    Scenario { name: "h3", mode: "h3", site: &HEALTHY },
    Scenario { name: "race", mode: "race", site: &HEALTHY },
    Scenario { name: "no UDP, first", mode: "race", site: &WITHOUT_UDP },
];
const MODES: [&str; 3] = ["h1", "h2", "h3"];

/// The name of each client of `python_rounds.py` in the tables, its name in the script, and the code
/// that prints its version.
const CLIENTS: [(&str, &str, &str); 6] = [
    ("eyas", "eyas", "import importlib.metadata as it; print(it.version('eyas'))"),
    ("eyas, asyncio", "eyas-asyncio", "import sys; print('Python', *sys.version.split()[:1])"),
    ("httpx", "httpx", "import httpx, h2; print(httpx.__version__, 'h2', h2.__version__)"),
    ("aiohttp", "aiohttp", "import aiohttp; print(aiohttp.__version__)"),
    (
        "requests",
        "requests",
        "import requests, urllib3 as it; print(requests.__version__, 'urllib3', it.__version__)",
    ),
    (
        "curl_cffi",
        "curl_cffi",
        "import curl_cffi as it; print(it.__version__, it.Curl().version().decode())",
    ),
];
const OTHERS: [&str; 5] = ["httpx", "aiohttp", "requests", "curl_cffi", "niquests"];

/// Requests a second over one connection, by client and version of HTTP.
type Rates = BTreeMap<(&'static str, &'static str), Rounds>;

/// Runs the benchmark and writes its tables. It runs in its own namespaces, which this program enters by
/// starting itself again.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let python = programs::cache().join("venv-python/bin/python");
    if !options.inside {
        let programs = Programs::installed();
        programs.install_caddy()?;
        programs.install_python()?;
        let Some(wheel) = build_wheel()? else { return Ok(()) };
        let environment = PythonEnvironment::new(&programs::cache().join("venv-python"))?;
        environment.install(&["-r", "bench/rivals/python.txt"])?;
        environment.install_wheel(&wheel)?;
        if options.build {
            return Ok(());
        }
        return arena::enter(&[&["python", "--inside"], args].concat());
    }
    let rounds = options.rounds.unwrap_or(if options.quick { QUICK_ROUNDS } else { ROUNDS });
    let programs = Programs::installed();
    let versions = installed_versions(&programs, &python)?;
    let arena = Arena::new(&programs.caddy, &programs.python)?;
    let mut rivals = start_all(&programs, &python, &arena)?;
    let results = scenario::measure(&mut rivals, &SCENARIOS, rounds);
    let rates = reuse(&mut rivals, if options.quick { QUICK_TURNS } else { TURNS });
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    drop(rivals);
    let line = format!("cargo eyas-bench python --rounds {rounds}");
    let tables = [
        page::circumstances(&line),
        scenario::table(&names, &SCENARIOS, &results),
        rates_table(&names, &rates),
        versions.table(),
        verdict::table(&expectations(&results, &rates)),
    ];
    page::publish("python", &tables.join("\n"), options.dry)
}

fn start_all(programs: &Programs, python: &Path, arena: &Arena) -> Result<Vec<Rival>, String> {
    let script = |name: &str| workspace().join("bench/rivals").join(name);
    let mut rivals = Vec::new();
    for (name, word, _) in CLIENTS {
        let mut command = Command::new(python);
        command.arg(script("python_rounds.py")).arg(word);
        rivals.push(programs::start(arena, name, command)?);
    }
    let mut command = Command::new(&programs.python);
    command.arg(script("niquests_rounds.py"));
    rivals.push(programs::start(arena, "niquests", command)?);
    Ok(rivals)
}

fn installed_versions(programs: &Programs, python: &Path) -> Result<Versions, String> {
    let mut all = Vec::new();
    for (name, _, expression) in CLIENTS {
        all.push((name, versions::python(python, expression)?));
    }
    all.push(("niquests", versions::python(&programs.python, NIQUESTS)?));
    all.push(("Caddy, the server", programs.caddy_version()));
    Ok(Versions(all))
}

/// Has each client in turn make many requests over one connection.
fn reuse(rivals: &mut [Rival], turns: usize) -> Rates {
    let mut rates = Rates::new();
    for turn in 0..turns {
        println!("requests over one connection, turn {} of {turns}", turn + 1);
        for mode in MODES {
            for rival in rivals.iter_mut() {
                let answer = rival.query(&format!("reuse {mode} {REQUESTS} {}", HEALTHY.url()));
                let rate = answer.map(|time| f64::from(REQUESTS) / time * 1000.0);
                rates.entry((rival.name, mode)).or_default().add(rate);
            }
        }
    }
    for ((client, mode), rounds) in &rates {
        // As in the rounds, a client that does not support a mode reports that.
        if let Some(error) = rounds.errors.iter().find(|error| !error.contains(" not know ")) {
            println!("{client}, {mode}: {error}");
        }
    }
    rates
}

fn rates_table(names: &[&str], rates: &Rates) -> String {
    let mut text = String::from("| requests per second over one connection |");
    for mode in MODES {
        let _ = write!(text, " {mode} |");
    }
    let _ = writeln!(text, "\n| --- |{}", " ---: |".repeat(MODES.len()));
    for name in names {
        let _ = write!(text, "| {name} |");
        for mode in MODES {
            let rate = rates.iter().find(|((client, of), _)| (client, of) == (name, &mode));
            let rate = rate.and_then(|(_, rounds)| rounds.median());
            let _ = write!(text, " {} |", rate.map_or("–".into(), |rate| format!("{rate:.0}")));
        }
        text.push('\n');
    }
    text
}

fn expectations(results: &Results, rates: &Rates) -> Vec<Expectation> {
    let of = |client: &'static str, column: &'static str| {
        results.get(&(client, column)).and_then(Rounds::median)
    };
    let fastest =
        |column| OTHERS.into_iter().filter_map(|other| of(other, column)).min_by(f64::total_cmp);
    let rate = |client: &'static str, mode: &'static str| {
        rates.get(&(client, mode)).and_then(Rounds::median)
    };
    let highest_rate = |mode: &'static str| {
        OTHERS.into_iter().filter_map(|other| rate(other, mode)).max_by(f64::total_cmp)
    };
    let mut expectations = Vec::new();
    for (column, bound) in [("h1", RATIO), ("h2", RATIO), ("h3", 1.0), ("race", 1.0)] {
        let target = format!("{column}: at most {bound:.2} × the fastest of the others");
        expectations.push(verdict::ratio(target, of("eyas", column), fastest(column), bound));
    }
    for (mode, least) in [("h1", 1.0 / RATIO), ("h2", 1.0 / RATIO), ("h3", 1.0)] {
        let target =
            format!("{mode}, requests per second: at least {least:.2} × the best of the others");
        expectations.push(verdict::rate(target, rate("eyas", mode), highest_rate(mode), least));
    }
    let target = format!("h1, awaited requests per second: at least {AWAITED_RATE:.2} × aiohttp");
    let (ours, theirs) = (rate("eyas, asyncio", "h1"), rate("aiohttp", "h1"));
    expectations.push(verdict::rate(target, ours, theirs, AWAITED_RATE));
    let first = of("eyas", "no UDP, first");
    expectations.push(verdict::bound(format!("no UDP, first: within {FIRST} ms"), first, FIRST));
    expectations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single_round(number: f64) -> Rounds {
        Rounds { times: vec![number], errors: Vec::new() }
    }

    #[test]
    fn eyas_is_compared_with_the_fastest_of_the_others() {
        let results = Results::from([
            (("eyas", "h1"), single_round(1.1)),
            (("httpx", "h1"), single_round(3.0)),
            (("requests", "h1"), single_round(1.0)),
            (("eyas", "h3"), single_round(2.0)),
            (("niquests", "h3"), single_round(1.9)),
            // Another client of ours does not count as a rival.
            (("eyas, asyncio", "h3"), single_round(0.1)),
        ]);
        let rates = Rates::from([
            (("eyas", "h1"), single_round(950.0)),
            (("aiohttp", "h1"), single_round(1000.0)),
            (("eyas, asyncio", "h1"), single_round(890.0)),
        ]);
        let text = verdict::table(&expectations(&results, &rates));
        assert!(text.contains("1.10 ms / 1.00 ms = 1.10 | yes |"), "{text}");
        assert!(text.contains("2.00 ms / 1.90 ms = 1.05 | **no** |"), "{text}");
        assert!(text.contains("950 / 1000 = 0.95 | yes |"), "{text}");
        assert!(text.contains("890 / 1000 = 0.89 | **no** |"), "{text}");
        assert!(text.contains("no UDP, first: within 60 ms | – | not measured |"), "{text}");
    }

    #[test]
    fn rates_have_a_cell_for_every_version() {
        let rates = Rates::from([(("eyas", "h2"), single_round(1234.4))]);
        let text = rates_table(&["eyas"], &rates);
        assert_eq!(text.lines().last(), Some("| eyas | – | 1234 | – |"));
    }

    #[test]
    fn the_script_knows_the_clients() {
        let script = workspace().join("bench/rivals/python_rounds.py");
        let script = std::fs::read_to_string(script).unwrap();
        for (_, word, _) in CLIENTS {
            assert!(script.contains(&format!("\"{word}\": ")), "{word}");
        }
    }
}
