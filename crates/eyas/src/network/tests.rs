use std::net::{IpAddr, Ipv6Addr};

use eyas_host::neighbours::parse;
use eyas_host::routes::{HostRoute, parse_v4, parse_v6};
use eyas_race::evidence::NetworkId;
use eyas_race::io::{NetworkView, SourceAddress};
use eyas_race::nat64::WELL_KNOWN_PREFIX;

use super::identity::NetworkIdentity;
use super::{CurrentNetwork, has_changed, pref64};
use crate::Resolver;
use crate::memory_store::InstallationSecret;

const V4: &str = "\
Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0
eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0";

const V6: &str = "\
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000002 00000000 00000003 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo";

const NEIGHBOURS: &str = "\
IP address HW type Flags HW address Mask Device
192.0.2.1 0x1 0x2 02:fc:00:00:00:05 * eth0
192.0.2.9 0x1 0x2 02:fc:00:00:00:09 * eth0";

fn identity(routes: Vec<HostRoute>, neighbours: &str) -> NetworkIdentity {
    let secret = InstallationSecret::for_process();
    NetworkIdentity::from_routes(routes, |gateway, on| parse(neighbours, gateway, on), &secret)
}

fn network() -> CurrentNetwork {
    CurrentNetwork::new(
        Resolver::server("127.0.0.1:9".parse().unwrap()),
        InstallationSecret::for_process(),
    )
}

#[test]
fn the_gateway_distinguishes_networks() {
    let home = identity(parse_v4(V4), NEIGHBOURS);
    let elsewhere = identity(parse_v4(V4), &NEIGHBOURS.replace("00:05", "00:06"));
    assert_ne!(home.id(), elsewhere.id());
    assert!(!home.is_same_network(&elsewhere));
    assert_eq!(home.id(), identity(parse_v4(V4), NEIGHBOURS).id());
    let dual = parse_v4(V4).into_iter().chain(parse_v6(V6)).collect();
    assert_ne!(identity(dual, NEIGHBOURS).id(), home.id());
}

/// There are few possible gateway addresses, and not many more hardware addresses. It must not be
/// possible to find those behind an identity in a trace by trying them all.
#[test]
fn an_identity_means_nothing_to_another_installation() {
    let hardware_address = |gateway, on: &str| parse(NEIGHBOURS, gateway, on);
    let with_secret =
        |secret| NetworkIdentity::from_routes(parse_v4(V4), hardware_address, &secret);
    let (first, second) =
        (with_secret(InstallationSecret::random()), with_secret(InstallationSecret::random()));
    assert_ne!(first.id(), second.id());
    assert_ne!(first.provisional_id(), second.provisional_id());
    assert!(first.is_same_network(&second), "both are the same network");
}

#[test]
fn a_network_is_named_by_interface_and_gateway() {
    let name = |routes| identity(routes, NEIGHBOURS).name().to_owned();
    assert_eq!(name(parse_v4(V4)), "eth0 via 192.0.2.1");
    let dual = parse_v4(V4).into_iter().chain(parse_v6(V6)).collect();
    assert_eq!(name(dual), "eth0 via 192.0.2.1", "each interface is named once");
    assert_eq!(name(parse_v6(V6)), "eth0 via fe80::1");
    let on_link = parse_v4(V4).into_iter().filter(|route| !route.is_default()).collect();
    assert_eq!(name(on_link), "eth0 on 192.0.2.0/24");
    assert_eq!(name(Vec::new()), "no network");
    let many = (0..9).map(|n| HostRoute {
        destination: IpAddr::from([10, 0, n, 0]),
        prefix_len: 24,
        gateway: None,
        metric: 0,
        interface: format!("veth{n}"),
    });
    let name = name(many.collect());
    assert!(name.starts_with("veth0 on 10.0.0.0/24, ") && name.ends_with(" and 6 more"), "{name}");
}

#[test]
fn learning_the_gateway_does_not_change_the_network() {
    let provisional = identity(parse_v4(V4), "");
    let complete = identity(parse_v4(V4), NEIGHBOURS);
    assert!(provisional.is_provisional() && !complete.is_provisional());
    assert!(provisional.is_same_network(&complete));
    assert_eq!(provisional.id(), complete.provisional_id());
}

//= rfc9460 §12
//# the DNS cache MUST be flushed or partitioned when the network changes: flushed
#[test]
fn only_a_changed_route_restarts_a_race() {
    let source = |address: &str, routed| SourceAddress {
        address: address.parse().unwrap(),
        prefix_len: 64,
        deprecated: false,
        routed,
    };
    let view = |sources: &[SourceAddress]| NetworkView {
        id: NetworkId("same".into()),
        sources: sources.to_vec(),
        pref64: vec![],
        lacking: vec![],
    };
    let routed = source("2001:db8::1", true);
    let before = view(&[routed]);
    let container = source("172.17.0.1", false);
    let link_local = source("fe80::1", true);
    assert!(!has_changed(&before, &view(&[container, routed, link_local])));
    assert!(has_changed(&before, &view(&[source("2001:db8::2", true)])));
    assert!(has_changed(&before, &view(&[])));
    let translated = NetworkView { pref64: vec![WELL_KNOWN_PREFIX], ..before.clone() };
    assert!(has_changed(&before, &translated));
}

//= hev3 §8.1
//# ipv4only.arpa is queried where there is IPv6 and no IPv4 route; Router Advertisements are not
//# read
#[test]
fn prefixes_are_found_in_the_well_known_name() {
    let of = |text: &str| pref64::prefixes(&[text.parse().unwrap()]);
    let prefix = |text: &str, len| vec![(text.parse::<Ipv6Addr>().unwrap(), len)];
    assert_eq!(of("64:ff9b::192.0.0.170"), prefix("64:ff9b::", 96));
    assert_eq!(of("2001:db8:c000:aa::"), prefix("2001:db8::", 32));
    assert_eq!(of("2001:db8:1:2:c0:0:ab00:0"), prefix("2001:db8:1:2::", 64));
    assert_eq!(of("2001:db8::1"), vec![], "no well-known address inside");
}

#[tokio::test]
async fn this_machine_has_a_loopback_and_one_identity() {
    let network = network();
    let view = network.view().await;
    let loopback = |ip: IpAddr| view.sources.iter().any(|source| source.address == ip);
    assert!(loopback("127.0.0.1".parse().unwrap()), "{view:?}");
    let second = network.view().await;
    assert_eq!(view.sources, second.sources);
    assert_eq!(network.final_id(&view.id), network.final_id(&second.id));
}

#[tokio::test]
async fn a_preliminary_view_is_reused_once() {
    let network = network();
    let preliminary = network.view_without_waiting();
    let (_, stored) = network.lock().preliminary.clone().expect("changes are watched");
    assert_eq!((stored.id, stored.sources), (preliminary.id.clone(), preliminary.sources.clone()));
    // Change it, to see that the complete view is based on it.
    let other = NetworkId("other".into());
    network.lock().preliminary.as_mut().expect("stored").1.id = other.clone();
    assert_eq!(network.view().await.id, other);
    assert!(network.lock().preliminary.is_none(), "it is used once");
}
