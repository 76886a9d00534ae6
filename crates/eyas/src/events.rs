//! The `tracing` events of races, which the [crate's documentation](crate#events) lists.

use std::time::Duration;

use eyas_race::candidate::Candidate;
use eyas_race::evidence::{AttemptFailure, Evidence, FailureCause};
use eyas_race::io::RaceFailure;
use eyas_race::race::{Race, RaceAttempt};
use tracing::debug;

/// The target of the events.
const TARGET: &str = "eyas::race";

/// The candidates in their order, before the first attempt starts.
pub(crate) fn plan(race: &Race) {
    debug!(
        target: TARGET,
        host = %race.setup().target.host,
        port = race.setup().target.port,
        candidates = %list(race.plan().entries.iter().map(|entry| &entry.candidate)),
        dropped = race.plan().dropped.len(),
        "plan"
    );
}

/// An attempt starts.
pub(crate) fn start(race: &Race, candidate: &Candidate, attempt: Option<&RaceAttempt>) {
    debug!(
        target: TARGET,
        host = %race.setup().target.host,
        %candidate,
        reasons = %list(attempt.into_iter().flat_map(|attempt| &attempt.reasons)),
        "start"
    );
}

/// An attempt has failed by itself.
pub(crate) fn failure(race: &Race, candidate: &Candidate, failure: &AttemptFailure) {
    let host = &race.setup().target.host;
    debug!(target: TARGET, %host, %candidate, cause = failure.cause.name(), %failure, "failure");
}

/// A ClientHello of two packets has not got through, and the attempt goes on.
pub(crate) fn long_hello(race: &Race, candidate: &Candidate, detail: &str) {
    let (host, cause) = (&race.setup().target.host, FailureCause::LongClientHello.name());
    debug!(target: TARGET, %host, %candidate, cause, failure = detail, "failure");
}

/// An attempt has won.
pub(crate) fn win(race: &Race, candidate: &Candidate, after: Duration) {
    let (host, after_ms) = (&race.setup().target.host, after.as_secs_f64() * 1e3);
    debug!(target: TARGET, %host, %candidate, after_ms, "win");
}

/// A better attempt has completed after the win.
pub(crate) fn switch(race: &Race, candidate: &Candidate, after: Duration) {
    let (host, after_ms) = (&race.setup().target.host, after.as_secs_f64() * 1e3);
    debug!(target: TARGET, %host, %candidate, after_ms, "switch");
}

/// Nobody has won.
pub(crate) fn lost(race: &Race, failure: &RaceFailure) {
    debug!(target: TARGET, host = %race.setup().target.host, ?failure, "no winner");
}

/// Something goes into the memory.
pub(crate) fn learnt(evidence: &Evidence) {
    debug!(
        target: TARGET,
        host = %evidence.host,
        candidate = %evidence.candidate,
        level = ?evidence.level,
        cause = evidence.failure.as_ref().map(|failure| failure.cause.name()),
        "learnt"
    );
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join("; ")
}
