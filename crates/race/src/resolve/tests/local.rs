//! Hosts that are not resolved by DNS.

use core::net::SocketAddr;

use crate::candidate::{AddressOrigin, Security, Transport};
use crate::policy::Policy;
use crate::reason::{PlanReason, ReasonKind};
use crate::target::{Target, TargetHost};
use crate::vocabulary::{TestedResolution, dual_stack, https, ipv6_only, nat64, network};

#[test]
fn literals_start_at_once() {
    for (host, address) in [("192.0.2.1", "192.0.2.1"), ("[2001:db8::1]", "2001:db8::1")] {
        let ladder = TestedResolution::new(https(host, 443), dual_stack(), Policy::default(), 1)
            .asks(&[])
            .starts_with(&[address]);
        let plan = ladder.plan();
        assert!(plan.entries.iter().all(|entry| entry.candidate.origin == AddressOrigin::Literal));
        assert!(plan.entries[0].reasons.contains(&PlanReason(ReasonKind::Literal)));
    }
}

#[test]
fn the_scope_of_a_literal_goes_into_the_candidate() {
    let target = https("[fe80::1%3]", 443);
    let ladder = TestedResolution::new(target, network(&[("fe80::9", 64)]), Policy::default(), 1);
    let expected: SocketAddr = "[fe80::1%3]:443".parse().unwrap();
    assert_eq!(ladder.plan().entries[0].candidate.address, expected);
}

/// RFC 6761 §6.3
#[test]
fn localhost_is_never_queried() {
    for host in ["localhost", "LocalHost.", "app.localhost"] {
        let ladder = TestedResolution::new(https(host, 8443), network(&[]), Policy::default(), 1)
            .asks(&[])
            .starts_with(&["::1", "127.0.0.1"]);
        let entry = &ladder.plan().entries[0];
        assert_eq!(entry.candidate.origin, AddressOrigin::Localhost);
        assert!(entry.reasons.contains(&PlanReason(ReasonKind::Localhost)));
    }
}

//= hev3 §8.3
//# an IPv4 literal without an applicable route is synthesised too
/// HEv3 §8.3: literals too.
#[test]
fn an_ipv4_literal_goes_through_nat64() {
    let target = https("192.0.2.1", 443);
    let ladder = TestedResolution::new(target, nat64(), Policy::default(), 1)
        .starts_with(&["64:ff9b::c000:201"]);
    let candidate = &ladder.plan().entries[0].candidate;
    assert_eq!(candidate.origin, AddressOrigin::Synthesised);
}

/// Without NAT64 there is no route; it is tried all the same, so that the kernel reports why it
/// fails.
#[test]
fn a_literal_without_a_route_is_tried_as_a_last_resort() {
    let ladder = TestedResolution::new(https("192.0.2.1", 443), ipv6_only(), Policy::default(), 1);
    let plan = ladder.plan();
    assert_eq!(plan.entries.len(), 1);
    assert!(plan.entries[0].reasons.contains(&PlanReason(ReasonKind::LastResort)));
    assert_eq!(plan.dropped.len(), 1);
}

//= rfc8305 §3
//# the first IPv6 attempt starts at once with AAAA; where HTTPS is queried, it is waited for (HEv3
//# §4.2)
/// The service of the paper: no HTTPS records, the transports of the caller, no ALPN.
#[test]
fn plain_services_query_addresses_only() {
    let transports = [Transport::Sctp, Transport::Tcp];
    let host = TargetHost::parse("example.com").unwrap();
    let target = Target::plain(host, 7, transports.to_vec(), Security::None);
    let policy = Policy { transports: transports.to_vec(), ..Policy::default() };
    let ladder = TestedResolution::new(target, dual_stack(), policy, 1)
        .asks(&["example.com AAAA", "example.com A"])
        .answers(&["example.com AAAA 2001:db8::1"])
        .starts_with(&["2001:db8::1"]);
    let plan = ladder.plan();
    let tried: Vec<_> = plan.entries.iter().map(|entry| entry.candidate.transport).collect();
    assert_eq!(tried, transports);
}
