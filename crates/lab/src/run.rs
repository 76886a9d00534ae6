//! What came out: of one run, and of all of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What was measured in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Of each stream, in the order of their numbers.
    pub streams: Vec<StreamResult>,
    /// Of each path's bottleneck, towards the receiver.
    pub paths: Vec<PathResult>,
    /// Of other associations.
    pub rivals: Vec<RivalResult>,
    /// The longest time without a message for the receiving application, in ms.
    pub longest_gap_ms: f64,
    /// Events that the simulator worked off, all told.
    pub events: u64,
    /// What a live run measured, by name: one number for each trial that has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, Vec<f64>>,
    /// What was seen of a program that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
}

/// What was seen of a program that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// What the program says of its version, in a line.
    pub version: String,
    /// The packets of a run's first trial, one course for each fetch.
    pub courses: Vec<PacketCourse>,
}

/// The packets of one fetch, at the client's end of the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketCourse {
    /// What was fetched.
    pub what: String,
    /// What tells something, in the order of time.
    pub lines: Vec<PacketLine>,
    /// Lines that are left out at the end, for there are too many.
    #[serde(default)]
    pub left_out: usize,
}

/// One packet of a fetch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketLine {
    /// When, in ms from the first query for the name.
    pub at: f64,
    /// Whether the client sent it.
    pub sent: bool,
    /// What it is, for people.
    pub what: String,
}

/// What arrived on one stream while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamResult {
    /// Bytes of messages.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
    /// The sum of their delays, from handing in to having, in nanoseconds.
    pub delay_ns: u64,
}

/// What a path's bottleneck did with packets to the receiver while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathResult {
    /// The path's name.
    pub name: String,
    /// IP packets that arrived at its far end.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were dropped or lost.
    pub dropped: u64,
}

/// What another association delivered while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RivalResult {
    /// Its name.
    pub name: String,
    /// Bytes of messages.
    pub bytes: u64,
}

impl StreamResult {
    /// From handing a message in to having it, in ms; not a number if none came.
    #[must_use]
    pub fn mean_delay_ms(&self) -> f64 {
        self.delay_ns as f64 / 1e6 / self.messages as f64
    }
}

impl RunResult {
    /// Bytes of messages on all streams.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }

    /// The unweighted mean of the mean delays of the streams on which something came, in ms; not a
    /// number if nothing came.
    #[must_use]
    pub fn mean_delay_ms(&self) -> f64 {
        let means = self.streams.iter().filter(|stream| stream.messages > 0);
        let (sum, count) = means
            .fold((0.0, 0.0), |(sum, count), stream| (sum + stream.mean_delay_ms(), count + 1.0));
        sum / count
    }
}

/// All runs of an experiment: of each point, in the order of their seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// By the point's identifier.
    pub points: BTreeMap<String, Vec<RunResult>>,
    /// Points that were left out, by what they would have needed.
    pub skipped: BTreeMap<String, BTreeSet<String>>,
    /// How many runs went on at a time.
    pub at_once: usize,
}

impl Results {
    /// All trials of a live point, those of all its runs together.
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
