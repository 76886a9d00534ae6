//! The sentences with which reasons are displayed.

use core::{fmt, time::Duration};

use super::{AddressRule, PlanReason, ReasonKind, RecordFault};
use crate::candidate::{AddressFamily, AlpnName};
use crate::evidence::FailureCause;

/// The usual name of an address family.
struct FamilyName(AddressFamily);

impl fmt::Display for FamilyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            AddressFamily::V4 => "IPv4",
            AddressFamily::V6 => "IPv6",
        })
    }
}

/// A duration rounded for reading: `85 ms`, `4 s`, `4 min`, `2 h`, `2 days`.
struct RoundedDuration(Duration);

impl fmt::Display for RoundedDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        let round = |seconds: u64, unit: u64| (seconds + unit / 2) / unit;
        match self.0.as_secs() {
            0 if self.0.as_millis() == 0 && !self.0.is_zero() => {
                write!(f, "{} µs", self.0.as_micros())
            }
            0 => write!(f, "{} ms", self.0.as_millis()),
            1..10 if self.0.subsec_millis() != 0 => write!(f, "{} ms", self.0.as_millis()),
            seconds @ 1..100 => write!(f, "{seconds} s"),
            seconds if seconds < 100 * MINUTE => write!(f, "{} min", round(seconds, MINUTE)),
            seconds if seconds < 2 * DAY => write!(f, "{} h", round(seconds, HOUR)),
            seconds => write!(f, "{} days", round(seconds, DAY)),
        }
    }
}

/// Protocol names separated by commas, or `nothing`.
struct AlpnList<'a>(&'a [AlpnName]);

impl fmt::Display for AlpnList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("nothing") } else { CommaSeparated(self.0).fmt(f) }
    }
}

/// Items separated by commas.
struct CommaSeparated<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for CommaSeparated<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_memory(f)
    }
}

impl ReasonKind {
    /// Writes what the memory knows, and its consequences.
    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KnownGood { rtt: None } => f.write_str("worked recently on this network"),
            Self::KnownGood { rtt: Some(rtt) } => {
                write!(f, "worked recently on this network, round trip {}", RoundedDuration(*rtt))
            }
            Self::KnownBad { cause, retest_in } => {
                write!(
                    f,
                    "{} recently; retest in {}",
                    FailureVerb(*cause),
                    RoundedDuration(*retest_in)
                )
            }
            Self::RetestDue { cause } => write!(
                f,
                "{} earlier; due for a retest beside a working connection",
                FailureVerb(*cause)
            ),
            Self::NetworkSilent { transport, family, port: 0, silent_hosts } => write!(
                f,
                "{transport} over {} has been silent on this network for {silent_hosts} other hosts",
                FamilyName(*family)
            ),
            Self::NetworkSilent { transport, family, port, silent_hosts } => write!(
                f,
                "{transport} to port {port} over {} has been silent on this network for {silent_hosts} other hosts",
                FamilyName(*family)
            ),
            Self::Probe { one_in } => {
                write!(f, "one race in {one_in} probes it again beside a working connection")
            }
            Self::NetworkLoses { loss, head_start, second_tries } => write!(
                f,
                "this network loses packets ({} of the last {} handshake{} retransmitted): the head start is at least {}, and an unanswered attempt is repeated up to {second_tries} times",
                loss.sent_again,
                loss.handshakes,
                if loss.handshakes == 1 { "" } else { "s" },
                RoundedDuration(*head_start)
            ),
            Self::LongHelloFailed { failure } => write!(f, "it went on after {failure}"),
            Self::ShortHello { retest_in } => write!(
                f,
                "a ClientHello of two packets, with X25519MLKEM768, did not get through recently: it has X25519 alone for {}",
                RoundedDuration(*retest_in)
            ),
            Self::MoreWanted { than, family } => write!(
                f,
                "{than} over {} works, but this one is preferred and untried: tried beside the working connection",
                FamilyName(*family)
            ),
            Self::NotStarted => f.write_str("not started: the race was over"),
            Self::LastResort => f.write_str("tried anyway, because nothing else is left"),
            _ => self.write_start(f),
        }
    }

    /// Writes when it starts.
    fn write_start(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeadStart { of, delay, rtt: None } => {
                write!(f, "{of} is preferred and gets a head start of {}", RoundedDuration(*delay))
            }
            Self::HeadStart { of, delay, rtt: Some(rtt) } => write!(
                f,
                "{of} is preferred and gets a head start of {}, from a round trip of {}",
                RoundedDuration(*delay),
                RoundedDuration(*rtt)
            ),
            Self::HeadStartCut { of, delay, rtt, other, needs } => write!(
                f,
                "{of} is preferred, but with a round trip of {} its head start is only {}: {other} needs no more than {}",
                RoundedDuration(*rtt),
                RoundedDuration(*delay),
                RoundedDuration(*needs)
            ),
            Self::AttemptDelay { delay, rtt: None } => {
                write!(f, "starts {} after the previous attempt", RoundedDuration(*delay))
            }
            Self::AttemptDelay { delay, rtt: Some(rtt) } => write!(
                f,
                "starts {} after the previous attempt, from a round trip of {}",
                RoundedDuration(*delay),
                RoundedDuration(*rtt)
            ),
            Self::AnswersChanged { after } => write!(
                f,
                "started early: DNS answers changed, and an earlier attempt had been unanswered for {}",
                RoundedDuration(*after)
            ),
            Self::SecondTry { after } => {
                write!(
                    f,
                    "tried again beside attempts that had been unanswered for {}",
                    RoundedDuration(*after)
                )
            }
            _ => self.write_order(f),
        }
    }

    /// Writes reasons from the policy, the records and the addresses.
    fn write_order(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstChoice { transport } => {
                write!(f, "{transport} is the most preferred transport")
            }
            Self::NextChoice { transport } => {
                write!(f, "{transport} is the most preferred transport left")
            }
            Self::Service { name, priority, shuffled } => {
                write!(f, "HTTPS record for {name} with priority {priority}")?;
                if *shuffled { f.write_str(", chosen at random among equals") } else { Ok(()) }
            }
            Self::Alias { name } => {
                write!(f, "address of the alias {name}, which has no HTTPS record")
            }
            Self::NoRecordLeadsHere { name } => {
                write!(
                    f,
                    "address of {name}, which no HTTPS record names: tried after those that one names"
                )
            }
            Self::BesideRecords { name } => write!(
                f,
                "ignores the HTTPS records of {name}, as if there were none: tried after those that they name"
            ),
            Self::Ech => f.write_str("its record has the keys to encrypt its name (ECH)"),
            Self::QuicUnannounced => {
                f.write_str("no HTTPS record announces QUIC; it is tried on the same port anyway")
            }
            Self::AddressRule { rule } => write!(f, "after the previous address: {rule}"),
            Self::FamilyTurn { family } => {
                write!(f, "{}'s turn: the families alternate", FamilyName(*family))
            }
            _ => self.write_address(f),
        }
    }

    /// Writes where an address comes from, and why it is not suitable.
    fn write_address(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hint { name } => {
                write!(f, "hint of the HTTPS record, until the address of {name} itself is known")
            }
            Self::DeniedHint { name } => write!(
                f,
                "hint of the HTTPS record, although {name} itself has no such address: tried last"
            ),
            Self::ExpiredAddress { name } => {
                write!(f, "from an answer for {name} whose time to live is over")
            }
            Self::Synthesised { from, prefix, prefix_len } => write!(
                f,
                "represents {from} through the network's NAT64 prefix {prefix}/{prefix_len}"
            ),
            Self::Literal => f.write_str("the address was given"),
            Self::Localhost => f.write_str("localhost is this machine; DNS is not queried"),
            Self::NoRoute { family } => {
                write!(f, "this network has no {} route", FamilyName(*family))
            }
            Self::FamilyNotAllowed { family } => {
                write!(f, "{} was not requested", FamilyName(*family))
            }
            Self::NotInAnyRecord { transport, wanted } => write!(
                f,
                "the host has HTTPS records, but none lists {}: it is not available over {transport} there",
                CommaSeparated(wanted)
            ),
            Self::NotInRecord { name, transport, listed } => write!(
                f,
                "the HTTPS record for {name} lists {}, none of which is supported over {transport} here",
                AlpnList(listed)
            ),
            Self::NotSpoken { transport } => {
                write!(f, "the target does not support {transport}")
            }
            Self::Lacking { transport, why } => {
                write!(f, "{transport} cannot be used here: {why}")
            }
            Self::AlwaysSecure { transport } => {
                write!(
                    f,
                    "{transport} always encrypts, but an unencrypted connection was requested"
                )
            }
            _ => self.write_limits(f),
        }
    }

    /// Writes which answers have expired, and which limits were exceeded.
    fn write_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpiredAnswer { name, record_type } => write!(
                f,
                "{} answer for {name}: its time to live is over, and it is used until the new one arrives",
                record_type.name()
            ),
            Self::ExpiredAnswerKept { name, record_type, failure } => write!(
                f,
                "{} answer for {name}: its time to live is over, and it is used because there is no new one ({})",
                record_type.name(),
                failure.name()
            ),
            Self::TooManyAddresses { name, record_type, used, ignored } => {
                let of = record_type.name();
                write!(
                    f,
                    "{of} answer for {name}: {used} addresses are used, {ignored} more are not"
                )
            }
            Self::NotUnicast { name, record_type, ignored } => {
                let of = record_type.name();
                write!(f, "{of} answer for {name}: {ignored} ignored: not unicast addresses")
            }
            Self::TooManyRecords { name, used, ignored } => {
                write!(f, "{name} has {} HTTPS records: {used} are used", used + ignored)
            }
            Self::TooManyNames { used, ignored } => {
                write!(f, "the HTTPS records name {} hosts: {used} are resolved", used + ignored)
            }
            Self::TooManyCandidates { used, ignored } => {
                write!(f, "there are {} candidates: {used} are used", used + ignored)
            }
            _ => self.write_records(f),
        }
    }

    /// Writes what is wrong with records. This is the last link of the chain: a variant without its
    /// own sentence shows its fields.
    fn write_records(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MandatoryUnknown { name, keys } => write!(
                f,
                "HTTPS record of {name} ignored: it requires key {}, which is not supported",
                CommaSeparated(keys)
            ),
            Self::MalformedRecord { name, fault } => {
                write!(f, "HTTPS record of {name} ignored: {fault}")
            }
            Self::AliasLoop { name } => write!(
                f,
                "the aliases of the HTTPS records lead back to {name}: the host's own addresses are used"
            ),
            Self::AliasTooLong { followed, name } => write!(
                f,
                "the aliases of the HTTPS records go on after {followed}, at {name}: the host's own addresses are used"
            ),
            Self::AliasToNothing { name } => write!(
                f,
                "the HTTPS record of {name} says that the service is not available: its own addresses are tried anyway"
            ),
            Self::OnlyWithEch { name } => write!(
                f,
                "every HTTPS record of {name} has an ECH configuration, which is relied on: nothing is tried without one"
            ),
            Self::RecordsUnavailable { name } => write!(
                f,
                "DNS is protected and the HTTPS records of {name} are unavailable: connecting without them would weaken ECH"
            ),
            _ => f.write_str("a reason that this version has no text for"),
        }
    }
}

/// A cause as a verb in the past tense.
struct FailureVerb(FailureCause);

impl fmt::Display for FailureVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            FailureCause::Refused => "refused",
            FailureCause::Unreachable => "could not be reached",
            FailureCause::Silent => "was silent",
            FailureCause::Reset => "was reset",
            FailureCause::Tls => "failed in the TLS handshake",
            FailureCause::Ech => "did not accept the encrypted ClientHello",
            FailureCause::EchBroken => "broke the encrypted ClientHello",
            FailureCause::LongClientHello => "did not answer a ClientHello of two packets",
            FailureCause::Certificate => "had a certificate that was not accepted",
            FailureCause::Protocol => "violated the protocol",
            FailureCause::Deadline => "was too slow",
            FailureCause::FellBack => "fell back to TCP",
            FailureCause::Unsupported => "is not supported by this host",
            FailureCause::Local => "failed on this host",
        })
    }
}

impl fmt::Display for AddressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unusable => "it cannot be reached from here (RFC 6724 rule 1)",
            Self::MatchingScope => "its scope is not that of the source (RFC 6724 rule 2)",
            Self::Deprecated => "its source address is deprecated (RFC 6724 rule 3)",
            Self::MatchingLabel => "its label is not that of the source (RFC 6724 rule 5)",
            Self::Precedence => "its precedence is lower (RFC 6724 rule 6)",
            Self::SmallerScope => "its scope is wider (RFC 6724 rule 8)",
            Self::RoundTrip => "its remembered round trip is longer, or unknown",
            Self::UsedBefore => "it was not used before",
            Self::LongestPrefix => "it shares fewer leading bits with its source (RFC 6724 rule 9)",
            Self::AsAnswered => "in the order of the answer (RFC 6724 rule 10)",
        })
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mandatory => "its mandatory keys contradict the record",
            Self::NoAlpn => "it has no-default-alpn without alpn",
            Self::Port => "its port is 0",
            Self::Target => "its target is not a host name",
            Self::Ech => "its ECH configuration is too long",
        })
    }
}
