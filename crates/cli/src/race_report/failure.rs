//! The failure of a race without a winner: its kind and its message.

use eyas::CertificateFault;
use eyas::race::candidate::{Candidate, Security};
use eyas::race::dns::{DnsFailure, RecordType};
use eyas::race::evidence::{self, Cause, Level};
use eyas::race::io::RaceFailure;
use eyas::race::report::RaceJson;
use eyas::race::target::{Service, Target};

use super::RaceReport;
use crate::failure::{Failure, Kind};
use crate::shape::value;

/// The maximum number of candidates in a message; `--all` and `--json` show all of them.
const MAX_CANDIDATES: usize = 4;

impl RaceReport {
    /// Returns the failure if the race found no connection.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let setup = &self.trace.header.setup;
        let failure = self.report.failure.as_ref()?;
        let failure = race_failure(failure, &setup.target, setup.policy.exhaustive);
        Some(failure.with_details(value(&RaceJson::from(&self.report))))
    }
}

/// Returns the failure; `is_explained` if the failures of all candidates are shown anyway.
fn race_failure(failure: &RaceFailure, target: &Target, is_explained: bool) -> Failure {
    match failure {
        RaceFailure::NoAddress(failures) => no_address(failures, target),
        RaceFailure::NoCandidate => {
            Failure::new(Kind::Connect, format!("no candidate is allowed for {target}"))
                .hint("eyas plan with the same flags shows why each candidate is omitted")
        }
        RaceFailure::AllFailed(attempts) => {
            let failures = attempts.iter().map(|(candidate, failure)| (candidate, Some(failure)));
            attempts_failure(Kind::Connect, failures.collect(), target, is_explained)
        }
        RaceFailure::Deadline(attempts) => {
            let failures =
                attempts.iter().map(|(candidate, failure)| (candidate, failure.as_ref()));
            attempts_failure(Kind::Timeout, failures.collect(), target, is_explained)
        }
        RaceFailure::NoNetwork => Failure::new(Kind::Connect, "there is no network")
            .hint("no address of this machine has a route; is it connected?"),
        _ => Failure::new(Kind::Interrupted, "cancelled"),
    }
}

fn no_address(failures: &[(RecordType, DnsFailure)], target: &Target) -> Failure {
    let has = |wanted: &DnsFailure| failures.iter().any(|(_, failure)| failure == wanted);
    let host = &target.host;
    if has(&DnsFailure::NoSuchName) {
        return Failure::new(Kind::Dns, format!("DNS reports that {host} does not exist"))
            .hint("is the name right? --dns-server ADDR asks another server");
    }
    let local = failures.iter().find_map(|(_, failure)| match failure {
        DnsFailure::Local(why) => Some(why),
        _ => None,
    });
    if let Some(why) = local {
        return Failure::new(Kind::Dns, format!("DNS could not be asked for {host}: {why}"));
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
    Failure::new(Kind::Dns, format!("DNS returned no address for {host} ({})", reported.join(", ")))
        .hint(hint)
}

type AttemptFailures<'a> = Vec<(&'a Candidate, Option<&'a evidence::Failure>)>;

fn attempts_failure(
    default_kind: Kind,
    mut attempts: AttemptFailures<'_>,
    target: &Target,
    is_explained: bool,
) -> Failure {
    // The candidate that came furthest is closest to success, so it is the most informative. One
    // that was not answered in time says more of the peer than a fault of this host.
    let unanswered = (Level::Started, 1);
    attempts.sort_by_key(|(_, failure)| std::cmp::Reverse(failure.map_or(unanswered, rank)));
    let furthest = attempts.first().and_then(|(_, failure)| *failure);
    if let Some(failure) = furthest
        && let Some(fault) = CertificateFault::of(failure)
    {
        // A problem with the certificate is the same over every transport.
        let message = format!("cannot connect to {target}: {}", failure.detail);
        return Failure::new(Kind::Certificate, message).hint(certificate_hint(fault));
    }
    let kind = furthest.map_or(default_kind, kind);
    let message = format!("cannot connect to {target}: {}", failures_of(&attempts));
    let hint = match furthest.map(|failure| failure.cause) {
        Some(Cause::Certificate) => {
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
fn rank(failure: &evidence::Failure) -> (Level, u8) {
    let specificity = match failure.cause {
        Cause::Certificate => 5,
        Cause::Tls => 4,
        Cause::Protocol | Cause::Reset => 3,
        Cause::Refused => 2,
        Cause::Unreachable | Cause::Silent | Cause::Deadline => 1,
        _ => 0,
    };
    (failure.reached, specificity)
}

fn kind(failure: &evidence::Failure) -> Kind {
    match failure.cause {
        // The server's certificate was handled before: here it rejected ours, or the lack of one.
        Cause::Certificate | Cause::Tls => Kind::Tls,
        Cause::Protocol => Kind::Protocol,
        Cause::Reset if failure.reached >= Level::Transport => Kind::Tls,
        Cause::Silent | Cause::Deadline => Kind::Timeout,
        _ => Kind::Connect,
    }
}

fn hint(kind: Kind, target: &Target, is_explained: bool) -> String {
    match kind {
        Kind::Tls => "does the server speak TLS at that port? http:// goes without".to_owned(),
        Kind::Timeout => "--connect-timeout gives it more time".to_owned(),
        _ if is_explained => "is the port right, and does the server run?".to_owned(),
        _ => format!("eyas race --all {} shows why each candidate fails", as_argument(target)),
    }
}

/// Returns the target as entered for `eyas race`, with the necessary flags.
fn as_argument(target: &Target) -> String {
    let is_plain = target.security == Security::None;
    match &target.service {
        Service::Plain { transports, alpn } => {
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
    use eyas::race::candidate::Transport;
    use eyas::race::target::Host;

    use super::*;

    #[test]
    fn a_query_that_this_host_could_not_send_says_nothing_of_the_name() {
        let target = Target::https(Host::parse("a.test").expect("a host"), 443);
        let why = "Network is unreachable: this host has no route to the name server";
        let local = DnsFailure::Local(why.to_owned());
        let failures = vec![(RecordType::Aaaa, local.clone()), (RecordType::A, local)];
        let failure = race_failure(&RaceFailure::NoAddress(failures), &target, false);
        assert_eq!(failure.kind, Kind::Dns);
        let text = failure.to_string();
        assert!(text.contains(why) && text.matches(why).count() == 1, "{text}");
        assert!(!text.contains("no address") && failure.hint.is_none(), "{text}");
    }

    #[test]
    fn a_target_is_shown_as_it_can_be_entered() {
        let host = || Host::parse("a.test").expect("a name");
        let pipe = |security| {
            Target::plain(host(), 5000, vec![Transport::SctpUdp, Transport::Tcp], security)
        };
        let mut mail = pipe(Security::Tls);
        if let Service::Plain { alpn, .. } = &mut mail.service {
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
