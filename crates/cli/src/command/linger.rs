//! Lets a short run learn more after its work is done.
//!
//! A run that won over TCP may finish before it is known whether QUIC works. If it exited at once,
//! the next run would know no more. It therefore continues for a moment, at most [`MAX_TIME`], which
//! is not noticeable: an attempt that has been answered gets the time to complete, and one that has
//! had no answer in several round trips is remembered as silent with doubt, and soon tested again.
//! Attempts for such a test start a moment after the win, so they are waited for too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::MemoryStore;
use eyas::race::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt};
use eyas::race::race::{AttemptState, RaceAttempt};
use eyas::race::trace::{Trace, replay};

/// The longest time to continue.
const MAX_TIME: Duration = Duration::from_millis(400);
/// Bounds of the time after which an attempt without an answer counts as silent.
const SILENT_AFTER: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));
/// The number of the winner's round trips after which an attempt without an answer counts as
/// silent.
const ROUND_TRIPS: u32 = 3;
/// How often the race is checked.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Waits until nothing more can be learnt, but not for long.
pub(super) async fn linger(trace: impl Fn() -> Trace, memory: &MemoryStore) {
    let until = tokio::time::Instant::now() + MAX_TIME;
    loop {
        // A race that cannot be replayed provides no information.
        let trace = trace();
        let Ok(race) = replay(&trace) else { return };
        let in_progress =
            |attempt: &&RaceAttempt| matches!(attempt.state, AttemptState::UnderWay(_));
        let open: Vec<&RaceAttempt> = race.attempts().iter().filter(in_progress).collect();
        let winner = race.attempts().iter().find_map(|attempt| match attempt.state {
            AttemptState::Usable(_) => Some(attempt.rtt.unwrap_or_default()),
            _ => None,
        });
        let is_due = race.next_background_start().is_some();
        let (Some(rtt), true) = (winner, is_due || !open.is_empty()) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let silent_after = (rtt * ROUND_TRIPS).clamp(SILENT_AFTER.0, SILENT_AFTER.1);
        let is_silent = |attempt: &RaceAttempt| {
            attempt.level == EvidenceLevel::Started
                && now.saturating_sub(attempt.started) >= silent_after
        };
        if !open.is_empty() && open.iter().all(|attempt| is_silent(attempt)) {
            for attempt in open {
                memory.learn(&silence(&trace, attempt, now), race.setup().view.trust());
            }
            return;
        }
        if tokio::time::Instant::now() >= until {
            return;
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

fn silence(trace: &Trace, attempt: &RaceAttempt, now: Duration) -> Evidence {
    let waited = now.saturating_sub(attempt.started).as_millis();
    Evidence {
        at: now,
        network: trace.header.setup.network.id.clone(),
        host: trace.header.setup.target.host.clone(),
        candidate: attempt.candidate.clone(),
        level: EvidenceLevel::Started,
        failure: Some(AttemptFailure::new(
            FailureCause::Silent,
            EvidenceLevel::Started,
            format!("no answer in {waited} ms, when the run was done"),
        )),
        doubt: attempt.is_cut_short(now).then_some(FailureDoubt::CutShort),
        rtt: None,
        sent_again: None,
    }
}
