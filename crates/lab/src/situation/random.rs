//! Networks drawn from a seed, to be simulated with all their lines and with each line alone.
//!
//! | file | purpose |
//! | --- | --- |
//! | `random` | what networks are drawn from, and what is measured in each |
//! | `draw` | the network of a seed |

mod draw;

use std::collections::BTreeMap;

use eyas_emulator::units::{BitRate, PercentValue, TimeSpan};
use serde::{Deserialize, Serialize};

use super::association::AssociationSetup;
use super::error::RandomSetupError;
use super::setup::{PathSetup, SimulationSetup};

/// The size of a full packet, in bits.
const FULL: f64 = 12_000.0;

/// What networks are drawn from. With a seed, it determines a network and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSetup {
    /// The largest number of lines; the smallest is 2.
    pub lines: u8,
    /// The range of the rate of each direction of a line.
    pub rate: [BitRate; 2],
    /// How many times the rate of one direction is that of the other, at most.
    pub ratio: u64,
    /// The range of the delay of each direction of a line.
    pub delay: [TimeSpan; 2],
    /// The range of the longest queueing delay; at least 10 packets fit in any queue.
    pub queue: [TimeSpan; 2],
    /// The losses, of which each line has one at random.
    pub loss: Vec<PercentValue>,
    /// The share of directions with RED instead of drop-tail.
    pub red: PercentValue,
    /// The share of networks in which a line comes, goes, or changes its rate or delay.
    pub changing: PercentValue,
    /// The share of networks in which both hosts send.
    pub both_ways: PercentValue,
    /// The range of the size of the bulk's messages, in bytes.
    pub message: [usize; 2],
    /// The number of packets that the lines could carry while it is measured, within
    /// [`Self::duration`].
    pub packets: u64,
    /// The range of the duration of the measurement.
    pub duration: [TimeSpan; 2],
    /// The behaviour of the association.
    #[serde(default)]
    pub association: AssociationSetup,
}

/// The measurements of a network, and their axis labels.
pub(crate) const COLUMNS: &[(&str, &str)] = &[
    ("throughput", "payload over all lines [Mbit/s]"),
    ("alone", "payload over the best single line [Mbit/s]"),
    ("best", "payload over all lines, relative to the best single line"),
    ("sum", "payload over all lines, relative to the ceiling"),
    ("first-mib", "time of the first MiB, relative to the best single line"),
    ("keystroke", "99th percentile of the keystrokes' delay above the best round trip [ms]"),
    ("keystroke-alone", "the same over the best single line [ms]"),
    ("best-98", "payload of at least 0.98 of the best single line [% of networks]"),
    ("sum-95", "payload of at least 0.95 of the ceiling [% of networks]"),
    ("sum-85", "payload of at least 0.85 of the ceiling [% of networks]"),
    ("first-mib-11", "first MiB within 1.1 times the best single line's time [% of networks]"),
    ("keystroke-20", "keystrokes within 20 ms above the best round trip [% of networks]"),
];

/// What is wanted of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkRequirement {
    /// The column that is judged.
    pub(crate) column: &'static str,
    /// The column of 100 for each network that meets it, and 0 for others.
    pub(crate) share: &'static str,
    limit: f64,
    is_minimum: bool,
}

impl NetworkRequirement {
    pub(crate) const ALL: [Self; 5] = [
        Self { column: "best", share: "best-98", limit: 0.98, is_minimum: true },
        Self { column: "sum", share: "sum-85", limit: 0.85, is_minimum: true },
        Self { column: "sum", share: "sum-95", limit: 0.95, is_minimum: true },
        Self { column: "first-mib", share: "first-mib-11", limit: 1.1, is_minimum: false },
        Self { column: "keystroke", share: "keystroke-20", limit: 20.0, is_minimum: false },
    ];

    pub(crate) fn is_met(&self, value: f64) -> bool {
        if self.is_minimum { value >= self.limit } else { value <= self.limit }
    }

    /// Returns how far a value misses it, for the order of outliers: 1 at the limit.
    pub(crate) fn miss(&self, value: f64) -> f64 {
        if self.is_minimum { self.limit / value.max(1e-9) } else { value / self.limit }
    }
}

/// The measurements of one network, with whether each meets what is wanted of it.
#[derive(Debug, Default)]
pub(crate) struct NetworkColumns(BTreeMap<String, Vec<f64>>);

impl NetworkColumns {
    /// Adds a measurement; one without a value is left out.
    pub(crate) fn insert(&mut self, column: &str, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.0.insert(column.to_owned(), vec![value]);
        for wanted in NetworkRequirement::ALL.iter().filter(|wanted| wanted.column == column) {
            let share = if wanted.is_met(value) { 100.0 } else { 0.0 };
            self.0.insert(wanted.share.to_owned(), vec![share]);
        }
    }

    pub(crate) fn into_map(self) -> BTreeMap<String, Vec<f64>> {
        self.0
    }
}

/// Returns whether a column is 100 or 0 for each network.
pub(crate) fn is_share(column: &str) -> bool {
    NetworkRequirement::ALL.iter().any(|wanted| wanted.share == column)
}

impl RandomSetup {
    /// Returns what is invalid.
    pub(crate) fn check(&self) -> Result<(), RandomSetupError> {
        let range = |name: &'static str, ordered: bool| match ordered {
            true => Ok(()),
            false => Err(RandomSetupError::Range(name)),
        };
        range("rate", 0 < self.rate[0].0 && self.rate[0].0 <= self.rate[1].0)?;
        let times = |times: &[TimeSpan; 2]| !times[0].0.is_zero() && times[0] <= times[1];
        range("delay", times(&self.delay))?;
        range("queue", times(&self.queue))?;
        range("duration", times(&self.duration))?;
        range("message", self.message[0] <= self.message[1])?;
        if !(2..=9).contains(&self.lines) || self.ratio == 0 || self.loss.is_empty() {
            return Err(RandomSetupError::Lines);
        }
        Ok(self.draw(1).check()?)
    }

    /// Returns the notes for readers.
    pub(crate) fn emulated(&self) -> Vec<String> {
        vec![
            "Each run is one network, drawn from its seed, and simulated in virtual time with all of \
             its lines, and with each line alone over an ordinary association with one path and the \
             same options: --seed and --runs 1 repeat it alone."
                .to_owned(),
            "The bulk is sent on one stream, and a keystroke of 100 bytes every 50 ms on another, \
             timed from when it falls. What is sent both ways is measured in both directions, and \
             the worse one counts; keystrokes are sent in one."
                .to_owned(),
            "The ceiling is the sum of what the lines carry alone, as far as the buffer suffices for \
             all of them (the bound of docs/guide/lab.md)."
                .to_owned(),
        ]
    }
}

impl SimulationSetup {
    /// Returns the same over one line alone, with an association that has one path. If the line
    /// comes later, so does the association.
    pub(crate) fn alone(&self, line: &str) -> Self {
        let mut setup = self.clone();
        if let Some(joins) = setup.path.get_mut(line).and_then(|path| path.joins.take()) {
            setup.time.start = [joins; 2];
        }
        setup.association.only = vec![line.to_owned()];
        setup.association.multipath = Some(false);
        setup
    }

    /// Returns the shortest round trip of a full packet in ms; where lines come, go or change, that of
    /// the worse time.
    pub(crate) fn best_round_trip(&self) -> f64 {
        let round_trip = |path: &PathSetup| {
            let back = path.reversed();
            let sending = FULL / path.rate().0 as f64 + FULL / back.rate().0 as f64;
            (path.delay.0 + back.delay.0).as_nanos() as f64 / 1e6 + sending * 1e3
        };
        let shortest = |setup: &Self, is_there: &dyn Fn(&str, &PathSetup) -> bool| {
            let there = setup.path.iter().filter(|(name, path)| is_there(name, path));
            there.map(|(_, path)| round_trip(path)).fold(f64::INFINITY, f64::min)
        };
        let before = shortest(self, &|_, path| path.joins.is_none());
        let mut changed = self.clone();
        for event in &self.event {
            if let Some(path) = changed.path.get_mut(&event.path) {
                event.apply(path);
            }
        }
        let goes = |name: &str| self.event.iter().any(|it| it.path == name && it.up == Some(false));
        before.max(shortest(&changed, &|name, _| !goes(name)))
    }

    /// Returns the same with both directions exchanged.
    pub(crate) fn reversed(&self) -> Self {
        let mut setup = self.clone();
        for path in setup.path.values_mut() {
            *path = PathSetup { back: path.link(), ..path.reversed() };
        }
        for event in &mut setup.event {
            std::mem::swap(&mut event.rate, &mut event.back.rate);
            std::mem::swap(&mut event.delay, &mut event.back.delay);
        }
        setup
    }

    /// Describes the lines and what happens to them in one line for readers.
    pub(crate) fn describe(&self) -> String {
        let line = |(name, path): (&String, &PathSetup)| {
            let back = path.reversed();
            let joins = path.joins.map_or_else(String::new, |at| format!(", comes at {at}"));
            format!(
                "{name}: {} and {} back, {} and {} back, queues {} and {}, loss {}{joins}",
                path.rate,
                back.rate,
                path.delay,
                back.delay,
                path.queue,
                back.queue,
                path.loss.probability,
            )
        };
        let event = |event: &super::setup::EventSetup| {
            let (rate, delay, back) = (event.rate, event.delay, event.back);
            let text = |to: Option<String>| to.map_or_else(String::new, |to| format!(" {to}"));
            let both = |to: Option<String>, back: Option<String>| match (to, back) {
                (Some(to), Some(back)) => format!(" {to} and {back} back"),
                (to, back) => text(to.or(back)),
            };
            let goes = if event.up == Some(false) { " goes" } else { "" };
            format!(
                "{} at {}:{goes}{}{}",
                event.path,
                event.at,
                both(rate.map(|it| it.to_string()), back.rate.map(|it| it.to_string())),
                both(delay.map(|it| it.to_string()), back.delay.map(|it| it.to_string())),
            )
        };
        let ways = if self.application.both_ways { "both ways" } else { "one way" };
        let lines = self.path.iter().map(line);
        let traffic = format!("messages of {} bytes {ways}", self.application.message);
        let all = lines.chain(self.event.iter().map(event)).chain([traffic]);
        all.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests;
