//! The examples of RFC 6724 §10.2, and the other rules.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::*;
use crate::vocabulary::{ip, ms, nat64, network};

/// Sorts destinations as seen from these sources, each with a prefix of 64 or 24 bits.
fn sorted(sources: &[&str], destinations: &[&str]) -> Vec<String> {
    let sources: Vec<(&str, u8)> = sources
        .iter()
        .map(|source| (*source, if source.contains(':') { 64 } else { 24 }))
        .collect();
    let network = network(&sources);
    let mut ranked: Vec<(DestinationRank, IpAddr)> = destinations
        .iter()
        .map(|destination| {
            (DestinationRank::new(&network, None, ip(destination), None, false), ip(destination))
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, address)| address.to_string()).collect()
}

fn rule(sources: &[(&str, u8)], better: &str, worse: &str) -> AddressRule {
    let network = network(sources);
    let better = DestinationRank::new(&network, None, ip(better), None, false);
    let worse = DestinationRank::new(&network, None, ip(worse), None, false);
    assert!(better < worse);
    rule_between(&better, &worse)
}

//= hev3 §5.3
//# MUST sort by RFC 6724 §6; rules 4 and 7 do not apply, rule 9 for IPv4 only within the source's
//# subnet
#[test]
fn the_examples_of_the_rfc() {
    let cases: [(&[&str], [&str; 2]); 7] = [
        (&["2001:db8:1::2", "fe80::1", "169.254.13.78"], ["2001:db8:1::1", "198.51.100.121"]),
        (&["fe80::1", "198.51.100.117"], ["198.51.100.121", "2001:db8:1::1"]),
        (&["2001:db8:1::2", "fe80::1", "10.1.2.4"], ["2001:db8:1::1", "10.1.2.3"]),
        (&["2001:db8:1::2", "fe80::2"], ["fe80::1", "2001:db8:1::1"]),
        (&["2001:db8:1::2", "2001:db8:3f44::2", "fe80::2"], ["2001:db8:1::1", "2001:db8:3ffe::1"]),
        (&["2002:c633:6401::2", "fe80::2"], ["2002:c633:6401::1", "2001:db8:1::1"]),
        (
            &["2002:c633:6401::2", "2001:db8:1::2", "fe80::2"],
            ["2001:db8:1::1", "2002:c633:6401::1"],
        ),
    ];
    for (at, (sources, expected)) in cases.into_iter().enumerate() {
        let reversed = [expected[1], expected[0]];
        assert_eq!(sorted(sources, &expected), expected, "example {}", at + 1);
        assert_eq!(sorted(sources, &reversed), expected, "example {} turned", at + 1);
    }
}

#[test]
fn each_rule_is_named() {
    let global = [("2001:db8:1::2", 64), ("fe80::2", 64), ("192.0.2.9", 24)];
    assert_eq!(rule(&global, "2001:db8::1", "192.0.2.1"), AddressRule::Precedence);
    assert_eq!(rule(&global, "fe80::1", "2001:db8::1"), AddressRule::SmallerScope);
    assert_eq!(rule(&global, "2001:db8:1::1", "2001:db8:2::1"), AddressRule::LongestPrefix);
    assert_eq!(rule(&global, "2001:db8:1::1", "2002:c633:6401::1"), AddressRule::MatchingLabel);
    assert_eq!(rule(&global[2..], "192.0.2.1", "2001:db8::1"), AddressRule::Unusable);
    let ula = [("2001:db8:1::2", 64), ("192.0.2.9", 24)];
    assert_eq!(rule(&ula, "192.0.2.1", "fd00::1"), AddressRule::MatchingLabel);
    let ula = [("fd00::2", 64), ("192.0.2.9", 24)];
    assert_eq!(rule(&ula, "192.0.2.1", "fd00::1"), AddressRule::Precedence);
}

#[test]
fn a_deprecated_source_counts_against_its_destination() {
    let mut network = network(&[("2001:db8:1::2", 64), ("192.0.2.9", 24)]);
    network.sources[0].deprecated = true;
    let ipv6 = DestinationRank::new(&network, None, ip("2001:db8::1"), None, false);
    let ipv4 = DestinationRank::new(&network, None, ip("192.0.2.1"), None, false);
    assert!(ipv4 < ipv6);
    assert_eq!(rule_between(&ipv4, &ipv6), AddressRule::Deprecated);
}

//= hev3 §5.3
//# between rules 8 and 9 lower round trips, then addresses used before
/// The two rules of HEv3 between 8 and 9.
#[test]
fn history_decides_between_equals() {
    let network = network(&[("198.51.100.9", 24)]);
    let rank = |rtt, used| DestinationRank::new(&network, None, ip("192.0.2.1"), rtt, used);
    let (near, far) = (rank(Some(ms(20)), false), rank(Some(ms(80)), true));
    assert!(near < far);
    assert_eq!(rule_between(&near, &far), AddressRule::RoundTrip);
    let (used, unused) = (rank(None, true), rank(None, false));
    assert!(used < unused);
    assert_eq!(rule_between(&used, &unused), AddressRule::UsedBefore);
}

/// Rule 10, and IPv4 outside the source's subnet: the order of the answer is DNS's round robin.
#[test]
fn equal_addresses_stay_in_the_order_of_the_answer() {
    let answer = ["203.0.113.7", "192.0.2.1", "203.0.113.1"];
    assert_eq!(sorted(&["192.51.100.9"], &answer), answer);
    let network = network(&[("198.51.100.9", 24)]);
    let rank = |address| DestinationRank::new(&network, None, ip(address), None, false);
    assert_eq!(rule_between(&rank(answer[0]), &rank(answer[1])), AddressRule::AsAnswered);
    assert_eq!(
        sorted(&["192.0.2.9"], &["203.0.113.7", "192.0.2.1"]),
        ["192.0.2.1", "203.0.113.7"],
        "an address in the own subnet is near"
    );
}

//= hev3 §8.2
//# synthesised addresses are sorted as IPv4
/// HEv3 §8.2: an address that represents IPv4 is sorted as IPv4, and is reachable.
#[test]
fn ipv4_behind_nat64_is_sorted_as_ipv4() {
    let network = nat64();
    let ipv6 = DestinationRank::new(&network, None, ip("2001:db8::1"), None, false);
    let ipv4 = DestinationRank::new(&network, None, ip("192.0.2.1"), None, false);
    assert!(ipv6 < ipv4);
    assert_eq!(rule_between(&ipv6, &ipv4), AddressRule::Precedence);
}

/// `precedence ::ffff:0:0/96 100` of gai.conf(5), and labels that differ from the RFC's.
#[test]
fn the_table_of_the_host_counts() {
    let row =
        |prefix: &str, len, value| PrefixValue { prefix: prefix.parse().unwrap(), len, value };
    let ipv4_first = AddressTable {
        precedences: vec![row("::ffff:0:0", 96, 100), row("::", 0, 40)],
        ..AddressTable::default()
    };
    let network = network(&[("2001:db8:1::2", 64), ("fd00::2", 64), ("192.0.2.9", 24)]);
    let default = AddressTable::default();
    let rank = |table: &AddressTable, address: &str| {
        DestinationRank::new(&network, Some(table), ip(address), None, false)
    };
    let (v4, v6) = ("198.51.100.1", "2001:db8:2::1");
    assert!(rank(&default, v6) < rank(&default, v4));
    assert!(rank(&ipv4_first, v4) < rank(&ipv4_first, v6));
    let between = rule_between(&rank(&ipv4_first, v4), &rank(&ipv4_first, v6));
    assert_eq!(between, AddressRule::Precedence);
    // An address that cannot be tried stays behind all that can.
    let without_ipv4 = NetworkView { sources: network.sources[..2].to_vec(), ..network.clone() };
    let there =
        |address| DestinationRank::new(&without_ipv4, Some(&ipv4_first), ip(address), None, false);
    assert!(there(v6) < there(v4));
    // Private IPv6 addresses count as global ones if they have the same label and precedence.
    let same = AddressTable {
        precedences: vec![row("::", 0, 40)],
        labels: vec![row("::", 0, 1)],
        scopes: Vec::new(),
    };
    let between = rule_between(&rank(&same, "fd00::1"), &rank(&same, v6));
    assert_eq!(between, AddressRule::LongestPrefix);
}

/// `scopev4 ::ffff:10.0.0.0/104 5` of gai.conf(5): a source of another scope does not suit.
#[test]
fn the_host_may_narrow_the_scope_of_ipv4() {
    let row =
        |prefix: &str, len, value| PrefixValue { prefix: prefix.parse().unwrap(), len, value };
    let table = AddressTable {
        scopes: vec![row("::ffff:10.0.0.0", 104, 5), row("::", 0, 14)],
        ..AddressTable::default()
    };
    let network = network(&[("192.0.2.9", 24)]);
    let rank =
        |address: &str| DestinationRank::new(&network, Some(&table), ip(address), None, false);
    let (narrow, wide) = (rank("10.0.0.1"), rank("198.51.100.1"));
    assert!(wide < narrow);
    assert_eq!(rule_between(&wide, &narrow), AddressRule::MatchingScope);
    let private = self::network(&[("10.0.0.9", 24)]);
    let rank =
        |address: &str| DestinationRank::new(&private, Some(&table), ip(address), None, false);
    assert!(rank("10.0.0.1") < rank("198.51.100.1"), "its own source has the same scope");
}

#[test]
fn the_default_table_is_the_one_of_the_rfc() {
    for address in [
        "::1",
        "192.0.2.1",
        "::9",
        "2001::1",
        "2002::1",
        "3ffe::1",
        "fec0::1",
        "fd00::1",
        "2001:db8::1",
    ] {
        let default = AddressTable::default();
        assert_eq!(policy(None, ip(address)), policy(Some(&default), ip(address)), "{address}");
    }
}
