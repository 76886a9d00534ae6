//! Rows about resolvers.

use alloc::{format, string::String, vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::report::MemoryRowJson;

fn server(number: usize) -> MemoryKey {
    let literal = TargetHost::Literal("192.0.2.53".parse().unwrap(), 0);
    let port = u16::try_from(number).unwrap();
    MemoryKey::resolver(&home(), &literal, ([192, 0, 2, 53], port).into())
}

fn resolver(name: &str) -> DesignatedEndpoint {
    DesignatedEndpoint {
        name: name.into(),
        alpn: "dot".into(),
        address: ([192, 0, 2, 1], 853).into(),
        path: String::new(),
    }
}

fn designation(until: Duration, names: &[&str]) -> MemoryEntry {
    let outcome = DesignationOutcome::Resolvers(names.iter().map(|name| resolver(name)).collect());
    MemoryEntry::Resolver(DesignationEntry { at: NOW, until, outcome })
}

//= rfc9462 §4.2
//# a designation is believed for no longer than its record says, and MAY be asked for again if that is excessively long
#[test]
fn a_row_lasts_as_long_as_its_record() {
    let config = MemoryConfig::default();
    let is_expired = |until, now| designation(until, &["a.test"]).is_expired(now, &config);
    assert!(!is_expired(NOW + MIN, NOW + MIN - Duration::from_millis(1)));
    assert!(is_expired(NOW + MIN, NOW + MIN));
    assert!(!is_expired(Duration::MAX, NOW + 23 * HOUR));
    assert!(is_expired(Duration::MAX, NOW + 24 * HOUR), "a day at most");
    assert!(is_expired(NOW + HOUR, NOW - HOUR), "the clock was set back since");
}

#[test]
fn rows_are_few_and_the_oldest_go_first() {
    let mut memory = Memory::new(MemoryConfig::default());
    for number in 0..100 {
        let at = NOW + Duration::from_secs(number as u64);
        let outcome = DesignationOutcome::Nothing;
        let entry = DesignationEntry { at, until: at + HOUR, outcome };
        memory.insert(server(number), MemoryEntry::Resolver(entry));
    }
    assert_eq!(memory.len(), 64);
    assert_eq!(memory.row(&server(35)), None);
    assert!(memory.row(&server(36)).is_some());
    // Races do not see them, whichever host they are about.
    let view = memory.view(&home(), server(99).host().unwrap(), &platform(), NOW);
    assert!(view.is_empty());
}

#[test]
fn a_host_is_forgotten_as_server_and_as_resolver() {
    let remaining = |host: &TargetHost| {
        let mut memory = Memory::new(MemoryConfig::default());
        memory.insert(server(53), designation(NOW + HOUR, &["a.test", "b.test"]));
        memory.insert(server(54), designation(NOW + HOUR, &["a.test"]));
        memory.forget(host);
        let rows = memory.records().filter_map(|record| match record.entry {
            MemoryEntry::Resolver(entry) => Some(entry.resolvers().len()),
            _ => None,
        });
        rows.collect::<Vec<_>>()
    };
    let literal = |ip: &str| TargetHost::Literal(ip.parse().unwrap(), 0);
    assert_eq!(remaining(&host("a.test")), [1]);
    assert_eq!(remaining(&host("b.test")), [1, 1]);
    assert_eq!(remaining(&host("c.test")), [2, 1]);
    assert_eq!(remaining(&literal("192.0.2.53")), vec![0_usize; 0]);
    assert_eq!(remaining(&literal("192.0.2.1")), vec![0_usize; 0]);
}

#[test]
fn a_server_is_shown_with_what_it_designates() {
    let nothing = DesignationOutcome::Nothing;
    let nothing = DesignationEntry { at: NOW, until: NOW + MIN, outcome: nothing };
    let records = [
        (server(53), designation(NOW + HOUR, &["a.test"])),
        (server(54), MemoryEntry::Resolver(nothing)),
    ];
    let records = records.map(|(key, entry)| MemoryRecord { key, entry });
    let rows = MemoryRowJson::rows(&records, server(53).host(), NOW, &MemoryConfig::default());
    let shown = rows.iter().map(|row| {
        (row.transport, &*row.address, row.designates.as_deref(), row.verdict, row.holds_for_ms)
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("tcp", "192.0.2.1:853", Some("a.test"), "designated", Some(3_600_000.0)),
            ("udp", "192.0.2.53:54", None, "not-designated", Some(60_000.0)),
        ]
    );
    assert!(rows.iter().all(|row| row.host.as_deref() == Some("192.0.2.53")));
}

proptest! {
    /// A file may hold anything.
    #[test]
    fn whatever_a_row_says_it_is_bounded(
        at in any::<u64>(),
        until in any::<u64>(),
        now in any::<u64>(),
        resolvers in 0..40_usize,
        text in "\\PC{0,40}",
    ) {
        let seconds = Duration::from_secs;
        let resolvers: Vec<_> = (0..resolvers).map(|_| resolver(&text)).collect();
        let entry = DesignationEntry {
            at: seconds(at),
            until: seconds(until),
            outcome: DesignationOutcome::Resolvers(resolvers),
        };
        let written = serde_json::to_string(&entry).unwrap();
        prop_assert_eq!(serde_json::from_str::<DesignationEntry>(&written).unwrap(), entry.clone());
        let damaged = format!("{written}{text}x");
        prop_assert!(serde_json::from_str::<DesignationEntry>(&damaged).is_err());
        prop_assert!(entry.resolvers().len() <= DesignationEntry::MAX_RESOLVERS);
        let config = MemoryConfig::default();
        let row = MemoryEntry::Resolver(entry);
        if !row.is_expired(seconds(now), &config) {
            prop_assert!(now < until && now < at.saturating_add(24 * 3600) && at <= now + 60);
        }
    }
}
