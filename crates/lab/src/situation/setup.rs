//! A situation to be simulated: the network, the association, the application and the times.

use std::collections::BTreeMap;

use eyas_emulator::units::{
    BitRate, FramingSize, JitterSpec, LinkRate, LinkSpec, LossSpec, MiddleboxSpec, PercentValue,
    QueueSpec, RateRecording, ReorderSpec, TimeSpan,
};
use serde::{Deserialize, Serialize};

use super::association::AssociationSetup;
use super::error::{PathSetupError, SetupError};
use super::mode::PacketMode;
use super::queue_info::QueueInfo;

/// A situation to be simulated. With a seed, it determines a run to the last packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationSetup {
    /// The form of packets.
    #[serde(default, skip_serializing_if = "PacketMode::is_struct")]
    pub mode: PacketMode,
    /// The times.
    pub time: SimulationTimes,
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
pub struct SimulationTimes {
    /// The association is opened at a time that is uniformly distributed between these two.
    #[serde(default = "default_start")]
    pub start: [TimeSpan; 2],
    /// When the measurement begins.
    pub warm_up: TimeSpan,
    /// The duration of the measurement.
    pub duration: TimeSpan,
}

fn default_start() -> [TimeSpan; 2] {
    let milliseconds = |count| TimeSpan(std::time::Duration::from_millis(count));
    [milliseconds(900), milliseconds(1100)]
}

/// One path; the way back is the same, except for what it has of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSetup {
    /// The rate of the bottleneck; 0 if it has a recorded one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: BitRate,
    /// The recorded rate of the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<RateRecording>,
    /// The one-way delay of the bottleneck.
    pub delay: TimeSpan,
    /// The random part of the delay.
    #[serde(default)]
    pub jitter: JitterSpec,
    /// The queue before the bottleneck.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Bytes that the link adds to each packet.
    #[serde(default)]
    pub framing: FramingSize,
    /// The random losses.
    #[serde(default)]
    pub loss: LossSpec,
    /// The share of packets that arrive twice.
    #[serde(default, skip_serializing_if = "is_none")]
    pub duplicate: PercentValue,
    /// Whether packets overtake each other.
    #[serde(default, skip_serializing_if = "is_in_order")]
    pub reorder: ReorderSpec,
    /// What differs from the receiver to the sender.
    #[serde(default, skip_serializing_if = "LinkSpec::is_empty")]
    pub back: LinkSpec,
    /// The middleboxes between the sender and the bottleneck, the one nearest to the sender first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middlebox: Vec<MiddleboxSpec>,
    /// The path whose bottleneck this one shares; its own link is then ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// When both hosts learn of it (RFC 5061); at the start if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<TimeSpan>,
}

fn is_zero(rate: &BitRate) -> bool {
    rate.0 == 0
}

fn is_none(part: &PercentValue) -> bool {
    part.0 <= 0.0
}

fn is_in_order(reorder: &ReorderSpec) -> bool {
    *reorder == ReorderSpec::default()
}

impl PathSetup {
    /// Returns the rate, the average of a recorded one.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        self.trace.as_ref().map_or(self.rate, |recording| BitRate(recording.trace.rate()))
    }

    /// Returns the link towards the receiver.
    #[must_use]
    pub fn link(&self) -> LinkSpec {
        LinkSpec {
            rate: self.trace.is_none().then_some(LinkRate::Limited(self.rate)),
            trace: self.trace.clone(),
            delay: Some(self.delay),
            jitter: Some(self.jitter),
            loss: Some(self.loss),
            queue: Some(self.queue),
            framing: Some(self.framing),
            duplicate: Some(self.duplicate),
            reorder: Some(self.reorder),
            ..LinkSpec::default()
        }
    }

    /// Returns the way back as the way there of a path.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let back = &self.back;
        let (rate, trace) = match (back.rate.and_then(LinkRate::limit), &back.trace) {
            (_, Some(trace)) => (BitRate::default(), Some(trace.clone())),
            (Some(rate), None) => (rate, None),
            (None, None) => (self.rate, self.trace.clone()),
        };
        Self {
            rate,
            trace,
            delay: back.delay.unwrap_or(self.delay),
            jitter: back.jitter.unwrap_or(self.jitter),
            queue: back.queue.unwrap_or(self.queue),
            framing: back.framing.unwrap_or(self.framing),
            loss: back.loss.unwrap_or(self.loss),
            duplicate: back.duplicate.unwrap_or(self.duplicate),
            reorder: back.reorder.unwrap_or(self.reorder),
            back: LinkSpec::default(),
            ..self.clone()
        }
    }

    /// Checks what the keys do not say by themselves.
    fn check(&self) -> Result<(), PathSetupError> {
        let back = &self.back;
        if self.rate.0 > 0 && self.trace.is_some() {
            return Err(PathSetupError::RateAndTrace);
        }
        if self.rate().0 == 0
            || back.rate.is_some_and(|rate| rate.limit().is_none_or(|it| it.0 == 0))
        {
            return Err(PathSetupError::NoRate);
        }
        if back.mtu.is_some() || back.bit_errors.is_some() || back.up.is_some() {
            return Err(PathSetupError::Back);
        }
        Ok(self.middlebox.iter().try_for_each(MiddleboxSpec::check)?)
    }
}

/// The links between a host and the bottlenecks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSetup {
    /// The rate of each of them.
    pub rate: BitRate,
    /// The one-way delay.
    pub delay: TimeSpan,
}

impl Default for AccessSetup {
    fn default() -> Self {
        Self { rate: BitRate(1_000_000_000), delay: TimeSpan::default() }
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
    pub keystrokes: Option<TimeSpan>,
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
    pub at: TimeSpan,
    /// The path whose bottleneck changes.
    pub path: String,
    /// Its new rate: in both directions, unless the way back has a rate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Its new delay: in both directions, unless the way back has a delay of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeSpan>,
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
    pub rate: Option<BitRate>,
    /// Its new delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeSpan>,
}

impl BackEventSetup {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl EventSetup {
    /// Applies the change to a path.
    pub(crate) fn apply(&self, path: &mut PathSetup) {
        if let Some(rate) = self.rate {
            (path.rate, path.trace) = (rate, None);
        }
        path.delay = self.delay.unwrap_or(path.delay);
        if let Some(rate) = self.back.rate {
            (path.back.rate, path.back.trace) = (Some(LinkRate::Limited(rate)), None);
        }
        path.back.delay = self.back.delay.or(path.back.delay);
    }
}

/// The maximum numbers of paths, streams and bytes of a message in a set-up.
const MOST_PATHS: usize = 32;
/// Messages contain the time of their creation, and fit in one packet of 1,500 bytes or in several.
const MESSAGE_SIZES: std::ops::RangeInclusive<usize> = 16..=65_536;

impl SimulationSetup {
    /// Checks whether this can be simulated.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), SetupError> {
        let known = |name: &str, place: &str| match self.path.contains_key(name) {
            true => Ok(()),
            false => {
                let names: Vec<_> = self.path.keys().map(String::as_str).collect();
                let (place, name) = (place.to_owned(), name.to_owned());
                Err(SetupError::UnknownPath { place, name, known: names.join(", ") })
            }
        };
        if self.path.is_empty() || self.path.len() > MOST_PATHS {
            return Err(SetupError::Paths { most: MOST_PATHS });
        }
        for (name, path) in &self.path {
            let invalid = |cause| SetupError::Path { name: name.clone(), cause };
            path.check().map_err(invalid)?;
            if let Some(other) = &path.through {
                known(other, &format!("path.{name}.through"))?;
                if self.path[other].through.is_some() {
                    return Err(SetupError::Through { name: name.clone() });
                }
            }
        }
        for (name, rival) in &self.rival {
            rival.association.check()?;
            known(&rival.path, &format!("rival.{name}.path"))?;
            if self.path[&rival.path].joins.is_some() {
                let (name, path) = (name.clone(), rival.path.clone());
                return Err(SetupError::RivalJoins { name, path });
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
            return Err(SetupError::AllJoin);
        }
        if self.time.start[1] < self.time.start[0] || self.time.warm_up < self.time.start[1] {
            return Err(SetupError::WarmUp);
        }
        if self.time.duration.0.is_zero() {
            return Err(SetupError::Duration);
        }
        if !MESSAGE_SIZES.contains(&self.application.message) || self.application.streams == 0 {
            return Err(SetupError::Message);
        }
        if self.application.keystrokes.is_some_and(|time| time.0.is_zero()) {
            return Err(SetupError::Keystrokes);
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

    fn setup(text: &str) -> SimulationSetup {
        toml::from_str(text).unwrap()
    }

    const TWO: &str = "time = { warm_up = '19 s', duration = '300 s' }
        [path]
        A = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }
        B = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }";

    #[test]
    fn errors_in_a_setup_are_reported() {
        let error = |text: &str| setup(&format!("{TWO}\n{text}")).check().unwrap_err().to_string();
        assert!(error("[[event]]\nat='1 s'\npath='X'").contains("\"X\"; there are A, B"));
        assert!(error("[application]\nmessage = 4").contains("application.message"));
        let early = TWO.replace("19 s", "1 s");
        assert_eq!(setup(&early).check(), Err(SetupError::WarmUp));
        assert_eq!(setup(TWO).check(), Ok(()));
    }
}
