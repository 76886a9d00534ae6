//! The caller's policy: RFC 9622 preferences and Happy Eyeballs parameters.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{AddressFamily, Transport};
use crate::evidence::EvidenceLevel;

mod address_table;

#[cfg(test)]
mod tests;

pub(crate) use address_table::RFC_6724;
pub use address_table::{AddressTable, PrefixValue};

/// The parameters of HEv3 §9 and those that eyas adds. They are checked by [`Policy::validated`],
/// and never silently changed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The allowed transports, most preferred first; all others are prohibited.
    pub transports: Vec<Transport>,
    /// Race all candidates at once (RFC 9621 §4.1), the only way to go below the minimum delay of
    /// 10 ms.
    pub simultaneous: bool,
    /// Resolution Delay: 50 ms.
    pub resolution_delay: Duration,
    /// Connection Attempt Delay without a known round-trip time: 250 ms.
    pub attempt_delay: Duration,
    /// By how much each further [`Self::attempt_delay`] is longer, in percent: 100, which is not at all; at most
    /// [`ATTEMPT_DELAY_FACTOR_MAX`]. 200 doubles it with each attempt, up to [`Self::attempt_delay_max`], so that a
    /// short first delay does not lead to a crowd.
    #[serde(default = "attempt_delay_factor")]
    pub attempt_delay_factor: u32,
    /// Minimum of an adapted Connection Attempt Delay: 100 ms.
    pub attempt_delay_min: Duration,
    /// Maximum of an adapted or extended Connection Attempt Delay: 2 s.
    pub attempt_delay_max: Duration,
    /// Preferred Address Family Count: 1.
    pub preferred_family_count: usize,
    /// Whether IPv4 goes first; by default IPv6 does.
    pub prefer_ipv4: bool,
    /// The table by which addresses are sorted, in place of the one of RFC 6724. The driver takes the
    /// one of the host (gai.conf(5)) if the caller sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_table: Option<Arc<AddressTable>>,
    /// If set, use only addresses of this family (`-4`, `-6` on the command line): the other one is
    /// neither queried nor tried. Behind a NAT64 an IPv4 peer belongs to both, because it is
    /// reached by IPv6 packets ([`NetworkView::admits`](crate::io::NetworkView::admits)).
    pub only_family: Option<AddressFamily>,
    /// How much earlier a more preferred transport starts than the next one, without memory: 30 ms.
    pub head_start: Duration,
    /// How long a usable but less preferred connection waits for a more preferred one in progress:
    /// 12 ms.
    ///
    /// The less preferred connection has shown how far away the host is, so an overdue attempt over
    /// the more preferred transport may be tried again ([`Self::second_tries`]) after
    /// [`ATTEMPT_DELAY_FLOOR`], and over a short path it completes a little later. Head start plus
    /// grace is the price if the more preferred transport does not work.
    pub grace: Duration,
    /// The level at which an attempt wins: [`EvidenceLevel::Security`].
    pub win_at: EvidenceLevel,
    /// Continue with the more preferred transport after a less preferred one has won, and return it
    /// as `Better`.
    pub late_switch: bool,
    /// How long after the win (or after its own start, if that is later) an attempt that continues
    /// for the late switch may remain unanswered before it counts as silent: 3 s, the time of the
    /// second retransmission of a QUIC Initial or of a SYN.
    pub late_switch_for: Duration,
    /// How long to wait for an unanswered attempt once every other candidate has ended and its own
    /// host has refused one of them: 1.2 s.
    ///
    /// The refusal shows that the host is up and how far away it is, so unanswered packets are
    /// either dropped for good, or no service is listening and no ICMP message says so. Only packet
    /// loss is worth waiting for. A client that knows no round-trip time retransmits a QUIC Initial
    /// after 1 s (three times 333 ms, RFC 9002 §6.2.2), a SYN after 1 s (RFC 6298 §2.1), and the
    /// answer takes the round-trip time of the refusal, which is added to this; 200 ms are for a
    /// busy server. The time counts from the refusal, or from the attempt's own start plus that
    /// round-trip time, if that is later. Without a refusal the host may be down, far away or
    /// asleep: then the deadline applies. If a certificate was not accepted, it is 200 ms at most,
    /// because the same certificate would be presented over every transport.
    pub refused_host_patience: Duration,
    /// How often an unanswered candidate is tried again, by another attempt beside the previous
    /// ones: 3 times. The first attempt to complete counts, and the others are closed. None is
    /// started once there is a winner. 0 disables second tries.
    ///
    /// Loss during the handshake causes the longest delays: a client that knows no round-trip time
    /// retransmits a QUIC Initial or a SYN after 1 s, and a QUIC server whose whole first flight
    /// was lost waits as long, whatever the client retransmits on the same connection (RFC 9002
    /// §6.2.2). A second try is a new connection to both. It costs its packets, and a server that
    /// was reached already a second handshake.
    #[serde(default)]
    pub second_tries: u32,
    /// The delay of the first second try if nothing is known about the distance: 250 ms after the
    /// previous attempt, like the Connection Attempt Delay. If the round-trip time to the host is
    /// known, remembered or from another attempt in this race, it is three times that plus 10 ms.
    /// Each further one waits twice as long as the one before it.
    #[serde(default = "second_try_delay")]
    pub second_try_delay: Duration,
    /// The minimum delay of a second try that is derived from the remembered round-trip times to
    /// other hosts of this network: 100 ms, the recommended minimum Connection Attempt Delay (HEv3
    /// §9). The delay is three times the longest of them plus 10 ms, if that is less than
    /// [`Self::second_try_delay`].
    #[serde(default = "second_try_delay_min")]
    pub second_try_delay_min: Duration,
    /// [`Self::second_try_delay`] on a network known as lossy, if that is less: 100 ms. There,
    /// waiting for a retransmission is common and the cost of second tries justified; so the
    /// round-trip times to other hosts may reduce it to [`Self::head_start`].
    #[serde(default = "lossy_second_try_delay")]
    pub lossy_second_try_delay: Duration,
    /// The maximum to which [`Self::head_start`] is extended on such a network: 120 ms. It lasts
    /// until the first second try of a more preferred transport has had its chance: QUIC copes
    /// better with loss, and should be preferred the more there is of it (Matsuzawa and Ichikawa
    /// 2022, Section 5, future work).
    #[serde(default = "lossy_head_start")]
    pub lossy_head_start: Duration,
    /// What happens to attempts that lost.
    pub losers: LoserPolicy,
    /// The security layer of SCTP over UDP, for targets with security.
    #[serde(default)]
    pub sctp_security: SctpSecurity,
    /// The maximum number of attempts in flight in this race: 8. When it is reached and another
    /// candidate is waiting, the attempt that has been unanswered for longest makes room for it,
    /// after at least two Connection Attempt Delays, and gets another turn later that is twice as
    /// long; from then on attempts are at least [`Self::attempt_delay_min`] apart. An exhaustive
    /// race gives each candidate a first turn of [`Self::late_switch_for`], if the deadline leaves
    /// time for that; a candidate that was silent for so long has failed, and any other that was
    /// cut short gets further turns once everything has been tried.
    pub max_in_flight: usize,
    /// The time from the start until an attempt can no longer win: 30 s.
    pub deadline: Duration,
    /// How long DNS answers are read after the win, for the memory: 1 s.
    pub dns_after_win: Duration,
    /// Try every candidate to its end and choose the best (`eyas race --all`).
    pub exhaustive: bool,
    /// Ignore what the memory knows; outcomes are still stored.
    pub ignore_memory: bool,
    /// Whether the security layer can encrypt the ClientHello and the caller relies on it. If DNS
    /// is protected, the race then waits for HTTPS records as long as it takes, gives up if they
    /// cannot be obtained, and prefers services with an ECH configuration (HEv3 §6.3, RFC 9848 §5).
    pub rely_on_ech: bool,
}

/// The security layer of SCTP over UDP. Directly over IP it is always TLS: DTLS over SCTP (RFC
/// 6083) needs a key exporter that no library here has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SctpSecurity {
    /// TLS on its streams (RFC 3436), as over TCP.
    #[default]
    Tls,
    /// DTLS below it (RFC 8261).
    Dtls,
    /// One candidate with each.
    Both,
}

/// What happens to attempts that lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoserPolicy {
    /// They are closed at once and yield no evidence. With the late switch, those that were planned
    /// before the winner and remain unanswered are instead closed at their first answer, or
    /// remembered as silent.
    Cancel,
    /// They may continue for this long after the win, to gather evidence; then they are closed.
    Finish(Duration),
}

/// The minimum time between two attempts of a race that is not simultaneous (HEv3 §9, absolute
/// minimum).
pub const ATTEMPT_DELAY_FLOOR: Duration = Duration::from_millis(10);

/// The maximum by which a policy may let one attempt delay the next. The draft recommends 2 s as
/// the Maximum Connection Attempt Delay; a longer one is useless within any deadline.
pub const ATTEMPT_DELAY_MAX: Duration = Duration::from_secs(10);

/// The maximum Resolution Delay: after it, a resolver has given up by itself.
pub const RESOLUTION_DELAY_MAX: Duration = Duration::from_secs(5);

/// The maximum deadline: a race that is never ended keeps its sockets.
pub const DEADLINE_MAX: Duration = Duration::from_hours(1);

/// The maximum number of second tries per candidate.
pub const SECOND_TRIES_MAX: u32 = 8;

/// Returns the Connection Attempt Delay of HEv3 §9: longer than most round trips on the Internet,
/// and a quarter of the first probe timeout of clients without a round-trip estimate (RFC 9002
/// §6.2.2).
const fn attempt_delay_factor() -> u32 {
    100
}

const fn second_try_delay() -> Duration {
    Duration::from_millis(250)
}

const fn second_try_delay_min() -> Duration {
    Duration::from_millis(100)
}

const fn lossy_second_try_delay() -> Duration {
    Duration::from_millis(100)
}

/// Returns the latest start of the first second try on a lossy network, plus a short round trip.
const fn lossy_head_start() -> Duration {
    Duration::from_millis(120)
}

/// The maximum time for which anything continues after the win: DNS, losers, the more preferred
/// transport.
pub const AFTER_WIN_MAX: Duration = Duration::from_secs(60);

/// The upper limit of [`Policy::attempt_delay_factor`].
pub const ATTEMPT_DELAY_FACTOR_MAX: u32 = 400;

/// The upper limit of [`Policy::max_in_flight`].
pub const IN_FLIGHT_MAX: usize = 256;

impl Policy {
    /// Returns the policy if its values are consistent.
    ///
    /// # Errors
    /// The first invalid value, with the bound that it violates.
    pub fn validated(self) -> Result<Self, PolicyError> {
        self.check_transports()?;
        self.check_attempt_delays()?;
        let upper_bounds = [
            ("resolution_delay", self.resolution_delay, RESOLUTION_DELAY_MAX),
            ("head_start", self.head_start, self.attempt_delay_max),
            ("lossy_head_start", self.lossy_head_start, self.attempt_delay_max),
            ("grace", self.grace, self.attempt_delay_max),
            ("deadline", self.deadline, DEADLINE_MAX),
            ("late_switch_for", self.late_switch_for, AFTER_WIN_MAX),
            ("refused_host_patience", self.refused_host_patience, DEADLINE_MAX),
            ("dns_after_win", self.dns_after_win, AFTER_WIN_MAX),
            ("second_try_delay", self.second_try_delay, ATTEMPT_DELAY_MAX),
            ("second_try_delay_min", self.second_try_delay_min, ATTEMPT_DELAY_MAX),
            ("lossy_second_try_delay", self.lossy_second_try_delay, ATTEMPT_DELAY_MAX),
        ];
        for (field, value, most) in upper_bounds {
            if value > most {
                return Err(PolicyError::TooLong { field, value, most });
            }
        }
        if let LoserPolicy::Finish(value) = self.losers
            && value > AFTER_WIN_MAX
        {
            return Err(PolicyError::TooLong { field: "losers", value, most: AFTER_WIN_MAX });
        }
        let lower_bounds = [
            ("second_try_delay", self.second_try_delay),
            ("second_try_delay_min", self.second_try_delay_min),
            ("lossy_second_try_delay", self.lossy_second_try_delay),
        ];
        for (field, value) in lower_bounds {
            if value < ATTEMPT_DELAY_FLOOR {
                return Err(PolicyError::TooShort { field, value, least: ATTEMPT_DELAY_FLOOR });
            }
        }
        if self.deadline.is_zero() {
            let least = Duration::from_millis(1);
            return Err(PolicyError::TooShort { field: "deadline", value: self.deadline, least });
        }
        if !(1..=IN_FLIGHT_MAX).contains(&self.max_in_flight) {
            return Err(PolicyError::MaxInFlight(self.max_in_flight));
        }
        if !(100..=ATTEMPT_DELAY_FACTOR_MAX).contains(&self.attempt_delay_factor) {
            return Err(PolicyError::AttemptDelayFactor(self.attempt_delay_factor));
        }
        if self.second_tries > SECOND_TRIES_MAX {
            return Err(PolicyError::SecondTries(self.second_tries));
        }
        if self.preferred_family_count == 0 {
            return Err(PolicyError::PreferredFamilyCount);
        }
        if !(EvidenceLevel::Answered..=EvidenceLevel::FirstByte).contains(&self.win_at) {
            return Err(PolicyError::WinAt(self.win_at));
        }
        Ok(self)
    }

    /// Returns the policy as the race of Papastergiou et al. (2016) was measured: all candidates
    /// start at once, every handshake runs to its end, the first complete one wins and the others
    /// are then closed. It costs servers what eyas otherwise spares them, and exists for
    /// comparison.
    #[must_use]
    pub fn naive(self) -> Self {
        Self {
            simultaneous: true,
            late_switch: false,
            second_tries: 0,
            grace: Duration::ZERO,
            losers: LoserPolicy::Finish(AFTER_WIN_MAX),
            ignore_memory: true,
            ..self
        }
    }

    /// Returns the policy with this head start on every network, even a lossy one.
    #[must_use]
    pub fn with_head_start(self, head_start: Duration) -> Self {
        Self { head_start, lossy_head_start: head_start, ..self }
    }

    /// Returns the policy whose times are assumed by all tests except those of second tries.
    #[cfg(test)]
    pub(crate) fn of_first_tries() -> Self {
        Self {
            second_tries: 0,
            head_start: Duration::from_millis(50),
            grace: Duration::ZERO,
            ..Self::default()
        }
    }

    /// Returns the rank of this transport in the order of preference, starting at 0; `None` if it
    /// is prohibited.
    pub fn rank(&self, transport: Transport) -> Option<usize> {
        self.transports.iter().position(|allowed| *allowed == transport)
    }

    fn check_transports(&self) -> Result<(), PolicyError> {
        if self.transports.is_empty() {
            return Err(PolicyError::NoTransport);
        }
        let twice =
            |(at, transport): &(usize, &Transport)| self.transports[..*at].contains(transport);
        match self.transports.iter().enumerate().find(twice) {
            Some((_, transport)) => Err(PolicyError::TransportTwice(*transport)),
            None => Ok(()),
        }
    }

    /// Checks HEv3 §9: never below 10 ms, and min ≤ delay ≤ max.
    fn check_attempt_delays(&self) -> Result<(), PolicyError> {
        let bounds = [
            ("attempt_delay_max", self.attempt_delay_max, ATTEMPT_DELAY_FLOOR, ATTEMPT_DELAY_MAX),
            (
                "attempt_delay_min",
                self.attempt_delay_min,
                ATTEMPT_DELAY_FLOOR,
                self.attempt_delay_max,
            ),
            ("attempt_delay", self.attempt_delay, self.attempt_delay_min, self.attempt_delay_max),
        ];
        for (field, value, least, most) in bounds {
            if value < least {
                return Err(PolicyError::TooShort { field, value, least });
            }
            if value > most {
                return Err(PolicyError::TooLong { field, value, most });
            }
        }
        Ok(())
    }
}

/// Why a policy is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// No transport is allowed.
    NoTransport,
    /// A transport is listed twice.
    TransportTwice(Transport),
    /// A duration is below its minimum.
    TooShort {
        /// The field of [`Policy`].
        field: &'static str,
        /// Its value.
        value: Duration,
        /// The minimum.
        least: Duration,
    },
    /// A duration is above its maximum.
    TooLong {
        /// The field of [`Policy`].
        field: &'static str,
        /// Its value.
        value: Duration,
        /// The maximum.
        most: Duration,
    },
    /// `max_in_flight` is zero, or above [`IN_FLIGHT_MAX`].
    MaxInFlight(usize),
    /// `attempt_delay_factor` is below 100, or above [`ATTEMPT_DELAY_FACTOR_MAX`].
    AttemptDelayFactor(u32),
    /// `second_tries` is above [`SECOND_TRIES_MAX`].
    SecondTries(u32),
    /// `preferred_family_count` is zero.
    PreferredFamilyCount,
    /// No attempt can win at this level: an attempt that only started has reached no peer, and a
    /// full-sized packet is not part of any handshake.
    WinAt(EvidenceLevel),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTransport => f.write_str("the policy allows no transport: list at least one"),
            Self::TransportTwice(transport) => {
                write!(f, "{transport} is listed twice in the order of transports: list it once")
            }
            Self::TooShort { field, value, least } => {
                write!(
                    f,
                    "{field} is {}, but must be at least {}",
                    ReadableDuration(*value),
                    ReadableDuration(*least)
                )
            }
            Self::TooLong { field, value, most } => {
                write!(
                    f,
                    "{field} is {}, but must be at most {}",
                    ReadableDuration(*value),
                    ReadableDuration(*most)
                )
            }
            Self::MaxInFlight(value) => {
                write!(f, "max_in_flight is {value}, but must be 1 to {IN_FLIGHT_MAX}")
            }
            Self::AttemptDelayFactor(percent) => write!(
                f,
                "attempt_delay_factor is {percent} percent, but must be from 100 to \
                 {ATTEMPT_DELAY_FACTOR_MAX}"
            ),
            Self::SecondTries(value) => {
                write!(f, "second_tries is {value}, but must be at most {SECOND_TRIES_MAX}")
            }
            Self::PreferredFamilyCount => {
                f.write_str("preferred_family_count is 0, but must be at least 1")
            }
            Self::WinAt(level) => write!(
                f,
                "no attempt can win {}: choose answered, transport, security or first-byte",
                if *level < EvidenceLevel::Answered {
                    "when it starts"
                } else {
                    "with a full-sized packet"
                }
            ),
        }
    }
}

impl core::error::Error for PolicyError {}

/// A duration as people write it: `0 ms`, `250 ms`, `5 s`.
struct ReadableDuration(Duration);

impl fmt::Display for ReadableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_micros() as f64 {
            micros if micros >= 1e6 => write!(f, "{} s", micros / 1e6),
            micros => write!(f, "{} ms", micros / 1e3),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            transports: alloc::vec![Transport::Quic, Transport::Tcp],
            simultaneous: false,
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
            attempt_delay_factor: attempt_delay_factor(),
            attempt_delay_min: Duration::from_millis(100),
            attempt_delay_max: Duration::from_secs(2),
            preferred_family_count: 1,
            prefer_ipv4: false,
            address_table: None,
            only_family: None,
            head_start: Duration::from_millis(30),
            grace: Duration::from_millis(12),
            win_at: EvidenceLevel::Security,
            late_switch: true,
            late_switch_for: Duration::from_secs(3),
            refused_host_patience: Duration::from_millis(1_200),
            second_tries: 3,
            second_try_delay: second_try_delay(),
            second_try_delay_min: second_try_delay_min(),
            lossy_second_try_delay: lossy_second_try_delay(),
            lossy_head_start: lossy_head_start(),
            losers: LoserPolicy::Cancel,
            sctp_security: SctpSecurity::Tls,
            max_in_flight: 8,
            deadline: Duration::from_secs(30),
            dns_after_win: Duration::from_secs(1),
            exhaustive: false,
            ignore_memory: false,
            rely_on_ech: false,
        }
    }
}
