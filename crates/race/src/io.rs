//! The contract of the race: inputs in, outputs out, time as an argument.
//!
//! Hand in an input, then drain `poll_output` until it gives [`Output::Timeout`], then wait for the
//! next input or for that time. Inputs of the same instant may be handed in together before
//! draining; their order then makes no difference. `now` never goes back; if it does, the race
//! keeps the latest value it has seen. Nothing here blocks, and no input that a peer or a resolver
//! can cause makes it panic.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{Alpn, Candidate, Transport};
use crate::dns::{Answer, Query};
use crate::evidence::{Evidence, Failure, Level, NetworkId};
use crate::memory::View;

/// Identifies one attempt of one race; numbers rise in the order of starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u32);

/// What the driver tells the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// DNS answered a query.
    Answer(Answer),
    /// The attempt came to this level.
    Progress {
        /// Which attempt.
        id: AttemptId,
        /// The level reached.
        level: Level,
        /// The round trip seen so far, if any.
        rtt: Option<Duration>,
    },
    /// The attempt is complete: the connection can carry the application.
    Ready {
        /// Which attempt.
        id: AttemptId,
        /// The application protocol agreed on.
        alpn: Option<Alpn>,
        /// The handshake's round trip, if one was measured.
        rtt: Option<Duration>,
        /// The kernel gave plain TCP where MPTCP was asked.
        fell_back: bool,
    },
    /// The attempt failed.
    Failed {
        /// Which attempt.
        id: AttemptId,
        /// How.
        failure: Failure,
    },
    /// How many more attempts this race may start from now on by the limit that all races of the
    /// process share; unlimited until it is first said. Each start takes one away, and only this
    /// input gives them back.
    Slots(usize),
    /// The host moved to another network, or its addresses changed.
    NetworkChanged(Box<NetworkChange>),
    /// The caller gave up.
    Cancel,
}

/// Where the host is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkChange {
    /// The network as it is now.
    pub network: NetworkView,
    /// What the memory knows of the target there; evidence never crosses networks.
    pub view: View,
}

/// What the race knows of the network it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkView {
    /// Which network; evidence never crosses networks.
    pub id: NetworkId,
    /// For each destination asked about, the source address the kernel would use (RFC 6724);
    /// a family without an entry has no route.
    pub sources: Vec<SourceAddress>,
    /// The NAT64 prefixes of this network (RFC 8781, RFC 7050), as address and length in bits.
    pub pref64: Vec<(core::net::Ipv6Addr, u8)>,
    /// What this machine or user cannot speak at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<UnavailableTransport>,
}

/// A transport that this machine or user cannot speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableTransport {
    /// Which.
    pub transport: Transport,
    /// What is missing, for people.
    pub why: String,
}

/// A local address that can be a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceAddress {
    /// The address.
    pub address: IpAddr,
    /// Length of its on-link prefix in bits.
    pub prefix_len: u8,
    /// Whether it is deprecated (RFC 4862 §5.5.4).
    pub deprecated: bool,
    /// Whether a default or wider route of its family exists.
    pub routed: bool,
}

/// What the race tells the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Ask DNS.
    Query(Query),
    /// Start this attempt.
    Start {
        /// Its number.
        id: AttemptId,
        /// What to try.
        candidate: Candidate,
        /// The round trip that the memory expects, as the transport's first estimate.
        initial_rtt: Option<Duration>,
        /// Nobody waits for it: it runs beside a working connection, to give evidence.
        background: bool,
    },
    /// Let this attempt go on: it was answered, and waits
    /// ([`Transport::waits_when_answered`](crate::candidate::Transport::waits_when_answered)).
    Proceed {
        /// Which attempt.
        id: AttemptId,
    },
    /// Close this attempt at once and report nothing more of it.
    Close {
        /// Which attempt.
        id: AttemptId,
        /// Why.
        why: CloseReason,
    },
    /// This attempt won: hand its connection to the caller.
    Usable(AttemptId),
    /// This attempt completed later and is the more wanted one: new work goes there. May come
    /// again for a transport that is wanted even more.
    Better(AttemptId),
    /// Remember this.
    Learn(Evidence),
    /// The race found no connection. At most one of `Failed` and `Usable` ever comes.
    Failed(RaceFailure),
    /// Nothing more will come; the race can be dropped.
    Finished,
    /// Wait for an input, or until this time if there is one.
    Timeout(Option<Duration>),
}

/// Why an attempt was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CloseReason {
    /// Another attempt won.
    Lost,
    /// It had the time to give evidence after the win, and gave none.
    BudgetSpent,
    /// The deadline of the race came.
    Deadline,
    /// The caller gave up.
    Cancelled,
    /// The network it ran on is gone.
    NetworkChanged,
    /// DNS took its address back, or put a better record in its place.
    Withdrawn,
    /// Nobody answered it, and its host refused what else there was.
    Silent,
    /// No more attempts may be in flight, and another candidate waited for its turn.
    MadeRoom,
}

/// Why a race found no connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RaceFailure {
    /// DNS gave no address: the failure of each record type asked.
    NoAddress(Vec<(crate::dns::RecordType, crate::dns::DnsFailure)>),
    /// There were addresses, but no candidate that the policy allows.
    NoCandidate,
    /// Every candidate was tried and failed, in order of starting.
    AllFailed(Vec<(Candidate, Failure)>),
    /// The deadline came with these still under way or failed.
    Deadline(Vec<(Candidate, Option<Failure>)>),
    /// The caller gave up.
    Cancelled,
    /// There is no network at all.
    NoNetwork,
}
