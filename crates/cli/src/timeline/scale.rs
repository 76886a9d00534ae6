//! Maps time to columns, and the numbers above a picture.

use std::time::Duration;

use super::RaceTimeline;

/// Waiting without a result is drawn for up to this many times the span of all events; longer waits
/// extend beyond the picture.
const WAIT_FACTOR: u32 = 3;
/// The minimum span of a picture, so that a race on loopback still has a scale.
const MIN_SPAN: Duration = Duration::from_micros(200);
/// The minimum distance between numbers above the picture, in columns.
const COLUMNS_PER_TICK: u32 = 10;

/// A mapping of time to columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeScale {
    /// The time that the whole width covers.
    pub(super) span: Duration,
    /// The width in columns, at least 1.
    pub(super) columns: usize,
}

impl TimeScale {
    /// Returns a scale that shows everything of interest.
    pub(super) fn fit(timeline: &RaceTimeline, columns: usize) -> Self {
        let events = timeline.lanes.iter().map(super::TimelineLane::last_event);
        let busy = events.max().unwrap_or_default().max(MIN_SPAN);
        let limit = busy.saturating_mul(WAIT_FACTOR);
        let ends = timeline.lanes.iter().filter_map(|lane| lane.ended);
        let last = ends.filter(|ended| *ended <= limit).max().unwrap_or_default();
        Self { span: busy.max(last), columns: columns.max(1) }
    }

    /// Returns the column of a time; `None` if it is beyond the picture.
    pub(super) fn column(&self, time: Duration) -> Option<usize> {
        if time > self.span {
            return None;
        }
        let column = time.as_nanos() * (self.columns as u128 - 1) / self.span.as_nanos().max(1);
        Some(column as usize)
    }

    /// Returns the time in the middle of a column.
    pub(super) fn middle(&self, column: usize) -> Duration {
        let nanos = self.span.as_nanos() * (2 * column as u128 + 1);
        let nanos = nanos / (2 * self.columns as u128 - 1).max(1);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns column and text of each number above the picture; the last one includes the unit.
    pub(super) fn ticks(&self) -> Vec<(usize, String)> {
        let times = self.tick_times().into_iter();
        times.filter_map(|(time, text)| Some((self.column(time)?, text))).collect()
    }

    /// Returns time and text of each number above the picture; the last one includes the unit.
    pub(super) fn tick_times(&self) -> Vec<(Duration, String)> {
        let step = self.step();
        let (divisor, unit) = match self.span.as_secs_f64() {
            s if s >= 5.0 => (1e9, "s"),
            _ => (1e6, "ms"),
        };
        let decimals = match step as f64 / divisor {
            step if step < 0.1 => 2,
            step if step < 1.0 => 1,
            _ => 0,
        };
        let mut ticks: Vec<_> = (0_u128..)
            .map(|count| count * u128::from(step))
            .take_while(|nanos| *nanos <= self.span.as_nanos())
            .filter_map(|nanos| {
                let time = Duration::from_nanos(u64::try_from(nanos).ok()?);
                let text = format!("{:.decimals$}", nanos as f64 / divisor);
                Some((time, if nanos == 0 { "0".to_owned() } else { text }))
            })
            .collect();
        if let Some((_, text)) = ticks.last_mut() {
            text.push_str(&format!(" {unit}"));
        }
        ticks
    }

    /// Returns the nanoseconds between two numbers: 1, 2 or 5 times a power of ten.
    fn step(&self) -> u64 {
        let max_ticks = (self.columns as u128 / u128::from(COLUMNS_PER_TICK)).max(1);
        let min_step = u64::try_from(self.span.as_nanos() / max_ticks).unwrap_or(u64::MAX).max(1);
        let mut step = 10_000_u64;
        loop {
            for factor in [1, 2, 5] {
                let candidate = step.saturating_mul(factor);
                if candidate >= min_step {
                    return candidate;
                }
            }
            step = step.saturating_mul(10);
        }
    }
}
