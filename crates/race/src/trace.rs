//! A race as it ran: recorded, written, read, and run again.
//!
//! One format serves as replay file, test vector, bug report and as what `--explain` reads. A file
//! holds one JSON object a line: the [`Header`], then a [`Step`] each. Read the first line as a
//! [`HeaderVersion`] before anything else; a version that is not [`SCHEMA_VERSION`] is set aside,
//! never guessed at.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::io::{Input, Output};
use crate::race::{Race, Setup};

mod journal;
#[cfg(test)]
mod tests;

pub use journal::Journal;

/// The version of the format that this crate writes, and the only one that it reads.
pub const SCHEMA_VERSION: u32 = 2;

/// The most steps that one recording holds. A race needs a few hundred; a driver that runs wild
/// does not fill the memory.
pub const MAX_STEPS: usize = 100_000;

/// The part of a [`Header`] that every version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderVersion {
    /// The version of everything that follows.
    pub version: u32,
}

impl HeaderVersion {
    /// Whether what follows can be read.
    ///
    /// # Errors
    /// The version, if this crate does not know it.
    pub fn check(self) -> Result<(), UnknownVersion> {
        if self.version == SCHEMA_VERSION { Ok(()) } else { Err(UnknownVersion(self.version)) }
    }
}

/// A trace of a version that this crate does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion(pub u32);

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the trace has version {}, and only version {SCHEMA_VERSION} is known: replay it with the eyas that recorded it",
            self.0
        )
    }
}

impl core::error::Error for UnknownVersion {}

/// How the race was set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`] of the crate that recorded.
    pub version: u32,
    /// When the race was made, on the driver's epoch.
    pub started_at: Duration,
    /// What it was made with.
    pub setup: Setup,
}

/// One call of the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When, on the driver's epoch.
    pub at: Duration,
    /// What went in or came out.
    #[serde(flatten)]
    pub event: Event,
}

/// What went in or came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The driver said this.
    Input(Input),
    /// The race said this.
    Output(Box<Output>),
}

/// A whole race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// How it was set up.
    pub header: Header,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// A race that writes down everything that goes in and comes out. It has the race's own methods,
/// so a driver uses it in the race's place.
#[derive(Clone, Debug)]
pub struct Recorder {
    race: Race,
    trace: Trace,
}

impl Recorder {
    /// Makes a race and starts the recording.
    pub fn new(setup: Setup, now: Duration) -> Self {
        let header = Header { version: SCHEMA_VERSION, started_at: now, setup: setup.clone() };
        Self { race: Race::new(setup, now), trace: Trace { header, steps: Vec::new() } }
    }

    /// As [`Race::handle_input`].
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.note(now, || Event::Input(input.clone()));
        self.race.handle_input(now, input);
    }

    /// As [`Race::poll_output`].
    pub fn poll_output(&mut self, now: Duration) -> Output {
        let output = self.race.poll_output(now);
        self.note(now, || Event::Output(Box::new(output.clone())));
        output
    }

    /// The race itself.
    pub fn race(&self) -> &Race {
        &self.race
    }

    /// What was recorded so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Ends the recording.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    fn note(&mut self, at: Duration, event: impl FnOnce() -> Event) {
        if self.trace.steps.len() < MAX_STEPS {
            self.trace.steps.push(Step { at, event: event() });
        }
    }
}

/// Where a replay went another way than the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// The trace is of another version.
    Version(UnknownVersion),
    /// The race said something else.
    Output {
        /// The index of the first step that differs.
        step: usize,
        /// When, on the driver's epoch.
        at: Duration,
        /// What was recorded.
        recorded: Box<Output>,
        /// What the race says now.
        replayed: Box<Output>,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Output { step, at, recorded, replayed } => write!(
                f,
                "step {step} at {at:?} differs: recorded {recorded:?}, replayed {replayed:?}; the trace was changed, or recorded by another eyas"
            ),
        }
    }
}

impl core::error::Error for Divergence {}

/// Runs a recorded race again, and compares every output.
///
/// # Errors
/// The first step at which the race says something else than it did.
pub fn replay(trace: &Trace) -> Result<Race, Divergence> {
    let version = HeaderVersion { version: trace.header.version };
    version.check().map_err(Divergence::Version)?;
    let mut race = Race::new(trace.header.setup.clone(), trace.header.started_at);
    for (step, Step { at, event }) in trace.steps.iter().enumerate() {
        match event {
            Event::Input(input) => race.handle_input(*at, input.clone()),
            Event::Output(recorded) => {
                let replayed = race.poll_output(*at);
                if **recorded != replayed {
                    let (at, recorded, replayed) = (*at, recorded.clone(), Box::new(replayed));
                    return Err(Divergence::Output { step, at, recorded, replayed });
                }
            }
        }
    }
    Ok(race)
}
