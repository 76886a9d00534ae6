//! One situation, ready to be simulated: the network, the association, the application, the times.

use std::collections::BTreeMap;
use std::fmt;

use eyas_netem::link::{GilbertElliott, LossConfig};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::association::AssociationSetup;
use super::mode::Mode;
use super::quantity::{Kind, NotAnAmount, Part, Rate, Size, Time, parse};
use super::queue_info::QueueInfo;

/// One situation. It and a seed determine a run, to the last packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// What packets travel as.
    #[serde(default, skip_serializing_if = "Mode::is_wire")]
    pub mode: Mode,
    /// When things happen.
    pub time: Times,
    /// The paths from sender to receiver, by name; they are numbered in the order of their names.
    pub path: BTreeMap<String, PathSetup>,
    /// The links between the hosts and the bottlenecks.
    #[serde(default)]
    pub access: AccessSetup,
    /// The association between the two.
    #[serde(default)]
    pub association: AssociationSetup,
    /// What is sent over it.
    #[serde(default)]
    pub application: ApplicationSetup,
    /// Other associations, each over one path, between hosts of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rival: BTreeMap<String, RivalSetup>,
    /// What changes during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSetup>,
}

/// When things happen, from the beginning of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The association is opened at a time drawn evenly from between these two.
    #[serde(default = "default_start")]
    pub start: [Time; 2],
    /// When measuring begins.
    pub warm_up: Time,
    /// How long is measured.
    pub duration: Time,
}

fn default_start() -> [Time; 2] {
    let milliseconds = |count| Time(std::time::Duration::from_millis(count));
    [milliseconds(900), milliseconds(1100)]
}

/// One path, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSetup {
    /// Of the bottleneck.
    pub rate: Rate,
    /// One way, of the bottleneck.
    pub delay: Time,
    /// The most that is added to the delay of a packet, evenly drawn; packets stay in order.
    #[serde(default)]
    pub jitter: Time,
    /// Before the bottleneck.
    #[serde(default)]
    pub queue: Queue,
    /// Bytes that the link adds to each packet.
    #[serde(default)]
    pub framing: Framing,
    /// What is lost at random.
    #[serde(default)]
    pub loss: Loss,
    /// The path whose bottleneck this one goes through; its own rate, delay, queue, framing and
    /// loss count for nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// When both hosts learn of it (RFC 5061); from the start if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Time>,
}

/// Bytes that a link adds to each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Framing(pub Size);

/// How much may wait, and what is done before there is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// First come, first served, so many packets at most.
    Packets(usize),
    /// First come, first served, so many bytes at most.
    Bytes(usize),
    /// Random early detection (Floyd and Jacobson 1993), so many packets at most.
    Red(usize),
    /// Controlled delay (RFC 8289), so many packets at most.
    CoDel(usize),
}

impl Default for Queue {
    fn default() -> Self {
        Self::Packets(100)
    }
}

impl std::str::FromStr for Queue {
    type Err = NotAQueue;

    fn from_str(text: &str) -> Result<Self, NotAQueue> {
        let refused = |_: NotAnAmount| NotAQueue(text.to_owned());
        let (amount, discipline) = match text.trim().rsplit_once(' ') {
            Some((amount, "red")) => (amount, Self::Red as fn(usize) -> Self),
            Some((amount, "codel")) => (amount, Self::CoDel as fn(usize) -> Self),
            _ => (text, Self::Packets as fn(usize) -> Self),
        };
        match parse(amount).map_err(refused)? {
            (count, Kind::Packets) if count >= 1.0 => Ok(discipline(count as usize)),
            (count, Kind::Size) if count >= 1.0 && amount == text => {
                Ok(Self::Bytes(count as usize))
            }
            _ => Err(NotAQueue(text.to_owned())),
        }
    }
}

/// A text that names no queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a queue, such as \"100 packets\", \"64 KiB\", \"100 packets red\" or \
     \"1000 packets codel\""
)]
pub struct NotAQueue(String);

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Bytes(count) => Size(*count).fmt(f),
            Self::Red(count) => write!(f, "{count} packets red"),
            Self::CoDel(count) => write!(f, "{count} packets codel"),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What a path loses at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Of the packets, each for itself. In the two-state model: while things are good.
    #[serde(default)]
    pub probability: Part,
    /// Of the packets while things are bad (Gilbert and Elliott).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_bad: Option<Part>,
    /// That things get bad, at each packet.
    #[serde(default)]
    pub worsens: Part,
    /// That things get good again, at each packet.
    #[serde(default)]
    pub recovers: Part,
    /// Bit errors: of all bits, this part is wrong.
    #[serde(default)]
    pub bit_errors: f64,
}

impl Loss {
    /// Which packets a link loses, its bit errors left out.
    #[must_use]
    pub fn model(&self) -> LossConfig {
        match self.while_bad {
            Some(while_bad) => LossConfig::GilbertElliott(GilbertElliott {
                to_bad: self.worsens.0,
                to_good: self.recovers.0,
                loss_good: self.probability.0,
                loss_bad: while_bad.0,
            }),
            None if self.probability.0 > 0.0 => LossConfig::Probability(self.probability.0),
            None => LossConfig::None,
        }
    }
}

/// The links between a host and the bottlenecks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSetup {
    /// Of each of them.
    pub rate: Rate,
    /// One way.
    pub delay: Time,
}

impl Default for AccessSetup {
    fn default() -> Self {
        Self { rate: Rate(1_000_000_000), delay: Time::default() }
    }
}

/// What is sent: as much as goes, all streams in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApplicationSetup {
    /// Bytes of each message, 16 at least.
    pub message: usize,
    /// How many streams there are.
    pub streams: u16,
    /// What the application asks of its streams (draft-dreibholz-tsvwg-sctpsocket-sqinfo) before it
    /// hands something in.
    pub queue_info: QueueInfo,
}

impl Default for ApplicationSetup {
    fn default() -> Self {
        Self { message: 1452, streams: 2, queue_info: QueueInfo::None }
    }
}

/// Another association, over one path, that sends as much as goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalSetup {
    /// The path whose bottleneck it uses.
    pub path: String,
    /// How it behaves.
    #[serde(default)]
    pub association: AssociationSetup,
}

/// Something that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSetup {
    /// When, from the beginning of the simulation.
    pub at: Time,
    /// Which path's bottleneck.
    pub path: String,
    /// Its new rate, in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Its new delay, in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Whether packets pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// The most paths, streams and messages' bytes that a setup may have.
const MOST_PATHS: usize = 32;
/// Messages hold the time of their making, and go in one packet of 1,500 bytes or several.
const MESSAGE_SIZES: std::ops::RangeInclusive<usize> = 16..=65_536;

impl Setup {
    /// What cannot be simulated, in words.
    ///
    /// # Errors
    /// The first thing that is wrong.
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
            if path.rate.0 == 0 {
                return Err(format!("path.{name}.rate must be above 0"));
            }
            if let Some(other) = &path.through {
                known(other, &format!("path.{name}.through"))?;
                if self.path[other].through.is_some() {
                    return Err(format!("path.{name}.through names a path without its own link"));
                }
            }
        }
        for (name, rival) in &self.rival {
            known(&rival.path, &format!("rival.{name}.path"))?;
            if self.path[&rival.path].joins.is_some() {
                return Err(format!("rival.{name} has only path {:?}, which joins", rival.path));
            }
        }
        for event in &self.event {
            known(&event.path, "an [[event]]")?;
        }
        for name in self.association.path_names() {
            known(name, "association.mapping or association.only")?;
        }
        if self.used_paths().all(|(_, path)| path.joins.is_some()) {
            return Err("the association needs a path that is there from the start".to_owned());
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
        Ok(())
    }

    /// The paths that the association uses, in the order of their numbers.
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

    #[test]
    fn queues() {
        for text in ["100 packets", "64 KiB", "100 packets red", "1000 packets codel"] {
            assert_eq!(text.parse::<Queue>().unwrap().to_string(), text);
        }
        for text in ["100", "64 KiB codel", "0 packets", "red"] {
            assert!(text.parse::<Queue>().is_err(), "{text}");
        }
    }

    fn setup(text: &str) -> Setup {
        toml::from_str(text).unwrap()
    }

    const TWO: &str = "time = { warm_up = '19 s', duration = '300 s' }
        [path]
        A = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }
        B = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }";

    #[test]
    fn what_is_wrong_is_said() {
        let said = |text: &str| setup(&format!("{TWO}\n{text}")).check().unwrap_err();
        assert!(said("[[event]]\nat='1 s'\npath='X'").contains("\"X\"; there are A, B"));
        assert!(said("[application]\nmessage = 4").contains("application.message"));
        let early = TWO.replace("19 s", "1 s");
        assert!(setup(&early).check().unwrap_err().contains("warm_up"));
        assert_eq!(setup(TWO).check(), Ok(()));
    }
}
