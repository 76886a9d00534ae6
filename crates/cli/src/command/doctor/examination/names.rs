//! Asks each name server about a name that exists everywhere, and about the host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use eyas::race::dns::{DnsFailure, DnsRecords};
use eyas::race::target::Target;
use eyas::{Resolver, ServerAnswer, ServerExamination};
use tokio::time::timeout;

use super::super::findings::{AnswerFinding, AnswerFindings, NameServerFinding};

/// A name that every resolver knows (RFC 7050 §3): asking for it tells nobody anything.
const COMMON_NAME: &str = "ipv4only.arpa";
/// Its addresses (RFC 7050 §2.2).
const COMMON_ADDRESSES: [Ipv4Addr; 2] =
    [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// The port of a service whose HTTPS records have the name of the host itself.
const HTTPS_PORT: u16 = 443;

/// Asks all servers at once.
pub(super) async fn examine(
    resolver: &Resolver,
    target: Option<&Target>,
    limit: Duration,
) -> Vec<NameServerFinding> {
    let host = async {
        match target.filter(|target| is_asked(resolver, target)) {
            Some(target) => {
                let name = target.host.to_string();
                resolver.examine_servers(&name, target.port, limit).await
            }
            None => Vec::new(),
        }
    };
    let common = resolver.examine_servers(COMMON_NAME, HTTPS_PORT, limit);
    let encryption = timeout(limit, resolver.examine_encryption());
    let (common, host, encryption) = tokio::join!(common, host, encryption);
    let encryption: BTreeMap<_, _> = encryption.unwrap_or_default().into_iter().collect();
    let findings = common.into_iter().map(|common| {
        // About the host only those are asked that need not be asked by encrypted queries.
        let host = host.iter().find(|host| host.server == common.server);
        NameServerFinding {
            server: common.server,
            is_truthful: is_truthful(&common.a),
            nat64: common.nat64_prefixes(),
            encryption: encryption.get(&common.server).cloned(),
            common: answers(&common),
            host: host.map(answers),
        }
    });
    findings.collect()
}

/// Returns whether name servers are asked about the host of this target at all.
pub(super) fn is_asked(resolver: &Resolver, target: &Target) -> bool {
    use eyas::NameSource::{HostResolver, Queries, Server};
    let source = target.host.name().map(|name| resolver.source_of(name));
    matches!(source, Some(Queries { .. } | Server { .. } | HostResolver { .. }))
}

/// Returns whether the addresses of the common name are its own, if there are any.
fn is_truthful(answer: &ServerAnswer) -> Option<bool> {
    match &answer.records {
        Ok(DnsRecords::A(addresses)) => {
            Some(addresses.iter().all(|address| COMMON_ADDRESSES.contains(address)))
        }
        _ => None,
    }
}

fn answers(examination: &ServerExamination) -> AnswerFindings {
    AnswerFindings {
        datagram: answer(&examination.a),
        stream: answer(&examination.over_tcp),
        https: answer(&examination.https),
    }
}

fn answer(answer: &ServerAnswer) -> AnswerFinding {
    let count = |records: &DnsRecords| match records {
        DnsRecords::A(addresses) => addresses.len(),
        DnsRecords::Aaaa(addresses) => addresses.len(),
        DnsRecords::Https(records) => records.len(),
    };
    let records: Result<usize, DnsFailure> =
        answer.records.as_ref().map(count).map_err(Clone::clone);
    AnswerFinding { records, took: answer.took }
}
