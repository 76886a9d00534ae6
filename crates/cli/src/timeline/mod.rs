//! A race as a picture: one lane for each attempt, time from left to right.
//!
//! Drawing is a pure function of its input and of the [style](crate::terminal::OutputStyle), so
//! that a picture can be compared in a test.

mod draw;
mod scale;

#[cfg(test)]
mod tests;

use std::time::Duration;

use eyas::race::evidence::Level;

use crate::terminal::Paint;

pub(crate) use draw::{draw, draw_titled, legend};

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// From top to bottom.
    pub(crate) lanes: Vec<Lane>,
}

/// One attempt, or one question to DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// What it is: `quic 127.0.0.1:443`.
    pub(crate) name: String,
    /// The colour of its kind.
    pub(crate) paint: Paint,
    /// When it began, since the start of the race.
    pub(crate) started: Duration,
    /// When it came to which level, in order.
    pub(crate) progress: Vec<(Duration, Level)>,
    /// When it ended, since the start of the race; `None` if it was still under way.
    pub(crate) ended: Option<Duration>,
    /// How it ended.
    pub(crate) end: End,
    /// What is said behind it, in few words.
    pub(crate) note: String,
}

/// How a lane ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It won the race.
    Won,
    /// It was ready later and took over, being the more wanted one.
    TookOver,
    /// It was ready, but another was used.
    Ready,
    /// It failed.
    Failed,
    /// It was closed, for another had won or time was up.
    Closed,
    /// It goes on.
    UnderWay,
}

impl Lane {
    /// Returns the level that it had reached at this time.
    fn level_at(&self, time: Duration) -> Level {
        let reached = self.progress.iter().take_while(|(at, _)| *at <= time);
        reached.map(|(_, level)| *level).max().unwrap_or(Level::Started)
    }

    /// Returns the last moment that must be in the picture: what follows is waiting in vain.
    fn last_event(&self) -> Duration {
        let last = self.progress.last().map_or(self.started, |(at, _)| *at);
        match (self.end, self.ended) {
            (End::Won | End::TookOver | End::Ready, Some(ended)) => ended.max(last),
            _ => last,
        }
    }
}
