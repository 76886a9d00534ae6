//! The programs, and how they are built and run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::environment::PythonEnvironment;
use crate::programs::{build, cache};
use crate::run::{check, command, output, target};
use crate::versions::{self, Versions};

const OURS: &str = "bench/simulation/Cargo.toml";
const SCRIPT: &str = "bench/rivals/ns3/two_paths.py";
const REQUIREMENTS: &str = "bench/rivals/ns3/requirements.txt";

/// The report of a program about its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// CPU time of the run only, in seconds.
    pub(super) cpu: f64,
    /// The duration of the run only, in seconds.
    pub(super) wall: f64,
    /// The number of events, as the program counts them.
    pub(super) events: f64,
    /// Simulated seconds.
    pub(super) simulated: f64,
    /// Bytes of user data that arrived.
    pub(super) bytes: f64,
}

impl Answer {
    /// Returns the CPU time per event in nanoseconds.
    pub(super) fn nanoseconds(&self) -> f64 {
        self.cpu * 1e9 / self.events
    }

    /// Returns the simulated seconds per second of CPU time.
    pub(super) fn speed(&self) -> f64 {
        self.simulated / self.cpu
    }

    fn parse(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let number = |name: &str| value[name].as_f64().filter(|number| number.is_finite());
        let cpu = number("cpu").ok_or_else(|| format!("no cpu in {line}"))?;
        let events = number("events").ok_or_else(|| format!("no events in {line}"))?;
        let or_zero = |name| number(name).unwrap_or(0.0);
        let (wall, simulated) = (or_zero("wall"), or_zero("simulated"));
        Ok(Self { cpu, wall, events, simulated, bytes: or_zero("bytes") })
    }
}

/// The programs that can be run.
pub(super) struct Programs {
    ours: PathBuf,
    python: Option<PathBuf>,
}

impl Programs {
    /// Builds or installs whatever is missing. ns-3 is left out, with a message, if it cannot be installed.
    pub(super) fn build() -> Result<Self, String> {
        check(&mut build(Path::new(OURS), &target()))?;
        let python = install().map_err(|why| println!("ns-3 is left out: {why}")).ok();
        Ok(Self { ours: target().join("release/bench-simulation"), python })
    }

    /// Returns the versions of the measured programs.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let lock = "bench/simulation/Cargo.lock";
        let mut all = vec![("eyas", versions::locked(lock, &["eyas-lab", "eyas-netem"])?)];
        if let Some(python) = &self.python {
            let program = "from importlib.metadata import version; print(version('ns3'))";
            all.push(("ns-3", versions::python(python, program)?));
        }
        Ok(Versions(all))
    }

    /// Runs our simulator for this number of simulated seconds, with this number of streams.
    pub(super) fn ours(&self, seconds: u32, streams: u32) -> Result<Answer, String> {
        run(&self.ours, &["association", &seconds.to_string(), &streams.to_string()])
    }

    /// Runs a world with this number of links for this number of events.
    pub(super) fn world(&self, links: u32, events: u64) -> Result<Answer, String> {
        run(&self.ours, &["world", &links.to_string(), &events.to_string()])
    }

    /// Runs ns-3, if it is available.
    pub(super) fn ns3(&self, seconds: u32) -> Option<Result<Answer, String>> {
        let python = self.python.as_ref()?;
        Some(run(python, &[SCRIPT, &seconds.to_string()]))
    }
}

/// Installs ns-3 from PyPI in its own environment, because it includes a compiler.
fn install() -> Result<PathBuf, String> {
    let environment = PythonEnvironment::new(&cache().join("venv-ns3"))?;
    environment.install(&["-r", REQUIREMENTS])?;
    Ok(environment.interpreter().to_path_buf())
}

fn run(program: &Path, args: &[&str]) -> Result<Answer, String> {
    let output = output(&mut command(&program.to_string_lossy(), args))?;
    Answer::parse(output.trim().lines().last().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed() {
        let answer = Answer::parse(r#"{"cpu": 0.5, "events": 1000000, "simulated": 20}"#).unwrap();
        assert_eq!((answer.nanoseconds(), answer.speed(), answer.bytes), (500.0, 40.0, 0.0));
        assert!(Answer::parse("").is_err());
        assert!(Answer::parse(r#"{"cpu": 0.5}"#).unwrap_err().contains("events"));
    }

    #[test]
    fn the_script_and_its_requirements_exist() {
        for file in [OURS, SCRIPT, REQUIREMENTS] {
            assert!(crate::run::workspace().join(file).exists(), "{file}");
        }
    }
}
