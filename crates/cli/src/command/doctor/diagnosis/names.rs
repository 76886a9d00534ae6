//! Name servers, what they let through, and the host's name.

use eyas::race::candidate::Security;
use eyas::race::dns::DnsFailure;
use eyas::race::evidence::{EvidenceLevel, FailureCause};
use eyas::{ServerEncryption, UnencryptedReason};

use super::super::findings::{
    AnswerFinding, AttemptResult, DoctorFindings, HostFindings, NameServerFinding,
};
use super::super::topic::TopicVerdict;
use super::NO_HOST;
use super::transports::NO_TIME;
use crate::terminal::{counted, time};

/// What to do about a name server that is of no use.
const OTHER_SERVER: &str = "set another name server on this machine, or name one: --dns-server \
                            ADDR or --doh-url URL with eyas";

/// Returns the verdict about the name servers.
pub(super) fn servers(findings: &DoctorFindings) -> TopicVerdict {
    if findings.name_servers.is_empty() {
        return none_examined();
    }
    let mut good = Vec::new();
    let mut bad = Vec::new();
    let mut advice = OTHER_SERVER;
    for finding in &findings.name_servers {
        let server = short(finding);
        match finding.answer() {
            _ if finding.is_truthful == Some(false) => {
                bad.push(format!("{server} makes up addresses of ipv4only.arpa"));
                advice = "something answers in the place of the name server: if the network wants \
                          you to log in, open any http:// page in a browser; if not, name another \
                          server with --doh-url URL, which cannot be intercepted";
            }
            Some(answer) => good.push(format!("{server} in {}", time(answer.took))),
            None => bad.push(format!("{server} {}", unanswered(finding))),
        }
    }
    let is_good = bad.is_empty();
    bad.extend(good);
    match is_good {
        true => TopicVerdict::good(bad.join(", ")),
        false => TopicVerdict::broken(bad.join(", "), advice),
    }
}

fn none_examined() -> TopicVerdict {
    TopicVerdict::unknown("there is none that can be examined by itself")
}

/// Returns the server without the usual port.
fn short(finding: &NameServerFinding) -> String {
    match finding.server.port() {
        53 => finding.server.ip().to_string(),
        _ => finding.server.to_string(),
    }
}

/// Describes a server that answers nothing in datagrams.
fn unanswered(finding: &NameServerFinding) -> &'static str {
    if finding.all().any(|answers| answers.stream.is_answered()) {
        return "answers over TCP only";
    }
    failure(finding.common.datagram.records.as_ref().err())
}

const fn failure(failure: Option<&DnsFailure>) -> &'static str {
    match failure {
        Some(DnsFailure::Timeout) => "does not answer",
        Some(DnsFailure::Unreachable) => "cannot be reached",
        Some(DnsFailure::Malformed) => "answers what cannot be read",
        Some(DnsFailure::Local(_)) => "cannot be asked by this machine",
        _ => "answers, but resolves nothing",
    }
}

/// Returns the verdict about DNS over TCP, which answers need that do not fit into a datagram.
pub(super) fn over_tcp(findings: &DoctorFindings) -> TopicVerdict {
    if findings.name_servers.is_empty() {
        return none_examined();
    }
    let usable = findings.name_servers.iter().filter(|server| server.answer().is_some());
    let (good, bad): (Vec<_>, Vec<_>) =
        usable.partition(|server| server.all().any(|answers| answers.stream.is_answered()));
    let names = |servers: &[&NameServerFinding]| {
        servers.iter().map(|server| short(server)).collect::<Vec<_>>().join(", ")
    };
    if !bad.is_empty() {
        return TopicVerdict::broken(
            format!("{}: no answer over TCP", names(&bad)),
            "answers that do not fit into a datagram are lost: let TCP port 53 through, or set \
             another name server",
        );
    }
    match good.is_empty() {
        true => TopicVerdict::unknown("no name server answers"),
        false => TopicVerdict::good(format!("{}: large answers arrive", names(&good))),
    }
}

/// Returns the verdict about the encrypted resolvers that the name servers designate.
pub(super) fn encrypted(findings: &DoctorFindings) -> TopicVerdict {
    if findings.name_servers.is_empty() {
        return none_examined();
    }
    let (mut designated, mut absent, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for finding in &findings.name_servers {
        let server = short(finding);
        match &finding.encryption {
            Some(ServerEncryption::Designated(resolver)) => {
                designated.push(format!("{server} designates {resolver}"));
            }
            Some(ServerEncryption::Absent(UnencryptedReason::NotDesignated)) => {
                absent.push(format!("{server} designates no encrypted resolver"));
            }
            Some(ServerEncryption::Absent(UnencryptedReason::NotAnswered)) | None => {
                absent.push(format!("{server} does not say"));
            }
            Some(ServerEncryption::Absent(why)) => broken.push(format!("{server}: {why}")),
            Some(_) => absent.push(format!("{server} was not asked")),
        }
    }
    let all: Vec<String> = [&broken, &designated, &absent].into_iter().flatten().cloned().collect();
    let text = all.join(", ");
    match (broken.is_empty(), designated.is_empty()) {
        (false, _) => TopicVerdict::broken(
            text,
            "let UDP and TCP port 853 and TCP port 443 through to the resolver; if it cannot be \
             verified, its certificate needs the address of the name server. Until then, name one: \
             --doh-url URL with eyas",
        ),
        (true, false) => TopicVerdict::good(text),
        (true, true) => TopicVerdict::absent(text),
    }
}

/// Returns the verdict about HTTPS records.
pub(super) fn https_records(findings: &DoctorFindings) -> TopicVerdict {
    let withheld: Vec<String> = findings.name_servers.iter().filter_map(withholds).collect();
    if !withheld.is_empty() {
        return TopicVerdict::broken(
            withheld.join(", "),
            format!(
                "without these records, HTTP/3 and ECH are found late or never, and programs \
                 wait for the answer: {OTHER_SERVER}"
            ),
        );
    }
    let Some(host) = &findings.host else {
        return match findings.name_servers.iter().any(|server| server.answer().is_some()) {
            true => TopicVerdict::good("the name servers answer questions for them"),
            false => TopicVerdict::unknown("no name server answers"),
        };
    };
    let records = host.name.iter().flat_map(|name| &name.https);
    let protocols: Vec<&str> =
        records.clone().flat_map(|record| &record.alpn).map(String::as_str).collect();
    let count = records.count() as u64;
    match &host.name {
        None => TopicVerdict::absent("an address has none"),
        Some(name) if !name.is_from_dns => {
            TopicVerdict::absent(format!("none: the name comes from {}", name.source))
        }
        Some(_) if count > 0 => {
            let protocols = match protocols.is_empty() {
                true => "no protocol named".to_owned(),
                false => protocols.join(", "),
            };
            TopicVerdict::good(format!(
                "{} of {}: {protocols}",
                counted(count, "record"),
                host.host
            ))
        }
        Some(_) => TopicVerdict::absent(format!("{} has none", host.host)),
    }
}

/// Returns why the HTTPS records of a server are missing, if they are.
fn withholds(finding: &NameServerFinding) -> Option<String> {
    let is_withheld = |answer: &AnswerFinding| match answer.records {
        Err(DnsFailure::Timeout | DnsFailure::Unreachable) => Some("swallows questions for them"),
        Err(DnsFailure::ServerFailure) => Some("refuses questions for them"),
        Err(DnsFailure::Malformed) => Some("answers what cannot be read"),
        _ => None,
    };
    // Whether it knows the name at all is said by the addresses.
    let answered = finding.all().filter(|answers| answers.datagram.is_answered());
    let why = answered.filter_map(|answers| is_withheld(&answers.https)).next()?;
    Some(format!("{} {why}", short(finding)))
}

/// Returns the verdict about Encrypted Client Hello.
pub(super) fn ech(findings: &DoctorFindings) -> TopicVerdict {
    let Some(host) = &findings.host else { return TopicVerdict::unknown(NO_HOST) };
    if let Some(cause) = ech_failure(host) {
        let how = if cause == FailureCause::Ech { "not accepted" } else { "broken on the way" };
        return TopicVerdict::broken(
            format!("the encrypted ClientHello to {} is {how}", host.host),
            "does something intercept TLS? Try from another network; --ech off sends its name in the clear",
        );
    }
    let records: Vec<_> = host.name.iter().flat_map(|name| &name.https).collect();
    if records.iter().any(|record| record.has_ech) {
        return TopicVerdict::good(format!("the configuration of {} arrives", host.host));
    }
    let is_withheld = findings.name_servers.iter().any(|server| withholds(server).is_some());
    match records.is_empty() {
        true if is_withheld && host.name.is_some() => {
            TopicVerdict::unknown("HTTPS records, which would have it, do not arrive")
        }
        true => TopicVerdict::absent("none without an HTTPS record"),
        false => TopicVerdict::absent(format!("{} offers none", host.host)),
    }
}

/// Returns the cause of an attempt that failed for ECH.
fn ech_failure(host: &HostFindings) -> Option<FailureCause> {
    let has_configs = host.name.iter().flat_map(|name| &name.https).any(|record| record.has_ech);
    let over_tls = host.attempts_of(|attempt| attempt.security == Security::Tls);
    let is_reached = over_tls.iter().any(|attempt| attempt.ready().is_some());
    host.attempts.iter().flatten().find_map(|attempt| match attempt.outcome {
        // Nothing is sent over DTLS, which has no ECH, nor without the configurations if ECH is required; or else they
        // cannot be read.
        AttemptResult::Failed {
            cause: FailureCause::Ech, reached: EvidenceLevel::Started, ..
        } if is_reached || !has_configs || attempt.security != Security::Tls => None,
        AttemptResult::Failed {
            cause: cause @ (FailureCause::Ech | FailureCause::EchBroken),
            ..
        } => Some(cause),
        _ => None,
    })
}

/// Returns the verdict about the host's name.
pub(super) fn name(findings: &DoctorFindings) -> TopicVerdict {
    let Some(host) = &findings.host else { return TopicVerdict::unknown(NO_HOST) };
    let Some(name) = &host.name else { return TopicVerdict::absent("an address needs none") };
    let source = &name.source;
    if !name.addresses.is_empty() {
        let count = match name.addresses.len() {
            1 => "1 address".to_owned(),
            count => format!("{count} addresses"),
        };
        return TopicVerdict::good(format!("{count} from {source}"));
    }
    let advice = match &name.failure {
        None => return TopicVerdict::unknown(NO_TIME),
        Some(DnsFailure::NoSuchName) => "is the name right? --dns-server ADDR asks another server",
        Some(DnsFailure::NoData) => "ask the host's operator: the name has no address",
        Some(_) => "see what is said about the name servers",
    };
    let why = match &name.failure {
        Some(DnsFailure::NoSuchName) => "it does not exist".to_owned(),
        Some(DnsFailure::NoData) => "it has no address".to_owned(),
        other => {
            let name = other.as_ref().map_or("no answer", DnsFailure::name);
            format!("no address ({name})")
        }
    };
    TopicVerdict::broken(format!("{}: {why}, from {source}", host.host), advice)
}
