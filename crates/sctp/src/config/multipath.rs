//! Concurrent Multipath Transfer (CMT-SCTP): using all paths of an association at the same time.
//!
//! Each option has its published name. [`MultipathConfig`] combines them, and a [`super::MultipathProfile`] is a
//! combination for which results were published.
//!
//! | option | source |
//! | --- | --- |
//! | [`StreamMapping`], [`StreamPreference`] | Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission Scheduling Optimizations for Concurrent Multipath Transfer, PFLDNeT 2010, §4 |
//! | [`BufferSplitting`], [`ChunkRescheduling`] | Dreibholz, Becke, Rathgeb, Tüxen: On the Use of Concurrent Multipath Transfer over Asymmetric Paths, GLOBECOM 2010 |
//! | [`CucVersion`], [`RtxPolicy`], SFR and DAC | Iyengar, Amer, Stewart: Concurrent Multipath Transfer Using SCTP Multihoming Over Independent End-to-End Paths, 2006, §3, §4 |
//! | [`NrSackPolicy`] | draft-tuexen-tsvwg-sctp-multipath §3; Natarajan et al., ICNP 2008 |
//! | [`BurstLimit`] | RFC 9260 §6.1 rule D |
//!
//! Split fast retransmission (SFR, §3.1) and delayed acknowledgement (DAC, §3.3) are booleans:
//! [`MultipathConfig::split_fast_retransmit`], [`MultipathConfig::delayed_ack`].

use alloc::vec::Vec;
use core::time::Duration;

use crate::identifier::StreamId;

/// How an association uses all its confirmed, active paths for new data concurrently
/// ([`crate::config::AssociationConfig::multipath`]).
///
/// Each side chooses for itself: options of the receiver apply to what the peer sends. A message
/// with an explicit path ([`crate::message::SendInfo::path`]) uses it, whatever the mapping.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MultipathConfig {
    /// Which path is used for the messages of a stream.
    pub mapping: StreamMapping,
    /// The preferences of streams for the automatic mapping; streams that are not listed have none.
    pub preferences: Vec<(StreamId, StreamPreference)>,
    /// The order in which paths are served.
    pub path_order: PathOrder,
    /// How much of the send buffer one path may use.
    pub sender_splitting: BufferSplitting,
    /// How much of the peer's receiver window one path may use.
    pub receiver_splitting: BufferSplitting,
    /// When the congestion window of a path may grow.
    pub cuc: CucVersion,
    /// SFR: whether a chunk counts as missing only if something arrived that was sent later *on its
    /// path* (Iyengar et al. 2006 §3.1). Applies if losses are detected by missing reports
    /// ([`crate::config::LossDetection::Classic`]); detection by time is per path anyway.
    pub split_fast_retransmit: bool,
    /// DAC: whether gaps are not reported at once, SACKs contain the number of packets that they
    /// cover, and missing reports count accordingly (Iyengar et al. 2006 §3.3).
    pub delayed_ack: bool,
    /// The path on which a lost chunk is retransmitted.
    pub rtx_policy: RtxPolicy,
    /// The path on which a SACK is sent.
    pub sack_path: SackPath,
    /// When a chunk is reported as non-renegable, if NR-SACK was negotiated.
    pub nr_sack: NrSackPolicy,
    /// How much may be sent at once.
    pub burst: BurstLimit,
    /// An additional limit on the data in flight on a path, besides its congestion window.
    pub flight_cap: Option<FlightCap>,
    /// Whether a chunk that holds up all others is also sent on another path.
    pub rescheduling: ChunkRescheduling,
    /// The number of the peer's addresses that are verified at once, in place of `HB.Max.Burst`
    /// ([`crate::config::AssociationConfig::hb_max_burst`]) if that is smaller. With one in each
    /// timeout, the n-th line would join n − 1 seconds late.
    pub verification_burst: u32,
}

impl Default for MultipathConfig {
    fn default() -> Self {
        Self {
            mapping: StreamMapping::Automatic,
            preferences: Vec::new(),
            path_order: PathOrder::EarliestArrival,
            sender_splitting: BufferSplitting::None,
            receiver_splitting: BufferSplitting::None,
            cuc: CucVersion::V2,
            split_fast_retransmit: true,
            delayed_ack: true,
            rtx_policy: RtxPolicy::EarliestArrival,
            sack_path: SackPath::Budgeted,
            nr_sack: NrSackPolicy::AtArrival,
            burst: BurstLimit::Acknowledged,
            flight_cap: Some(FlightCap::default()),
            rescheduling: ChunkRescheduling::None,
            verification_burst: 8,
        }
    }
}

/// Which path is used for the messages of a stream. If the path of a stream does not work, the
/// stream uses any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum StreamMapping {
    /// Whichever path has space takes the next message of the next stream: every stream is spread
    /// over all paths.
    #[default]
    RoundRobin,
    /// By a table of streams and paths; a path is given by its position in the order of paths,
    /// starting at zero. Streams that are not listed use round-robin.
    #[cfg_attr(feature = "serde", serde(skip))]
    Table(Vec<(StreamId, usize)>),
    /// The path at position `stream mod paths`.
    Modulo,
    /// By estimates of the paths' rates and delays and of the queued data: a message uses the path
    /// on which it will arrive first, and waits for that path if another one that is free now would
    /// deliver it later.
    Automatic,
}

/// The preferences of a stream for [`super::StreamMapping::Automatic`]; other mappings ignore them.
/// Preferences are optional: without any, the mapping treats all streams alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamPreference {
    /// The priority; lower values are more urgent: a path serves the streams with the lowest value
    /// first, and slower paths those with the highest, as long as they have something to send. 0
    /// for streams without a preference.
    pub priority: u16,
    /// How soon after it was sent a message should arrive, as far as that can be estimated: the
    /// stream avoids paths on which it would arrive later if another one is in time. `None`: no
    /// deadline.
    pub deadline: Option<Duration>,
}

/// The order in which paths are offered new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PathOrder {
    /// By number: the order in which they were added.
    InOrder,
    /// The path on which nothing was sent for longest first.
    OldestTransmission,
    /// The path on which a packet sent now would arrive earliest first, by estimates of delay, rate
    /// and queue.
    #[default]
    EarliestArrival,
    /// The lowest smoothed round-trip time first; paths without a measurement last.
    LowestRtt,
    /// The largest congestion window first.
    LargestWindow,
    /// The largest slow-start threshold first.
    LargestSlowStartThreshold,
    /// The largest free space in its window first.
    LargestSpace,
}

/// Which bytes of a path count against its share of a buffer. With `n` paths, new data is not sent
/// on path `p` with `b_p` such bytes if
///
/// - at the sender's side, `b_p` plus one packet exceeds `1/n` of the send buffer;
/// - at the receiver's side, `b_p` exceeds `1/n` of the sum of the peer's window and the data in
///   flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BufferSplitting {
    /// No limit per path.
    #[default]
    None,
    /// Bytes sent on the path that have been acknowledged neither cumulatively nor non-renegably.
    Queued,
    /// Bytes in flight on the path: those covered by gap acknowledgements do not count.
    Outstanding,
}

/// When the pseudo-cumulative TSN of a path counts as advanced, which lets its congestion window
/// grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum CucVersion {
    /// No pseudo-cumulative TSN per path: when the cumulative TSN covers something that was sent on
    /// it.
    None,
    /// When the lowest outstanding TSN of the path is acknowledged, retransmitted or not.
    V1,
    /// When the lowest outstanding TSN among those sent once, or the lowest among those
    /// retransmitted, is acknowledged: a retransmission that is lost again does not stall the
    /// window.
    #[default]
    V2,
}

/// The path on which a lost chunk is retransmitted before T3 expires. After T3 it is another active
/// path (RFC 9260 §6.4.1); if there are several, the policy chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RtxPolicy {
    /// RTX-SAME: the path on which it was sent.
    #[default]
    Same,
    /// RTX-ASAP: a path whose window has space now; if there are several, the one with the most.
    Asap,
    /// RTX-CWND: the path with the largest congestion window.
    Cwnd,
    /// RTX-SSTHRESH: the path with the largest slow-start threshold.
    Ssthresh,
    /// RTX-LOSSRATE: the path with the lowest loss rate.
    LossRate,
    /// The path on which it was sent, or another one that delivers it earlier, by estimates of round
    /// trip, rate and queue, as far as that one has room now. What is lost on a slow path holds up
    /// all that faster ones have delivered meanwhile, until it has filled the receiver's buffer.
    EarliestArrival,
}

/// The path on which a SACK is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum SackPath {
    /// The path on which the last packet with data arrived (RFC 9260 §6.4).
    LastArrival,
    /// Of the paths that delivered data since the last SACK, the one on which a SACK was sent least
    /// recently.
    InTurn,
    /// Of the active paths on which packets arrived recently, the one with the lowest round-trip
    /// time; after duplicate data another one, since SACKs may have been lost there.
    LowestRtt,
    /// Like [`Self::LowestRtt`], but each path carries SACKs only in proportion to the data that it
    /// delivers: 5 % of its bytes. A line that carries the SACKs for its own data also carries
    /// these, however narrow its way back is; more could fill a queue that the receiver never
    /// notices. SACKs are also sent less often while they are large, so that all of them together
    /// are no more than 3 % of the data, or 0.7 % while this end sends bulk, too.
    #[default]
    Budgeted,
    /// The path on which the first packet with data since the last SACK arrived.
    First,
}

/// When a chunk is acknowledged non-renegably, so that the sender may free it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NrSackPolicy {
    /// When its message has been delivered to the application.
    AtDelivery,
    /// When it has arrived: this receiver never drops what it has acknowledged.
    #[default]
    AtArrival,
}

/// The meaning of `Max.Burst` ([`crate::config::AssociationConfig::max_burst`]) if several paths
/// are used concurrently and packets are not paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BurstLimit {
    /// As many bytes as were acknowledged on the path meanwhile, plus `Max.Burst` packets.
    #[default]
    Acknowledged,
    /// `Max.Burst` packets with new data on each path for every event: an incoming packet, a new
    /// message, a timer. The unused rest is lost.
    PerEvent,
    /// Like [`Self::PerEvent`], but for all paths together.
    Total,
    /// No limit except the window.
    None,
}

/// The maximum amount of data in flight on a path, derived from its estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightCap {
    /// The percentage of estimated bandwidth times minimum round-trip time; at least 100.
    pub percent: u16,
}

impl Default for FlightCap {
    fn default() -> Self {
        Self { percent: 110 }
    }
}

/// Whether the chunk that holds up the cumulative acknowledgement is also sent on a path with free
/// space when a full buffer blocks new data. No window is reduced for it.
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
    /// When either of them is full.
    Both,
}

impl ChunkRescheduling {
    /// Returns whether a full send buffer is a reason.
    pub(crate) const fn by_send_buffer(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    /// Returns whether a full window of the peer's is a reason.
    pub(crate) const fn by_peer_window(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}
