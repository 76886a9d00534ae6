//! Why a candidate is ranked where it is, or was left out, for people and for programs.

use alloc::{string::String, vec::Vec};
use core::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::candidate::{AddressFamily, AlpnName, Transport};
use crate::dns::{DnsFailure, RecordType};
use crate::evidence::FailureCause;
use crate::memory::HandshakeLoss;

mod wording;

#[cfg(test)]
mod tests;

/// A reason. `Display` writes it as a sentence; its serialised form has its kind in `reason`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanReason(pub(crate) ReasonKind);

impl PlanReason {
    /// Returns whether it is why an attempt started before its delay was over.
    pub(crate) const fn is_early_start(&self) -> bool {
        matches!(self.0, ReasonKind::AnswersChanged { .. })
    }
}

/// The kinds of reasons. They change with the rules of the plan, so that users get only the sentence and the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub(crate) enum ReasonKind {
    /// The memory knows that it works.
    KnownGood {
        /// The remembered round-trip time.
        rtt: Option<Duration>,
    },
    /// It failed recently, and is tried if nothing better is left.
    KnownBad {
        /// How it failed.
        cause: FailureCause,
        /// The time until it is re-tested.
        retest_in: Duration,
    },
    /// It failed earlier and the back-off is over: it runs beside a working connection.
    RetestDue {
        /// How it failed.
        cause: FailureCause,
    },
    /// Other peers on this network were silent over this path.
    NetworkSilent {
        /// The transport.
        transport: Transport,
        /// The address family.
        family: AddressFamily,
        /// The port; 0 for transports where firewalls do not look at it.
        port: u16,
        /// The number of silent hosts.
        silent_hosts: usize,
    },
    /// The network is assumed to drop it, and this is one of the races that probe it.
    Probe {
        /// One race in this many probes it.
        one_in: u32,
    },
    /// A ClientHello of two packets did not get through to it in this race.
    LongHelloFailed {
        /// The failure, as text for people.
        failure: String,
    },
    /// A ClientHello of two packets did not get through to it recently: it begins with one of one packet.
    ShortHello {
        /// The time until a long one is tried again.
        retest_in: Duration,
    },
    /// A less preferred candidate works; this one is tried beside it to find the best.
    MoreWanted {
        /// The transport that works.
        than: Transport,
        /// The address family over which it works.
        family: AddressFamily,
    },
    /// The race was over before it was started.
    NotStarted,
    /// It was excluded by a rule, but nothing else is left.
    LastResort,
    /// The caller's most preferred transport.
    FirstChoice {
        /// The transport.
        transport: Transport,
    },
    /// The most preferred of the remaining transports.
    NextChoice {
        /// The transport.
        transport: Transport,
    },
    /// A more preferred transport starts this much earlier.
    HeadStart {
        /// The one that starts first.
        of: Transport,
        /// The head start.
        delay: Duration,
        /// The remembered round-trip time that determines it, if any.
        rtt: Option<Duration>,
    },
    /// A more preferred transport starts this much earlier, but less than its remembered round-trip
    /// time calls for: the other one needs so little time that the wait would be a loss.
    HeadStartCut {
        /// The one that starts first.
        of: Transport,
        /// The head start.
        delay: Duration,
        /// Its remembered round-trip time.
        rtt: Duration,
        /// The one that starts later.
        other: Transport,
        /// The time for the handshakes of the other one, by its remembered round-trip time.
        needs: Duration,
    },
    /// It follows the previous attempt after the Connection Attempt Delay.
    AttemptDelay {
        /// The delay.
        delay: Duration,
        /// The remembered round-trip time that determines it, if any.
        rtt: Option<Duration>,
    },
    /// DNS answers changed while an earlier attempt was overdue: it starts before the Connection
    /// Attempt Delay is over (HEv3 §7).
    AnswersChanged {
        /// For how long the earlier attempt had been unanswered.
        after: Duration,
    },
    /// An earlier attempt at the same candidate is unanswered.
    SecondTry {
        /// For how long.
        after: Duration,
    },
    /// Handshakes on this network had to retransmit: a more preferred transport gets a longer head
    /// start, and unanswered candidates are tried again soon.
    NetworkLoses {
        /// The number of handshakes that had to retransmit, and of all.
        loss: HandshakeLoss,
        /// The minimum head start.
        head_start: Duration,
        /// How often an unanswered candidate is tried again.
        second_tries: u32,
    },
    /// The HTTPS record that it comes from.
    Service {
        /// Its effective TargetName.
        name: String,
        /// Its `SvcPriority`.
        priority: u16,
        /// Whether others have the same priority, so that the seed decides.
        shuffled: bool,
    },
    /// The target of an alias, without an HTTPS record for it.
    Alias {
        /// The target of the alias.
        name: String,
    },
    /// There are HTTPS records, but none includes this address: it comes last.
    NoRecordLeadsHere {
        /// The name with this address.
        name: String,
    },
    /// There are HTTPS records, and one includes this name, but not this combination: it comes
    /// last, as if there were no records (RFC 9460 §3).
    BesideRecords {
        /// The name with this address.
        name: String,
    },
    /// Its service has an ECH configuration, and the caller relies on ECH.
    Ech,
    /// No HTTPS record announces QUIC; it is tried on the same port anyway.
    QuicUnannounced,
    /// RFC 6724 ranks it after the previous address.
    AddressRule {
        /// The deciding rule, as numbered in RFC 6724 §6.
        rule: AddressRule,
    },
    /// It is its family's turn: families alternate.
    FamilyTurn {
        /// The family.
        family: AddressFamily,
    },
    /// It comes from the hint in an HTTPS record; the address query has not been answered yet.
    Hint {
        /// The name whose AAAA or A answer is pending.
        name: String,
    },
    /// It comes from the hint in an HTTPS record, but the name itself has no such address: it comes
    /// last.
    DeniedHint {
        /// The name whose AAAA or A answer is empty.
        name: String,
    },
    /// It comes from an answer whose time to live is over (HEv3 §4.4).
    ExpiredAddress {
        /// The name with this address.
        name: String,
    },
    /// An answer has expired, and is used until the new one arrives (HEv3 §4.4).
    ExpiredAnswer {
        /// The name.
        name: String,
        /// The record type.
        record_type: RecordType,
    },
    /// An answer has expired, and is used because there is no new one (RFC 8767).
    ExpiredAnswerKept {
        /// The name.
        name: String,
        /// The record type.
        record_type: RecordType,
        /// Why there is no new one.
        failure: DnsFailure,
    },
    /// It is the translation of an IPv4 address by the network's NAT64.
    Synthesised {
        /// The IPv4 address.
        from: Ipv4Addr,
        /// The network's prefix.
        prefix: Ipv6Addr,
        /// Its length in bits.
        prefix_len: u8,
    },
    /// The caller gave the address.
    Literal,
    /// `localhost` is this machine.
    Localhost,
    /// The network has no route for its family.
    NoRoute {
        /// The family.
        family: AddressFamily,
    },
    /// The policy allows only the other family.
    FamilyNotAllowed {
        /// The family that is not allowed.
        family: AddressFamily,
    },
    /// There are HTTPS records, but none lists an application protocol over this transport.
    NotInAnyRecord {
        /// The transport.
        transport: Transport,
        /// The protocols that the caller supports over it.
        wanted: Vec<AlpnName>,
    },
    /// The record lists no application protocol that the caller supports over this transport.
    NotInRecord {
        /// The record's effective TargetName.
        name: String,
        /// The transport.
        transport: Transport,
        /// The protocols listed by the record.
        listed: Vec<AlpnName>,
    },
    /// The caller does not support this service over the transport.
    NotSpoken {
        /// The transport.
        transport: Transport,
    },
    /// This machine or user cannot use the transport.
    Lacking {
        /// The transport.
        transport: Transport,
        /// What is missing.
        why: String,
    },
    /// QUIC always encrypts, and the caller asked for no security.
    AlwaysSecure {
        /// The transport that is always encrypted.
        transport: Transport,
    },
    /// An answer had more addresses than are used.
    TooManyAddresses {
        /// The name.
        name: String,
        /// The record type.
        record_type: RecordType,
        /// The number of addresses used.
        used: usize,
        /// The number of addresses ignored.
        ignored: usize,
    },
    /// Addresses that cannot belong to a peer: unspecified, multicast, broadcast, IPv4-mapped.
    NotUnicast {
        /// The name.
        name: String,
        /// The record type.
        record_type: RecordType,
        /// The number of addresses ignored.
        ignored: usize,
    },
    /// An answer had more HTTPS records than are used.
    TooManyRecords {
        /// The name.
        name: String,
        /// The number of records used.
        used: usize,
        /// The number of records ignored.
        ignored: usize,
    },
    /// The HTTPS records name more targets than are queried.
    TooManyNames {
        /// The number of names queried.
        used: usize,
        /// The number of names ignored.
        ignored: usize,
    },
    /// There are more candidates than a race uses.
    TooManyCandidates {
        /// The number of candidates used.
        used: usize,
        /// The number of candidates ignored.
        ignored: usize,
    },
    /// A record has mandatory keys that are not supported (RFC 9460 §8).
    MandatoryUnknown {
        /// The name of the record.
        name: String,
        /// The numbers of the keys.
        keys: Vec<u16>,
    },
    /// A record is inconsistent or cannot be used.
    MalformedRecord {
        /// The name of the record.
        name: String,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// Aliases form a loop.
    AliasLoop {
        /// The name that was repeated.
        name: String,
    },
    /// A chain of aliases is too long.
    AliasTooLong {
        /// The number of aliases followed.
        followed: usize,
        /// The last name that was reached.
        name: String,
    },
    /// An alias to the root: the service declares itself unavailable (RFC 9460 §2.5.1).
    AliasToNothing {
        /// The name of the alias.
        name: String,
    },
    /// Every HTTPS record has an ECH configuration, and the caller relies on ECH: candidates
    /// without one are not tried (RFC 9848 §5.1).
    OnlyWithEch {
        /// The name of the records.
        name: String,
    },
    /// DNS is protected, the caller relies on ECH, and HTTPS records cannot be obtained: connecting
    /// without them would be a downgrade (HEv3 §6.3).
    RecordsUnavailable {
        /// The name.
        name: String,
    },
}

/// The rules of RFC 6724 §6 that apply here, and the two that HEv3 §5.3 inserts between 8 and 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressRule {
    /// Rule 1: avoid unusable destinations.
    Unusable,
    /// Rule 2: prefer matching scope.
    MatchingScope,
    /// Rule 3: avoid deprecated addresses.
    Deprecated,
    /// Rule 5: prefer matching label.
    MatchingLabel,
    /// Rule 6: prefer higher precedence.
    Precedence,
    /// Rule 8: prefer smaller scope.
    SmallerScope,
    /// Between 8 and 9: prefer lower round trips.
    RoundTrip,
    /// Between 8 and 9: prefer addresses used before.
    UsedBefore,
    /// Rule 9: use the longest matching prefix.
    LongestPrefix,
    /// Rule 10: otherwise, leave the order unchanged.
    AsAnswered,
}

/// Faults of HTTPS records that are well-formed on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecordFault {
    /// `mandatory` lists itself, or a key that is not present (RFC 9460 §8).
    Mandatory,
    /// `no-default-alpn` without `alpn` (RFC 9460 §7.1.1).
    NoAlpn,
    /// Port 0.
    Port,
    /// A TargetName that is not a host name.
    Target,
    /// An ECH configuration that exceeds the maximum length.
    Ech,
}
