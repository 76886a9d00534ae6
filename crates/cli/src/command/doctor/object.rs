//! The report as an object, for `--json`.

use std::time::Duration;

use eyas::race::evidence::FailureCause;
use serde_json::{Value, json};

use super::findings::{
    AnswerFinding, AnswerFindings, AttemptFinding, AttemptResult, DoctorFindings, HostFindings,
    NameServerFinding, PortalAnswer,
};
use super::topic::{Topic, TopicVerdict};
use crate::shape::{EncryptionShape, millis, value};
use crate::version;

/// Returns the object.
pub(super) fn object(
    findings: &DoctorFindings,
    verdicts: &[(Topic, TopicVerdict)],
    took: Duration,
) -> Value {
    let machine = &findings.machine;
    let topics = verdicts.iter().map(|(topic, verdict)| {
        json!({
            "topic": topic.name(),
            "verdict": verdict.kind.name(),
            "finding": verdict.finding,
            "advice": verdict.advice,
        })
    });
    let addresses = machine
        .addresses
        .iter()
        .map(|own| json!({ "address": own.address.to_string(), "routed": own.routed }));
    let servers = findings.name_servers.iter().map(server);
    json!({
        "eyas": version::to_json(),
        "network": machine.network,
        "took_ms": millis(took),
        "topics": topics.collect::<Vec<_>>(),
        "addresses": addresses.collect::<Vec<_>>(),
        "name_servers": servers.collect::<Vec<_>>(),
        "host": findings.host.as_ref().map(host),
        "portal": findings.portal.as_ref().map(|portal| {
            let (status, redirects_to) = match &portal.answer {
                PortalAnswer::Nothing => (None, None),
                PortalAnswer::Response { status, redirects_to } => {
                    (Some(*status), redirects_to.clone())
                }
            };
            json!({ "host": portal.host, "status": status, "redirects_to": redirects_to })
        }),
    })
}

fn server(finding: &NameServerFinding) -> Value {
    json!({
        "server": finding.server.to_string(),
        "ipv4only_arpa": answers(&finding.common),
        "host": finding.host.as_ref().map(answers),
        "truthful": finding.is_truthful,
        "nat64": finding
            .nat64
            .iter()
            .map(|(prefix, len)| format!("{prefix}/{len}"))
            .collect::<Vec<_>>(),
        "encryption": finding
            .encryption
            .as_ref()
            .map(|encryption| value(&EncryptionShape::new(finding.server, encryption))),
    })
}

fn answers(answers: &AnswerFindings) -> Value {
    json!({
        "datagram": answer(&answers.datagram),
        "tcp": answer(&answers.stream),
        "https": answer(&answers.https),
    })
}

fn answer(answer: &AnswerFinding) -> Value {
    json!({
        "records": answer.records.as_ref().ok(),
        "failure": answer.records.as_ref().err().map(|failure| failure.name()),
        "took_ms": millis(answer.took),
    })
}

fn host(host: &HostFindings) -> Value {
    let packets = host.packets.map(|packets| {
        json!({
            "datagram": packets.datagram,
            "lost_probes": packets.lost_probes,
            "segment": packets.segment,
        })
    });
    let name = host.name.as_ref().map(|name| {
        let records =
            name.https.iter().map(|record| json!({ "alpn": record.alpn, "ech": record.has_ech }));
        json!({
            "source": name.source,
            "addresses": name.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "failure": name.failure.as_ref().map(|failure| failure.name()),
            "https": records.collect::<Vec<_>>(),
        })
    });
    json!({
        "host": host.host,
        "port": host.port,
        "name": name,
        "announces_http3": host.announces_http3,
        "attempts": host.attempts.as_ref().map(|attempts| {
            attempts.iter().map(attempt).collect::<Vec<_>>()
        }),
        "packets": packets,
        "clock_ahead_s": host.clock_ahead,
    })
}

fn attempt(attempt: &AttemptFinding) -> Value {
    let shortened = attempt.short_hello.then(|| FailureCause::LongClientHello.name());
    let (outcome, cause, took) = match attempt.outcome {
        AttemptResult::Ready(took) => ("ready", shortened, Some(millis(took))),
        AttemptResult::FellBack => ("fell-back", None, None),
        AttemptResult::Failed { cause, .. } => ("failed", Some(cause.name()), None),
    };
    json!({
        "transport": attempt.transport.name(),
        "security": attempt.security.name(),
        "address": attempt.address.to_string(),
        "outcome": outcome,
        "cause": cause,
        "took_ms": took,
    })
}
