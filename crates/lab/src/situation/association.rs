//! The behaviour of an association in a plan: a profile, and the differences from it.

use std::fmt;

use eyas_emulator::units::{ByteSize, TimeSpan};
use eyas_sctp::config::{
    BufferSplitting, BurstLimit, ChunkRescheduling, CongestionControlKind, CucVersion,
    LossDetection, NrSackPolicy, PathOrder, ProfileName, RtxPolicy, SackPath, SchedulerKind,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::AssociationSetupError;

/// The behaviour of an association. Options that are not given are those of the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AssociationSetup {
    /// The source of the other options.
    pub profile: ProfileName,
    /// Both the send limit and the advertised window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<ByteSize>,
    /// The paths that it uses; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Whether all paths carry data concurrently, rather than only the primary path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipath: Option<bool>,
    /// Which streams use which paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingSetup>,
    /// The priority of each stream for the automatic mapping, lower ones first; 0 for streams
    /// beyond the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<u16>,
    /// The deadline of each stream for the automatic mapping, relative to the sending of a message;
    /// 0 for none, and for streams beyond the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<TimeSpan>,
    /// Which of several messages the receiving application gets first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_order: Option<ReceiveOrderName>,
    /// Whether NR-SACK is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_sack: Option<bool>,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlKind>,
    /// The loss detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// The stream scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerKind>,
    /// The sender's buffer splitting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_splitting: Option<BufferSplitting>,
    /// The receiver's buffer splitting, as performed by the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_splitting: Option<BufferSplitting>,
    /// The path of retransmissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtx_policy: Option<RtxPolicy>,
    /// The order in which paths are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_order: Option<PathOrder>,
    /// The path of acknowledgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_path: Option<SackPath>,
    /// The limit of data in flight on a path, in percent of bandwidth × shortest round trip; 0 for
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight_cap: Option<u16>,
    /// When the window of a path may grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuc: Option<CucVersion>,
    /// Whether a chunk counts as missing only if something that was sent later on its path has
    /// arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_fast_retransmit: Option<bool>,
    /// Whether gaps are not reported at once, and SACKs state how many packets they cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<bool>,
    /// When a chunk is acknowledged irrevocably.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_sack_policy: Option<NrSackPolicy>,
    /// The burst limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstLimit>,
    /// Whether a chunk that blocks all others is sent once more on another path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescheduling: Option<ChunkRescheduling>,
    /// Whether I-DATA is offered (RFC 8260); its header is 4 bytes larger than that of DATA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaving: Option<bool>,
}

impl AssociationSetup {
    /// Checks whether this can be run.
    ///
    /// # Errors
    /// If the scheduler needs what a plan cannot give.
    pub fn check(&self) -> Result<(), AssociationSetupError> {
        match self.scheduler {
            Some(SchedulerKind::Priority | SchedulerKind::WeightedFairQueueing) => {
                Err(AssociationSetupError::Scheduler)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether it uses this path.
    #[must_use]
    pub fn uses(&self, path: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == path)
    }

    /// Returns every path that is named.
    pub fn path_names(&self) -> impl Iterator<Item = &str> {
        let table = match &self.mapping {
            Some(MappingSetup::Table(names)) => names.as_slice(),
            _ => &[],
        };
        table.iter().chain(&self.only).map(String::as_str)
    }
}

/// Which streams use which paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappingSetup {
    /// Every stream uses every path, message by message in turn: `"round-robin"`.
    RoundRobin,
    /// Stream number modulo number of paths: `"modulo"`.
    Modulo,
    /// Based on estimates, without tuning: `"automatic"`.
    Automatic,
    /// The path of each stream, `["A", "B"]`: stream 0 on A, stream 1 on B; the table repeats for
    /// further streams.
    Table(Vec<String>),
}

impl Serialize for MappingSetup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::RoundRobin => serializer.serialize_str("round-robin"),
            Self::Modulo => serializer.serialize_str("modulo"),
            Self::Automatic => serializer.serialize_str("automatic"),
            Self::Table(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MappingSetup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MappingVisitor)
    }
}

struct MappingVisitor;

impl<'de> de::Visitor<'de> for MappingVisitor {
    type Value = MappingSetup;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"round-robin\", \"modulo\", \"automatic\", or the path of each stream")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<MappingSetup, E> {
        match text {
            "round-robin" => Ok(MappingSetup::RoundRobin),
            "modulo" => Ok(MappingSetup::Modulo),
            "automatic" => Ok(MappingSetup::Automatic),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut sequence: A) -> Result<MappingSetup, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = sequence.next_element()? {
            names.push(name);
        }
        match names.is_empty() {
            true => Err(de::Error::invalid_length(0, &self)),
            false => Ok(MappingSetup::Table(names)),
        }
    }
}

/// Which of several messages the receiving application gets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveOrderName {
    /// The one that became available first.
    Arrival,
    /// Streams in turn.
    RoundRobin,
    /// By `priorities`.
    Priority,
}

#[cfg(test)]
mod tests;
