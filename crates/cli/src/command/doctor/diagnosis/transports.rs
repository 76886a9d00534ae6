//! The transports to the host.

use eyas::CertificateFault;
use eyas::race::candidate::{Security, Transport};
use eyas::race::evidence::{EvidenceLevel, FailureCause};

use super::super::findings::{AttemptFinding, AttemptResult, DoctorFindings, HostFindings};
use super::super::topic::TopicVerdict;
use super::NO_HOST;
use crate::race_report::certificate_hint;
use crate::terminal::time;

/// Why nothing is known about the host.
pub(super) const NO_TIME: &str = "there was no time for it: --timeout gives more";

/// The finding about a transport that was not tried because it would have carried the host's name in the clear.
const NOT_SENT: &str =
    "nothing was sent, since its name cannot be encrypted: --ech off examines it without that";

/// Returns how an attempt failed, as a participle about the host.
pub(super) const fn why(attempt: &AttemptFinding) -> &'static str {
    match attempt.outcome {
        AttemptResult::Ready(_) => "ready",
        AttemptResult::FellBack => "ready as TCP",
        AttemptResult::Failed {
            cause: FailureCause::Ech, reached: EvidenceLevel::Started, ..
        } => "not tried, since its name cannot be encrypted",
        AttemptResult::Failed { cause, certificate, .. } => match (cause, certificate) {
            (_, Some(_)) => "showing a certificate that is not accepted",
            (FailureCause::Refused, _) => "refusing",
            (FailureCause::Unreachable, _) => "unreachable",
            (FailureCause::Silent | FailureCause::Deadline, _) => "silent",
            (FailureCause::Reset, _) => "closing the connection",
            (FailureCause::Ech, _) => "not accepting the encrypted ClientHello",
            (FailureCause::EchBroken, _) => "breaking the encrypted ClientHello",
            (FailureCause::Tls, _) => "failing the TLS handshake",
            (FailureCause::Protocol, _) => "speaking another protocol",
            _ => "not to be reached by this machine",
        },
    }
}

/// The attempts over a transport, by what they say.
enum TransportOutcome<'a> {
    /// Nothing was examined, for this reason.
    Unknown(&'static str),
    /// None was made.
    Untried,
    /// One was ready.
    Ready(&'a AttemptFinding),
    /// None was ready; this one came furthest.
    Failed(&'a AttemptFinding, FailureCause, EvidenceLevel, Option<CertificateFault>),
}

fn outcome<'a>(findings: &'a DoctorFindings, transport: Transport) -> TransportOutcome<'a> {
    let Some(host) = &findings.host else { return TransportOutcome::Unknown(NO_HOST) };
    if host.attempts.is_none() {
        return TransportOutcome::Unknown(NO_TIME);
    }
    let tried = host.attempts_of(|attempt| attempt.transport == transport);
    let fastest = tried.iter().filter_map(|tried| Some((tried.ready()?, *tried)));
    if let Some((_, ready)) = fastest.min_by_key(|(took, _)| *took) {
        return TransportOutcome::Ready(ready);
    }
    let furthest = tried.into_iter().filter_map(|tried| match tried.outcome {
        AttemptResult::Failed { cause, reached, certificate } => {
            Some((tried, cause, reached, certificate))
        }
        _ => None,
    });
    match furthest.max_by_key(|(_, cause, reached, certificate)| {
        (certificate.is_some(), *reached, *cause == FailureCause::Refused)
    }) {
        Some((tried, cause, reached, certificate)) => {
            TransportOutcome::Failed(tried, cause, reached, certificate)
        }
        None => TransportOutcome::Untried,
    }
}

fn ready(attempt: &AttemptFinding) -> TopicVerdict {
    let took = attempt.ready().map(time).unwrap_or_default();
    let layer = match attempt.security {
        _ if attempt.transport.has_own_security() => "",
        Security::None => "",
        Security::Tls => " with TLS",
        Security::Dtls => " in DTLS",
    };
    let finding = format!("{}{layer} is ready in {took}", attempt.address);
    match attempt.short_hello {
        false => TopicVerdict::good(finding),
        true => TopicVerdict::broken(
            format!("{finding}, but only with a ClientHello of one packet"),
            "a device on the way drops the second packet of a ClientHello, or the server does not put \
             the two together: the key exchange does not hold against quantum computers",
        ),
    }
}

fn bad_certificate(attempt: &AttemptFinding, fault: CertificateFault) -> TopicVerdict {
    let fault_text = match fault {
        CertificateFault::Expired => "has expired",
        CertificateFault::NotYetValid => "is not valid yet",
        CertificateFault::WrongName => "is for another name",
        CertificateFault::UnknownIssuer => "is not trusted here",
        CertificateFault::Revoked => "was revoked",
        _ => "is not accepted",
    };
    TopicVerdict::broken(
        format!("the certificate of {} {fault_text}", attempt.address),
        certificate_hint(fault),
    )
}

/// Returns the attempt that came furthest, its cause, and how far it came; or the verdict, where that is not what decides.
fn unready(
    findings: &DoctorFindings,
    transport: Transport,
) -> Result<(&AttemptFinding, FailureCause, EvidenceLevel), TopicVerdict> {
    match outcome(findings, transport) {
        TransportOutcome::Unknown(why) => Err(TopicVerdict::unknown(why)),
        TransportOutcome::Untried => Err(untried(findings)),
        TransportOutcome::Ready(attempt) => Err(ready(attempt)),
        TransportOutcome::Failed(attempt, _, _, Some(fault)) => {
            Err(bad_certificate(attempt, fault))
        }
        TransportOutcome::Failed(attempt, cause, reached, None) => Ok((attempt, cause, reached)),
    }
}

/// Returns the verdict about TCP, and TLS over it.
pub(super) fn tcp(findings: &DoctorFindings) -> TopicVerdict {
    let (attempt, cause, reached) = match unready(findings, Transport::Tcp) {
        Ok(failed) => failed,
        Err(verdict) => return verdict,
    };
    let address = attempt.address;
    let is_up = reached >= EvidenceLevel::Transport;
    match cause {
        FailureCause::Ech if !is_up => TopicVerdict::broken(
            format!("{address} is {}", why(attempt)),
            "its record has no configuration for that, or one that cannot be read: --ech off examines it without \
             encrypting its name",
        ),
        FailureCause::Ech | FailureCause::EchBroken => TopicVerdict::broken(
            format!("{address} accepts TCP, and is then {}", why(attempt)),
            "does something on this network intercept TLS? --ech off examines it without encrypting its name",
        ),
        FailureCause::Tls | FailureCause::Certificate | FailureCause::Protocol => {
            TopicVerdict::broken(
                format!("{address} accepts TCP, but the TLS handshake fails"),
                "does it speak TLS at that port, and without a client certificate? http://HOST \
                 examines it without TLS",
            )
        }
        _ if is_up => TopicVerdict::broken(
            format!("{address} accepts TCP, and is then {}", why(attempt)),
            "a device on the way may intercept TLS or drop large packets: see path MTU, and try \
             from another network",
        ),
        FailureCause::Refused => TopicVerdict::broken(
            format!("{address} refuses TCP"),
            "is the port right, and does the server run?",
        ),
        cause if cause.is_of_this_host() => TopicVerdict::broken(
            format!("this machine cannot send TCP to {address}"),
            "check its firewall's rules for output, its addresses and its routes",
        ),
        _ => TopicVerdict::broken(
            format!("{address} is {} over TCP", why(attempt)),
            "is the host up, and does a firewall let TCP to that port through?",
        ),
    }
}

/// Returns the verdict about a transport of which no attempt was made.
fn untried(findings: &DoctorFindings) -> TopicVerdict {
    let host = findings.host.as_ref();
    match host.and_then(|host| host.name.as_ref()).is_some_and(|name| name.addresses.is_empty()) {
        true => TopicVerdict::unknown("there is no address to try"),
        false => TopicVerdict::absent("not among the candidates for this host"),
    }
}

/// Returns why QUIC is expected of the host, if it is.
fn expectation_of_quic(host: &HostFindings) -> Option<&'static str> {
    let mut records = host.name.iter().flat_map(|name| &name.https);
    let has_http3 = records.any(|record| record.alpn.iter().any(|protocol| protocol == "h3"));
    match (host.announces_http3 || has_http3, is_named(host, Transport::Quic)) {
        (true, _) => Some("the host announces HTTP/3"),
        (false, true) => Some("QUIC was asked for"),
        (false, false) => None,
    }
}

fn is_named(host: &HostFindings, transport: Transport) -> bool {
    host.named_transports.contains(&transport)
}

/// Returns the verdict about QUIC.
pub(super) fn quic(findings: &DoctorFindings) -> TopicVerdict {
    let (attempt, cause, reached) = match unready(findings, Transport::Quic) {
        Ok(failed) => failed,
        Err(verdict) => return verdict,
    };
    let expectation = findings.host.as_ref().and_then(expectation_of_quic);
    let (address, port) = (attempt.address, attempt.address.port());
    if reached > EvidenceLevel::Started {
        return TopicVerdict::broken(
            format!("{address} answers over UDP, but the handshake of QUIC does not complete"),
            "large datagrams may be dropped: see path MTU; TCP is used meanwhile",
        );
    }
    match (cause, expectation) {
        (FailureCause::Ech, _) => TopicVerdict::unknown(NOT_SENT),
        (cause, _) if cause.is_of_this_host() => TopicVerdict::broken(
            format!("this machine cannot send UDP to {address}"),
            "check its firewall's rules for output, its addresses and its routes; TCP is used \
             meanwhile",
        ),
        (FailureCause::Refused, Some(why)) => TopicVerdict::broken(
            format!("nothing listens on UDP port {port}, although {why}"),
            "start HTTP/3 on the host, or let UDP to that port through its firewall; TCP is used \
             meanwhile",
        ),
        (FailureCause::Refused, None) => {
            TopicVerdict::absent(format!("nothing listens on UDP port {port} of the host"))
        }
        (_, Some(why)) => TopicVerdict::broken(
            format!("blocked: packets to UDP port {port} are dropped, although {why}"),
            format!(
                "use TCP on this network, as eyas does by itself; to have QUIC, let UDP port \
                 {port} through the firewalls here and at the host"
            ),
        ),
        (_, None) => TopicVerdict::absent(format!(
            "no answer from UDP port {port}: dropped on the way, or no HTTP/3 there"
        )),
    }
}

/// Returns the verdict about Multipath TCP.
pub(super) fn mptcp(findings: &DoctorFindings) -> TopicVerdict {
    if let Some(why) = &findings.machine.no_mptcp {
        return TopicVerdict::absent(match cfg!(target_os = "linux") {
            true => format!(
                "this kernel has none ({why}); where it is only off, sysctl net.mptcp.enabled=1"
            ),
            false => why.clone(),
        });
    }
    let tried = findings
        .host
        .as_ref()
        .map(|host| host.attempts_of(|attempt| attempt.transport == Transport::Mptcp));
    let is_named = findings.host.as_ref().is_some_and(|host| is_named(host, Transport::Mptcp));
    let fell_back =
        tried.iter().flatten().find(|attempt| attempt.outcome == AttemptResult::FellBack);
    match outcome(findings, Transport::Mptcp) {
        TransportOutcome::Ready(attempt) => ready(attempt),
        TransportOutcome::Unknown(why) => TopicVerdict::unknown(match findings.host {
            None => format!("this kernel has it; whether a path keeps it {why}"),
            Some(_) => why.to_owned(),
        }),
        _ if fell_back.is_some() && is_named => TopicVerdict::broken(
            "falls back to TCP: the host or a device on the way does not keep its option",
            "turn it on at the host (net.mptcp.enabled=1, and a server that opens its sockets so)",
        ),
        _ if fell_back.is_some() => TopicVerdict::absent(
            "falls back to TCP: the host or a device on the way does not keep its option",
        ),
        TransportOutcome::Untried => untried(findings),
        TransportOutcome::Failed(..) => match outcome(findings, Transport::Tcp) {
            TransportOutcome::Ready(_) => TopicVerdict::broken(
                "fails where TCP works: a device on the way drops its packets",
                "do not prefer MPTCP on this network",
            ),
            _ => TopicVerdict::unknown("TCP does not work, either"),
        },
    }
}

/// Returns the verdict about SCTP, directly over IP or inside UDP.
pub(super) fn sctp(findings: &DoctorFindings, transport: Transport) -> TopicVerdict {
    let no_sctp = findings.machine.no_sctp.as_ref().filter(|_| transport == Transport::Sctp);
    if let Some(why) = no_sctp {
        return TopicVerdict::absent(why.clone());
    }
    let (attempt, cause, reached) = match outcome(findings, transport) {
        TransportOutcome::Unknown(why)
            if transport == Transport::Sctp && findings.host.is_none() =>
        {
            return TopicVerdict::unknown(format!("this machine has it; whether it passes {why}"));
        }
        TransportOutcome::Unknown(why) => return TopicVerdict::unknown(why),
        TransportOutcome::Untried => return untried(findings),
        TransportOutcome::Ready(attempt) => return ready(attempt),
        TransportOutcome::Failed(_, FailureCause::Ech, EvidenceLevel::Started, _) => {
            return TopicVerdict::unknown(NOT_SENT);
        }
        TransportOutcome::Failed(attempt, cause, reached, _) => (attempt, cause, reached),
    };
    // Who names SCTP means both ways, of which one is enough.
    let other = if transport == Transport::Sctp { Transport::SctpUdp } else { Transport::Sctp };
    let has_other = matches!(outcome(findings, other), TransportOutcome::Ready(_));
    let is_needed =
        findings.host.as_ref().is_some_and(|host| is_named(host, transport)) && !has_other;
    let is_answered = reached > EvidenceLevel::Started;
    let what = match (cause, is_answered) {
        (_, true) => format!("{} answers, though it is {}", attempt.address, why(attempt)),
        (FailureCause::Refused, _) => "the host has none at this port".to_owned(),
        _ => "no answer: dropped on the way, or the host has none".to_owned(),
    };
    match is_needed {
        // That it passes is what was to be found out.
        false if is_answered => TopicVerdict::good(what),
        true => TopicVerdict::broken(
            what,
            "does the server serve SCTP there? Many NATs and firewalls drop it over IP: inside UDP \
             (sctp-udp) it passes more of them",
        ),
        false => TopicVerdict::absent(what),
    }
}
