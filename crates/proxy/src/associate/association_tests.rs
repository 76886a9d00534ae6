//! Datagrams of a client, of its peers, and of other hosts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::evidence::NetworkId;
use eyas::race::io::NetworkView;
use eyas_relay::destination::Destination;
use eyas_relay::rules::{ClientRules, DestinationRules};
use proptest::prelude::*;

use super::association::{AssociationOutput, MAX_WAITING, UdpAssociation};
use super::*;
use crate::report::DropReason;

const START: Duration = Duration::from_secs(1);
const CLIENT: &str = "198.51.100.7:4000";

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Returns the rules for a client at an address with a port, of a proxy without addresses.
pub(super) fn client_rules(rules: DestinationRules, client: &str) -> ClientRules {
    let network = NetworkView {
        id: NetworkId("test".into()),
        sources: Vec::new(),
        pref64: Vec::new(),
        lacking: Vec::new(),
    };
    ClientRules::new(&Arc::new(rules), at(client).ip(), Arc::new(network))
}

fn association(rules: DestinationRules, destinations: usize) -> UdpAssociation {
    let rules = client_rules(rules, CLIENT);
    UdpAssociation::new(AssociationSetup { port: None, rules, destinations })
}

fn to_address(to: &str, data: &[u8]) -> Bytes {
    datagram::write(at(to), data)
}

fn to_name(name: &str, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    [&[0, 0, 0, 3, length], name.as_bytes(), &[0, 53], data].concat()
}

fn named(name: &str) -> Destination {
    Destination::new(eyas::TargetHost::parse(name).expect("a host"), 53)
}

/// Returns the next output, which is a datagram to a peer.
fn sent(association: &mut UdpAssociation) -> (SocketAddr, Bytes) {
    match association.poll_output() {
        Some(AssociationOutput::Send { to, data, .. }) => (to, data),
        other => panic!("{other:?}"),
    }
}

fn dropped(association: &UdpAssociation, why: DropReason) -> u64 {
    association.dropped()[why as usize]
}

#[test]
fn datagrams_are_relayed_in_both_directions() {
    let mut association = association(DestinationRules::default(), 9);
    association.handle_client(START, at(CLIENT), &to_address("8.8.2.1:53", b"question"));
    assert_eq!(sent(&mut association), (at("8.8.2.1:53"), Bytes::from_static(b"question")));
    association.handle_peer(at("8.8.2.1:53"), b"answer");
    let datagram = to_address("8.8.2.1:53", b"answer");
    let expected = AssociationOutput::Deliver { to: at(CLIENT), datagram, length: 6 };
    assert_eq!(association.poll_output(), Some(expected));
    for other in ["8.8.2.1:54", "8.8.2.2:53"] {
        association.handle_peer(at(other), b"forged");
    }
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, DropReason::Unsolicited), 2);
}

//= rfc9298 §3.1
//# only datagrams of the target are forwarded to the client
/// ```text
/// 198.51.100.7:4000   owns the association
/// 198.51.100.8:4000   another host
/// 198.51.100.7:4001   another program of the same host, or one behind the same NAT
/// ```
#[test]
fn only_its_client_uses_an_association() {
    let mut association = association(DestinationRules::default(), 9);
    let question = to_address("8.8.2.1:53", b"x");
    association.handle_client(START, at("198.51.100.8:4000"), &question);
    assert_eq!(association.poll_output(), None);
    association.handle_client(START, at("[::ffff:198.51.100.7]:4000"), &question);
    sent(&mut association);
    association.handle_client(START, at("198.51.100.7:4001"), &question);
    association.handle_client(START, at("198.51.100.8:4000"), &question);
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, DropReason::NotTheClient), 3);

    let rules = client_rules(DestinationRules::default(), CLIENT);
    let setup = AssociationSetup { port: Some(7), rules, destinations: 9 };
    let mut announced = UdpAssociation::new(setup);
    announced.handle_client(START, at(CLIENT), &question);
    assert_eq!(announced.poll_output(), None, "it has announced another port");
    announced.handle_client(START, at("198.51.100.7:7"), &question);
    sent(&mut announced);
}

#[test]
fn the_rules_apply_to_each_datagram() {
    let rules = DestinationRules {
        deny: vec!["8.8.2.0/24".parse().expect("a rule")],
        ..DestinationRules::default()
    };
    let mut association = association(rules, 9);
    for denied in ["8.8.2.1:53", "127.0.0.1:53", "10.0.0.1:53", "[::1]:53"] {
        association.handle_client(START, at(CLIENT), &to_address(denied, b"x"));
    }
    association.handle_client(START, at(CLIENT), &to_name("localhost", b"x"));
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, DropReason::NotAllowed), 5);
    association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    assert_eq!(association.poll_output(), Some(AssociationOutput::Resolve(named("a.test"))));
    let ips = vec![ip("10.0.0.1"), ip("9.9.113.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    assert_eq!(sent(&mut association).0, at("9.9.113.1:53"));
    association.handle_client(START, at(CLIENT), &to_name("b.test", b"x"));
    assert_eq!(association.poll_output(), Some(AssociationOutput::Resolve(named("b.test"))));
    association.handle_addresses(START, &named("b.test"), vec![ip("::1")]);
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, DropReason::NotAllowed), 6);
}

/// ```text
/// 0    2620:fe::1  gets the first datagram, and does not answer
/// 250  8.8.2.1    gets the next one, and answers: it is kept
/// ```
#[test]
fn the_family_that_answers_is_kept() {
    let mut association = association(DestinationRules::default(), 9);
    let send = |association: &mut UdpAssociation, after: u64| {
        let now = START + Duration::from_millis(after);
        association.handle_client(now, at(CLIENT), &to_name("a.test", b"x"));
    };
    send(&mut association, 0);
    association.poll_output();
    let ips = vec![ip("2620:fe::1"), ip("8.8.2.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    assert_eq!(sent(&mut association).0, at("[2620:fe::1]:53"));
    send(&mut association, 249);
    assert_eq!(sent(&mut association).0, at("[2620:fe::1]:53"));
    send(&mut association, 250);
    assert_eq!(sent(&mut association).0, at("8.8.2.1:53"));
    association.handle_peer(at("8.8.2.1:53"), b"y");
    association.poll_output();
    send(&mut association, 9000);
    assert_eq!(sent(&mut association).0, at("8.8.2.1:53"));
}

#[test]
fn without_any_answer_the_best_address_is_kept() {
    let mut association = association(DestinationRules::default(), 9);
    let mut are_ipv6 = Vec::new();
    for number in 0..6 {
        let now = START + Duration::from_millis(250) * number;
        association.handle_client(now, at(CLIENT), &to_name("a.test", b"x"));
        while let Some(output) = association.poll_output() {
            match output {
                AssociationOutput::Send { to, .. } => are_ipv6.push(to.is_ipv6()),
                AssociationOutput::Resolve(name) => {
                    let ips = vec![ip("2620:fe::1"), ip("8.8.2.1")];
                    association.handle_addresses(now, &name, ips);
                }
                AssociationOutput::Deliver { .. } => panic!("there was no answer"),
            }
        }
    }
    assert_eq!(are_ipv6, [true, false, true, true, true, true]);
}

#[test]
fn a_family_without_a_route_is_abandoned_at_once() {
    let mut association = association(DestinationRules::default(), 9);
    association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    association.poll_output();
    let ips = vec![ip("2620:fe::1"), ip("8.8.2.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    for next in ["[2620:fe::1]:53", "8.8.2.1:53"] {
        let Some(AssociationOutput::Send { to, data, remaining }) = association.poll_output()
        else {
            panic!()
        };
        assert_eq!(to, at(next));
        association.refused(START, to, data, remaining);
    }
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, DropReason::Unreachable), 1);
}

#[test]
fn the_memory_of_an_association_is_bounded() {
    let mut association = association(DestinationRules::default(), 4);
    for number in 0..100 {
        association.handle_client(START, at(CLIENT), &to_name(&format!("a{number}.test"), b"x"));
        association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    }
    let waiting = format!("{association:?}").matches("b\"x\"").count();
    assert!(waiting <= MAX_WAITING, "{waiting} datagrams wait");
    let outputs = std::iter::from_fn(|| association.poll_output()).count();
    assert!(outputs <= 200);
    assert!(dropped(&association, DropReason::Full) > 0);
}

proptest! {
    //= hostile proxy
    //# datagrams to the proxy's own network
    //= bound: the rules apply to each
    /// Whatever a client sends, nothing goes to a forbidden address.
    #[test]
    fn private_destinations_are_refused(datagrams in prop::collection::vec((any::<bool>(), any::<u128>(), 0_u8..3), 1..50)) {
        let mut association = association(DestinationRules::default(), 4);
        for (v6, bits, shape) in datagrams {
            let ip: IpAddr = if v6 { IpAddr::V6(bits.into()) } else { IpAddr::V4((bits as u32).into()) };
            let near = if shape == 1 { ip } else { IpAddr::from([10, 0, 0, bits as u8]) };
            association.handle_client(START, at(CLIENT), &datagram::write(SocketAddr::new(near, 53), b"x"));
            if shape == 2 {
                association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
                association.handle_addresses(START, &named("a.test"), vec![near, ip]);
            }
            while let Some(output) = association.poll_output() {
                if let AssociationOutput::Send { to, .. } = output {
                    prop_assert!(client_rules(DestinationRules::default(), CLIENT).of_address(to.ip(), to.port()).is_ok());
                }
            }
        }
    }
}
