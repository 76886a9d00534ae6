//! Which families are queried: those with connectivity, and IPv4 behind a PREF64.

use crate::candidate::{AddressFamily, AddressOrigin};
use crate::dns::DnsFailure;
use crate::io::NetworkView;
use crate::policy::Policy;
use crate::reason::{PlanReason, ReasonKind};
use crate::vocabulary::{TestedResolution, dual_stack, https, ipv6_only, nat64, network};

//= hev3 -04 §8.3
//# without a prefix AAAA answers are used as they come
/// ```text
/// 10 ms  HTTPS, AAAA               start with IPv6: it is the only family
/// ```
#[test]
fn ipv6_only_network() {
    TestedResolution::for_network(ipv6_only())
        .asks(&["example.com HTTPS", "example.com AAAA"])
        .wait_milliseconds(10)
        .answers(&["example.com HTTPS 1 . alpn=h2"])
        .answers(&["example.com AAAA 2001:db8::1"])
        .starts_with(&["2001:db8::1"]);
}

//= hev3 §4.1, §8.1
//# MUST include A if a NAT64 prefix is known
/// ```text
/// 10 ms  HTTPS, AAAA (negative), A   start with the translated IPv4 address
/// ```
#[test]
fn nat64_queries_a_and_synthesises() {
    TestedResolution::for_network(nat64())
        .asks(&["example.com HTTPS", "example.com AAAA", "example.com A"])
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com A 192.0.2.1"])
        .waits_for(50)
        .fails("example.com AAAA -", DnsFailure::NoData)
        .starts_with(&["64:ff9b::c000:201"]);
}

//= hev3 §8.2
//# synthesised addresses MUST be de-synthesised before sorting, hints too
/// A DNS64 and an A record yield the same address: it is tried once, and sorted as IPv4.
///
/// ```text
/// example.com AAAA 64:ff9b::192.0.2.1
/// example.com AAAA 2001:db8::1
/// example.com A    192.0.2.1
/// ```
#[test]
fn addresses_synthesised_by_a_dns64_are_converted_back_before_sorting() {
    TestedResolution::for_network(nat64())
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 64:ff9b::192.0.2.1", "example.com AAAA 2001:db8::1"])
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["2001:db8::1", "64:ff9b::c000:201"]);
}

//= hev3 -04 §8
//# only on IPv6-mostly networks: a prefix is sought without an IPv4 route
/// With an IPv4 route the NAT64 is not needed, even for addresses synthesised by a DNS64.
#[test]
fn with_an_ipv4_route_nothing_is_synthesised() {
    let network = NetworkView { pref64: nat64().pref64, ..dual_stack() };
    TestedResolution::for_network(network)
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 64:ff9b::192.0.2.1"])
        .starts_with(&["192.0.2.1"]);
}

//= hev3 §4.1
//# without any connectivity AAAA and A, because the name may be this machine's
/// Without any connectivity both families are queried: the name may be that of this machine.
#[test]
fn without_connectivity_both_families_are_queried() {
    TestedResolution::for_network(network(&[]))
        .asks(&["example.com HTTPS", "example.com AAAA", "example.com A"])
        .fails("example.com HTTPS -", DnsFailure::Unreachable)
        .fails("example.com AAAA -", DnsFailure::Unreachable)
        .waits()
        .answers(&["example.com A 127.0.0.1"])
        .starts_with(&["127.0.0.1"]);
}

#[test]
fn a_preference_for_ipv4_waits_for_a() {
    let policy = Policy { prefer_ipv4: true, ..Policy::default() };
    TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 2001:db8::1"])
        .waits_for(50)
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["192.0.2.1", "2001:db8::1"]);
}

/// `-4`: the other family is neither queried nor tried, not even from a hint.
#[test]
fn the_only_family_allowed_is_queried_and_tried() {
    let policy = Policy { only_family: Some(AddressFamily::V4), ..Policy::default() };
    let ladder = TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
        .asks(&["example.com HTTPS", "example.com A"])
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1"])
        .waits()
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["192.0.2.1"]);
    let dropped = ladder.plan().dropped;
    let excluded = PlanReason(ReasonKind::FamilyNotAllowed { family: AddressFamily::V6 });
    assert!(dropped.iter().any(|dropped| dropped.reasons == [excluded.clone()]));
}

fn only(family: AddressFamily, network: NetworkView) -> TestedResolution {
    let policy = Policy { only_family: Some(family), ..Policy::default() };
    TestedResolution::new(https("example.com", 443), network, policy, 1)
}

/// `-6` behind a NAT64: the packets are IPv6, whoever embedded the IPv4 address.
///
/// ```text
///  0 ms  AAAA (from a DNS64)     50 ms timer
/// 50 ms                             start
/// ```
#[test]
fn only_ipv6_has_its_resolution_delay_with_addresses_of_a_dns64() {
    only(AddressFamily::V6, nat64())
        .asks(&["example.com HTTPS", "example.com AAAA", "example.com A"])
        .answers(&["example.com AAAA 64:ff9b::192.0.2.1"])
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&["64:ff9b::c000:201"]);
}

//= hev3 §4.1, §8.1
//# MUST include A if a NAT64 prefix is known, also for a caller that wants only IPv6
/// `-6` behind a NAT64 without a DNS64: the host itself translates.
#[test]
fn only_ipv6_reaches_an_ipv4_peer_through_nat64() {
    only(AddressFamily::V6, nat64())
        .answers(&["example.com HTTPS -"])
        .fails("example.com AAAA -", DnsFailure::NoData)
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["64:ff9b::c000:201"]);
}

/// `-6` where IPv4 has a route as well: only the path through the NAT64 is IPv6.
#[test]
fn only_ipv6_takes_the_nat64_even_beside_an_ipv4_route() {
    let network = NetworkView { pref64: nat64().pref64, ..dual_stack() };
    only(AddressFamily::V6, network)
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 64:ff9b::192.0.2.1"])
        .starts_with(&["64:ff9b::c000:201"]);
    only(AddressFamily::V6, dual_stack()).asks(&["example.com HTTPS", "example.com AAAA"]);
}

/// `-4` behind a NAT64 means the IPv4 address of the peer, as with 464XLAT.
#[test]
fn only_ipv4_goes_through_nat64_where_there_is_no_route() {
    let ladder = only(AddressFamily::V4, nat64())
        .asks(&["example.com HTTPS", "example.com A"])
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1"])
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["64:ff9b::c000:201"]);
    let tried = ladder.plan().entries;
    assert!(tried.iter().all(|entry| entry.candidate.origin == AddressOrigin::Synthesised));
}
