//! The memory as the JSON objects printed by `eyas memory --json` and returned by the C library
//! (`docs/reference/json.md`). The remarks about names and times in [`json`](super::json) apply.

use alloc::{
    borrow::ToOwned,
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::time::Duration;

use serde::Serialize;

use super::milliseconds;
use crate::candidate::{Security, Transport};
use crate::evidence::NetworkId;
use crate::memory::{
    DatedOutcome, DesignatedEndpoint, DesignationEntry, EntryOutcome, MemoryConfig, MemoryEntry,
    MemoryRecord, MemorySubject, MemoryVerdict, PathEntry, PeerEntry, SecurityOutcome, SetUp,
};
use crate::target::TargetHost;

/// One row of the memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryRowJson {
    /// The network of the row.
    pub network: String,
    /// A readable name of the network: its interface and gateway.
    pub network_name: Option<String>,
    /// The host; `null` if the row is about the network itself.
    pub host: Option<String>,
    /// As in [`WinnerJson`](super::WinnerJson); `udp` for a name server that designates nothing.
    pub transport: &'static str,
    /// As in [`WinnerJson`](super::WinnerJson); `null` if the row is about the network itself.
    pub security: Option<&'static str>,
    /// Address and port; family and port if the row is about the network itself.
    pub address: String,
    /// The application protocols offered; `null` if the row applies to all.
    pub alpn: Option<Vec<String>>,
    /// The name of the security parameters to which it applies; `null` if it applies to all.
    pub trust: Option<String>,
    /// The host for which the certificate had to be valid, if it was another one.
    pub certificate_host: Option<String>,
    /// Whether Encrypted ClientHello was offered, and accepted if the verdict is `good`; `null` if the row applies to both.
    pub ech: Option<bool>,
    /// The name of the encrypted resolver that the host, a name server, designates there.
    pub designates: Option<String>,
    /// `good`, `bad`, `retest-due`, `network-bad` or `unknown`; about a name server `designated` or `not-designated`.
    pub verdict: &'static str,
    /// The cause of failure.
    pub cause: Option<String>,
    /// Consecutive failures.
    pub strikes: u32,
    /// The age of the last evidence.
    pub age_ms: f64,
    /// How long the verdict remains valid.
    pub holds_for_ms: Option<f64>,
    /// How long ClientHellos of one packet are used, because one of two did not get through.
    pub short_hello_for_ms: Option<f64>,
    /// The smoothed round-trip time.
    pub rtt_ms: Option<f64>,
    /// The number of known recent handshakes, if the row is about the network.
    pub handshakes: u32,
    /// The number of these that had to retransmit.
    pub sent_again: u32,
}

impl MemoryRowJson {
    /// Returns the rows of a memory, for one host or for all, newest first: one for each set-up of
    /// a record.
    pub fn rows(
        records: &[MemoryRecord],
        host: Option<&TargetHost>,
        now: Duration,
        config: &MemoryConfig,
    ) -> Vec<Self> {
        let names = names(records);
        let selected = records.iter().filter(|record| host.is_none() || record.key.host() == host);
        let mut rows: Vec<Self> = selected
            .flat_map(|record| {
                let name = names.get(&record.key.network);
                let mut rows = rows_of(record, now, config);
                rows.iter_mut().for_each(|row| row.network_name = name.cloned());
                rows
            })
            .collect();
        rows.sort_by(|a, b| a.age_ms.total_cmp(&b.age_ms));
        rows
    }
}

/// Returns the readable names of the networks.
fn names(records: &[MemoryRecord]) -> BTreeMap<NetworkId, String> {
    let named = records.iter().filter_map(|record| match &record.entry {
        MemoryEntry::Network(entry) => Some((record.key.network.clone(), entry.name.clone())),
        _ => None,
    });
    named.collect()
}

/// Converts a record; one whose key and entry disagree is damaged and ignored.
fn rows_of(record: &MemoryRecord, now: Duration, config: &MemoryConfig) -> Vec<MemoryRowJson> {
    let mut row =
        MemoryRowJson { network: record.key.network.0.as_ref().into(), ..Default::default() };
    match (&record.key.subject, &record.entry) {
        (MemorySubject::Peer { host, transport, security, address }, MemoryEntry::Peer(peer)) => {
            row.host = Some(host.to_string());
            row.transport = transport.name();
            row.security = Some(security.name());
            row.address = address.to_string();
            row.rtt_ms = peer.round_trip.map(|round_trip| milliseconds(round_trip.smoothed));
            let long_hello = peer.long_hello.map(|seen| seen.verdict(now, config));
            if let Some(MemoryVerdict::Bad { until, .. }) = long_hello {
                row.short_hello_for_ms = Some(milliseconds(until.saturating_sub(now)));
            }
            let verdicts = peer.verdicts(*security, now, config);
            let row_of =
                |(secured, verdict)| peer_row(row.clone(), peer, secured, verdict, now, config);
            verdicts.into_iter().map(row_of).collect()
        }
        (MemorySubject::Path { transport, family, port }, MemoryEntry::Path(path)) => {
            row.transport = transport.name();
            row.address = alloc::format!("{family}:{port}");
            row.strikes = u32::try_from(path.silent.len()).unwrap_or(u32::MAX);
            row.age_ms = milliseconds(now.saturating_sub(path.at));
            vec![path_row(row, path, now, config)]
        }
        (MemorySubject::Resolver { host, address }, MemoryEntry::Resolver(resolver)) => {
            row.host = Some(host.to_string());
            row.address = address.to_string();
            resolver_rows(row, resolver, record.entry.expires_at(config), now)
        }
        _ => Vec::new(),
    }
}

fn peer_row(
    mut row: MemoryRowJson,
    peer: &PeerEntry,
    secured: Option<&SecurityOutcome>,
    verdict: MemoryVerdict,
    now: Duration,
    config: &MemoryConfig,
) -> MemoryRowJson {
    let seen = secured.map(|secured| secured.seen);
    let at = seen.or(peer.reach).map_or(peer.at, |seen| seen.at);
    row.age_ms = milliseconds(now.saturating_sub(at));
    let strikes = |seen: DatedOutcome| match seen.outcome {
        EntryOutcome::Bad { strikes, .. } => strikes,
        EntryOutcome::Good { .. } => 0,
    };
    row.strikes = seen.into_iter().chain(peer.reach).map(strikes).max().unwrap_or_default();
    if let Some(SecurityOutcome { set_up: SetUp { alpn, trust, ech }, .. }) = secured {
        row.ech = Some(*ech);
        row.alpn = Some(alpn.clone());
        row.trust = Some(trust.parameters.clone());
        row.certificate_host = trust.certificate_host.as_ref().map(ToString::to_string);
    }
    (row.verdict, row.cause) = match verdict {
        MemoryVerdict::Good { .. } => ("good", None),
        MemoryVerdict::Bad { cause, .. } => ("bad", Some(cause.to_string())),
        MemoryVerdict::RetestDue { cause, .. } => ("retest-due", Some(cause.to_string())),
        _ => ("unknown", None),
    };
    let until = match verdict {
        MemoryVerdict::Good { .. } => Some(at.saturating_add(config.good_for)),
        MemoryVerdict::Bad { until, .. } => Some(until),
        _ => None,
    };
    row.holds_for_ms = until.map(|until| milliseconds(until.saturating_sub(now)));
    row
}

/// Returns a row for each resolver that a name server designates, or one that says that it designates none.
fn resolver_rows(
    mut row: MemoryRowJson,
    resolver: &DesignationEntry,
    until: Duration,
    now: Duration,
) -> Vec<MemoryRowJson> {
    row.age_ms = milliseconds(now.saturating_sub(resolver.at));
    row.holds_for_ms = Some(milliseconds(until.saturating_sub(now)));
    if resolver.resolvers().is_empty() {
        (row.transport, row.security) = ("udp", Some(Security::None.name()));
        return vec![MemoryRowJson { verdict: "not-designated", ..row }];
    }
    let of_resolver = |way: &DesignatedEndpoint| MemoryRowJson {
        transport: match &*way.alpn {
            "doq" | "h3" => Transport::Quic.name(),
            _ => Transport::Tcp.name(),
        },
        security: Some(Security::Tls.name()),
        address: way.address.to_string(),
        alpn: Some(vec![way.alpn.clone()]),
        designates: Some(way.name.clone()),
        verdict: "designated",
        ..row.clone()
    };
    resolver.resolvers().iter().map(of_resolver).collect()
}

fn path_row(
    mut row: MemoryRowJson,
    path: &PathEntry,
    now: Duration,
    config: &MemoryConfig,
) -> MemoryRowJson {
    let swallowed = path.swallowed(now, config).is_some();
    let heard = path.heard_at.is_some() && path.silent.is_empty();
    (row.verdict, row.cause) = match (swallowed, heard) {
        (true, _) => ("network-bad", Some("silent".to_owned())),
        (false, true) => ("good", None),
        (false, false) => ("unknown", None),
    };
    let loss = path.loss(now, config);
    (row.handshakes, row.sent_again) = (loss.handshakes, loss.sent_again);
    row
}
