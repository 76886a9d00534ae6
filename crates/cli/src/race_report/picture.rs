//! The race as a [`RaceTimeline`].

use std::time::Duration;

use eyas::race::candidate::{Candidate, Transport};
use eyas::race::evidence::EvidenceLevel;
use eyas::race::io::{AttemptId, CloseReason, RaceInput};
use eyas::race::race::{AttemptState, RaceAttempt};
use eyas::race::report::DnsReport;
use eyas::race::trace::TraceEvent;

use super::ReplayedRace;
use crate::terminal::{Paint, time};
use crate::timeline::{LaneEnd, RaceTimeline, TimelineLane};

impl ReplayedRace {
    /// Returns a picture with one lane for each attempt.
    pub(crate) fn picture(&self) -> RaceTimeline {
        let attempts = self.race.attempts();
        let width = attempts.iter().map(|attempt| attempt.transport().name().len()).max();
        let width = width.unwrap_or_default();
        RaceTimeline { lanes: attempts.iter().map(|attempt| self.lane(attempt, width)).collect() }
    }

    /// Returns the picture with a lane for each DNS query above the attempts.
    pub(crate) fn picture_with_dns(&self) -> RaceTimeline {
        let mut timeline = self.picture();
        let questions = self.report.dns.iter().map(dns_lane);
        timeline.lanes.splice(0..0, questions);
        timeline
    }

    fn lane(&self, attempt: &RaceAttempt, width: usize) -> TimelineLane {
        let since = |at: Duration| at.saturating_sub(self.race.started_at());
        let end = end(attempt);
        TimelineLane {
            name: self.name(attempt, width),
            paint: paint(attempt.candidate.transport),
            started: since(attempt.started),
            progress: self.progress(attempt.id),
            ended: attempt.ended().map(since),
            end,
            note: match (end, self.trace.header.setup.policy.exhaustive) {
                // Every candidate was to finish, so that being ready first is no more than that.
                (LaneEnd::Won, true) => ready(attempt.ended().map(since), ", the first"),
                (LaneEnd::Ready, true) => ready(attempt.ended().map(since), ""),
                _ => note(attempt, end, attempt.ended().map(since), since(attempt.started)),
            },
        }
    }

    /// Returns transport and address, and the security protocol if another attempt differs only in
    /// that.
    fn name(&self, attempt: &RaceAttempt, width: usize) -> String {
        let Candidate { transport, address, security, .. } = &attempt.candidate;
        let differs_only_in_security = |other: &RaceAttempt| {
            let other = &other.candidate;
            (other.transport, &other.address) == (*transport, address)
                && other.security != *security
        };
        let name = format!("{:width$} {address}", attempt.transport());
        match self.race.attempts().iter().any(differs_only_in_security) {
            true => format!("{name} {}", security.name()),
            false => name,
        }
    }

    /// Returns the levels that an attempt reached, with their times.
    fn progress(&self, attempt: AttemptId) -> Vec<(Duration, EvidenceLevel)> {
        let steps = self.trace.steps.iter().filter_map(|step| match &step.event {
            TraceEvent::Input(RaceInput::Progress { id, level, .. }) if *id == attempt => {
                Some((step.at.saturating_sub(self.race.started_at()), *level))
            }
            _ => None,
        });
        steps.collect()
    }
}

/// Returns the colour of a transport.
pub(crate) const fn paint(transport: Transport) -> Paint {
    if transport.has_http3() { Paint::Quic } else { Paint::Stream }
}

fn end(attempt: &RaceAttempt) -> LaneEnd {
    match &attempt.state {
        AttemptState::UnderWay(_) => LaneEnd::UnderWay,
        AttemptState::Complete(_) => LaneEnd::Ready,
        AttemptState::Usable(_) => LaneEnd::Won,
        AttemptState::Better(_) => LaneEnd::TookOver,
        AttemptState::Failed { .. } => LaneEnd::Failed,
        AttemptState::Closed { why: CloseReason::BudgetSpent, .. } => LaneEnd::Failed,
        AttemptState::Closed { completed: Some(_), .. } => LaneEnd::Ready,
        AttemptState::Closed { .. } => LaneEnd::Closed,
    }
}

fn ready(at: Option<Duration>, rest: &str) -> String {
    format!("ready after {}{rest}", time(at.unwrap_or_default()))
}

fn note(attempt: &RaceAttempt, end: LaneEnd, ended: Option<Duration>, started: Duration) -> String {
    let ended = ended.unwrap_or_default();
    match (&attempt.state, end) {
        (_, LaneEnd::Won) => format!("won after {}", time(ended)),
        (_, LaneEnd::TookOver) => format!("took over after {}", time(ended)),
        (_, LaneEnd::Ready) => format!("ready after {}, spare", time(ended)),
        (_, LaneEnd::UnderWay) => "under way".to_owned(),
        (AttemptState::Failed { failure, .. }, _) => failure.cause.to_string(),
        (AttemptState::Closed { why: CloseReason::BudgetSpent, .. }, _) => {
            format!("silent for {}", time(ended.saturating_sub(started)))
        }
        (AttemptState::Closed { why: CloseReason::Deadline, .. }, _) => "out of time".to_owned(),
        (AttemptState::Closed { why: CloseReason::MadeRoom, .. }, _) => "made room".to_owned(),
        _ => "not needed".to_owned(),
    }
}

fn dns_lane(question: &DnsReport) -> TimelineLane {
    let millis = |ms: f64| Duration::from_secs_f64(ms.max(0.0) / 1e3);
    let count = question.records();
    let failure = question.failure();
    let note = match (&failure, question.answered_ms) {
        (_, None) => "no answer".to_owned(),
        (Some(failure), _) => failure.name().replace('-', " "),
        (None, _) if count == 1 => "1 record".to_owned(),
        (None, _) => format!("{count} records"),
    };
    let is_expired = question.answer.as_ref().is_some_and(|answer| answer.expired);
    let age = match (is_expired, question.expired) {
        (true, _) => ", expired",
        (false, true) => ", after expired ones",
        (false, false) => "",
    };
    TimelineLane {
        name: format!("dns {}", question.record_type.name()),
        paint: Paint::Dim,
        started: millis(question.asked_ms),
        progress: Vec::new(),
        ended: question.answered_ms.map(millis),
        end: match question.answered_ms {
            None => LaneEnd::UnderWay,
            Some(_) => LaneEnd::Closed,
        },
        note: format!("{note}{age}"),
    }
}
