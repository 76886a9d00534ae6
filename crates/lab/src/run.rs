//! The results of one run, and of all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::statistics::percentile;

/// The measurements of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The results of each stream, in the order of their numbers.
    pub streams: Vec<StreamResult>,
    /// The results of each path's bottleneck, towards the receiver.
    pub paths: Vec<PathResult>,
    /// The results of other associations.
    pub rivals: Vec<RivalResult>,
    /// The longest time without a message for the receiving application, in ms.
    pub longest_gap_ms: f64,
    /// The total number of events that the simulator processed.
    pub events: u64,
    /// The measurements of a live run, by name: one number for each trial that has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, Vec<f64>>,
    /// The observations of a program under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ProgramObservation>,
}

/// The percentile of keystrokes' delays that is judged.
pub(crate) const SLOW_KEYSTROKE: f64 = 99.0;

/// Returns the delays of keystrokes in ms, with those that have not arrived: `waiting` is the time since
/// the last one that has arrived fell. They count with the time that they have waited, if that is
/// already longer than the slow ones took.
pub(crate) fn with_waiting_keystrokes(
    mut delays: Vec<f64>,
    waiting: Duration,
    every: Duration,
) -> Vec<f64> {
    delays.sort_by(f64::total_cmp);
    let arrived = percentile(&delays, SLOW_KEYSTROKE);
    let count = (waiting.as_nanos() / every.as_nanos().max(1)) as u32;
    let waits = (1..=count).map(|keystroke| (waiting - every * keystroke).as_nanos() as f64 / 1e6);
    delays.extend(waits.filter(|wait| *wait > arrived || arrived.is_nan()));
    delays.sort_by(f64::total_cmp);
    delays
}

/// The observations of a program under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramObservation {
    /// The version that the program reports, in one line.
    pub version: String,
    /// The packets of a run's first trial, one course for each fetch.
    pub courses: Vec<PacketCourse>,
}

/// The packets of one fetch, at the client's end of the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketCourse {
    /// The URL that was fetched.
    pub what: String,
    /// The informative packets, in the order of time.
    pub lines: Vec<PacketLine>,
    /// The number of lines omitted at the end because there are too many.
    #[serde(default)]
    pub left_out: usize,
}

/// One packet of a fetch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketLine {
    /// The time, in ms since the first query for the name.
    pub at: f64,
    /// Whether the client sent it.
    pub sent: bool,
    /// A description for readers.
    pub what: String,
}

/// What arrived on one stream during the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Bytes of messages.
    pub bytes: u64,
    /// The number of messages.
    pub messages: u64,
    /// The sum of their delays, from sending to receiving, in nanoseconds.
    pub delay_ns: u64,
}

/// How a path's bottleneck treated packets during the measurement: those to the receiver, unless it
/// says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathResult {
    /// The name of the path.
    pub name: String,
    /// IP packets that arrived at its far end.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// Packets that were dropped or lost.
    pub dropped: u64,
    /// The bytes of IP packets that arrived at its near end, on the way back.
    #[serde(default)]
    pub back_bytes: u64,
}

/// What another association delivered during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RivalResult {
    /// The name.
    pub name: String,
    /// Bytes of messages.
    pub bytes: u64,
}

impl StreamResult {
    /// Returns the mean time from sending a message to receiving it, in ms; NaN if none arrived.
    #[must_use]
    pub fn mean_delay_ms(&self) -> f64 {
        self.delay_ns as f64 / 1e6 / self.messages as f64
    }
}

impl RunResult {
    /// Returns the bytes of messages on all streams.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }

    /// Returns the unweighted mean of the mean delays of the streams on which something arrived, in
    /// ms; NaN if nothing arrived.
    #[must_use]
    pub fn mean_delay_ms(&self) -> f64 {
        let means = self.streams.iter().filter(|stream| stream.messages > 0);
        let (sum, count) = means
            .fold((0.0, 0.0), |(sum, count), stream| (sum + stream.mean_delay_ms(), count + 1.0));
        sum / count
    }
}

/// All runs of an experiment, for each point in the order of their seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResults {
    /// The runs by the identifier of their point.
    pub points: BTreeMap<String, Vec<RunResult>>,
    /// Points that were left out, by what they would have required.
    pub skipped: BTreeMap<String, BTreeSet<String>>,
    /// The number of concurrent runs.
    pub concurrent_runs: usize,
}

impl RunResults {
    /// Returns all trials of a live point, over all its runs.
    #[must_use]
    pub fn pooled(&self, point: &str) -> RunResult {
        let mut pool = RunResult::default();
        for run in self.points.get(point).into_iter().flatten() {
            for (column, trials) in &run.columns {
                pool.columns.entry(column.clone()).or_default().extend(trials);
            }
        }
        pool
    }
}
