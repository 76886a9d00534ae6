//! Resolves names for datagrams.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::time::Duration;

use eyas::Endpoint;
use eyas::race::candidate::AddressFamily;
use eyas::race::dns::{DnsQuery, DnsRecords, QueryId, RecordType};
use eyas::race::policy::Policy;
use eyas::race::target::TargetHost;
use eyas_relay::destination::Destination;
use futures_util::future::{Either, select};
use tokio::time::timeout;

/// The wait for the addresses of the second family (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Returns the addresses of a destination, IPv6 first, or none if there are none in time.
pub(crate) async fn resolve(
    endpoint: Endpoint,
    policy: Policy,
    limit: Duration,
    to: Destination,
) -> (Destination, Vec<IpAddr>) {
    if matches!(to.host, TargetHost::Literal(..)) {
        return (to, Vec::new());
    }
    if to.host.is_localhost() {
        return (to, vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
    }
    let query = async |record_type: RecordType, family: AddressFamily| {
        if policy.only_family.is_some_and(|only| only != family) {
            return Vec::new();
        }
        let query = DnsQuery { id: QueryId(0), name: to.given_host(), record_type };
        let answered = timeout(limit, endpoint.resolver().query(&query, to.port)).await;
        match answered.map(|answer| answer.records) {
            Ok(Ok(DnsRecords::Aaaa(ips))) => ips.into_iter().map(IpAddr::V6).collect(),
            Ok(Ok(DnsRecords::A(ips))) => ips.into_iter().map(IpAddr::V4).collect(),
            _ => Vec::new(),
        }
    };
    let (v6, v4) =
        (query(RecordType::Aaaa, AddressFamily::V6), query(RecordType::A, AddressFamily::V4));
    let (mut ips, v4) = match select(pin!(v6), pin!(v4)).await {
        Either::Left((v6, v4)) => {
            let v4 = second_answer(v4, v6.is_empty()).await;
            (v6, v4)
        }
        Either::Right((v4, v6)) => (second_answer(v6, v4.is_empty()).await, v4),
    };
    ips.extend(v4);
    (to, ips)
}

/// Waits for the later of two answers: only for a moment, unless the first one had no address.
async fn second_answer(answer: impl Future<Output = Vec<IpAddr>>, is_needed: bool) -> Vec<IpAddr> {
    match is_needed {
        true => answer.await,
        false => timeout(RESOLUTION_DELAY, answer).await.unwrap_or_default(),
    }
}
