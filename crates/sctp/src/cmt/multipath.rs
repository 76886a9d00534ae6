//! All choices of one association.

use alloc::vec::Vec;

use super::{
    BufferSplitting, BurstLimit, ChunkRescheduling, Cuc, FlightCap, NrSackPolicy, PathOrder,
    RtxPolicy, SackPath, StreamMapping, StreamPreference,
};

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
