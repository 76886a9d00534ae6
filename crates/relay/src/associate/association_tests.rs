//! A client, its datagrams, and those of others.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::handshake::Destination;
use crate::rules::Rules;

const START: Duration = Duration::from_secs(1);
const CLIENT: &str = "198.51.100.7:4000";

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn association(rules: Rules, destinations: usize) -> Association {
    let client = at(CLIENT).ip();
    Association::new(Setup { client, port: None, rules: Arc::new(rules), destinations })
}

fn to_address(to: &str, data: &[u8]) -> Bytes {
    datagram::write(at(to), data)
}

fn to_name(name: &str, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    [&[0, 0, 0, 3, length], name.as_bytes(), &[0, 53], data].concat()
}

fn named(name: &str) -> Destination {
    Destination { host: eyas::Host::parse(name).expect("a host"), port: 53 }
}

/// Where the next datagram is sent, which is the next thing to do.
fn sent(association: &mut Association) -> (SocketAddr, Bytes) {
    match association.poll_output() {
        Some(Output::Send { to, data, .. }) => (to, data),
        other => panic!("{other:?}"),
    }
}

fn dropped(association: &Association, why: Dropped) -> u64 {
    association.dropped()[why as usize]
}

#[test]
fn datagrams_are_relayed_in_both_directions() {
    let mut association = association(Rules::default(), 9);
    association.handle_client(START, at(CLIENT), &to_address("192.0.2.1:53", b"question"));
    assert_eq!(sent(&mut association), (at("192.0.2.1:53"), Bytes::from_static(b"question")));
    association.handle_peer(at("192.0.2.1:53"), b"answer");
    let datagram = to_address("192.0.2.1:53", b"answer");
    let wanted = Output::Deliver { to: at(CLIENT), datagram, length: 6 };
    assert_eq!(association.poll_output(), Some(wanted));
    for stranger in ["192.0.2.1:54", "192.0.2.2:53"] {
        association.handle_peer(at(stranger), b"lies");
    }
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, Dropped::Unsolicited), 2);
}

/// ```text
/// 198.51.100.7:4000   has the association
/// 198.51.100.8:4000   another host
/// 198.51.100.7:4001   another program of the same host, or one behind the same NAT
/// ```
#[test]
fn nobody_else_uses_the_association() {
    let mut association = association(Rules::default(), 9);
    let question = to_address("192.0.2.1:53", b"x");
    association.handle_client(START, at("198.51.100.8:4000"), &question);
    assert_eq!(association.poll_output(), None);
    association.handle_client(START, at("[::ffff:198.51.100.7]:4000"), &question);
    sent(&mut association);
    association.handle_client(START, at("198.51.100.7:4001"), &question);
    association.handle_client(START, at("198.51.100.8:4000"), &question);
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, Dropped::Stranger), 3);

    let client = at(CLIENT).ip();
    let setup = Setup { client, port: Some(7), rules: Arc::default(), destinations: 9 };
    let mut told = Association::new(setup);
    told.handle_client(START, at(CLIENT), &question);
    assert_eq!(told.poll_output(), None, "it has said that it sends from another port");
    told.handle_client(START, at("198.51.100.7:7"), &question);
    sent(&mut told);
}

#[test]
fn each_datagram_is_held_to_the_rules() {
    let rules = Rules { deny: vec!["192.0.2.0/24".parse().expect("a rule")], ..Rules::default() };
    let mut association = association(rules, 9);
    for denied in ["192.0.2.1:53", "127.0.0.1:53", "10.0.0.1:53", "[::1]:53"] {
        association.handle_client(START, at(CLIENT), &to_address(denied, b"x"));
    }
    association.handle_client(START, at(CLIENT), &to_name("localhost", b"x"));
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, Dropped::NotAllowed), 5);
    association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    assert_eq!(association.poll_output(), Some(Output::Resolve(named("a.test"))));
    let ips = vec![ip("10.0.0.1"), ip("203.0.113.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    assert_eq!(sent(&mut association).0, at("203.0.113.1:53"));
    association.handle_client(START, at(CLIENT), &to_name("b.test", b"x"));
    assert_eq!(association.poll_output(), Some(Output::Resolve(named("b.test"))));
    association.handle_addresses(START, &named("b.test"), vec![ip("::1")]);
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, Dropped::NotAllowed), 6);
}

/// ```text
/// 0    2001:db8::1  hears it, and nothing comes back
/// 250  192.0.2.1    hears what the client says next, and answers: it stays there
/// ```
#[test]
fn the_family_that_answers_is_the_one() {
    let mut association = association(Rules::default(), 9);
    let say = |association: &mut Association, after: u64| {
        let now = START + Duration::from_millis(after);
        association.handle_client(now, at(CLIENT), &to_name("a.test", b"x"));
    };
    say(&mut association, 0);
    association.poll_output();
    let ips = vec![ip("2001:db8::1"), ip("192.0.2.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    assert_eq!(sent(&mut association).0, at("[2001:db8::1]:53"));
    say(&mut association, 249);
    assert_eq!(sent(&mut association).0, at("[2001:db8::1]:53"));
    say(&mut association, 250);
    assert_eq!(sent(&mut association).0, at("192.0.2.1:53"));
    association.handle_peer(at("192.0.2.1:53"), b"y");
    association.poll_output();
    say(&mut association, 9000);
    assert_eq!(sent(&mut association).0, at("192.0.2.1:53"));
}

#[test]
fn without_any_answer_it_stays_with_the_best() {
    let mut association = association(Rules::default(), 9);
    let mut went = Vec::new();
    for number in 0..6 {
        let now = START + PATIENCE * number;
        association.handle_client(now, at(CLIENT), &to_name("a.test", b"x"));
        while let Some(output) = association.poll_output() {
            match output {
                Output::Send { to, .. } => went.push(to.is_ipv6()),
                Output::Resolve(name) => {
                    let ips = vec![ip("2001:db8::1"), ip("192.0.2.1")];
                    association.handle_addresses(now, &name, ips);
                }
                Output::Deliver { .. } => panic!("nothing comes back"),
            }
        }
    }
    assert_eq!(went, [true, false, true, true, true, true]);
}

#[test]
fn a_family_without_a_route_is_left_at_once() {
    let mut association = association(Rules::default(), 9);
    association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    association.poll_output();
    let ips = vec![ip("2001:db8::1"), ip("192.0.2.1")];
    association.handle_addresses(START, &named("a.test"), ips);
    for next in ["[2001:db8::1]:53", "192.0.2.1:53"] {
        let Some(Output::Send { to, data, left }) = association.poll_output() else { panic!() };
        assert_eq!(to, at(next));
        association.refused(START, to, data, left);
    }
    assert_eq!(association.poll_output(), None);
    assert_eq!(dropped(&association, Dropped::NoWay), 1);
}

#[test]
fn a_client_cannot_make_anything_grow() {
    let mut association = association(Rules::default(), 4);
    for number in 0..100 {
        association.handle_client(START, at(CLIENT), &to_name(&format!("a{number}.test"), b"x"));
        association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
    }
    let held = format!("{association:?}").matches("b\"x\"").count();
    assert!(held <= MAX_WAITING, "{held} datagrams wait");
    let asked = std::iter::from_fn(|| association.poll_output()).count();
    assert!(asked <= 200);
    assert!(dropped(&association, Dropped::Full) > 0);
}

proptest! {
    /// Whatever a client sends, nothing goes where it may not.
    #[test]
    fn private_destinations_are_refused(datagrams in prop::collection::vec((any::<bool>(), any::<u128>(), 0_u8..3), 1..50)) {
        let mut association = association(Rules::default(), 4);
        for (v6, bits, shape) in datagrams {
            let ip: IpAddr = if v6 { IpAddr::V6(bits.into()) } else { IpAddr::V4((bits as u32).into()) };
            let near = if shape == 1 { ip } else { IpAddr::from([10, 0, 0, bits as u8]) };
            association.handle_client(START, at(CLIENT), &datagram::write(SocketAddr::new(near, 53), b"x"));
            if shape == 2 {
                association.handle_client(START, at(CLIENT), &to_name("a.test", b"x"));
                association.handle_addresses(START, &named("a.test"), vec![near, ip]);
            }
            while let Some(output) = association.poll_output() {
                if let Output::Send { to, .. } = output {
                    prop_assert!(Rules::default().of_address(to.ip(), to.port(), at(CLIENT).ip()).is_ok());
                }
            }
        }
    }
}
