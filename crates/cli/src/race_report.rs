//! Describes a race from its trace: pictures, objects and sentences.
//!
//! Only the contents of the trace are used, so a replayed race is described in the same way.

mod connection;
mod failure;
mod file;
mod lines;
mod picture;
mod table;
mod verdict;

use eyas::race::race::Race;
use eyas::race::report::RaceReport;
use eyas::race::trace::{Trace, replay};

use crate::failure::{Failure, FailureKind};

pub(crate) use connection::connection_lines;
pub(crate) use failure::certificate_hint;
pub(crate) use file::{read, write};
pub(crate) use lines::{explanation, name_source, plan_lines, source_line};
pub(crate) use picture::paint;

/// A race with everything needed to describe it.
#[derive(Debug)]
pub(crate) struct ReplayedRace {
    /// The trace: what happened, step by step.
    pub(crate) trace: Trace,
    /// The result.
    pub(crate) report: RaceReport,
    race: Race,
}

impl ReplayedRace {
    /// Reads a trace.
    pub(crate) fn from_trace(trace: Trace) -> Result<Self, Failure> {
        let race = replay(&trace)
            .map_err(|divergence| Failure::new(FailureKind::Replay, divergence.to_string()))?;
        Ok(Self { report: RaceReport::new(&race, &trace), race, trace })
    }
}
