//! The interface of the race: inputs, outputs, and time as an argument.
//!
//! Pass in an input, call `poll_output` until it returns [`RaceOutput::Timeout`], then wait for the
//! next input or for that time. Inputs of the same instant may be passed in together before
//! polling; their order then makes no difference. `now` must not go back; if it does, the race uses
//! the latest value it has seen. Nothing here blocks, and no input that a peer or a resolver can
//! cause makes it panic.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{AlpnName, Candidate, Transport};
use crate::dns::{DnsAnswer, DnsQuery};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, NetworkId};
use crate::memory::MemoryView;

/// Identifies one attempt of one race; numbers are ascending in the order of starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u32);

/// What the driver reports to the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceInput {
    /// Time has passed; nothing else happened.
    Tick,
    /// DNS answered a query.
    Answer(DnsAnswer),
    /// The attempt reached this level.
    Progress {
        /// The attempt.
        id: AttemptId,
        /// The level reached.
        level: EvidenceLevel,
        /// The round-trip time measured so far, if any.
        rtt: Option<Duration>,
    },
    /// The attempt is complete: the connection is ready for the application.
    Ready {
        /// The attempt.
        id: AttemptId,
        /// The negotiated application protocol.
        alpn: Option<AlpnName>,
        /// The round-trip time of the handshake, if it was measured.
        rtt: Option<Duration>,
    },
    /// The kernel fell back to plain TCP although MPTCP was requested: from now on the attempt is
    /// one over TCP. Reported before `Ready`, as soon as it is noticed.
    FellBack {
        /// The attempt.
        id: AttemptId,
    },
    /// The server did not answer a ClientHello of two packets, and answered one of one packet, with which the attempt
    /// goes on.
    LongHelloFailed {
        /// The attempt.
        id: AttemptId,
        /// What became of the long one, as text for people.
        detail: String,
    },
    /// The attempt failed.
    Failed {
        /// The attempt.
        id: AttemptId,
        /// How it failed.
        failure: AttemptFailure,
    },
    /// How many more attempts this race may start under the limit shared by all races of the
    /// process; unlimited until first reported. Each start uses one up, and only this input
    /// replenishes them.
    Slots(usize),
    /// The host moved to another network, or its addresses changed.
    NetworkChanged(Box<NetworkChange>),
    /// The caller gave up.
    Cancel,
}

/// The new network of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkChange {
    /// The network as it is now.
    pub network: NetworkView,
    /// The memory's view of the target on that network; evidence never crosses networks.
    pub view: MemoryView,
}

/// What the race knows about its network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkView {
    /// The identity of the network; evidence never crosses networks.
    pub id: NetworkId,
    /// The source address that the kernel would use for each destination asked about (RFC 6724); a
    /// family without an entry has no route.
    pub sources: Vec<SourceAddress>,
    /// The NAT64 prefixes of this network (RFC 8781, RFC 7050), as address and length in bits.
    pub pref64: Vec<(core::net::Ipv6Addr, u8)>,
    /// The transports that this machine or user cannot use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<UnavailableTransport>,
}

/// A transport that this machine or user cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableTransport {
    /// The transport.
    pub transport: Transport,
    /// What is missing, as text for people.
    pub why: String,
}

/// A local address that can be used as a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of its on-link prefix in bits.
    pub prefix_len: u8,
    /// Whether it is deprecated (RFC 4862 §5.5.4).
    pub deprecated: bool,
    /// Whether a default or wider route of its family exists.
    pub routed: bool,
}

/// What the race asks the driver to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceOutput {
    /// Send a DNS query.
    Query(DnsQuery),
    /// Start this attempt.
    Start {
        /// The number of the attempt.
        id: AttemptId,
        /// The candidate to try.
        candidate: Candidate,
        /// The round-trip time that the memory expects, as the transport's initial estimate.
        initial_rtt: Option<Duration>,
        /// Whether it only gathers evidence, beside a working connection.
        background: bool,
    },
    /// Let this attempt proceed after it was answered
    /// ([`Transport::waits_when_answered`](crate::candidate::Transport::waits_when_answered)).
    Proceed {
        /// The attempt.
        id: AttemptId,
    },
    /// Close this attempt at once, and report nothing more about it.
    Close {
        /// The attempt.
        id: AttemptId,
        /// The reason.
        why: CloseReason,
    },
    /// This attempt won: pass its connection to the caller.
    Usable(AttemptId),
    /// This attempt completed later but is preferred: new work should use it. May be repeated for a
    /// transport that is preferred even more.
    Better(AttemptId),
    /// Store this evidence.
    Learn(Evidence),
    /// The race found no connection. Either `Failed` or `Usable` is returned, and at most once.
    Failed(RaceFailure),
    /// There will be no more outputs; the race can be dropped.
    Finished,
    /// Wait for an input, or until this time if given.
    Timeout(Option<Duration>),
}

/// Why an attempt was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CloseReason {
    /// Another attempt won.
    Lost,
    /// Its time to gather evidence after the win expired without any.
    BudgetSpent,
    /// The deadline of the race expired.
    Deadline,
    /// The caller gave up.
    Cancelled,
    /// The network it ran on is gone.
    NetworkChanged,
    /// DNS withdrew its address, or replaced its record by a better one.
    Withdrawn,
    /// It was not answered, and its host refused all other candidates.
    Silent,
    /// It made room for another candidate, because no more attempts may be in flight.
    MadeRoom,
}

impl CloseReason {
    /// Returns the reason as a clause for people.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Lost => "another attempt won",
            Self::BudgetSpent => "no answer within the time given after the win",
            Self::Deadline => "the deadline of the race expired",
            Self::Cancelled => "the caller ended the race",
            Self::NetworkChanged => "the network changed",
            Self::Withdrawn => "DNS withdrew its address",
            Self::Silent => "no answer, and its host refused all other candidates",
            Self::MadeRoom => "no answer yet, and another candidate took its place",
        }
    }
}

/// Why a race found no connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RaceFailure {
    /// DNS returned no address: the failures by record type.
    NoAddress(Vec<(crate::dns::RecordType, crate::dns::DnsFailure)>),
    /// There were addresses, but no candidate that the policy allows.
    NoCandidate,
    /// Every candidate was tried and failed, in the order of starting.
    AllFailed(Vec<(Candidate, AttemptFailure)>),
    /// The deadline expired while these were in progress or had failed.
    Deadline(Vec<(Candidate, Option<AttemptFailure>)>),
    /// The caller gave up.
    Cancelled,
    /// There is no network.
    NoNetwork,
}
