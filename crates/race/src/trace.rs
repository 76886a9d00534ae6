//! The trace of a race: recorded, written, read, and replayed.
//!
//! One format serves as replay file, test vector and bug report, and as the input of `--explain`. A
//! file contains one JSON object per line: the [`TraceHeader`], followed by the [`TraceStep`]s. Parse the
//! first line as a [`HeaderVersion`] before anything else; a version other than [`SCHEMA_VERSION`]
//! is rejected.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::io::{RaceInput, RaceOutput};
use crate::race::{Race, RaceSetup};

mod journal;
#[cfg(test)]
mod tests;
mod wording;

pub use journal::RaceJournal;

/// The version of the format that this crate writes and reads.
pub const SCHEMA_VERSION: u32 = 2;

/// The maximum number of steps in a recording. A race needs a few hundred; the limit protects
/// against a runaway driver.
pub const MAX_STEPS: usize = 100_000;

/// The part of a [`TraceHeader`] that is common to all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderVersion {
    /// The version of everything that follows.
    pub version: u32,
}

impl HeaderVersion {
    /// Checks that the version is supported.
    ///
    /// # Errors
    /// The version, if it is not supported.
    pub fn check(self) -> Result<(), UnknownVersion> {
        if self.version == SCHEMA_VERSION { Ok(()) } else { Err(UnknownVersion(self.version)) }
    }
}

/// A trace has a version that this crate does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion(pub u32);

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its format is version {}, and this eyas reads version {SCHEMA_VERSION}: replay it with the eyas that recorded it",
            self.0
        )
    }
}

impl core::error::Error for UnknownVersion {}

/// The parameters of the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// [`SCHEMA_VERSION`] of the crate that recorded.
    pub version: u32,
    /// When the race was created, on the driver's epoch.
    pub started_at: Duration,
    /// Its parameters.
    pub setup: RaceSetup,
}

/// One call to the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// The time, on the driver's epoch.
    pub at: Duration,
    /// The input or output.
    #[serde(flatten)]
    pub event: TraceEvent,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEvent {
    /// An input from the driver.
    Input(RaceInput),
    /// An output of the race.
    Output(Box<RaceOutput>),
}

/// A whole race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The parameters.
    pub header: TraceHeader,
    /// The steps, in order.
    pub steps: Vec<TraceStep>,
}

/// A race that records all inputs and outputs. It has the same methods as the race, so a driver can
/// use it instead.
#[derive(Clone, Debug)]
pub struct TraceRecorder {
    race: Race,
    trace: Trace,
}

impl TraceRecorder {
    /// Creates a race and starts recording.
    pub fn new(setup: RaceSetup, now: Duration) -> Self {
        let header = TraceHeader { version: SCHEMA_VERSION, started_at: now, setup: setup.clone() };
        Self { race: Race::new(setup, now), trace: Trace { header, steps: Vec::new() } }
    }

    /// Like [`Race::handle_input`].
    pub fn handle_input(&mut self, now: Duration, input: RaceInput) {
        self.record(now, || TraceEvent::Input(input.clone()));
        self.race.handle_input(now, input);
    }

    /// Like [`Race::poll_output`].
    pub fn poll_output(&mut self, now: Duration) -> RaceOutput {
        let output = self.race.poll_output(now);
        self.record(now, || TraceEvent::Output(Box::new(output.clone())));
        output
    }

    /// Returns the race.
    pub fn race(&self) -> &Race {
        &self.race
    }

    /// Returns the recording so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Ends the recording.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    fn record(&mut self, at: Duration, event: impl FnOnce() -> TraceEvent) {
        if self.trace.steps.len() < MAX_STEPS {
            self.trace.steps.push(TraceStep { at, event: event() });
        }
    }
}

/// Where a replay diverged from the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayDivergence {
    /// The trace has another version.
    Version(UnknownVersion),
    /// An output differs.
    Output {
        /// The index of the first step that differs.
        step: usize,
        /// The time, on the driver's epoch.
        at: Duration,
        /// The recorded output.
        recorded: Box<RaceOutput>,
        /// The output of the replay.
        replayed: Box<RaceOutput>,
    },
}

/// Replays a recorded race, and compares every output.
///
/// # Errors
/// The first step at which an output differs from the recording.
pub fn replay(trace: &Trace) -> Result<Race, ReplayDivergence> {
    let version = HeaderVersion { version: trace.header.version };
    version.check().map_err(ReplayDivergence::Version)?;
    let mut race = Race::new(trace.header.setup.clone(), trace.header.started_at);
    for (step, TraceStep { at, event }) in trace.steps.iter().enumerate() {
        match event {
            TraceEvent::Input(input) => race.handle_input(*at, input.clone()),
            TraceEvent::Output(recorded) => {
                let replayed = race.poll_output(*at);
                if **recorded != replayed {
                    let (at, recorded, replayed) = (*at, recorded.clone(), Box::new(replayed));
                    return Err(ReplayDivergence::Output { step, at, recorded, replayed });
                }
            }
        }
    }
    Ok(race)
}
