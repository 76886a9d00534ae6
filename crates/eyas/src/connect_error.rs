//! The error of a race that ended without a connection.

use std::fmt;

use eyas_race::candidate::Candidate;
use eyas_race::dns::{DnsFailure, RecordType};
use eyas_race::evidence::{Cause, Failure};
use eyas_race::io::RaceFailure;
use eyas_race::target::{Host, Target};
use eyas_race::trace::Trace;

use crate::failure::CERTIFICATE_REJECTED;
use crate::security::CertificateFault;

/// The maximum number of candidates listed in a message; the trace has them all.
const MAX_LISTED: usize = 8;

/// No connection could be made: what was tried, how each candidate failed, and what to do next.
///
/// `Debug` prints the same text as `Display`, so that a `main` which returns this error prints one
/// readable line.
#[derive(Clone)]
pub struct ConnectError {
    failure: RaceFailure,
    trace: Box<Trace>,
}

impl ConnectError {
    pub(crate) fn new(failure: RaceFailure, trace: Trace) -> Self {
        Self { failure, trace: Box::new(trace) }
    }

    /// Returns the target that the caller wanted to reach.
    pub fn target(&self) -> &Target {
        &self.trace.header.setup.target
    }

    /// Returns the result of the race.
    pub fn failure(&self) -> &RaceFailure {
        &self.failure
    }

    /// Returns the trace of the race.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns every candidate that was tried and how it failed, in the order in which they were
    /// started.
    pub fn attempts(&self) -> Vec<(&Candidate, Option<&Failure>)> {
        match &self.failure {
            RaceFailure::AllFailed(tried) => {
                tried.iter().map(|(candidate, failure)| (candidate, Some(failure))).collect()
            }
            RaceFailure::Deadline(tried) => {
                tried.iter().map(|(candidate, failure)| (candidate, failure.as_ref())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns what was wrong with the server's certificate, if that is why there is no connection.
    /// If several candidates failed this way, the first failure is returned.
    pub fn certificate(&self) -> Option<(CertificateFault, &Failure)> {
        let failures = self.attempts().into_iter().filter_map(|(_, failure)| failure);
        let mut faults =
            failures.filter_map(|failure| Some((CertificateFault::of(failure)?, failure)));
        faults.next()
    }

    /// Returns the failure of the first attempt whose peer rejected our certificate during the
    /// handshake, if nothing was wrong with the certificate of any peer. With TLS 1.3, a peer can
    /// also do so after its handshake, on the connection.
    pub fn rejected_by_peer(&self) -> Option<&Failure> {
        if self.certificate().is_some() {
            return None;
        }
        let mut failures = self.attempts().into_iter().filter_map(|(_, failure)| failure);
        failures.find(|failure| {
            failure.cause == Cause::Tls && failure.detail.ends_with(CERTIFICATE_REJECTED)
        })
    }

    /// Returns the most informative cause: one reported by the peer itself (certificate, TLS,
    /// protocol) takes precedence over one from the network, and a refusal over silence.
    pub fn cause(&self) -> Option<Cause> {
        let causes = self
            .attempts()
            .into_iter()
            .map(|(_, failure)| failure.map_or(Cause::Deadline, |failure| failure.cause));
        causes.min_by_key(|cause| match cause {
            Cause::Certificate => 0,
            Cause::Tls => 1,
            Cause::Protocol => 2,
            Cause::Reset => 3,
            Cause::Refused => 4,
            Cause::Unreachable => 5,
            Cause::Silent => 6,
            Cause::Deadline => 7,
            _ => 8,
        })
    }
}

impl std::error::Error for ConnectError {}

impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.target().port;
        match &self.target().host {
            Host::Name(name) => write!(f, "cannot connect to {name}:{port}: ")?,
            Host::Literal(ip, _) if ip.is_ipv6() => write!(f, "cannot connect to [{ip}]:{port}: ")?,
            Host::Literal(ip, _) => write!(f, "cannot connect to {ip}:{port}: ")?,
        }
        match &self.failure {
            RaceFailure::NoAddress(failures) => no_address(f, failures),
            RaceFailure::NoCandidate => f.write_str(
                "none of its addresses is allowed here; allow another transport or \
                 address family, or see the plan for the reasons",
            ),
            RaceFailure::AllFailed(_) => {
                // A certificate fault is the same over every transport.
                if let Some((fault, failure)) = self.certificate() {
                    return write!(f, "{}; {}", failure.detail, advice(fault));
                }
                f.write_str("every candidate failed")?;
                self.write_attempts(f)?;
                self.write_advice(f)
            }
            RaceFailure::Deadline(_) => {
                f.write_str("nothing worked within the time allowed")?;
                self.write_attempts(f)?;
                f.write_str("; allow more time, or find out why the peer does not answer")
            }
            RaceFailure::Cancelled => f.write_str("it was cancelled"),
            RaceFailure::NoNetwork => f.write_str(
                "this machine has no network: there are no routes; check cable, Wi-Fi or VPN",
            ),
            _ => f.write_str("it failed in a way that this version has no text for"),
        }
    }
}

impl ConnectError {
    fn write_attempts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = self.attempts();
        for (n, (candidate, failure)) in attempts.iter().take(MAX_LISTED).enumerate() {
            f.write_str(if n == 0 { ": " } else { "; " })?;
            match failure {
                Some(failure) => write!(f, "{candidate}: {}", cause_text(failure))?,
                None => write!(f, "{candidate}: still waiting for the peer")?,
            }
        }
        match attempts.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }

    fn write_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.cause() {
            Some(Cause::Certificate) => "check the certificate presented to the peer",
            Some(Cause::Tls | Cause::Protocol) => {
                "check that the port serves the expected protocol"
            }
            Some(Cause::Refused) => "check the port, and that the service is running",
            Some(Cause::Unreachable) => "check the routes to it",
            Some(Cause::Silent | Cause::Deadline) => {
                "check that the host is up and no firewall drops the packets"
            }
            Some(Cause::Unsupported) => "allow a transport that this host supports",
            Some(Cause::Local) => "the fault is on this host, not at the peer",
            _ => return Ok(()),
        };
        write!(f, "; {advice}")
    }
}

/// Returns the advice about a certificate that is not accepted.
const fn advice(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::Expired => {
            "the server needs a new certificate, or this machine's clock is wrong"
        }
        CertificateFault::NotYetValid => "this machine's clock may be wrong",
        CertificateFault::WrongName => "use a name that it is for",
        CertificateFault::UnknownIssuer => "add its issuer as a root if you trust it",
        CertificateFault::Other => "the server needs another certificate",
    }
}

fn cause_text(failure: &Failure) -> String {
    if failure.detail.is_empty() {
        failure.cause.to_string()
    } else {
        format!("{} ({})", failure.cause, failure.detail)
    }
}

fn no_address(f: &mut fmt::Formatter<'_>, failures: &[(RecordType, DnsFailure)]) -> fmt::Result {
    let local = failures.iter().find_map(|(_, failure)| match failure {
        DnsFailure::Local(why) => Some(why),
        _ => None,
    });
    if let Some(why) = local {
        return write!(f, "DNS could not be asked: {why}");
    }
    f.write_str("DNS returned no address")?;
    for (n, (record_type, failure)) in failures.iter().enumerate() {
        f.write_str(if n == 0 { ": " } else { ", " })?;
        write!(f, "{} {}", record_type.name(), dns_text(failure))?;
    }
    let has = |expected: DnsFailure| failures.iter().any(|(_, failure)| *failure == expected);
    f.write_str(if has(DnsFailure::NoSuchName) {
        "; check the spelling of the name"
    } else if has(DnsFailure::Unreachable) || has(DnsFailure::Timeout) {
        "; check the resolver's configuration and that its server can be reached"
    } else {
        "; use another resolver, or specify the address"
    })
}

fn dns_text(failure: &DnsFailure) -> &'static str {
    match failure {
        DnsFailure::NoData => "has no record",
        DnsFailure::NoSuchName => "says there is no such name",
        DnsFailure::ServerFailure => "failed at the server",
        DnsFailure::Timeout => "was not answered in time",
        DnsFailure::Malformed => "had a malformed answer",
        DnsFailure::Unreachable => "could not be queried: no server is reachable",
        _ => "failed",
    }
}
