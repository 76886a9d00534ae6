//! Why a candidate stands where it stands, or was left out: for people and for machines.

use alloc::{string::String, vec::Vec};
use core::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::candidate::{Alpn, Family, Transport};
use crate::dns::RecordType;
use crate::evidence::Cause;
use crate::memory::Loss;

mod wording;

#[cfg(test)]
mod tests;

/// One reason. Its `Display` is a clear sentence; its serialised form names the kind in `reason`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The memory knows that it works.
    KnownGood {
        /// The remembered round trip.
        rtt: Option<Duration>,
    },
    /// It failed lately; it is tried when nothing better is left.
    KnownBad {
        /// How it failed.
        cause: Cause,
        /// How long until it is tested again.
        retest_in: Duration,
    },
    /// It failed earlier, and the back-off is over: it runs beside a working connection.
    RetestDue {
        /// How it failed.
        cause: Cause,
    },
    /// Other peers were silent this way on this network.
    NetworkSilent {
        /// Over which transport.
        transport: Transport,
        /// Over which family.
        family: Family,
        /// To which port; 0 for a transport whose fate does not hang on the port.
        port: u16,
        /// How many hosts were silent.
        silent_hosts: usize,
    },
    /// The network is held to swallow it; this race is the one in so many that asks again.
    Probe {
        /// One race in this many.
        one_in: u32,
    },
    /// Something less wanted works; this is tried beside it, so that the best is found.
    MoreWanted {
        /// The transport that works.
        than: Transport,
        /// The family over which it does.
        family: Family,
    },
    /// The race was over before its turn came.
    NotStarted,
    /// Left out by a rule, but nothing else is left.
    LastResort,
    /// The caller's most wanted transport.
    FirstChoice {
        /// Which.
        transport: Transport,
    },
    /// The most wanted transport of those that are left.
    NextChoice {
        /// Which.
        transport: Transport,
    },
    /// A more wanted transport starts this much earlier.
    HeadStart {
        /// The one that starts first.
        of: Transport,
        /// By how much.
        delay: Duration,
        /// The remembered round trip that this comes from, if any.
        rtt: Option<Duration>,
    },
    /// A more wanted transport starts this much earlier, and not as much as its remembered round
    /// trip asks for: what the other one needs is so little that the wait would be a loss.
    HeadStartCut {
        /// The one that starts first.
        of: Transport,
        /// By how much.
        delay: Duration,
        /// Its remembered round trip.
        rtt: Duration,
        /// The one that starts later.
        other: Transport,
        /// What the handshakes of the other one take, by its remembered round trip.
        needs: Duration,
    },
    /// It follows the attempt before it after the Connection Attempt Delay.
    AttemptDelay {
        /// How long.
        delay: Duration,
        /// The remembered round trip that this comes from, if any.
        rtt: Option<Duration>,
    },
    /// Nobody had answered an earlier attempt at the same candidate.
    SecondTry {
        /// For how long.
        after: Duration,
    },
    /// Handshakes with anybody on this network had to send packets again: a more wanted transport
    /// is waited for longer, and what nobody answers is tried again soon.
    NetworkLoses {
        /// How many handshakes had to, of how many.
        loss: Loss,
        /// The least head start.
        head_start: Duration,
        /// How often a candidate that nobody answers is tried once more.
        second_tries: u32,
    },
    /// The HTTPS record that led here.
    Service {
        /// Its effective TargetName.
        name: String,
        /// Its `SvcPriority`.
        priority: u16,
        /// Whether others have the same priority, so that the seed decides.
        shuffled: bool,
    },
    /// The target of an alias that no HTTPS record leads to.
    Alias {
        /// The alias's target.
        name: String,
    },
    /// There are HTTPS records, and none of them leads to this address: it comes last.
    NoRecordLeadsHere {
        /// The name whose address it is.
        name: String,
    },
    /// There are HTTPS records, and one leads to this name, but not in this way: it comes last, as if
    /// there were none (RFC 9460 §3).
    BesideRecords {
        /// The name whose address it is.
        name: String,
    },
    /// Its service comes with an ECH configuration, and the caller relies on ECH.
    Ech,
    /// No HTTPS record says that the peer speaks QUIC; it is tried on the same port all the same.
    QuicUnannounced,
    /// RFC 6724 put it behind the address before it.
    AddressRule {
        /// The rule that decided, as numbered in RFC 6724 §6.
        rule: AddressRule,
    },
    /// Its family's turn: families alternate.
    FamilyTurn {
        /// Which.
        family: Family,
    },
    /// It comes from the hint in an HTTPS record; the answer itself is not in yet.
    Hint {
        /// The name whose AAAA or A answer is awaited.
        name: String,
    },
    /// It comes from the hint in an HTTPS record, though the name itself has no such address: it
    /// comes last.
    DeniedHint {
        /// The name whose AAAA or A answer is empty.
        name: String,
    },
    /// It stands for an IPv4 address, through the network's NAT64.
    Synthesised {
        /// The IPv4 address.
        from: Ipv4Addr,
        /// The network's prefix.
        prefix: Ipv6Addr,
        /// Its length in bits.
        prefix_len: u8,
    },
    /// The caller named the address.
    Literal,
    /// `localhost` is this machine.
    Localhost,
    /// The network has no route for its family.
    NoRoute {
        /// Which.
        family: Family,
    },
    /// The policy allows the other family only.
    FamilyNotAllowed {
        /// The one not allowed.
        family: Family,
    },
    /// There are HTTPS records, and none lists an application protocol over this transport.
    NotInAnyRecord {
        /// Which transport.
        transport: Transport,
        /// What the caller speaks over it.
        wanted: Vec<Alpn>,
    },
    /// The record that led here lists no application protocol that the caller speaks over this
    /// transport.
    NotInRecord {
        /// The record's effective TargetName.
        name: String,
        /// Which transport.
        transport: Transport,
        /// What the record lists.
        listed: Vec<Alpn>,
    },
    /// The caller does not speak this service over the transport.
    NotSpoken {
        /// Which.
        transport: Transport,
    },
    /// This machine or user cannot speak the transport.
    Lacking {
        /// Which.
        transport: Transport,
        /// What is missing.
        why: String,
    },
    /// QUIC always encrypts, and the caller asked for no security.
    AlwaysSecure {
        /// The transport that cannot go without.
        transport: Transport,
    },
    /// An answer had more addresses than are used.
    TooManyAddresses {
        /// The name asked.
        name: String,
        /// The record type.
        record_type: RecordType,
        /// How many are used.
        used: usize,
        /// How many are not.
        ignored: usize,
    },
    /// Addresses that cannot be a peer's: unspecified, multicast, broadcast, IPv4-mapped.
    NotUnicast {
        /// The name asked.
        name: String,
        /// The record type.
        record_type: RecordType,
        /// How many.
        ignored: usize,
    },
    /// An answer had more HTTPS records than are used.
    TooManyRecords {
        /// The name asked.
        name: String,
        /// How many are used.
        used: usize,
        /// How many are not.
        ignored: usize,
    },
    /// The HTTPS records lead to more names than are asked.
    TooManyNames {
        /// How many are asked.
        used: usize,
        /// How many are not.
        ignored: usize,
    },
    /// There are more candidates than a race takes.
    TooManyCandidates {
        /// How many are used.
        used: usize,
        /// How many are not.
        ignored: usize,
    },
    /// A record makes keys mandatory that are not known here (RFC 9460 §8).
    MandatoryUnknown {
        /// The name that has the record.
        name: String,
        /// The numbers of the keys.
        keys: Vec<u16>,
    },
    /// A record contradicts itself or cannot be used.
    MalformedRecord {
        /// The name that has the record.
        name: String,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// Aliases lead in a circle.
    AliasLoop {
        /// The name that came twice.
        name: String,
    },
    /// Aliases lead on and on.
    AliasTooLong {
        /// How many were followed.
        followed: usize,
        /// The name at which following ended.
        name: String,
    },
    /// An alias to the root: the service says that it is not available (RFC 9460 §2.5.1).
    AliasToNothing {
        /// The name that has the alias.
        name: String,
    },
    /// Every HTTPS record has an ECH configuration, and the caller relies on ECH: nothing is tried
    /// without them (RFC 9848 §5.1).
    OnlyWithEch {
        /// The name that has the records.
        name: String,
    },
    /// DNS is protected, the caller relies on ECH, and HTTPS records cannot be had: connecting
    /// without them would be a downgrade (HEv3 §6.3).
    RecordsUnavailable {
        /// The name asked.
        name: String,
    },
}

/// The rules of RFC 6724 §6 that can decide here, with the two that
/// HEv3 §5.3 puts between 8 and 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressRule {
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

/// What can be wrong with an HTTPS record that was well-formed on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordFault {
    /// `mandatory` lists itself, or a key that is not there (RFC 9460 §8).
    Mandatory,
    /// `no-default-alpn` without `alpn` (RFC 9460 §7.1.1).
    NoAlpn,
    /// Port 0.
    Port,
    /// A TargetName that is no host name.
    Target,
    /// An ECH configuration longer than is taken.
    Ech,
}
