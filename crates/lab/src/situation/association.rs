//! How an association of a plan behaves: a profile, and what differs from it.

use std::fmt;

use eyas_sctp::config::{
    BufferSplitting, BurstLimit, ChunkRescheduling, CongestionControlKind, Cuc, LossDetection,
    NrSackPolicy, PathOrder, RtxPolicy, SackPath, SchedulerKind,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::{Size, Time};

/// How an association behaves. What is not given is the profile's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AssociationSetup {
    /// Where the rest comes from.
    pub profile: ProfileName,
    /// The send limit and the advertised window, both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    /// The paths that it uses; all if none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Whether all paths carry data at a time; the primary path alone otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipath: Option<bool>,
    /// Which stream goes on which path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Mapping>,
    /// Of each stream for the automatic mapping, lower ones first; 0 for those beyond the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<u16>,
    /// How long after its sending a message of each stream should be there, for the automatic
    /// mapping; 0 is no matter, as for those beyond the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<Time>,
    /// Which of several messages the receiving application gets first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_order: Option<ReceiveOrderName>,
    /// Whether NR-SACK is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_sack: Option<bool>,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlKind>,
    /// How losses are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// Which stream may send next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerKind>,
    /// The sender's buffer splitting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_splitting: Option<BufferSplitting>,
    /// The receiver's buffer splitting, as the sender keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_splitting: Option<BufferSplitting>,
    /// Where retransmissions go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtx_policy: Option<RtxPolicy>,
    /// Which path is served first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_order: Option<PathOrder>,
    /// The path that acknowledgements take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_path: Option<SackPath>,
    /// The bound of what is in flight on a path, in percent of bandwidth × shortest round trip; 0
    /// is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight_cap: Option<u16>,
    /// When the window of a path may grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuc: Option<Cuc>,
    /// Whether a chunk is missing only if something arrived that was sent later on its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_fast_retransmit: Option<bool>,
    /// Whether gaps are not reported at once, and SACKs state for how many packets they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<bool>,
    /// When a chunk is acknowledged for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_sack_policy: Option<NrSackPolicy>,
    /// How much may leave at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstLimit>,
    /// Whether a chunk that holds up all others is sent once more on another path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescheduling: Option<ChunkRescheduling>,
    /// Whether I-DATA is offered (RFC 8260); its header is 4 bytes larger than that of DATA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaving: Option<bool>,
}

impl AssociationSetup {
    /// Whether this can be run.
    ///
    /// # Errors
    /// In the words of a plan, with the name of the parameter.
    pub fn check(&self) -> Result<(), String> {
        match self.scheduler {
            Some(SchedulerKind::Priority | SchedulerKind::WeightedFairQueueing) => Err(
                "association.scheduler: priority and weighted-fair-queueing go by a value of each \
                 stream, which a plan cannot give; take another one"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Whether it uses this path.
    #[must_use]
    pub fn uses(&self, path: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == path)
    }

    /// Every path that is named.
    pub fn path_names(&self) -> impl Iterator<Item = &str> {
        let table = match &self.mapping {
            Some(Mapping::Table(names)) => names.as_slice(),
            _ => &[],
        };
        table.iter().chain(&self.only).map(String::as_str)
    }
}

/// Which stream goes on which path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Every stream on every path, messages in turn: `"round-robin"`.
    RoundRobin,
    /// Stream number modulo number of paths: `"modulo"`.
    Modulo,
    /// By estimates, without tuning: `"automatic"`.
    Automatic,
    /// The path of each stream, `["A", "B"]`: stream 0 on A, stream 1 on B; streams beyond the end
    /// begin again at its front.
    Table(Vec<String>),
}

impl Serialize for Mapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::RoundRobin => serializer.serialize_str("round-robin"),
            Self::Modulo => serializer.serialize_str("modulo"),
            Self::Automatic => serializer.serialize_str("automatic"),
            Self::Table(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Mapping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MappingVisitor)
    }
}

struct MappingVisitor;

impl<'de> de::Visitor<'de> for MappingVisitor {
    type Value = Mapping;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"round-robin\", \"modulo\", \"automatic\", or the path of each stream")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Mapping, E> {
        match text {
            "round-robin" => Ok(Mapping::RoundRobin),
            "modulo" => Ok(Mapping::Modulo),
            "automatic" => Ok(Mapping::Automatic),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut sequence: A) -> Result<Mapping, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = sequence.next_element()? {
            names.push(name);
        }
        match names.is_empty() {
            true => Err(de::Error::invalid_length(0, &self)),
            false => Ok(Mapping::Table(names)),
        }
    }
}

/// Where what a plan does not say comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// The library's defaults.
    #[default]
    Default,
    /// As the authors of the paper had it (Dreibholz et al. 2010).
    Pfldnet2010,
}

/// Which of several messages the receiving application gets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveOrderName {
    /// The one that came free first.
    Arrival,
    /// Streams in turn.
    RoundRobin,
    /// By `priorities`.
    Priority,
}

#[cfg(test)]
mod tests;
