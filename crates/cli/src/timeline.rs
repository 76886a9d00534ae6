//! A race as a picture: one lane for each attempt, time from left to right.
//!
//! Drawing is a pure function of its input and, in a terminal, of the
//! [style](crate::terminal::OutputStyle), so that a picture can be compared in a test.

mod draw;
mod scale;
mod svg;

#[cfg(test)]
mod tests;

use std::time::Duration;

use eyas::race::evidence::EvidenceLevel;

use crate::terminal::Paint;

pub(crate) use draw::{draw, draw_titled, legend};
pub(crate) use svg::svg;

/// The lanes to draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RaceTimeline {
    /// From top to bottom.
    pub(crate) lanes: Vec<TimelineLane>,
}

/// One attempt or DNS query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineLane {
    /// Its name, such as `quic 127.0.0.1:443`.
    pub(crate) name: String,
    /// The colour of its kind.
    pub(crate) paint: Paint,
    /// Its start, since the start of the race.
    pub(crate) started: Duration,
    /// The levels that it reached and when, in order.
    pub(crate) progress: Vec<(Duration, EvidenceLevel)>,
    /// Its end, since the start of the race; `None` if it was still in progress.
    pub(crate) ended: Option<Duration>,
    /// How it ended.
    pub(crate) end: LaneEnd,
    /// A short note, printed after the bar.
    pub(crate) note: String,
}

/// How a lane ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneEnd {
    /// It won the race.
    Won,
    /// It was ready later and took over because it is preferred.
    TookOver,
    /// It was ready, but another was used.
    Ready,
    /// It failed.
    Failed,
    /// It was closed because another had won or the time was up.
    Closed,
    /// It is still in progress.
    UnderWay,
}

impl TimelineLane {
    /// Returns the level that it had reached at this time.
    fn level_at(&self, time: Duration) -> EvidenceLevel {
        let reached = self.progress.iter().take_while(|(at, _)| *at <= time);
        reached.map(|(_, level)| *level).max().unwrap_or(EvidenceLevel::Started)
    }

    /// Returns the last moment that must be in the picture; after it, the lane only waits.
    fn last_event(&self) -> Duration {
        let last = self.progress.last().map_or(self.started, |(at, _)| *at);
        match (self.end, self.ended) {
            (LaneEnd::Won | LaneEnd::TookOver | LaneEnd::Ready, Some(ended)) => ended.max(last),
            _ => last,
        }
    }
}
