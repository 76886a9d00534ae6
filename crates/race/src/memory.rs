//! The memory: what earlier races learnt, kept per network.
//!
//! The memory is *evidence*, not a cache of winners: a row says how far an attempt got and, if it
//! failed, how. A **peer** row is about one address of one host over one transport, on one network:
//! whether it can be reached, and the outcome of the security layer for each [set-up](SetUp), that
//! is, for what was offered and trusted. A **path** row is about one network: which hosts were
//! silent over a transport, address family and port, so that "UDP/443 is blocked here" can be
//! inferred and need not be rediscovered with the next unknown host. It is updated when evidence is
//! learnt, so a plan costs the same with ten peer rows as with ten thousand. A **network** row is a
//! readable name of a network. A **resolver** row is no evidence but what a name server has said of
//! encrypted resolvers, for as long as it said.
//!
//! | rule | where |
//! | --- | --- |
//! | a success is valid for [`MemoryConfig::good_for`], and counts only from the security level up | [`PeerEntry::verdict_secured`] |
//! | up to the transport, evidence applies to every client; from security up, only to its set-up | [`SecurityOutcome`] |
//! | failures back off from [`MemoryConfig::bad_first`], doubling to [`MemoryConfig::bad_max`] | [`MemoryConfig::back_off`] |
//! | a silence that was cut short backs off for [`MemoryConfig::bad_doubtful`], unless it is repeated | [`FailureDoubt::CutShort`](crate::evidence::FailureDoubt) |
//! | after the back-off, the candidate is re-tested beside a working connection | [`MemoryVerdict::RetestDue`] |
//! | failures of TLS or of the certificate concern the peer, never the network | [`learn_rows`] |
//! | several hosts silent and none heard: the network drops the packets, until a host is heard | [`PathEntry`] |
//! | handshakes with any peer that had to retransmit: the network is lossy | [`MemoryView::loss`] |
//! | round-trip times to other hosts of a network: how long unknown hosts are waited for | [`MemoryView::longest_round_trip`] |
//! | evidence never crosses networks | [`MemoryKey::network`] |
//! | everything is bounded, expires and can be forgotten | [`Memory`], [`forget_row`] |
//!
//! [`Memory`] is the whole store as a value. A driver that keeps rows elsewhere (such as in a file
//! shared by several processes) uses [`learn_rows`], [`MemoryView::from_rows`] and [`forget_row`] on
//! single rows instead; both use the same code.

mod config;
mod designation;
mod distance;
mod entry;
mod key;
mod learn;
mod loss;
mod set_up;
mod store;
mod view;

#[cfg(test)]
mod tests;

pub use config::MemoryConfig;
pub use designation::{DesignatedEndpoint, DesignationEntry, DesignationOutcome};
pub use distance::PathDistances;
pub use entry::{
    DatedOutcome, EntryOutcome, MemoryEntry, NetworkEntry, PathEntry, PeerEntry, RoundTrip,
    SilentHost,
};
pub use key::{MalformedKey, MemoryKey, MemorySubject};
pub use learn::{forget_row, learn_rows, name_row};
pub use loss::{HandshakeLoss, PathHandshakes};
pub use set_up::{SecurityOutcome, SetUp};
pub use store::{Memory, MemoryRecord};
pub use view::{MemoryVerdict, MemoryView};

pub(crate) use key::path_port;

/// The version of this module's rows and keys. A store saves it with the rows and sets a file with
/// another version aside.
pub const SCHEMA_VERSION: u32 = 3;
