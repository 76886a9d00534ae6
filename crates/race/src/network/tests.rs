//! Routes and families.

use alloc::{vec, vec::Vec};

use super::*;
use crate::evidence::NetworkId;

fn source(address: &str, prefix_len: u8, routed: bool) -> SourceAddress {
    SourceAddress { address: address.parse().unwrap(), prefix_len, deprecated: false, routed }
}

fn network(sources: Vec<SourceAddress>) -> NetworkView {
    NetworkView { id: NetworkId("test".into()), sources, pref64: Vec::new(), lacking: Vec::new() }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

//= hev3 §4.1
//# AAAA with IPv6 connectivity, A with IPv4: a route, and a source that is neither loopback nor
//# link-local
#[test]
fn link_local_and_loopback_sources_are_not_connectivity() {
    let offline = network(vec![
        source("127.0.0.1", 8, true),
        source("::1", 128, true),
        source("fe80::1", 64, true),
        source("169.254.0.1", 16, true),
        source("192.0.2.9", 24, false),
    ]);
    assert!(offline.is_offline());
    assert!(offline.reaches(ip("127.0.0.53")), "the machine itself");
    assert!(offline.reaches(ip("fe80::2")), "the link");
    assert!(offline.reaches(ip("192.0.2.1")), "on the link of the third");
    assert!(!offline.reaches(ip("198.51.100.1")));
    assert!(!offline.reaches(ip("2001:db8::1")));
}

//= hev3 §4.2
//# the family with the only default route is preferred, otherwise IPv6
#[test]
fn the_only_family_with_a_route_is_the_preferred_one() {
    let v4 = network(vec![source("192.0.2.9", 24, true)]);
    let v6 = network(vec![source("2001:db8::9", 64, true)]);
    let both = network(vec![source("192.0.2.9", 24, true), source("2001:db8::9", 64, true)]);
    assert_eq!(v4.preferred_family(false), AddressFamily::V4);
    assert_eq!(v6.preferred_family(true), AddressFamily::V6);
    assert_eq!(both.preferred_family(false), AddressFamily::V6);
    assert_eq!(both.preferred_family(true), AddressFamily::V4);
    assert_eq!(network(Vec::new()).preferred_family(false), AddressFamily::V6);
}

//= hev3 §8.3
//# IPv4 without an applicable route MUST be synthesised
//= otherwise: a route to only some networks counts for all
#[test]
fn nat64_only_replaces_a_missing_ipv4_route() {
    let mut v6_only = network(vec![source("2001:db8::9", 64, true)]);
    assert!(!v6_only.can_try(ip("192.0.2.1")));
    v6_only.pref64 = vec![nat64::WELL_KNOWN_PREFIX];
    let translated = "64:ff9b::192.0.2.1".parse().unwrap();
    assert_eq!(v6_only.synthesised(Ipv4Addr::new(192, 0, 2, 1), None), Some(translated));
    assert!(v6_only.can_try(ip("192.0.2.1")));
    assert_eq!(v6_only.desynthesised(translated), ip("192.0.2.1"));
    assert_eq!(v6_only.desynthesised("2001:db8::1".parse().unwrap()), ip("2001:db8::1"));
    let mut dual = v6_only.clone();
    dual.sources.push(source("192.0.2.9", 24, true));
    assert_eq!(dual.synthesised(Ipv4Addr::new(192, 0, 2, 1), None), None);
    let only = Some(AddressFamily::V6);
    assert_eq!(dual.synthesised(Ipv4Addr::new(192, 0, 2, 1), only), Some(translated));
}

#[test]
fn what_a_nat64_translates_belongs_to_both_families() {
    let (v4, v6) = (ip("192.0.2.1"), ip("2001:db8::1"));
    let (only_v4, only_v6) = (Some(AddressFamily::V4), Some(AddressFamily::V6));
    let mut v6_only = network(vec![source("2001:db8::9", 64, true)]);
    assert!(!v6_only.admits(only_v6, v4) && v6_only.admits(only_v6, v6));
    assert!(v6_only.admits(only_v4, v4) && !v6_only.admits(only_v4, v6));
    v6_only.pref64 = vec![nat64::WELL_KNOWN_PREFIX];
    assert!(v6_only.admits(only_v6, v4) && v6_only.admits(only_v6, v6));
    assert!(v6_only.admits(only_v4, v4) && !v6_only.admits(only_v4, v6));
    assert_eq!(v6_only.on_the_wire(v4, only_v4), ip("64:ff9b::192.0.2.1"));
    assert!(v6_only.admits(None, v4) && v6_only.admits(None, v6));
}
