//! The measures of a run, as named by figures, tables and claims.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::run::RunResult;
use crate::situation::{self, SimulationSetup, Situation};
use crate::statistics::TrialStatistic;

/// One number of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// `throughput`: payload delivered to the receiving application, all streams, in Mbit/s.
    Throughput,
    /// `throughput.N`: the same for stream N.
    StreamThroughput(u16),
    /// `delay`: the time from sending a message to receiving it in the applications, in ms: the
    /// unweighted mean of the streams' means.
    Delay,
    /// `delay.N`: the same for stream N only.
    StreamDelay(u16),
    /// `ceiling`: the maximum payload that the paths could carry, in Mbit/s.
    Ceiling,
    /// `share`: throughput as a fraction of the ceiling.
    Share,
    /// `bound`: the maximum payload that the paths could carry with this send buffer, these losses
    /// and these changes, in Mbit/s.
    Bound,
    /// `slowest`: throughput of the slowest stream, as a fraction of an equal share.
    Slowest,
    /// `path.NAME`: payload-bearing packets that left a path's bottleneck towards the receiver, in
    /// Mbit/s of IP packets.
    Path(String),
    /// `back.NAME`: packets that left a path's bottleneck towards the sender, in Mbit/s of IP packets.
    Back(String),
    /// `dropped.NAME`: packets that a path's bottleneck dropped, in percent of those offered to it.
    Dropped(String),
    /// `rival.NAME`: payload of another association, in Mbit/s.
    Rival(String),
    /// `gap`: the longest time without a message for the receiving application, in ms.
    Gap,
    /// `mean.NAME`, `p99.NAME` and so on: a statistic of one column over all trials of a live
    /// point.
    Column(TrialStatistic, String),
}

/// The text does not name a measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a measure; measures are throughput, throughput.STREAM, delay, delay.STREAM, \
     share, ceiling, bound, slowest, path.NAME, back.NAME, dropped.NAME, rival.NAME and gap, and for live \
     runs mean.COLUMN, deviation.COLUMN, count.COLUMN, least.COLUMN, most.COLUMN and p50.COLUMN"
)]
pub struct ParseMeasureError(String);

impl FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Self, ParseMeasureError> {
        let refused = || ParseMeasureError(text.to_owned());
        let Some((word, rest)) = text.split_once('.') else {
            return match text {
                "throughput" => Ok(Self::Throughput),
                "delay" => Ok(Self::Delay),
                "ceiling" => Ok(Self::Ceiling),
                "share" => Ok(Self::Share),
                "bound" => Ok(Self::Bound),
                "slowest" => Ok(Self::Slowest),
                "gap" => Ok(Self::Gap),
                _ => Err(refused()),
            };
        };
        let stream = || rest.parse().map_err(|_| refused());
        match word {
            "throughput" => Ok(Self::StreamThroughput(stream()?)),
            "delay" => Ok(Self::StreamDelay(stream()?)),
            "path" => Ok(Self::Path(rest.to_owned())),
            "back" => Ok(Self::Back(rest.to_owned())),
            "dropped" => Ok(Self::Dropped(rest.to_owned())),
            "rival" => Ok(Self::Rival(rest.to_owned())),
            statistic => {
                let statistic = statistic.parse().map_err(|()| refused())?;
                Ok(Self::Column(statistic, rest.to_owned()))
            }
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput => f.write_str("throughput"),
            Self::StreamThroughput(stream) => write!(f, "throughput.{stream}"),
            Self::Delay => f.write_str("delay"),
            Self::StreamDelay(stream) => write!(f, "delay.{stream}"),
            Self::Ceiling => f.write_str("ceiling"),
            Self::Share => f.write_str("share"),
            Self::Bound => f.write_str("bound"),
            Self::Slowest => f.write_str("slowest"),
            Self::Path(name) => write!(f, "path.{name}"),
            Self::Back(name) => write!(f, "back.{name}"),
            Self::Dropped(name) => write!(f, "dropped.{name}"),
            Self::Rival(name) => write!(f, "rival.{name}"),
            Self::Gap => f.write_str("gap"),
            Self::Column(statistic, column) => write!(f, "{statistic}.{column}"),
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Measure {
    /// Returns the axis label, with the unit.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Throughput => "Payload throughput [Mbit/s]".to_owned(),
            Self::StreamThroughput(stream) => format!("Payload of stream {stream} [Mbit/s]"),
            Self::Delay => "Mean message delay [ms]".to_owned(),
            Self::StreamDelay(stream) => format!("Mean message delay of stream {stream} [ms]"),
            Self::Ceiling => "Payload ceiling [Mbit/s]".to_owned(),
            Self::Share => "Payload, share of the ceiling".to_owned(),
            Self::Bound => "Payload bound [Mbit/s]".to_owned(),
            Self::Slowest => "Slowest stream, relative to an equal share".to_owned(),
            Self::Path(name) => format!("Over path {name} [Mbit/s]"),
            Self::Back(name) => format!("Back over path {name} [Mbit/s]"),
            Self::Dropped(name) => format!("Dropped on path {name} [%]"),
            Self::Rival(name) => format!("Payload of {name} [Mbit/s]"),
            Self::Gap => "Longest time without a message [ms]".to_owned(),
            Self::Column(statistic, column) => column_label(*statistic, column),
        }
    }

    /// Returns the unit, as in its [label](Self::label); empty for a plain number.
    #[must_use]
    pub fn unit(&self) -> String {
        if let Self::Column(TrialStatistic::Count, _) = self {
            return String::new();
        }
        let label = self.label();
        let unit = label.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        unit.map_or_else(String::new, |(unit, _)| unit.to_owned())
    }

    /// Returns the value for one run of a situation; NaN if the run has no such value, such as the
    /// delay of a stream on which nothing arrived.
    #[must_use]
    pub fn value(&self, situation: &Situation, run: &RunResult) -> f64 {
        match (self, situation) {
            (Self::Column(statistic, column), _) => {
                run.columns.get(column).map_or(f64::NAN, |trials| statistic.compute(trials))
            }
            (_, Situation::Simulated(setup)) => self.simulated(setup, run),
            (_, Situation::Live(_) | Situation::Random(_)) => f64::NAN,
        }
    }

    fn simulated(&self, setup: &SimulationSetup, run: &RunResult) -> f64 {
        let seconds = setup.time.duration.0.as_secs_f64();
        let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
        let stream = |number: &u16| run.streams.get(usize::from(*number));
        let path = |name: &String| run.paths.iter().find(|path| path.name == *name);
        match self {
            Self::Throughput => megabits(run.bytes()),
            Self::StreamThroughput(number) => {
                stream(number).map_or(f64::NAN, |stream| megabits(stream.bytes))
            }
            Self::Delay => run.mean_delay_ms(),
            Self::StreamDelay(number) => {
                stream(number).map_or(f64::NAN, |stream| stream.mean_delay_ms())
            }
            Self::Ceiling => setup.ceiling() / 1e6,
            Self::Share => megabits(run.bytes()) * 1e6 / setup.ceiling(),
            Self::Bound => setup.bound().rate / 1e6,
            Self::Slowest => {
                let least = run.streams.iter().map(|stream| stream.bytes).min().unwrap_or(0);
                least as f64 * run.streams.len() as f64 / run.bytes() as f64
            }
            Self::Path(name) => path(name).map_or(f64::NAN, |path| megabits(path.bytes)),
            Self::Back(name) => path(name).map_or(f64::NAN, |path| megabits(path.back_bytes)),
            Self::Dropped(name) => path(name).map_or(f64::NAN, |path| {
                100.0 * path.dropped as f64 / (path.packets + path.dropped).max(1) as f64
            }),
            Self::Rival(name) => run
                .rivals
                .iter()
                .find(|rival| rival.name == *name)
                .map_or(f64::NAN, |rival| megabits(rival.bytes)),
            Self::Gap => run.longest_gap_ms,
            Self::Column(..) => f64::NAN,
        }
    }
}

/// Returns the axis label of a column's statistic, with the unit.
fn column_label(statistic: TrialStatistic, column: &str) -> String {
    let of = match statistic {
        TrialStatistic::Mean => "mean".to_owned(),
        TrialStatistic::Deviation => "standard deviation".to_owned(),
        TrialStatistic::Count => "trials".to_owned(),
        TrialStatistic::Least => "minimum".to_owned(),
        TrialStatistic::Most => "maximum".to_owned(),
        TrialStatistic::MostOf(series) => format!("median maximum of series of {series}"),
        TrialStatistic::Percentile(50) => "median".to_owned(),
        TrialStatistic::Percentile(percent) => format!("{percent}th percentile"),
    };
    let labelled = situation::columns().find(|(name, _)| *name == column);
    match labelled {
        Some((_, label)) => format!("{label}, {of}"),
        None => format!("{column}, {of}"),
    }
}
