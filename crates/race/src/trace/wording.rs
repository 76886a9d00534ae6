//! Where a replay diverged, in one line for people.

use core::fmt;

use crate::evidence::Evidence;
use crate::io::{RaceFailure, RaceOutput};
use crate::trace::ReplayDivergence;

impl fmt::Display for ReplayDivergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, recorded, replayed) = match self {
            Self::Version(version) => return version.fmt(f),
            Self::Output { step, recorded, replayed, .. } => (step, recorded, replayed),
        };
        let step = step + 1;
        write!(f, "step {step} differs: recorded was {}, and ", InWords(recorded))?;
        match (InWords(recorded).to_key(), InWords(replayed).to_key()) {
            (recorded, replayed) if recorded == replayed => {
                f.write_str("this eyas does the same with other details")?;
            }
            _ => write!(f, "this eyas has {}", InWords(replayed))?,
        }
        f.write_str("; the trace was recorded by another version of eyas, or was changed")
    }
}

impl core::error::Error for ReplayDivergence {}

/// An output, described in a few words.
struct InWords<'a>(&'a RaceOutput);

impl InWords<'_> {
    /// Returns the text, to compare it.
    fn to_key(&self) -> alloc::string::String {
        alloc::format!("{self}")
    }
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RaceOutput::Query(query) => {
                write!(f, "a query for {} {}", query.name, query.record_type.name())
            }
            RaceOutput::Start { id, candidate, background, .. } => {
                let how = if *background { " beside a connection" } else { "" };
                write!(f, "the start of attempt {} over {candidate}{how}", id.0)
            }
            RaceOutput::Proceed { id } => write!(f, "attempt {} going on", id.0),
            RaceOutput::Close { id, why } => {
                write!(f, "the end of attempt {} ({})", id.0, why.description())
            }
            RaceOutput::Usable(id) => write!(f, "attempt {} winning", id.0),
            RaceOutput::Better(id) => write!(f, "attempt {} taking over", id.0),
            RaceOutput::Learn(evidence) => learnt(f, evidence),
            RaceOutput::Failed(failure) => write!(f, "the end of the race ({})", cause(failure)),
            RaceOutput::Finished => f.write_str("the end of the race"),
            RaceOutput::Timeout(Some(at)) => {
                write!(f, "waiting until {:.3} ms", at.as_secs_f64() * 1e3)
            }
            RaceOutput::Timeout(None) => f.write_str("waiting for what comes"),
        }
    }
}

fn learnt(f: &mut fmt::Formatter<'_>, evidence: &Evidence) -> fmt::Result {
    write!(f, "learning that {} ", evidence.candidate)?;
    match &evidence.failure {
        Some(failure) => write!(f, "does not work ({})", failure.cause),
        None => f.write_str("works"),
    }
}

const fn cause(failure: &RaceFailure) -> &'static str {
    match failure {
        RaceFailure::NoAddress(_) => "no address",
        RaceFailure::NoCandidate => "nothing to try",
        RaceFailure::AllFailed(_) => "every attempt failed",
        RaceFailure::Deadline(_) => "its deadline passed",
        RaceFailure::Cancelled => "cancelled",
        RaceFailure::NoNetwork => "no network",
    }
}
