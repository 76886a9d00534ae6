//! What earlier races learnt, kept per network.
//!
//! The memory is *evidence*, not a cache of winners: a row says how far an attempt came and, if it
//! failed, how. A **peer** row is about one address of one host over one transport, on one network:
//! whether it can be reached, and what came of security for each [set-up](SetUp), that is, for what
//! was offered and trusted. A **path** row is about one network: which hosts were silent over a
//! transport, address family and port, so that "UDP/443 goes nowhere here" can be inferred and
//! the next unknown host does not have to find out for itself. A **network** row is the name of a
//! network, for people.
//!
//! | rule | where |
//! | --- | --- |
//! | good news lasts [`Config::good_for`], counted only from security up | [`PeerEntry::verdict_secured`] |
//! | up to the transport, evidence speaks for everybody; from security up, for its set-up alone | [`Secured`] |
//! | bad news backs off from [`Config::bad_first`], doubling to [`Config::bad_max`] | [`Config::back_off`] |
//! | silence that was cut short backs off for [`Config::bad_doubtful`], unless it comes again | [`Doubt::CutShort`](crate::evidence::Doubt) |
//! | when the back-off is over the candidate is re-tested beside a working connection | [`Verdict::RetestDue`] |
//! | failures of TLS or of the certificate speak about the peer, never about the network | [`learn_rows`] |
//! | some hosts silent, nobody heard: the network swallows it; anybody heard redeems it | [`PathEntry`] |
//! | handshakes that had to send packets again, with whomever: the network loses packets | [`View::loss`] |
//! | round trips to some hosts of a network, whoever they are: how long strangers are waited for | [`View::longest_round_trip`] |
//! | evidence never crosses networks | [`Key::network`] |
//! | everything is capped, expires and can be forgotten | [`Memory`], [`forget_row`] |
//!
//! [`Memory`] is the whole store as a value. A driver that keeps rows elsewhere (a file that
//! several processes share) uses [`learn_rows`], [`View::from_rows`] and [`forget_row`] on single
//! rows instead; both ways are the same code.

mod config;
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

pub use config::Config;
pub use distance::Distances;
pub use entry::{
    DatedOutcome, Entry, NetworkEntry, Outcome, PathEntry, PeerEntry, RoundTrip, SilentHost,
};
pub use key::{Key, MalformedKey, Subject};
pub use learn::{forget_row, learn_rows, name_row};
pub use loss::{Handshakes, Loss};
pub use set_up::{Secured, SetUp};
pub use store::{Memory, Record};
pub use view::{Verdict, View};

pub(crate) use key::path_port;

/// Version of the rows and keys of this module. A store writes it beside the rows and sets a file
/// with another version aside.
pub const SCHEMA_VERSION: u32 = 2;
