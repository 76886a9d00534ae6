//! The memory is a browsing history: it is limited, it expires and it can be forgotten.

use super::*;

//= hev3 §5.3
//# history MUST be partitioned: a memory file has one user, and a host can be forgotten without a
//# trace
#[test]
fn forgetting_a_host_leaves_no_trace_of_it() {
    let mut memory = after(&[
        was_silent("a.test", quic(), NOW),
        worked("a.test", tcp(), NOW),
        was_silent("b.test", quic(), NOW),
    ]);
    let only_b = after(&[was_silent("b.test", quic(), NOW)]);
    assert_eq!(memory.forget(&host("a.test")), 2);
    let heard = MemoryKey::path(&home(), &tcp());
    let left: Vec<_> = memory.records().filter(|record| record.key != heard).collect();
    assert_eq!(left, only_b.records().collect::<Vec<_>>());
}

//= rfc8305 §4
//# history SHOULD be flushed when the network changes
//= otherwise: it is kept for a network that is known (HEv3 §5.3), and expires
#[test]
fn rows_expire() {
    let mut memory = after(&[worked("a.test", tcp(), NOW)]);
    memory.expire(NOW + HOUR);
    assert_eq!(memory.len(), 1, "the path row goes after an hour");
    memory.expire(NOW + 14 * 24 * HOUR);
    assert!(memory.is_empty());
}

#[test]
fn one_host_cannot_fill_the_memory() {
    let mut memory = after(&[]);
    for port in 1..1_000_u16 {
        let address = format!("192.0.2.1:{port}");
        let at = NOW + Duration::from_secs(u64::from(port));
        memory.learn(&worked("a.test", candidate(Transport::Tcp, &address), at), &platform());
    }
    let rows = memory.records().filter(|record| record.key.host() == Some(&host("a.test")));
    assert_eq!(rows.count(), 64);
    let newest = candidate(Transport::Tcp, "192.0.2.1:999");
    let now = NOW + HOUR;
    let view = memory.view(&home(), &host("a.test"), &platform(), now);
    assert!(view.round_trip(&newest, now).is_some(), "the newest row stays");
}

#[test]
fn the_memory_has_a_limit() {
    let config = MemoryConfig { max_rows: 100, ..MemoryConfig::default() };
    let mut memory = Memory::new(config);
    for n in 0..1_000_u32 {
        let at = NOW + Duration::from_secs(u64::from(n));
        memory.learn(&worked(&format!("host{n}.test"), tcp(), at), &platform());
        assert!(memory.len() <= 100);
    }
    let good = MemoryVerdict::Good { rtt: Some(Duration::from_millis(80)) };
    assert_eq!(verdict(&memory, "host999.test", &tcp(), NOW + 17 * MIN), good);
    assert_eq!(verdict(&memory, "host0.test", &tcp(), NOW + 17 * MIN), MemoryVerdict::Unknown);
}

#[test]
fn a_path_row_is_bounded() {
    let evidence: Vec<_> =
        (0..100).map(|n| was_silent(&format!("host{n}.test"), quic(), NOW)).collect();
    let memory = after(&evidence);
    let path = MemoryKey::path(&home(), &quic());
    let entry = memory.records().find(|record| record.key == path).unwrap().entry;
    let MemoryEntry::Path(entry) = entry else { panic!("a path key holds a path row") };
    assert_eq!(entry.silent.len(), PathEntry::MAX_SILENT);
    let evidence: Vec<_> =
        (0..100).map(|n| worked(&format!("host{n}.test"), quic(), NOW)).collect();
    let mut memory = after(&evidence);
    assert_eq!(distances(&memory, &path), PathDistances::MAX_HOSTS);
    memory.forget(&host("host99.test"));
    assert_eq!(distances(&memory, &path), PathDistances::MAX_HOSTS - 1, "forgotten with its host");
}

fn distances(memory: &Memory, path: &MemoryKey) -> usize {
    let entry = memory.records().find(|record| record.key == *path).unwrap().entry;
    let MemoryEntry::Path(entry) = entry else { panic!("a path key holds a path row") };
    entry.distances.len()
}

#[test]
fn the_longest_round_trip_needs_several_hosts() {
    let longest = |memory: &Memory| {
        memory.view(&home(), &host("unknown.test"), &platform(), NOW).longest_round_trip(NOW)
    };
    let near = |name: &str, rtt| Evidence {
        rtt: Some(Duration::from_millis(rtt)),
        ..worked(name, quic(), NOW)
    };
    let mut memory = after(&[near("a.test", 5), near("a.test", 6), near("b.test", 9)]);
    assert_eq!(longest(&memory), None, "two hosts");
    let tcp_too = Evidence { candidate: tcp(), ..near("c.test", 7) };
    memory.learn(&tcp_too, &platform());
    assert_eq!(longest(&memory), Some(Duration::from_millis(9)), "over any path");
    memory.learn(&near("b.test", 4), &platform());
    assert_eq!(longest(&memory), Some(Duration::from_millis(7)), "the latest of each host");
}
