//! All paths of an association at once: Concurrent Multipath Transfer (CMT-SCTP).
//!
//! Each choice has the name that it was published with; [`Multipath`] puts them together, and a
//! [`super::Profile`] is a set of choices that somebody published results with.
//!
//! | choice | source |
//! | --- | --- |
//! | [`StreamMapping`], [`StreamPreference`] | Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission Scheduling Optimizations for Concurrent Multipath Transfer, PFLDNeT 2010, §4 |
//! | [`BufferSplitting`], [`ChunkRescheduling`] | Dreibholz, Becke, Rathgeb, Tüxen: On the Use of Concurrent Multipath Transfer over Asymmetric Paths, GLOBECOM 2010 |
//! | [`Cuc`], [`RtxPolicy`], SFR and DAC | Iyengar, Amer, Stewart: Concurrent Multipath Transfer Using SCTP Multihoming Over Independent End-to-End Paths, 2006, §3, §4 |
//! | [`NrSackPolicy`] | draft-tuexen-tsvwg-sctp-multipath §3; Natarajan et al., ICNP 2008 |
//! | [`BurstLimit`] | RFC 9260 §6.1 rule D |
//!
//! Split fast retransmission (SFR, §3.1) and delayed acknowledgement (DAC, §3.3) are either on or
//! off: [`Multipath::split_fast_retransmit`], [`Multipath::delayed_ack`].

use alloc::vec::Vec;
use core::time::Duration;

use crate::identifier::StreamId;

/// How an association uses all its confirmed, active paths for new data at once
/// ([`crate::config::AssociationConfig::multipath`]).
///
/// Both sides choose for themselves: what is said of receiving holds for what the peer sends. A
/// message that names a path ([`crate::message::SendInfo::path`]) goes there, whatever the mapping.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Multipath {
    /// Which path a stream's messages take.
    pub mapping: StreamMapping,
    /// What streams ask of the automatic mapping; those that are not named ask nothing.
    pub preferences: Vec<(StreamId, StreamPreference)>,
    /// Which path is served first.
    pub path_order: PathOrder,
    /// How much of the send buffer one path may take.
    pub sender_splitting: BufferSplitting,
    /// How much of the peer's window one path may take.
    pub receiver_splitting: BufferSplitting,
    /// When the window of a path may grow.
    pub cuc: Cuc,
    /// SFR: whether a chunk is missing only if something arrived that was sent later *on its path*
    /// (Iyengar et al. 2006 §3.1). Matters where losses are found by missing reports
    /// ([`crate::config::LossDetection::Classic`]); those found by time are found by path anyway.
    pub split_fast_retransmit: bool,
    /// DAC: whether gaps are not reported at once, SACKs state for how many packets they are, and
    /// missing reports count accordingly (Iyengar et al. 2006 §3.3).
    pub delayed_ack: bool,
    /// Where a lost chunk is sent again.
    pub rtx_policy: RtxPolicy,
    /// On which path an acknowledgement returns.
    pub sack_path: SackPath,
    /// When the peer is told that a chunk is held for good, if NR-SACK is agreed on.
    pub nr_sack: NrSackPolicy,
    /// How much may leave at once.
    pub burst: BurstLimit,
    /// How much may be under way on a path, if that is bounded by more than its window.
    pub flight_cap: Option<FlightCap>,
    /// Whether a chunk that holds up all others is sent once more on another path.
    pub rescheduling: ChunkRescheduling,
}

impl Default for Multipath {
    fn default() -> Self {
        Self {
            mapping: StreamMapping::Automatic,
            preferences: Vec::new(),
            path_order: PathOrder::EarliestArrival,
            sender_splitting: BufferSplitting::None,
            receiver_splitting: BufferSplitting::None,
            cuc: Cuc::V2,
            split_fast_retransmit: true,
            delayed_ack: true,
            rtx_policy: RtxPolicy::Same,
            sack_path: SackPath::LowestRtt,
            nr_sack: NrSackPolicy::AtArrival,
            burst: BurstLimit::Acknowledged,
            flight_cap: Some(FlightCap::default()),
            rescheduling: ChunkRescheduling::None,
        }
    }
}

/// Which path a stream's messages take. A stream whose path does not work for now takes any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamMapping {
    /// Whichever path has room takes the next message of whichever stream has its turn: every
    /// stream is spread over all paths.
    #[default]
    RoundRobin,
    /// By a table of streams and paths; a path is stated by its place in the order of paths, from
    /// 0. Streams that it does not name go by round-robin.
    Table(Vec<(StreamId, usize)>),
    /// The path at the place `stream mod paths`.
    Modulo,
    /// By estimates of the paths' rates and delays and of what is queued: a message takes the path
    /// on which it will be there first, and waits for that path if another that is free now would
    /// deliver it later.
    Automatic,
}

/// What a stream asks of [`super::StreamMapping::Automatic`]; other mappings do not ask. Preferences are
/// optional: without any the mapping serves all streams alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamPreference {
    /// The lower, the sooner: a path takes the streams of the lowest value first, and slower paths
    /// those of the highest, as long as they have something to send. 0 for streams without a preference.
    pub priority: u16,
    /// How long after it was sent a message should be there, as far as that can be estimated: the
    /// stream takes no path on which it would come later while another one is in time. `None`: no
    /// matter.
    pub deadline: Option<Duration>,
}

/// In which order paths are asked whether they have something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PathOrder {
    /// By their numbers: the order in which they were added.
    InOrder,
    /// The one first on which nothing was sent for longest.
    OldestTransmission,
    /// The one first on which a packet that leaves now would be there first, by estimates of delay,
    /// rate and queue.
    #[default]
    EarliestArrival,
    /// The shortest smoothed round trip first; those never measured last.
    LowestRtt,
    /// The largest congestion window first.
    LargestWindow,
    /// The largest slow-start threshold first.
    LargestSlowStartThreshold,
    /// The largest room in its window first.
    LargestSpace,
}

/// Which bytes of a path count against its share of a buffer. With `n` paths, new data does not go
/// on path `p` with `b_p` such bytes if
/// - at the sender's side, `b_p` and one packet more exceed a share `1/n` of the send buffer;
/// - at the receiver's side, `b_p` exceeds a share `1/n` of the peer's window and what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BufferSplitting {
    /// No shares.
    #[default]
    None,
    /// Bytes sent on the path and neither cumulatively nor non-renegably acknowledged.
    Queued,
    /// Bytes under way on the path: gap acknowledgements take them out, too.
    Outstanding,
}

/// When the pseudo-cumulative point of a path counts as advanced, which lets its window grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Cuc {
    /// No point for each path: when the cumulative TSN covers something that was sent on it.
    None,
    /// When the lowest TSN that the path has outstanding is acknowledged, retransmitted or not.
    V1,
    /// When the lowest outstanding TSN of those sent once, or the lowest of those retransmitted, is
    /// acknowledged: a retransmission that is lost again does not stop the window.
    #[default]
    V2,
}

/// Where a chunk goes that was lost and is sent again before T3 runs out. After T3 it is another
/// active path (RFC 9260 §6.4.1); among several the policy chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RtxPolicy {
    /// RTX-SAME: the path that it was sent on.
    #[default]
    Same,
    /// RTX-ASAP: a path whose window has room now; of several, the one with the most.
    Asap,
    /// RTX-CWND: the path with the largest congestion window.
    Cwnd,
    /// RTX-SSTHRESH: the path with the largest slow-start threshold.
    Ssthresh,
    /// RTX-LOSSRATE: the path that lost the least part of what was sent on it.
    LossRate,
}

/// Where a SACK is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum SackPath {
    /// The path on which the last packet with data came (RFC 9260 §6.4).
    LastArrival,
    /// Of the paths that delivered data since the last SACK, the one on which a SACK went least
    /// lately.
    InTurn,
    /// Of the active paths that packets came on lately, the one with the least round trip; another
    /// one after data came twice, as the SACKs may have been lost there.
    #[default]
    LowestRtt,
    /// The path on which the first packet with data came since the last SACK.
    First,
}

/// When a chunk is acknowledged non-renegably: the sender may forget it from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NrSackPolicy {
    /// When its message has been delivered to the application.
    AtDelivery,
    /// When it has arrived: this receiver never drops what it has reported.
    #[default]
    AtArrival,
}

/// What `Max.Burst` ([`crate::config::AssociationConfig::max_burst`]) means where several paths are
/// used at once and nothing paces the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BurstLimit {
    /// As many bytes as were acknowledged on the path since, and `Max.Burst` packets more.
    #[default]
    Acknowledged,
    /// `Max.Burst` packets with new data on each path for every event: a packet that came in, a
    /// message that was handed in, a timer. What is not used is lost.
    PerEvent,
    /// As [`Self::PerEvent`], on all paths together.
    Total,
    /// No limit but the window.
    None,
}

/// How much may be under way on a path at most, by its estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightCap {
    /// Percent of estimated bandwidth by least round trip; at least 100.
    pub percent: u16,
}

impl Default for FlightCap {
    fn default() -> Self {
        Self { percent: 110 }
    }
}

/// Whether the chunk that holds up the cumulative acknowledgement is sent once more, on a path that
/// has room, when a full buffer keeps new data back. No window is cut for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ChunkRescheduling {
    /// Never.
    #[default]
    None,
    /// When the send buffer is full.
    Sender,
    /// When the peer's window is full.
    Receiver,
    /// When either is full.
    Both,
}

impl ChunkRescheduling {
    /// Whether a full send buffer is a reason.
    pub(crate) const fn by_send_buffer(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    /// Whether a full window of the peer's is a reason.
    pub(crate) const fn by_peer_window(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}
