//! Which programs there are, how they are built and run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::programs::{build, cache, our_target};
use super::super::versions::{self, Versions};
use crate::run::{check, command, output};

const OURS: &str = "bench/simulation/Cargo.toml";
const SCRIPT: &str = "bench/rivals/ns3/two_paths.py";
const REQUIREMENTS: &str = "bench/rivals/ns3/requirements.txt";

/// What a program says of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// Seconds of CPU time, of the run alone.
    pub(super) cpu: f64,
    /// Seconds, of the run alone.
    pub(super) wall: f64,
    /// Events, as the program counts them.
    pub(super) events: f64,
    /// Simulated seconds.
    pub(super) simulated: f64,
    /// Bytes of user data that arrived.
    pub(super) bytes: f64,
}

impl Answer {
    /// Nanoseconds of CPU time for an event.
    pub(super) fn nanoseconds(&self) -> f64 {
        self.cpu * 1e9 / self.events
    }

    /// Simulated seconds for a second of CPU time.
    pub(super) fn speed(&self) -> f64 {
        self.simulated / self.cpu
    }

    fn parse(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let number = |name: &str| value[name].as_f64().filter(|number| number.is_finite());
        let cpu = number("cpu").ok_or_else(|| format!("no cpu in {line}"))?;
        let events = number("events").ok_or_else(|| format!("no events in {line}"))?;
        let or_nothing = |name| number(name).unwrap_or(0.0);
        let (wall, simulated) = (or_nothing("wall"), or_nothing("simulated"));
        Ok(Self { cpu, wall, events, simulated, bytes: or_nothing("bytes") })
    }
}

/// What can be run.
pub(super) struct Programs {
    ours: PathBuf,
    python: Option<PathBuf>,
}

impl Programs {
    /// Builds or installs whatever is not there. ns-3 is left out, aloud, where it cannot be had.
    pub(super) fn build() -> Result<Self, String> {
        check(&mut build(Path::new(OURS), &our_target()))?;
        let python = install().map_err(|why| println!("ns-3 is left out: {why}")).ok();
        Ok(Self { ours: our_target().join("release/bench-simulation"), python })
    }

    /// What is measured.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let lock = "bench/simulation/Cargo.lock";
        let mut all = vec![("eyas", versions::locked(lock, &["eyas-lab", "eyas-netem"])?)];
        if let Some(python) = &self.python {
            let program = "from importlib.metadata import version; print(version('ns3'))";
            all.push(("ns-3", versions::python(python, program)?));
        }
        Ok(Versions(all))
    }

    /// Our simulator: so many simulated seconds, with so many streams.
    pub(super) fn ours(&self, seconds: u32, streams: u32) -> Result<Answer, String> {
        ask(&self.ours, &["association", &seconds.to_string(), &streams.to_string()])
    }

    /// A world of so many links, for so many events.
    pub(super) fn world(&self, links: u32, events: u64) -> Result<Answer, String> {
        ask(&self.ours, &["world", &links.to_string(), &events.to_string()])
    }

    /// ns-3, if it is there.
    pub(super) fn ns3(&self, seconds: u32) -> Option<Result<Answer, String>> {
        let python = self.python.as_ref()?;
        Some(ask(python, &[SCRIPT, &seconds.to_string()]))
    }
}

/// ns-3 from PyPI, in an environment of its own: it brings a compiler along.
fn install() -> Result<PathBuf, String> {
    let environment = cache().join("venv-ns3");
    let python = environment.join("bin/python");
    if !python.exists() {
        check(command("python3", &["-m", "venv"]).arg(&environment))?;
    }
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    check(command(&python.to_string_lossy(), &words).arg(REQUIREMENTS))?;
    Ok(python)
}

fn ask(program: &Path, words: &[&str]) -> Result<Answer, String> {
    let said = output(&mut command(&program.to_string_lossy(), words))?;
    Answer::parse(said.trim().lines().last().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let answer = Answer::parse(r#"{"cpu": 0.5, "events": 1000000, "simulated": 20}"#).unwrap();
        assert_eq!((answer.nanoseconds(), answer.speed(), answer.bytes), (500.0, 40.0, 0.0));
        assert!(Answer::parse("").is_err());
        assert!(Answer::parse(r#"{"cpu": 0.5}"#).unwrap_err().contains("events"));
    }

    #[test]
    fn the_script_and_what_it_needs_are_there() {
        for file in [OURS, SCRIPT, REQUIREMENTS] {
            assert!(crate::run::workspace().join(file).exists(), "{file}");
        }
    }
}
