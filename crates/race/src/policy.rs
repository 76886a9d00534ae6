//! What the caller wants: RFC 9622 preferences and Happy Eyeballs values.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::candidate::{Family, Transport};
use crate::evidence::Level;

#[cfg(test)]
mod tests;

/// Values of HEv3 §9 and what eyas adds to them. Durations are
/// validated by [`Policy::validated`], never silently changed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Transports allowed, most wanted first; what is not listed is prohibited.
    pub transports: Vec<Transport>,
    /// Race all candidates at once (RFC 9621 §4.1), the only way below the 10 ms floor.
    pub simultaneous: bool,
    /// Resolution Delay: 50 ms.
    pub resolution_delay: Duration,
    /// Connection Attempt Delay without a remembered round trip: 250 ms.
    pub attempt_delay: Duration,
    /// Lower bound of an adapted Connection Attempt Delay: 100 ms.
    pub attempt_delay_min: Duration,
    /// Upper bound of an adapted or extended Connection Attempt Delay: 2 s.
    pub attempt_delay_max: Duration,
    /// Preferred Address Family Count: 1.
    pub preferred_family_count: usize,
    /// Whether IPv4 goes first; IPv6 does by default.
    pub prefer_ipv4: bool,
    /// Only addresses of this family, if one is named (`-4`, `-6` of the command): the other one is
    /// neither asked of DNS nor tried. Behind a NAT64 an IPv4 peer belongs to both, for it is
    /// reached by IPv6 packets ([`NetworkView::admits`](crate::io::NetworkView::admits)).
    pub only_family: Option<Family>,
    /// What a more wanted transport gets before the next one starts, without memory: 30 ms.
    pub head_start: Duration,
    /// What a usable but less wanted transport waits for a more wanted one still under way: 12 ms.
    ///
    /// The lesser one has shown how far the host is, so a more wanted one that is overdue may be
    /// tried once more ([`Self::second_tries`]): after [`ATTEMPT_DELAY_FLOOR`], and over a short path
    /// it is there a little later. Head start and grace together are what is waited for where the
    /// more wanted transport goes nowhere.
    pub grace: Duration,
    /// How far an attempt must come to win: [`Level::Security`].
    pub win_at: Level,
    /// Keep the more wanted transport going after a lesser one has won, and yield it as `Better`.
    pub late_switch: bool,
    /// How long after the win (or after its own start, if that is later) an attempt that goes on
    /// for the late switch may stay without an answer before it counts as silent: 3 s, the time
    /// of the second retransmission of a QUIC Initial or of a SYN.
    pub late_switch_for: Duration,
    /// How long an attempt that nobody answers is waited for once every other candidate has come
    /// to its end and its own host has refused one of them: 1.2 s.
    ///
    /// The refusal shows that the host is up and how far away it is, so what is swallowed is
    /// swallowed for good, or nobody listens and no ICMP message says so. Only a lost packet
    /// deserves patience. A client that
    /// knows no round trip sends a QUIC Initial again after 1 s (three times 333 ms, RFC 9002
    /// §6.2.2), a SYN after 1 s (RFC 6298 §2.1), and the answer needs the round trip of the
    /// refusal, which is added to this; 200 ms are for a server that has work to do. The time
    /// counts from the refusal, or from the attempt's own start and that round trip, if that is
    /// later. Without a refusal the host may be down, far away or asleep: then the deadline holds.
    /// Beside a certificate that was not accepted it is 200 ms at most, for the same would come over
    /// every transport.
    pub refused_host_patience: Duration,
    /// How often a candidate that nobody answers is tried once more, by a further attempt beside
    /// those before it: 3 times. What comes up first counts, and the others close. None starts once
    /// there is a winner. 0 switches them off.
    ///
    /// Loss at the handshake is where the longest waits come from: a client that knows no round
    /// trip sends a QUIC Initial or a SYN again after 1 s, and a QUIC server whose whole first
    /// flight was lost waits as long, whatever the client repeats on the same connection (RFC 9002
    /// §6.2.2). A further attempt is a new connection to both. It costs its packets, and a server
    /// that was reached a second handshake.
    #[serde(default)]
    pub second_tries: u32,
    /// When the first further attempt starts, where nothing is known of the distance: 250 ms after
    /// the attempt before it, as the Connection Attempt Delay. Where the round trip to the host is
    /// known, be it remembered or another attempt's in this race, after three of them and 10 ms.
    /// Each further one waits twice as long as the one before it.
    #[serde(default = "second_try_delay")]
    pub second_try_delay: Duration,
    /// Where the round trips to other hosts of this network are remembered, the first further
    /// attempt starts after three of the longest and 10 ms, if that is less than
    /// [`Self::second_try_delay`], and never before this: 100 ms, the recommended least Connection
    /// Attempt Delay (HEv3 §9).
    #[serde(default = "second_try_delay_min")]
    pub second_try_delay_min: Duration,
    /// [`Self::second_try_delay`] on a network that is remembered to lose packets, if that is less:
    /// 100 ms. There the wait for a retransmission is common, and what further attempts cost well
    /// spent; so the round trips to other hosts bring it down to [`Self::head_start`].
    #[serde(default = "lossy_second_try_delay")]
    pub lossy_second_try_delay: Duration,
    /// The most that [`Self::head_start`] becomes on such a network, if that is longer: 120 ms. It
    /// lasts until the first second try of a more wanted transport has had its chance: QUIC copes
    /// better with loss, and is to be preferred the more there is of it (Matsuzawa and Ichikawa
    /// 2022, Section 5, future work).
    #[serde(default = "lossy_head_start")]
    pub lossy_head_start: Duration,
    /// What losers may do.
    pub losers: Losers,
    /// What protects SCTP inside UDP where the target is to be protected.
    #[serde(default)]
    pub sctp_security: SctpSecurity,
    /// Attempts in flight at once in this race: 8. When there are as many and a candidate is still
    /// to be tried, the one that nobody has answered for longest makes room for it, after two
    /// Connection Attempt Delays at the earliest, and has another turn later that is twice as long;
    /// from then on [`Self::attempt_delay_min`] lies between two starts. An exhaustive race gives
    /// each candidate one turn, of [`Self::late_switch_for`] if the deadline leaves time for that.
    pub max_in_flight: usize,
    /// From the start to the last moment at which an attempt may win: 30 s.
    pub deadline: Duration,
    /// How long DNS is still read after the win, for the memory: 1 s.
    pub dns_after_win: Duration,
    /// Try every candidate to its end and elect the best (`eyas race --all`).
    pub exhaustive: bool,
    /// Ignore what the memory says; outcomes are still learnt.
    pub ignore_memory: bool,
    /// The security layer can encrypt the ClientHello and the caller relies on it. Where DNS is
    /// protected the race then waits for HTTPS records however long they take, gives up if they
    /// cannot be had, and puts services with an ECH configuration first
    /// (HEv3 §6.3, RFC 9848 §5).
    pub rely_on_ech: bool,
}

/// What protects SCTP inside UDP. Directly over IP it is always TLS: DTLS over SCTP (RFC 6083)
/// needs a key exporter that no library here has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SctpSecurity {
    /// TLS on its streams (RFC 3436), as over TCP.
    #[default]
    Tls,
    /// DTLS below it (RFC 8261).
    Dtls,
    /// A candidate of each.
    Both,
}

/// What becomes of the attempts that lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losers {
    /// They are closed at once and teach nothing. With the late switch, those that stood before
    /// the winner and were not answered are closed at their first answer instead, or remembered
    /// as silent.
    Cancel,
    /// They may go on for this long after the win, to give evidence; then they are closed.
    Finish(Duration),
}

/// The least time between two attempts of a race that is not simultaneous
/// (HEv3 §9, absolute minimum).
pub const ATTEMPT_DELAY_FLOOR: Duration = Duration::from_millis(10);

/// The longest a policy may let one attempt hold back the next. The draft recommends 2 s as the
/// Maximum Connection Attempt Delay; a longer one makes no sense within any deadline.
pub const ATTEMPT_DELAY_MAX: Duration = Duration::from_secs(10);

/// The longest Resolution Delay: beyond it a resolver has given up by itself.
pub const RESOLUTION_DELAY_MAX: Duration = Duration::from_secs(5);

/// The longest deadline that a policy can ask for: a race that nobody ends holds its sockets.
pub const DEADLINE_MAX: Duration = Duration::from_hours(1);

/// The most further attempts at one candidate.
pub const SECOND_TRIES_MAX: u32 = 8;

/// The Connection Attempt Delay of HEv3 §9: longer than most round trips
/// on the Internet, and a quarter of the first probe timeout of clients that know none (RFC 9002
/// §6.2.2).
const fn second_try_delay() -> Duration {
    Duration::from_millis(250)
}

const fn second_try_delay_min() -> Duration {
    Duration::from_millis(100)
}

const fn lossy_second_try_delay() -> Duration {
    Duration::from_millis(100)
}

/// When the first second try starts on a lossy network at the latest, and a short round trip more.
const fn lossy_head_start() -> Duration {
    Duration::from_millis(120)
}

/// The longest that anything goes on after the win: DNS, losers, the more wanted transport.
pub const AFTER_WIN_MAX: Duration = Duration::from_secs(60);

/// Attempts that one race may have in flight at most.
pub const IN_FLIGHT_MAX: usize = 256;

impl Policy {
    /// The policy itself, if its values make sense together.
    ///
    /// # Errors
    /// The first value that does not, with the bound it breaks.
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
        if let Losers::Finish(value) = self.losers
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
        if self.second_tries > SECOND_TRIES_MAX {
            return Err(PolicyError::SecondTries(self.second_tries));
        }
        if self.preferred_family_count == 0 {
            return Err(PolicyError::PreferredFamilyCount);
        }
        if !(Level::Answered..=Level::FirstByte).contains(&self.win_at) {
            return Err(PolicyError::WinAt(self.win_at));
        }
        Ok(self)
    }

    /// The same policy, but as the race of Papastergiou et al. (2016) was measured: all candidates
    /// start at once, every handshake is carried to its end, the first complete one wins and the
    /// others then close. It costs servers what eyas otherwise spares them; it is here to be
    /// compared with.
    #[must_use]
    pub fn naive(self) -> Self {
        Self {
            simultaneous: true,
            late_switch: false,
            second_tries: 0,
            grace: Duration::ZERO,
            losers: Losers::Finish(AFTER_WIN_MAX),
            ignore_memory: true,
            ..self
        }
    }

    /// The same policy with this head start on every network, whatever it loses.
    #[must_use]
    pub fn with_head_start(self, head_start: Duration) -> Self {
        Self { head_start, lossy_head_start: head_start, ..self }
    }

    /// The policy in whose times the tests of everything but second tries are written.
    #[cfg(test)]
    pub(crate) fn of_first_tries() -> Self {
        Self {
            second_tries: 0,
            head_start: Duration::from_millis(50),
            grace: Duration::ZERO,
            ..Self::default()
        }
    }

    /// How much this transport is wanted: 0 is the most wanted, `None` is prohibited.
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

    /// HEv3 §9: never below 10 ms, and min ≤ delay ≤ max.
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

/// Why a policy makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// No transport is allowed.
    NoTransport,
    /// A transport stands twice in the order of preference.
    TransportTwice(Transport),
    /// A duration is below its bound.
    TooShort {
        /// The field of [`Policy`].
        field: &'static str,
        /// What it was set to.
        value: Duration,
        /// The least it may be.
        least: Duration,
    },
    /// A duration is above its bound.
    TooLong {
        /// The field of [`Policy`].
        field: &'static str,
        /// What it was set to.
        value: Duration,
        /// The most it may be.
        most: Duration,
    },
    /// `max_in_flight` is zero, or above [`IN_FLIGHT_MAX`].
    MaxInFlight(usize),
    /// `second_tries` is above [`SECOND_TRIES_MAX`].
    SecondTries(u32),
    /// `preferred_family_count` is zero.
    PreferredFamilyCount,
    /// No attempt can win at this level: an attempt that only started has reached nobody, and a
    /// full-sized packet is not part of any handshake.
    WinAt(Level),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTransport => f.write_str("the policy allows no transport: name at least one"),
            Self::TransportTwice(transport) => {
                write!(f, "{transport} stands twice in the order of transports: name it once")
            }
            Self::TooShort { field, value, least } => {
                write!(f, "{field} is {value:?}, but must be at least {least:?}")
            }
            Self::TooLong { field, value, most } => {
                write!(f, "{field} is {value:?}, but must be at most {most:?}")
            }
            Self::MaxInFlight(value) => {
                write!(f, "max_in_flight is {value}, but must be 1 to {IN_FLIGHT_MAX}")
            }
            Self::SecondTries(value) => {
                write!(f, "second_tries is {value}, but must be at most {SECOND_TRIES_MAX}")
            }
            Self::PreferredFamilyCount => {
                f.write_str("preferred_family_count is 0, but must be at least 1")
            }
            Self::WinAt(level) => write!(
                f,
                "no attempt can win at {level:?}: choose answered, transport, security or first-byte"
            ),
        }
    }
}

impl core::error::Error for PolicyError {}

impl Default for Policy {
    fn default() -> Self {
        Self {
            transports: alloc::vec![Transport::Quic, Transport::Tcp],
            simultaneous: false,
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
            attempt_delay_min: Duration::from_millis(100),
            attempt_delay_max: Duration::from_secs(2),
            preferred_family_count: 1,
            prefer_ipv4: false,
            only_family: None,
            head_start: Duration::from_millis(30),
            grace: Duration::from_millis(12),
            win_at: Level::Security,
            late_switch: true,
            late_switch_for: Duration::from_secs(3),
            refused_host_patience: Duration::from_millis(1_200),
            second_tries: 3,
            second_try_delay: second_try_delay(),
            second_try_delay_min: second_try_delay_min(),
            lossy_second_try_delay: lossy_second_try_delay(),
            lossy_head_start: lossy_head_start(),
            losers: Losers::Cancel,
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
