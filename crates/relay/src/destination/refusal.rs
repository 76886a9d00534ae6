//! Why a client's request is refused, with the codes of each protocol.

use std::fmt;
use std::time::Duration;

use eyas::ConnectError;
use eyas::race::dns::DnsFailure;
use eyas::race::evidence::FailureCause;
use eyas::race::io::RaceFailure;

use super::Destination;
use crate::proxy_status::ErrorType;

/// Why a client's request is refused. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestRefusal {
    /// The client violated its protocol, or its request is invalid.
    Malformed(String),
    /// Its message is too long.
    TooLong,
    /// It has not authenticated.
    NoUser,
    /// Too many wrong passwords came from its address: none is checked for this long.
    TooManyGuesses(Duration),
    /// The proxy does not support the request.
    Unsupported(String),
    /// The type of its address is not supported.
    AddressKind(u8),
    /// The rules of the proxy do not allow the destination.
    NotAllowed(String),
    /// Nothing is listening there.
    Refused(String),
    /// There is no route to the host.
    HostUnreachable(String),
    /// This machine has no network.
    NetworkUnreachable(String),
    /// DNS does not contain the host, or did not answer.
    NoAddress(String),
    /// There was no answer in time.
    TimedOut(String),
    /// Another error.
    Failed(String),
}

impl RequestRefusal {
    /// Returns the field REP of a reply (RFC 1928 §6).
    pub(crate) const fn socks5(&self) -> u8 {
        match self {
            Self::NotAllowed(_) | Self::NoUser | Self::TooManyGuesses(_) => 2,
            Self::NetworkUnreachable(_) => 3,
            Self::HostUnreachable(_) | Self::NoAddress(_) => 4,
            Self::Refused(_) => 5,
            // "TTL expired" is the only one about time.
            Self::TimedOut(_) => 6,
            Self::Unsupported(_) => 7,
            Self::AddressKind(_) => 8,
            Self::Malformed(_) | Self::TooLong | Self::Failed(_) => 1,
        }
    }

    /// Returns status and reason of a response (RFC 9110 §15).
    const fn http(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed(_) | Self::AddressKind(_) => (400, "Bad Request"),
            Self::TooLong => (431, "Request Header Fields Too Large"),
            Self::NoUser => (407, "Proxy Authentication Required"),
            Self::TooManyGuesses(_) => (429, "Too Many Requests"),
            Self::Unsupported(_) => (501, "Not Implemented"),
            Self::NotAllowed(_) => (403, "Forbidden"),
            Self::TimedOut(_) => (504, "Gateway Timeout"),
            Self::Refused(_)
            | Self::HostUnreachable(_)
            | Self::NetworkUnreachable(_)
            | Self::NoAddress(_)
            | Self::Failed(_) => (502, "Bad Gateway"),
        }
    }

    /// Returns after how many seconds the client may try again, if that is known.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooManyGuesses(wait) => Some(wait.as_secs() + 1),
            _ => None,
        }
    }

    /// All names, in the order of the variants.
    pub const NAMES: [&str; 13] = [
        "malformed",
        "too-long",
        "no-user",
        "too-many-guesses",
        "unsupported",
        "address-kind",
        "not-allowed",
        "refused",
        "host-unreachable",
        "network-unreachable",
        "dns",
        "timeout",
        "failed",
    ];

    /// Returns the name used in JSON and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::TooLong => "too-long",
            Self::NoUser => "no-user",
            Self::TooManyGuesses(_) => "too-many-guesses",
            Self::Unsupported(_) => "unsupported",
            Self::AddressKind(_) => "address-kind",
            Self::NotAllowed(_) => "not-allowed",
            Self::Refused(_) => "refused",
            Self::HostUnreachable(_) => "host-unreachable",
            Self::NetworkUnreachable(_) => "network-unreachable",
            Self::NoAddress(_) => "dns",
            Self::TimedOut(_) => "timeout",
            Self::Failed(_) => "failed",
        }
    }
}

/// A refusal with its precise cause, which a [`RequestRefusal`] does not distinguish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The refusal.
    pub why: RequestRefusal,
    /// Its cause.
    pub error: ErrorType,
}

impl RefusedRequest {
    /// Refuses for this cause.
    pub const fn new(error: ErrorType, why: RequestRefusal) -> Self {
        Self { why, error }
    }

    /// Refuses a destination none of whose addresses the rules allow.
    pub fn prohibited(to: &Destination) -> Self {
        // Which rule it was depends on the address; that it was one does not.
        let text = format!("{to} has only addresses that clients may not use");
        Self::new(ErrorType::DestinationIpProhibited, RequestRefusal::NotAllowed(text))
    }

    /// Returns status and reason of a response (RFC 9110 §15).
    pub const fn http(&self) -> (u16, &'static str) {
        match self.error {
            ErrorType::ConnectionLimitReached => (503, "Service Unavailable"),
            _ => self.why.http(),
        }
    }
}

impl From<RequestRefusal> for RefusedRequest {
    fn from(why: RequestRefusal) -> Self {
        let error = match &why {
            RequestRefusal::Malformed(_)
            | RequestRefusal::TooLong
            | RequestRefusal::AddressKind(_) => ErrorType::HttpRequestError,
            RequestRefusal::NoUser
            | RequestRefusal::TooManyGuesses(_)
            | RequestRefusal::Unsupported(_)
            | RequestRefusal::NotAllowed(_) => ErrorType::HttpRequestDenied,
            RequestRefusal::Refused(_) => ErrorType::ConnectionRefused,
            RequestRefusal::HostUnreachable(_) => ErrorType::DestinationUnavailable,
            RequestRefusal::NetworkUnreachable(_) => ErrorType::DestinationIpUnroutable,
            RequestRefusal::NoAddress(_) => ErrorType::DnsError,
            RequestRefusal::TimedOut(_) => ErrorType::ConnectionTimeout,
            RequestRefusal::Failed(_) => ErrorType::ProxyInternalError,
        };
        Self { why, error }
    }
}

impl RefusedRequest {
    /// Creates the refusal for a race that failed, with this text.
    pub(crate) fn from_race(error: &ConnectError, text: String) -> Self {
        Self { why: RequestRefusal::from_race(error, text), error: ErrorType::from(error) }
    }
}

impl From<&ConnectError> for RefusedRequest {
    fn from(error: &ConnectError) -> Self {
        Self { why: RequestRefusal::from(error), error: ErrorType::from(error) }
    }
}

impl From<&ConnectError> for RequestRefusal {
    fn from(error: &ConnectError) -> Self {
        Self::from_race(error, error.to_string())
    }
}

impl RequestRefusal {
    /// Creates the refusal for a race that failed, with this text.
    fn from_race(error: &ConnectError, text: String) -> Self {
        match error.failure() {
            RaceFailure::NoAddress(failures) => {
                let have_all_timed_out =
                    failures.iter().all(|(_, why)| *why == DnsFailure::Timeout);
                if have_all_timed_out { Self::TimedOut(text) } else { Self::NoAddress(text) }
            }
            RaceFailure::NoNetwork => Self::NetworkUnreachable(text),
            RaceFailure::Deadline(_) => Self::TimedOut(text),
            _ => match error.cause() {
                Some(FailureCause::Refused) => Self::Refused(text),
                Some(FailureCause::Unreachable) => Self::HostUnreachable(text),
                Some(FailureCause::Silent | FailureCause::Deadline) => Self::TimedOut(text),
                _ => Self::Failed(text),
            },
        }
    }
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the head of the request is too long"),
            Self::NoUser => f.write_str("a valid user name and password are required"),
            Self::TooManyGuesses(_) => write!(
                f,
                "too many wrong passwords came from your address: try again in {} s",
                self.retry_after().unwrap_or_default()
            ),
            Self::AddressKind(kind) => write!(f, "SOCKS5 has no address of kind {kind}"),
            Self::Malformed(text)
            | Self::Unsupported(text)
            | Self::NotAllowed(text)
            | Self::Refused(text)
            | Self::HostUnreachable(text)
            | Self::NetworkUnreachable(text)
            | Self::NoAddress(text)
            | Self::TimedOut(text)
            | Self::Failed(text) => f.write_str(text),
        }
    }
}
