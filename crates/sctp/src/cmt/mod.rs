//! Concurrent Multipath Transfer (CMT-SCTP): new data on all paths of an association at once.
//!
//! Here is what can be chosen, each choice in a file of its own under the name that it was
//! published with; [`Multipath`] puts them together, and a [`Profile`] is a set of choices that
//! somebody published results with.
//!
//! | file | choice | source |
//! | --- | --- | --- |
//! | `multipath` | all choices of one association | |
//! | `stream_mapping` | which path a stream's messages take | Dreibholz et al., PFLDNeT 2010 §4 |
//! | `stream_preference` | priorities and deadlines for the automatic mapping | |
//! | `path_order` | which path is served first | |
//! | `buffer_splitting` | how much of the buffers one path may take | Dreibholz et al., GLOBECOM 2010 |
//! | `cuc` | when the window of a path may grow | Iyengar et al. 2006 §3.2 |
//! | `rtx_policy` | where a lost chunk is sent again | Iyengar et al. 2006 §4 |
//! | `sack_path` | on which path an acknowledgement returns | |
//! | `nr_sack_policy` | when the peer lets go of a chunk for good | draft-tuexen-tsvwg-sctp-multipath §3 |
//! | `burst_limit` | how much may leave at once | RFC 9260 §6.1 rule D |
//! | `flight_cap` | how much may be under way on a path | |
//! | `chunk_rescheduling` | a chunk that holds up all others | Dreibholz et al., GLOBECOM 2010 |
//! | `rtt_sampling` | which SACKs measure a round trip | |
//! | `window_accounting` | what the receive window counts | RFC 9260 §6.2.1 |
//! | `window_start` | windows and thresholds to begin with, and after a pause | RFC 4960 §7.2.1 |
//! | `profile` | published sets of choices | |
//!
//! Split fast retransmission (SFR, Iyengar et al. 2006 §3.1) and delayed acknowledgement (DAC, §3.3)
//! are either on or off: [`Multipath::split_fast_retransmit`], [`Multipath::delayed_ack`].

mod buffer_splitting;
mod burst_limit;
mod chunk_rescheduling;
mod cuc;
mod flight_cap;
mod multipath;
mod nr_sack_policy;
mod path_order;
mod profile;
mod rtt_sampling;
mod rtx_policy;
mod sack_path;
mod stream_mapping;
mod stream_preference;
mod window_accounting;
mod window_start;

pub use buffer_splitting::BufferSplitting;
pub use burst_limit::BurstLimit;
pub use chunk_rescheduling::ChunkRescheduling;
pub use cuc::Cuc;
pub use flight_cap::FlightCap;
pub use multipath::Multipath;
pub use nr_sack_policy::NrSackPolicy;
pub use path_order::PathOrder;
pub use profile::{Choice, Profile};
pub use rtt_sampling::RttSampling;
pub use rtx_policy::RtxPolicy;
pub use sack_path::SackPath;
pub use stream_mapping::StreamMapping;
pub use stream_preference::StreamPreference;
pub use window_accounting::WindowAccounting;
pub use window_start::{IdleWindow, InitialThreshold, InitialWindow};
