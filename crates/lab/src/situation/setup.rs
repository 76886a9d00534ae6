//! A situation to be simulated: the network, the association, the application and the times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::association::AssociationSetup;
use super::mode::Mode;
use super::queue_info::QueueInfo;
use crate::units::{Framing, Loss, Queue, Rate, Time};

/// A situation to be simulated. With a seed, it determines a run to the last packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The form of packets.
    #[serde(default, skip_serializing_if = "Mode::is_wire")]
    pub mode: Mode,
    /// The times.
    pub time: Times,
    /// The paths from sender to receiver, by name; they are numbered in the order of their names.
    pub path: BTreeMap<String, PathSetup>,
    /// The links between the hosts and the bottlenecks.
    #[serde(default)]
    pub access: AccessSetup,
    /// The association between the two.
    #[serde(default)]
    pub association: AssociationSetup,
    /// The application.
    #[serde(default)]
    pub application: ApplicationSetup,
    /// Other associations, each over one path, between separate hosts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rival: BTreeMap<String, RivalSetup>,
    /// Changes during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSetup>,
}

/// The times, relative to the start of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The association is opened at a time that is uniformly distributed between these two.
    #[serde(default = "default_start")]
    pub start: [Time; 2],
    /// When the measurement begins.
    pub warm_up: Time,
    /// The duration of the measurement.
    pub duration: Time,
}

fn default_start() -> [Time; 2] {
    let milliseconds = |count| Time(std::time::Duration::from_millis(count));
    [milliseconds(900), milliseconds(1100)]
}

/// One path; the way back is the same, except for what it has of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSetup {
    /// The rate of the bottleneck.
    pub rate: Rate,
    /// The one-way delay of the bottleneck.
    pub delay: Time,
    /// The maximum of the uniformly distributed additional delay of a packet; packets are not
    /// reordered.
    #[serde(default)]
    pub jitter: Time,
    /// The queue before the bottleneck.
    #[serde(default)]
    pub queue: Queue,
    /// Bytes that the link adds to each packet.
    #[serde(default)]
    pub framing: Framing,
    /// The random losses.
    #[serde(default)]
    pub loss: Loss,
    /// What differs from the receiver to the sender.
    #[serde(default, skip_serializing_if = "BackSetup::is_empty")]
    pub back: BackSetup,
    /// The path whose bottleneck this one shares; its own rate, delay, queue, framing and loss are
    /// then ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// When both hosts learn of it (RFC 5061); at the start if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Time>,
}

/// What differs on the way back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackSetup {
    /// The rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The one-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// The maximum of the additional delay of a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Bytes that the link adds to each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// The random losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

impl BackSetup {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PathSetup {
    /// Returns the way back as the way there of a path.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let back = &self.back;
        Self {
            rate: back.rate.unwrap_or(self.rate),
            delay: back.delay.unwrap_or(self.delay),
            jitter: back.jitter.unwrap_or(self.jitter),
            queue: back.queue.unwrap_or(self.queue),
            framing: back.framing.unwrap_or(self.framing),
            loss: back.loss.unwrap_or(self.loss),
            back: BackSetup::default(),
            ..self.clone()
        }
    }

    /// Returns the way there as a way back.
    pub(crate) fn there_as_back(&self) -> BackSetup {
        BackSetup {
            rate: Some(self.rate),
            delay: Some(self.delay),
            jitter: Some(self.jitter),
            queue: Some(self.queue),
            framing: Some(self.framing),
            loss: Some(self.loss),
        }
    }
}

/// The links between a host and the bottlenecks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSetup {
    /// The rate of each of them.
    pub rate: Rate,
    /// The one-way delay.
    pub delay: Time,
}

impl Default for AccessSetup {
    fn default() -> Self {
        Self { rate: Rate(1_000_000_000), delay: Time::default() }
    }
}

/// What is sent: as much as possible, on all streams in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApplicationSetup {
    /// The size of each message in bytes, at least 16.
    pub message: usize,
    /// The number of streams.
    pub streams: u16,
    /// The queue information (draft-dreibholz-tsvwg-sctpsocket-sqinfo) that the application uses
    /// before it sends.
    pub queue_info: QueueInfo,
    /// Whether the receiver sends as much.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub both_ways: bool,
    /// The time between keystrokes: messages of 100 bytes on one more stream. None if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keystrokes: Option<Time>,
}

impl ApplicationSetup {
    /// Returns the number of streams, with that of the keystrokes, which is the last.
    #[must_use]
    pub fn all_streams(&self) -> u16 {
        self.streams.saturating_add(self.keystrokes.is_some().into())
    }
}

impl Default for ApplicationSetup {
    fn default() -> Self {
        Self {
            message: 1452,
            streams: 2,
            queue_info: QueueInfo::None,
            both_ways: false,
            keystrokes: None,
        }
    }
}

/// Another association over one path, which sends as much as possible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalSetup {
    /// The path whose bottleneck it uses.
    pub path: String,
    /// Its behaviour.
    #[serde(default)]
    pub association: AssociationSetup,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSetup {
    /// The time, relative to the start of the simulation.
    pub at: Time,
    /// The path whose bottleneck changes.
    pub path: String,
    /// Its new rate: in both directions, unless the way back has a rate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Its new delay: in both directions, unless the way back has a delay of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// The new rate and delay of the way back.
    #[serde(default, skip_serializing_if = "BackEventSetup::is_empty")]
    pub back: BackEventSetup,
    /// Whether the link is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// A change of the way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackEventSetup {
    /// Its new rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Its new delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
}

impl BackEventSetup {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl EventSetup {
    /// Applies the change to a path.
    pub(crate) fn apply(&self, path: &mut PathSetup) {
        path.rate = self.rate.unwrap_or(path.rate);
        path.delay = self.delay.unwrap_or(path.delay);
        path.back.rate = self.back.rate.or(path.back.rate);
        path.back.delay = self.back.delay.or(path.back.delay);
    }
}

/// The maximum numbers of paths, streams and bytes of a message in a set-up.
const MOST_PATHS: usize = 32;
/// Messages contain the time of their creation, and fit in one packet of 1,500 bytes or in several.
const MESSAGE_SIZES: std::ops::RangeInclusive<usize> = 16..=65_536;

impl Setup {
    /// Checks whether this can be simulated.
    ///
    /// # Errors
    /// A description of the first error.
    pub fn check(&self) -> Result<(), String> {
        let known = |name: &str, where_from: &str| match self.path.contains_key(name) {
            true => Ok(()),
            false => {
                let names: Vec<_> = self.path.keys().map(String::as_str).collect();
                Err(format!("{where_from} names path {name:?}; there are {}", names.join(", ")))
            }
        };
        if self.path.is_empty() || self.path.len() > MOST_PATHS {
            return Err(format!("there must be 1 to {MOST_PATHS} paths, [path.NAME]"));
        }
        for (name, path) in &self.path {
            if path.rate.0 == 0 || path.back.rate.is_some_and(|rate| rate.0 == 0) {
                return Err(format!("path.{name}.rate and its back.rate must be above 0"));
            }
            if let Some(other) = &path.through {
                known(other, &format!("path.{name}.through"))?;
                if self.path[other].through.is_some() {
                    return Err(format!("path.{name}.through names a path without its own link"));
                }
            }
        }
        for (name, rival) in &self.rival {
            rival.association.check()?;
            known(&rival.path, &format!("rival.{name}.path"))?;
            if self.path[&rival.path].joins.is_some() {
                return Err(format!("rival.{name} has only path {:?}, which joins", rival.path));
            }
        }
        for event in &self.event {
            known(&event.path, "an [[event]]")?;
        }
        self.association.check()?;
        for name in self.association.path_names() {
            known(name, "association.mapping or association.only")?;
        }
        if self.used_paths().all(|(_, path)| path.joins.is_some()) {
            return Err("the association needs a path that exists from the start".to_owned());
        }
        if self.time.start[1] < self.time.start[0] || self.time.warm_up < self.time.start[1] {
            return Err("time.warm_up must be after time.start, which goes upwards".to_owned());
        }
        if self.time.duration.0.is_zero() {
            return Err("time.duration must be above 0".to_owned());
        }
        if !MESSAGE_SIZES.contains(&self.application.message) || self.application.streams == 0 {
            return Err("application.message must be 16 to 65536, streams above 0".to_owned());
        }
        if self.application.keystrokes.is_some_and(|time| time.0.is_zero()) {
            return Err("application.keystrokes must be above 0".to_owned());
        }
        Ok(())
    }

    /// Returns the paths that the association uses, in the order of their numbers.
    pub fn used_paths(&self) -> impl Iterator<Item = (&str, &PathSetup)> {
        self.path
            .iter()
            .filter(|(name, _)| self.association.uses(name))
            .map(|(name, path)| (name.as_str(), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(text: &str) -> Setup {
        toml::from_str(text).unwrap()
    }

    const TWO: &str = "time = { warm_up = '19 s', duration = '300 s' }
        [path]
        A = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }
        B = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }";

    #[test]
    fn errors_in_a_setup_are_reported() {
        let error = |text: &str| setup(&format!("{TWO}\n{text}")).check().unwrap_err();
        assert!(error("[[event]]\nat='1 s'\npath='X'").contains("\"X\"; there are A, B"));
        assert!(error("[application]\nmessage = 4").contains("application.message"));
        let early = TWO.replace("19 s", "1 s");
        assert!(setup(&early).check().unwrap_err().contains("warm_up"));
        assert_eq!(setup(TWO).check(), Ok(()));
    }
}
