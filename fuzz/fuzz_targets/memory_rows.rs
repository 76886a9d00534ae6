//! Arbitrary bytes as rows of a memory file: parsing never panics, and written keys are read back unchanged.
#![no_main]

use std::time::Duration;

use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas_race::evidence::{Evidence, EvidenceLevel, NetworkId, TrustContext};
use eyas_race::memory::{
    DesignationEntry, Memory, MemoryConfig, MemoryEntry, MemoryKey, MemoryRecord, MemoryView,
    PathEntry, forget_row,
};
use eyas_race::target::TargetHost;
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<6> = Reach::new([
    "a row about a peer",
    "a row about a path",
    "a row about a network",
    "a row about a resolver",
    "an invalid line",
    "a host is forgotten",
]);

const NOW: Duration = Duration::from_secs(1_800_000_000);

fn candidate(transport: Transport) -> Candidate {
    Candidate {
        address: "192.0.2.1:443".parse().expect("a constant"),
        transport,
        security: Security::Tls,
        alpn: Vec::new(),
        ech: None,
        priority: None,
        origin: AddressOrigin::Address,
    }
}

fn evidence(host: TargetHost, network: NetworkId, transport: Transport) -> Evidence {
    Evidence {
        at: NOW,
        network,
        host,
        candidate: candidate(transport),
        level: EvidenceLevel::Security,
        failure: None,
        doubt: None,
        rtt: Some(Duration::from_millis(20)),
        sent_again: Some(true),
    }
}

/// Parses a line: a record as JSON, or `KEY ENTRY` as in a store with two columns.
fn row(line: &[u8]) -> Option<(MemoryKey, MemoryEntry)> {
    if let Ok(MemoryRecord { key, entry }) = serde_json::from_slice(line) {
        return Some((key, entry));
    }
    let text = std::str::from_utf8(line).ok()?;
    let (key, entry) = text.split_once(' ')?;
    Some((key.parse().ok()?, serde_json::from_str(entry).ok()?))
}

fuzz_target!(|bytes: &[u8]| {
    REACH.begin();
    let rows: Vec<(MemoryKey, MemoryEntry)> =
        bytes.split(|byte| *byte == b'\n').filter_map(row).collect();
    if rows.len() < bytes.split(|byte| *byte == b'\n').count() {
        REACH.hit("an invalid line");
    }
    let config = MemoryConfig { max_rows: 64, max_rows_per_host: 8, ..MemoryConfig::default() };
    let mut memory = Memory::new(config.clone());
    for (key, entry) in rows.clone() {
        // The text form only loses the flow label of an address.
        let once: MemoryKey = key.to_string().parse().expect("the text form of a key is a key");
        assert_eq!(once.to_string().parse(), Ok(once));
        REACH.hit(match &entry {
            MemoryEntry::Peer(_) => "a row about a peer",
            MemoryEntry::Path(_) => "a row about a path",
            MemoryEntry::Network(_) => "a row about a network",
            MemoryEntry::Resolver(_) => "a row about a resolver",
        });
        memory.insert(key, entry);
        assert!(memory.len() <= config.max_rows);
    }
    let trust = TrustContext::default();
    let view = MemoryView::from_rows(rows.clone(), &trust, NOW, &config);
    for transport in Transport::ALL {
        view.verdict(&candidate(transport), NOW);
        view.verdict(&candidate(transport), Duration::MAX);
        view.round_trip(&candidate(transport), NOW);
    }
    for (key, entry) in rows {
        let Some(host) = key.host().cloned() else { continue };
        memory.learn(&evidence(host.clone(), key.network.clone(), Transport::Quic), &trust);
        memory.view(&key.network, &host, &trust, NOW);
        forget_row(&key, entry, &host);
        memory.forget(&host);
        REACH.hit("a host is forgotten");
        assert!(memory.records().all(|record| record.key.host() != Some(&host)));
    }
    for record in memory.records() {
        match record.entry {
            MemoryEntry::Path(PathEntry { silent, .. }) => _ = std::hint::black_box(silent.len()),
            MemoryEntry::Peer(peer) => _ = peer.verdicts(Security::Tls, NOW, &config),
            MemoryEntry::Network(network) => _ = std::hint::black_box(network.name),
            MemoryEntry::Resolver(resolver) => {
                assert!(resolver.resolvers().len() <= DesignationEntry::MAX_RESOLVERS);
            }
        }
    }
    memory.expire(Duration::MAX);
    assert!(memory.is_empty());
});
