//! The failure of a race without a winner: its kind and its message.

use eyas::CertificateFault;
use eyas::race::candidate::{Candidate, Security};
use eyas::race::dns::{DnsFailure, RecordType};
use eyas::race::evidence::{self, EvidenceLevel, FailureCause};
use eyas::race::io::RaceFailure;
use eyas::race::report::RaceJson;
use eyas::race::target::{Target, TargetService};

use super::ReplayedRace;
use crate::failure::{Failure, FailureKind};
use crate::shape::value;

/// The maximum number of candidates in a message; `--all` and `--json` show all of them.
const MAX_CANDIDATES: usize = 4;

impl ReplayedRace {
    /// Returns the failure if the race found no connection.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let setup = &self.trace.header.setup;
        let failure = self.report.failure.as_ref()?;
        let failure = race_failure(failure, &setup.target, setup.policy.exhaustive);
        Some(failure.with_details(value(&RaceJson::from(&self.report))))
    }

    /// Returns the failure of the attempt that the failure of the race reports, if that is a problem
    /// with the presented certificate.
    pub(super) fn reported_certificate(&self) -> Option<&evidence::AttemptFailure> {
        let failure = self.report.failure.as_ref()?;
        let furthest = by_distance(attempts_of(failure)).first().and_then(|(_, failure)| *failure);
        furthest.filter(|failure| failure.peer_certificate().is_some())
    }
}

/// Returns the failure; `is_explained` if the failures of all candidates are shown anyway.
fn race_failure(failure: &RaceFailure, target: &Target, is_explained: bool) -> Failure {
    match failure {
        RaceFailure::NoAddress(failures) => no_address(failures, target),
        RaceFailure::NoCandidate => {
            Failure::new(FailureKind::Connect, format!("no candidate is allowed for {target}"))
                .hint("eyas plan with the same flags shows why each candidate is omitted")
        }
        RaceFailure::AllFailed(_) => {
            attempts_failure(FailureKind::Connect, attempts_of(failure), target, is_explained)
        }
        RaceFailure::Deadline(_) => {
            attempts_failure(FailureKind::Timeout, attempts_of(failure), target, is_explained)
        }
        RaceFailure::NoNetwork => Failure::new(FailureKind::Connect, "there is no network")
            .hint("no address of this machine has a route; is it connected?"),
        _ => Failure::new(FailureKind::Interrupted, "cancelled"),
    }
}

fn no_address(failures: &[(RecordType, DnsFailure)], target: &Target) -> Failure {
    let has = |wanted: &DnsFailure| failures.iter().any(|(_, failure)| failure == wanted);
    let host = &target.host;
    if has(&DnsFailure::NoSuchName) {
        return Failure::new(FailureKind::Dns, format!("DNS reports that {host} does not exist"))
            .hint("is the name right? --dns-server ADDR asks another server");
    }
    let local = failures.iter().find_map(|(_, failure)| match failure {
        DnsFailure::Local(why) => Some(why),
        _ => None,
    });
    if let Some(why) = local {
        return Failure::new(FailureKind::Dns, format!("DNS could not be asked for {host}: {why}"));
    }
    let reported: Vec<String> = failures
        .iter()
        .map(|(record_type, failure)| format!("{}: {}", record_type.name(), failure.name()))
        .collect();
    let hint = if failures.iter().all(|(_, failure)| *failure == DnsFailure::NoData) {
        "the name exists but has no address of the requested family"
    } else {
        "is the resolver up? --dns-server ADDR asks another one, --resolve none at all"
    };
    Failure::new(
        FailureKind::Dns,
        format!("DNS returned no address for {host} ({})", reported.join(", ")),
    )
    .hint(hint)
}

type AttemptFailures<'a> = Vec<(&'a Candidate, Option<&'a evidence::AttemptFailure>)>;

/// Returns the attempts of a race, and how those failed that were answered in time.
fn attempts_of(failure: &RaceFailure) -> AttemptFailures<'_> {
    match failure {
        RaceFailure::AllFailed(attempts) => {
            attempts.iter().map(|(candidate, failure)| (candidate, Some(failure))).collect()
        }
        RaceFailure::Deadline(attempts) => {
            attempts.iter().map(|(candidate, failure)| (candidate, failure.as_ref())).collect()
        }
        _ => Vec::new(),
    }
}

/// Sorts attempts: the candidate that came furthest is closest to success, so it is the most
/// informative. One that was not answered in time says more of the peer than a fault of this host.
fn by_distance(mut attempts: AttemptFailures<'_>) -> AttemptFailures<'_> {
    let unanswered = (EvidenceLevel::Started, 1);
    attempts.sort_by_key(|(_, failure)| std::cmp::Reverse(failure.map_or(unanswered, rank)));
    attempts
}

fn attempts_failure(
    default_kind: FailureKind,
    attempts: AttemptFailures<'_>,
    target: &Target,
    is_explained: bool,
) -> Failure {
    let attempts = by_distance(attempts);
    let furthest = attempts.first().and_then(|(_, failure)| *failure);
    if let Some(failure) = furthest
        && let Some(fault) = failure.peer_certificate()
    {
        // A problem with the certificate is the same over every transport.
        let message = format!("cannot connect to {target}: {}", failure.detail);
        return Failure::new(FailureKind::Certificate, message).hint(certificate_hint(fault));
    }
    let kind = furthest.map_or(default_kind, kind);
    let message = format!("cannot connect to {target}: {}", failures_of(&attempts));
    let hint = match furthest.map(|failure| failure.cause) {
        Some(FailureCause::Ech) => {
            "--ech off sends its name in the clear, as seen by everybody on the path".to_owned()
        }
        Some(FailureCause::EchBroken) => {
            "does something on this network intercept TLS? Another network tells; --ech off sends the name in the \
             clear"
                .to_owned()
        }
        Some(FailureCause::Certificate) => {
            "if it requires a client certificate: --cert FILE --key FILE".to_owned()
        }
        Some(cause) if cause.is_of_this_host() => {
            "the fault is on this host, so nothing is remembered about the peer".to_owned()
        }
        _ => hint(kind, target, is_explained),
    };
    Failure::new(kind, message).hint(hint)
}

/// Describes the failures of the candidates, combining equal ones.
fn failures_of(attempts: &AttemptFailures<'_>) -> String {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    for (candidate, failure) in attempts.iter().take(MAX_CANDIDATES) {
        let what = match failure {
            None => "no answer in time".to_owned(),
            // The senders of the errors are shown only in a table.
            Some(failure) => {
                let what = failure.to_string();
                what.split_once(" (ICMP from ").map_or(&*what, |(what, _)| what).to_owned()
            }
        };
        match groups.iter_mut().find(|(_, known)| *known == what) {
            Some((candidates, _)) => candidates.push(candidate.to_string()),
            None => groups.push((vec![candidate.to_string()], what)),
        }
    }
    let reported =
        groups.iter().map(|(candidates, what)| format!("{}: {what}", candidates.join(", ")));
    let mut reported: Vec<String> = reported.collect();
    if attempts.len() > MAX_CANDIDATES {
        reported.push(format!("and {} more", attempts.len() - MAX_CANDIDATES));
    }
    reported.join("; ")
}

/// Returns how informative a failure is: by its level, then by its specificity.
fn rank(failure: &evidence::AttemptFailure) -> (EvidenceLevel, u8) {
    let specificity = match failure.cause {
        FailureCause::EchBroken => 7,
        FailureCause::Ech => 6,
        FailureCause::Certificate => 5,
        FailureCause::Tls => 4,
        FailureCause::Protocol | FailureCause::Reset => 3,
        FailureCause::Refused => 2,
        FailureCause::Unreachable | FailureCause::Silent | FailureCause::Deadline => 1,
        _ => 0,
    };
    (failure.reached, specificity)
}

fn kind(failure: &evidence::AttemptFailure) -> FailureKind {
    match failure.cause {
        // The server's certificate was handled before: here it rejected ours, or the lack of one.
        cause if cause.is_of_security() => FailureKind::Tls,
        // What comes instead of a TLS handshake, as in curl.
        FailureCause::Protocol if failure.reached == EvidenceLevel::Transport => FailureKind::Tls,
        FailureCause::Protocol => FailureKind::Protocol,
        FailureCause::Reset if failure.reached >= EvidenceLevel::Transport => FailureKind::Tls,
        FailureCause::Silent | FailureCause::Deadline => FailureKind::Timeout,
        _ => FailureKind::Connect,
    }
}

fn hint(kind: FailureKind, target: &Target, is_explained: bool) -> String {
    match kind {
        FailureKind::Tls => {
            "does the server speak TLS at that port? http:// goes without".to_owned()
        }
        FailureKind::Timeout => "--connect-timeout gives it more time".to_owned(),
        _ if is_explained => "is the port right, and does the server run?".to_owned(),
        _ => format!("eyas race --all {} shows why each candidate fails", as_argument(target)),
    }
}

/// Returns the target as entered for `eyas race`, with the necessary flags.
fn as_argument(target: &Target) -> String {
    let is_plain = target.security == Security::None;
    match &target.service {
        TargetService::Plain { transports, alpn } => {
            let names: Vec<&str> = transports.iter().map(|transport| transport.name()).collect();
            let plain = if is_plain { "--plain " } else { "" };
            let alpn = match alpn.is_empty() {
                true => String::new(),
                false => format!("--alpn {} ", alpn.join(",")),
            };
            format!("{plain}{alpn}{}://{target}", names.join("+"))
        }
        _ if is_plain => format!("http://{target}/"),
        _ => target.to_string(),
    }
}

/// Returns the advice about a certificate that is not accepted.
pub(crate) const fn certificate_hint(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::Expired => {
            "the server needs a new one, or this machine's clock is wrong; -k accepts any"
        }
        CertificateFault::NotYetValid => "is this machine's clock right? -k accepts any",
        CertificateFault::WrongName => "use a name that it is for; -k accepts any",
        CertificateFault::UnknownIssuer => {
            "--cacert FILE trusts the certificates in FILE, such as its issuer's; -k accepts any"
        }
        _ => "the server needs another one; -k accepts any",
    }
}

#[cfg(test)]
mod tests {
    use eyas::race::candidate::{AddressOrigin, Transport};
    use eyas::race::evidence::CertificateFailure;
    use eyas::race::target::TargetHost;

    use super::*;

    const CAUSES: [FailureCause; 14] = [
        FailureCause::Refused,
        FailureCause::Unreachable,
        FailureCause::Silent,
        FailureCause::Reset,
        FailureCause::Tls,
        FailureCause::Certificate,
        FailureCause::Ech,
        FailureCause::EchBroken,
        FailureCause::LongClientHello,
        FailureCause::Protocol,
        FailureCause::Deadline,
        FailureCause::FellBack,
        FailureCause::Unsupported,
        FailureCause::Local,
    ];

    const CERTIFICATE_FAULTS: [CertificateFault; 7] = [
        CertificateFault::Expired,
        CertificateFault::NotYetValid,
        CertificateFault::WrongName,
        CertificateFault::UnknownIssuer,
        CertificateFault::Revoked,
        CertificateFault::Missing,
        CertificateFault::Other,
    ];

    /// Texts of failures as they are, each of another kind; reversed, they say nothing.
    const TEXTS: [&str; 12] = [
        "the certificate expired on 2002-01-01, 24 years ago (subject and issuer \"a\")",
        "the certificate depends on one that is not valid before 2901-01-01, in 875 years",
        "the certificate is for b.test, not for a.test (subject \"b\", issuer \"c\")",
        "the certificate is self-signed, and not trusted here (subject and issuer \"a\")",
        "the certificate is not accepted",
        "the peer ended the handshake: it requires a client certificate",
        "the peer ended the DTLS session: it does not accept our certificate",
        "invalid peer certificate: Expired",
        "nothing is listening on this port (ICMP from 198.51.100.1)",
        "this host does not let the packets out; check its firewall's rules for output",
        "the proxy does not answer",
        "",
    ];

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

    /// Returns the exit code and the advice for a race with this failure.
    fn decisions(failure: &evidence::AttemptFailure) -> [(u8, Option<String>); 2] {
        let target = Target::https(TargetHost::parse("a.test").expect("a host"), 443);
        let failed = RaceFailure::AllFailed(vec![(candidate(), failure.clone())]);
        let late = vec![(candidate(), Some(failure.clone())), (candidate(), None)];
        [failed, RaceFailure::Deadline(late)].map(|failure| {
            let failure = race_failure(&failure, &target, false);
            (failure.kind.exit_code(), failure.hint)
        })
    }

    #[test]
    fn no_exit_code_and_no_advice_depends_on_a_text() {
        let of_certificates = CERTIFICATE_FAULTS.iter().flat_map(|fault| {
            [
                Some(CertificateFailure::PeerCertificate(*fault)),
                Some(CertificateFailure::OwnCertificate(*fault)),
            ]
        });
        let faults: Vec<Option<CertificateFailure>> = of_certificates.chain([None]).collect();
        let levels = [
            EvidenceLevel::Started,
            EvidenceLevel::Answered,
            EvidenceLevel::Transport,
            EvidenceLevel::Security,
        ];
        let mut codes = std::collections::BTreeSet::new();
        for (cause, level) in CAUSES.iter().flat_map(|cause| levels.map(|level| (*cause, level))) {
            for fault in &faults {
                let failure = |detail: &str| evidence::AttemptFailure {
                    fault: *fault,
                    ..evidence::AttemptFailure::new(cause, level, detail)
                };
                let expected = decisions(&failure("x"));
                for text in TEXTS {
                    let reversed: String = text.chars().rev().collect();
                    for text in [text, &reversed] {
                        let failure = failure(text);
                        assert_eq!(decisions(&failure), expected, "{failure:?}");
                    }
                }
                codes.extend(expected.map(|(code, _)| code));
            }
        }
        let kinds = [
            FailureKind::Connect,
            FailureKind::Tls,
            FailureKind::Certificate,
            FailureKind::Timeout,
            FailureKind::Protocol,
        ];
        assert_eq!(codes, kinds.map(|kind| kind.exit_code()).into_iter().collect());
    }

    #[test]
    fn the_fault_of_a_certificate_decides_on_exit_code_and_advice() {
        let of = |fault: Option<CertificateFailure>, cause| {
            let failure = evidence::AttemptFailure::new(cause, EvidenceLevel::Transport, "x");
            decisions(&evidence::AttemptFailure { fault, ..failure })[0].clone()
        };
        let advice: std::collections::BTreeSet<_> = CERTIFICATE_FAULTS
            .iter()
            .map(|fault| {
                of(Some(CertificateFailure::PeerCertificate(*fault)), FailureCause::Certificate)
            })
            .map(|(code, hint)| {
                assert_eq!(code, FailureKind::Certificate.exit_code());
                hint
            })
            .collect();
        assert_eq!(advice.len(), 5, "{advice:?}");
        let tls = FailureKind::Tls.exit_code();
        let own = CertificateFailure::OwnCertificate(CertificateFault::Expired);
        assert_eq!(of(Some(own), FailureCause::Certificate).0, tls);
        assert_eq!(of(Some(own), FailureCause::Tls).0, tls);
        assert_eq!(of(None, FailureCause::Certificate).0, tls);
    }

    #[test]
    fn a_query_that_this_host_could_not_send_says_nothing_of_the_name() {
        let target = Target::https(TargetHost::parse("a.test").expect("a host"), 443);
        let why = "Network is unreachable: this host has no route to the name server";
        let local = DnsFailure::Local(why.to_owned());
        let failures = vec![(RecordType::Aaaa, local.clone()), (RecordType::A, local)];
        let failure = race_failure(&RaceFailure::NoAddress(failures), &target, false);
        assert_eq!(failure.kind, FailureKind::Dns);
        let text = failure.to_string();
        assert!(text.contains(why) && text.matches(why).count() == 1, "{text}");
        assert!(!text.contains("no address") && failure.hint.is_none(), "{text}");
    }

    #[test]
    fn a_target_is_shown_as_it_can_be_entered() {
        let host = || TargetHost::parse("a.test").expect("a name");
        let pipe = |security| {
            Target::plain(host(), 5000, vec![Transport::SctpUdp, Transport::Tcp], security)
        };
        let mut mail = pipe(Security::Tls);
        if let TargetService::Plain { alpn, .. } = &mut mail.service {
            alpn.push("imap".into());
        }
        for (target, wanted) in [
            (Target::https(host(), 443), "a.test:443"),
            (Target::http(host(), 80), "http://a.test:80/"),
            (pipe(Security::Tls), "sctp-udp+tcp://a.test:5000"),
            (pipe(Security::None), "--plain sctp-udp+tcp://a.test:5000"),
            (mail, "--alpn imap sctp-udp+tcp://a.test:5000"),
        ] {
            assert_eq!(as_argument(&target), wanted);
        }
    }
}
