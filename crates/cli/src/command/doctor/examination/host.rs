//! Tries every transport to the host, by the drivers of `eyas race --all`.

use std::net::IpAddr;
use std::time::Duration;

use eyas::race::candidate::{AddressFamily, Transport};
use eyas::race::dns::{DnsFailure, DnsRecords};
use eyas::race::evidence::{EvidenceLevel, FailureCause};
use eyas::race::policy::Policy;
use eyas::race::report::{AttemptOutcome, AttemptReport};
use eyas::race::target::Target;
use eyas::{Connection, Resolver};
use tokio::time::{Instant, sleep, timeout};

use super::super::findings::{
    AttemptFinding, AttemptResult, HttpsFinding, NameFinding, PacketFinding,
};
use super::names::is_asked;
use crate::command::setting::RaceContext;
use crate::failure::Failure;
use crate::race_report::ReplayedRace;

/// How long to wait for the end of a race after its deadline, and for what it learns.
const END_LIMIT: Duration = Duration::from_millis(400);
/// How long QUIC may search for the largest packets, and how often it is looked at.
const SEARCH_LIMIT: Duration = Duration::from_millis(800);
const SEARCH_INTERVAL: Duration = Duration::from_millis(50);
/// After how many looks without a change the search counts as finished.
const UNCHANGED: u32 = 4;

/// A race that is over.
pub(super) struct ExaminedRace {
    pub(super) report: ReplayedRace,
    pub(super) packets: Option<PacketFinding>,
}

/// Races until every candidate has ended; `None` if that takes too long.
pub(super) async fn race(
    context: &RaceContext,
    target: &Target,
    policy: Policy,
    limit: Duration,
) -> Result<Option<ExaminedRace>, Failure> {
    let preconnection = context.endpoint.preconnection(target.clone()).policy(policy);
    let mut initiation = preconnection.initiate();
    let Ok(connected) = timeout(limit + END_LIMIT, initiation.usable()).await else {
        return Ok(None);
    };
    let packets = match &connected {
        Ok(connection) => Some(packets(connection).await),
        Err(_) => None,
    };
    let _ = timeout(END_LIMIT, initiation.finished()).await;
    Ok(Some(ExaminedRace { report: ReplayedRace::from_trace(initiation.trace())?, packets }))
}

/// Returns the largest packets that got through on a connection.
async fn packets(connection: &Connection) -> PacketFinding {
    let family = AddressFamily::from_ip(connection.info().remote.ip());
    let mut finding = PacketFinding { datagram: None, lost_probes: 0, segment: None, family };
    #[cfg(unix)]
    {
        finding.segment =
            connection.tcp().and_then(|tcp| socket2::SockRef::from(tcp).tcp_mss().ok());
    }
    let Some(quic) = connection.quic() else { return finding };
    let since = Instant::now();
    let mut unchanged = 0;
    while since.elapsed() < SEARCH_LIMIT && unchanged < UNCHANGED {
        let path = quic.stats().path;
        let now = (Some(path.current_mtu), path.lost_plpmtud_probes);
        let is_same = now == (finding.datagram, finding.lost_probes);
        unchanged = if is_same { unchanged + 1 } else { 0 };
        (finding.datagram, finding.lost_probes) = now;
        sleep(SEARCH_INTERVAL).await;
    }
    finding
}

/// Returns the outcome of each candidate that was tried.
pub(super) fn attempts(race: &ReplayedRace) -> Vec<AttemptFinding> {
    race.last_turns().filter_map(|attempt| finding(race, attempt)).collect()
}

fn finding(race: &ReplayedRace, attempt: &AttemptReport) -> Option<AttemptFinding> {
    use AttemptOutcome::{Lost, Upgraded, Won};
    let is_ready = matches!(attempt.outcome, Won | Upgraded | Lost);
    let ended = attempt.ended_ms.unwrap_or(attempt.started_ms);
    let took = Duration::from_secs_f64((ended - attempt.started_ms).max(0.0) / 1e3);
    let failure = race.failed(attempt);
    let outcome = match (is_ready, attempt.fell_back) {
        (true, true) => AttemptResult::FellBack,
        (true, false) => AttemptResult::Ready(took),
        (false, _) => AttemptResult::Failed {
            cause: failure.map_or(FailureCause::Silent, |failure| failure.cause),
            reached: attempt.level.min(EvidenceLevel::Security),
            certificate: failure.and_then(|failure| failure.peer_certificate()),
        },
    };
    Some(AttemptFinding {
        // A fallback is one of MPTCP, whatever it became.
        transport: if attempt.fell_back { Transport::Mptcp } else { attempt.transport },
        security: attempt.security,
        address: attempt.address.parse().ok()?,
        outcome,
        short_hello: attempt.short_hello,
    })
}

/// Returns how the name of a target was resolved; `None` if it is an address.
pub(super) fn name(
    resolver: &Resolver,
    target: &Target,
    race: Option<&ExaminedRace>,
) -> Option<NameFinding> {
    let host = target.host.name()?;
    let mut finding = NameFinding {
        source: resolver.source_of(host).to_string(),
        is_from_dns: is_asked(resolver, target),
        addresses: Vec::new(),
        failure: None,
        https: Vec::new(),
    };
    let Some(race) = race else { return Some(finding) };
    let answers = race.report.report.dns.iter().filter_map(|query| query.answer.as_ref());
    for answer in answers {
        add_answer(&mut finding, &answer.records);
    }
    // Nothing was asked where the address is known without a question.
    if finding.addresses.is_empty() {
        for attempt in attempts(&race.report) {
            if !finding.addresses.contains(&attempt.address.ip()) {
                finding.addresses.push(attempt.address.ip());
            }
        }
    }
    Some(finding)
}

fn add_answer(finding: &mut NameFinding, records: &Result<DnsRecords, DnsFailure>) {
    match records {
        Ok(DnsRecords::A(found)) => {
            finding.addresses.extend(found.iter().copied().map(IpAddr::V4));
        }
        Ok(DnsRecords::Aaaa(found)) => {
            finding.addresses.extend(found.iter().copied().map(IpAddr::V6));
        }
        Ok(DnsRecords::Https(records)) => finding.https.extend(records.iter().map(|record| {
            HttpsFinding { alpn: record.alpn.clone(), has_ech: record.ech.is_some() }
        })),
        // That there is no record of one type says less than any other failure.
        Err(failure) if matches!(finding.failure, None | Some(DnsFailure::NoData)) => {
            finding.failure = Some(failure.clone());
        }
        Err(_) => {}
    }
}
