//! The error of a race that ended without a connection.

use std::fmt;

use eyas_race::candidate::Candidate;
use eyas_race::dns::{DnsFailure, RecordType};
use eyas_race::evidence::{AttemptFailure, CertificateFault, FailureCause};
use eyas_race::io::RaceFailure;
use eyas_race::target::{Target, TargetHost};
use eyas_race::trace::Trace;

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
    pub fn attempts(&self) -> Vec<(&Candidate, Option<&AttemptFailure>)> {
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
    pub fn certificate(&self) -> Option<(CertificateFault, &AttemptFailure)> {
        let failures = self.attempts().into_iter().filter_map(|(_, failure)| failure);
        let mut faults =
            failures.filter_map(|failure| Some((failure.peer_certificate()?, failure)));
        faults.next()
    }

    /// Returns the failure of the first attempt whose peer rejected our certificate during the
    /// handshake, if nothing was wrong with the certificate of any peer. With TLS 1.3, a peer can
    /// also do so after its handshake, on the connection.
    pub fn rejected_by_peer(&self) -> Option<&AttemptFailure> {
        if self.certificate().is_some() {
            return None;
        }
        let mut failures = self.attempts().into_iter().filter_map(|(_, failure)| failure);
        failures.find(|failure| {
            failure.own_certificate().is_some_and(|fault| fault != CertificateFault::Missing)
        })
    }

    /// Returns the most informative cause: one reported by the peer itself (certificate, TLS,
    /// protocol) takes precedence over one from the network, and a refusal over silence.
    pub fn cause(&self) -> Option<FailureCause> {
        let causes = self
            .attempts()
            .into_iter()
            .map(|(_, failure)| failure.map_or(FailureCause::Deadline, |failure| failure.cause));
        causes.min_by_key(|cause| match cause {
            FailureCause::EchBroken => 0,
            FailureCause::Ech => 1,
            FailureCause::Certificate => 2,
            FailureCause::Tls => 3,
            FailureCause::Protocol => 4,
            FailureCause::Reset => 5,
            FailureCause::Refused => 6,
            FailureCause::Unreachable => 7,
            FailureCause::Silent => 8,
            FailureCause::Deadline => 9,
            _ => 10,
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
            TargetHost::Name(name) => write!(f, "cannot connect to {name}:{port}: ")?,
            TargetHost::Literal(ip, _) if ip.is_ipv6() => {
                write!(f, "cannot connect to [{ip}]:{port}: ")?
            }
            TargetHost::Literal(ip, _) => write!(f, "cannot connect to {ip}:{port}: ")?,
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
            Some(FailureCause::EchBroken) => "check whether a device on the path intercepts TLS",
            Some(FailureCause::Ech) => "check the ECH configuration in its HTTPS record",
            Some(FailureCause::Certificate) => "check the certificate presented to the peer",
            Some(FailureCause::Tls | FailureCause::Protocol) => {
                "check that the port serves the expected protocol"
            }
            Some(FailureCause::Refused) => "check the port, and that the service is running",
            Some(FailureCause::Unreachable) => "check the routes to it",
            Some(FailureCause::Silent | FailureCause::Deadline) => {
                "check that the host is up and no firewall drops the packets"
            }
            Some(FailureCause::Unsupported) => "allow a transport that this host supports",
            Some(FailureCause::Local) => "the fault is on this host, not at the peer",
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
        _ => "the server needs another certificate",
    }
}

fn cause_text(failure: &AttemptFailure) -> String {
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

#[cfg(test)]
mod tests {
    use eyas_race::candidate::{AddressOrigin, Security, Transport};
    use eyas_race::evidence::{CertificateFailure, EvidenceLevel, NetworkId};
    use eyas_race::io::NetworkView;
    use eyas_race::memory::MemoryView;
    use eyas_race::policy::Policy;
    use eyas_race::race::RaceSetup;
    use eyas_race::trace::{SCHEMA_VERSION, TraceHeader};

    use super::*;

    fn error(failure: RaceFailure) -> ConnectError {
        let host = TargetHost::Name("a.test".into());
        let setup = RaceSetup {
            target: Target::plain(host, 443, vec![Transport::Tcp], Security::Tls),
            policy: Policy::default(),
            view: MemoryView::empty(),
            network: NetworkView {
                id: NetworkId("home".into()),
                sources: Vec::new(),
                pref64: Vec::new(),
                lacking: Vec::new(),
            },
            seed: 1,
        };
        let started_at = std::time::Duration::ZERO;
        let header = TraceHeader { version: SCHEMA_VERSION, started_at, setup };
        ConnectError::new(failure, Trace { header, steps: Vec::new() })
    }

    fn candidate() -> Candidate {
        Candidate {
            address: ([192, 0, 2, 1], 443).into(),
            transport: Transport::Tcp,
            security: Security::Tls,
            alpn: vec![],
            ech: None,
            priority: None,
            origin: AddressOrigin::Caller,
        }
    }

    /// A failure of every kind, with a text as it is.
    fn failures() -> Vec<AttemptFailure> {
        let fault = |fault, cause, detail| {
            AttemptFailure::new(cause, EvidenceLevel::Transport, detail).with_fault(fault)
        };
        let of_peer = |which, detail| {
            fault(CertificateFailure::PeerCertificate(which), FailureCause::Certificate, detail)
        };
        let of_own =
            |which, cause, detail| fault(CertificateFailure::OwnCertificate(which), cause, detail);
        let without = |cause, detail| AttemptFailure::new(cause, EvidenceLevel::Transport, detail);
        use CertificateFault as Which;
        vec![
            of_peer(Which::Expired, "the certificate expired on 2002-01-01, 24 years ago"),
            of_peer(Which::NotYetValid, "the certificate is not valid before 2901-01-01"),
            of_peer(Which::WrongName, "the certificate is for a.test, not for b.test"),
            of_peer(Which::UnknownIssuer, "the certificate is self-signed, and not trusted here"),
            of_peer(Which::Revoked, "the certificate was revoked"),
            of_peer(Which::Other, "the certificate is not accepted"),
            of_own(
                Which::Missing,
                FailureCause::Certificate,
                "the peer ended the handshake: it requires a client certificate",
            ),
            of_own(
                Which::UnknownIssuer,
                FailureCause::Certificate,
                "the peer ended the handshake: it does not trust the issuer of our certificate",
            ),
            of_own(
                Which::Other,
                FailureCause::Tls,
                "the peer ended the DTLS session: it does not accept our certificate",
            ),
            without(FailureCause::Certificate, "the server presented no certificate"),
            without(
                FailureCause::Tls,
                "the peer supports none of the offered application protocols",
            ),
            without(FailureCause::Protocol, "the peer does not speak TLS"),
            without(FailureCause::Reset, "the peer closed the connection during the handshake"),
            without(FailureCause::Refused, "nothing is listening on this port"),
            without(FailureCause::Unreachable, "there is no route to it (ICMP from 198.51.100.1)"),
            without(FailureCause::Silent, "nothing came back"),
            without(FailureCause::Deadline, ""),
            without(FailureCause::Unsupported, "this host does not support it"),
            without(FailureCause::Local, "this host has no free local port"),
        ]
    }

    /// What is decided about a failed race with these failures, and the advice.
    type Decisions =
        (Option<CertificateFault>, Option<CertificateFault>, Option<FailureCause>, String);

    fn decisions(failures: Vec<AttemptFailure>) -> Decisions {
        let attempts = failures.into_iter().map(|failure| (candidate(), failure));
        let error = error(RaceFailure::AllFailed(attempts.collect()));
        let text = error.to_string();
        let advice = text.rsplit_once("; ").map_or("", |(_, advice)| advice);
        (
            error.certificate().map(|(fault, _)| fault),
            error.rejected_by_peer().and_then(AttemptFailure::own_certificate),
            error.cause(),
            advice.to_owned(),
        )
    }

    #[test]
    fn no_decision_depends_on_a_text() {
        let failures = failures();
        let garbled = |text: &str| text.chars().rev().collect::<String>();
        let texts =
            failures.iter().flat_map(|failure| [failure.detail.clone(), garbled(&failure.detail)]);
        let texts: Vec<String> = texts.collect();
        let mut known: Vec<Decisions> = Vec::new();
        for failure in &failures {
            let expected = decisions(vec![failure.clone()]);
            for detail in &texts {
                let changed = AttemptFailure { detail: detail.clone(), ..failure.clone() };
                assert_eq!(decisions(vec![changed]), expected, "{failure}, as {detail:?}");
            }
            known.push(expected);
        }
        // Each text was that of a failure about which something else is decided.
        known.dedup();
        assert!(known.len() > failures.len() * 2 / 3, "{known:?}");
        for detail in &texts {
            let all = |detail: Option<&String>| {
                let change = |failure: &AttemptFailure| AttemptFailure {
                    detail: detail.unwrap_or(&failure.detail).clone(),
                    ..failure.clone()
                };
                decisions(failures.iter().map(change).collect())
            };
            assert_eq!(all(Some(detail)), all(None), "{detail:?}");
        }
    }

    #[test]
    fn whose_certificate_is_at_fault_decides() {
        let of = |index: usize| {
            let (peer, own, ..) = decisions(vec![failures().swap_remove(index)]);
            (peer, own)
        };
        use CertificateFault as Which;
        assert_eq!(of(0), (Some(Which::Expired), None));
        // It is required, but was not rejected.
        assert_eq!(of(6), (None, None));
        assert_eq!(of(7), (None, Some(Which::UnknownIssuer)));
        assert_eq!(of(8), (None, Some(Which::Other)));
        assert_eq!(of(9), (None, None));
        let both = vec![failures().swap_remove(8), failures().swap_remove(0)];
        let (peer, own, cause, _) = decisions(both);
        assert_eq!(
            (peer, own, cause),
            (Some(Which::Expired), None, Some(FailureCause::Certificate))
        );
    }
}
