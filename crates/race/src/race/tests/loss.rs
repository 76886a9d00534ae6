//! Networks that lose packets: how a race tells it, and what it does where it is remembered.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{Evidence, Level, NetworkId, Trust};
use crate::io::{AttemptId, Input, Output};
use crate::memory::{Config, Memory};
use crate::policy::Policy;
use crate::reason::Reason;
use crate::target::Host;

fn quic_only() -> Policy {
    Policy { transports: vec![Transport::Quic], ..Policy::of_first_tries() }
}

/// What the race tells the memory of the handshakes it has completed by now.
fn told(scene: &mut Scene) -> Vec<Option<bool>> {
    scene
        .learnt()
        .into_iter()
        .filter(|evidence| evidence.is_good())
        .map(|evidence| evidence.sent_again)
        .collect()
}

/// A race at home, where handshakes with other hosts sent packets again.
fn at_a_lossy_home(policy: Policy) -> Scene {
    at_a_home_that_loses(policy, None, None)
}

/// The same where the round trips to those hosts were so long, and to the one that is asked.
fn at_a_home_that_loses(policy: Policy, others: Option<u64>, own: Option<u64>) -> Scene {
    let mut memory = Memory::new(Config::default());
    for name in ["b.test", "c.test", "d.test"] {
        memory.learn(
            &Evidence {
                host: Host::Name(name.into()),
                sent_again: Some(true),
                rtt: others.map(ms),
                ..good(Transport::Tcp)
            },
            &Trust::default(),
        );
    }
    if let Some(own) = own {
        let known = Evidence { rtt: Some(ms(own)), ..good(Transport::Quic) };
        memory.learn(&known, &Trust::default());
    }
    let mut setup = setup(policy);
    setup.view =
        memory.view(&NetworkId("home".into()), &setup.target.host, &Trust::default(), EPOCH);
    Scene::with(setup, &[V4])
}

#[test]
fn an_answer_within_its_round_trip_shows_no_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(40);
    scene.ready(0);
    assert_eq!(told(&mut scene), [Some(false)]);
}

#[test]
fn an_answer_after_the_probe_timeout_shows_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(1_030);
    scene.answered(0);
    scene.until(1_040);
    scene.ready(0);
    assert_eq!(told(&mut scene), [Some(true)]);
}

/// The peer is far, or slow: what was answered after more than a second took that second.
#[test]
fn a_long_round_trip_is_no_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(1_200);
    let (id, rtt) = (AttemptId(0), Some(ms(1_190)));
    scene.input(Input::Ready { id, alpn: None, rtt, fell_back: false });
    assert_eq!(told(&mut scene), [Some(false)]);
}

#[test]
fn a_second_try_that_overtakes_a_silent_first_one_shows_loss() {
    let mut scene = Scene::new(&[V4], Policy { second_tries: 1, ..quic_only() });
    scene.until(270);
    scene.ready(1);
    assert_eq!(told(&mut scene), [Some(true)]);
}

/// ```text
/// 0     quic ──▶
/// 100   quic ──▶        a second try, instead of 250
/// 120   tcp ──▶         instead of 30
/// ```
#[test]
fn on_a_lossy_network_the_preferred_transport_gets_more_time_and_a_second_try() {
    let mut scene = at_a_lossy_home(Policy::default());
    let lines = scene.until(120);
    assert_eq!(
        lines,
        ["0 start 0 quic 192.0.2.1", "100 start 1 quic 192.0.2.1", "120 start 2 tcp 192.0.2.1"]
    );
    let says = |reason: &Reason| matches!(reason, Reason::NetworkLoses { second_tries: 3, .. });
    assert!(scene.race.plan().notes.iter().any(says));
}

#[test]
fn without_the_memory_there_is_neither_more_time_nor_a_second_try() {
    let ignores = Policy { ignore_memory: true, ..Policy::default() };
    let lines = at_a_lossy_home(ignores).until(200);
    assert_eq!(lines, ["0 start 0 quic 192.0.2.1", "30 start 1 tcp 192.0.2.1"]);
    let refuses = Policy { second_tries: 0, ..Policy::default() };
    let lines = at_a_lossy_home(refuses).until(500);
    assert_eq!(lines, ["0 start 0 quic 192.0.2.1", "30 start 1 tcp 192.0.2.1"]);
}

/// Where the hosts of the network are near, the next one is not waited for longer than it takes.
#[test]
fn on_a_lossy_network_with_near_hosts_the_wait_is_short() {
    let lines = at_a_home_that_loses(Policy::default(), Some(2), None).until(50);
    assert_eq!(
        lines,
        ["0 start 0 quic 192.0.2.1", "30 start 1 quic 192.0.2.1", "50 start 2 tcp 192.0.2.1"]
    );
}

/// A remembered server that is far away is tried again, and TCP started, as soon as with a stranger.
#[test]
fn on_a_lossy_network_a_remembered_server_gets_no_more_time_than_an_unknown_one() {
    let stranger = at_a_home_that_loses(Policy::default(), Some(80), None).until(150);
    let known = at_a_home_that_loses(Policy::default(), Some(80), Some(80)).until(150);
    assert_eq!(known, stranger);
    assert_eq!(known[2], "120 start 2 tcp 192.0.2.1");
}

/// ```text
/// 0     tcp ──▶
/// 20    tcp ◀── SYN ACK
/// 40    TLS should have been up
/// 250   TLS is up: the flight of the server was sent again
/// ```
#[test]
fn a_later_flight_that_was_sent_again_shows_loss_though_the_first_was_answered_at_once() {
    let tcp_only = || Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() };
    for (complete_at, lost) in [(70, false), (250, true)] {
        let mut scene = Scene::new(&[V4], tcp_only());
        scene.until(20);
        scene.reaches(0, Level::Transport, Some(ms(20)));
        scene.until(complete_at);
        scene.ready(0);
        assert_eq!(told(&mut scene), [Some(lost)], "TLS after {complete_at} ms");
    }
    for (complete_at, lost) in [(30, false), (110, true)] {
        let mut scene = Scene::new(&[V4], quic_only());
        scene.until(20);
        scene.answered(0);
        scene.until(complete_at);
        scene.ready(0);
        assert_eq!(told(&mut scene), [Some(lost)], "QUIC after {complete_at} ms");
    }
}

impl Scene {
    /// What is learnt now.
    fn learnt(&mut self) -> Vec<Evidence> {
        let mut learnt = Vec::new();
        loop {
            match self.output() {
                Output::Learn(evidence) => learnt.push(evidence),
                Output::Timeout(_) => return learnt,
                _ => {}
            }
        }
    }
}
