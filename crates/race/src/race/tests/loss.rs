//! Lossy networks: how a race detects them, and the effect of remembering them.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{Evidence, EvidenceLevel, NetworkId, TrustContext};
use crate::io::{AttemptId, RaceInput, RaceOutput};
use crate::memory::{Memory, MemoryConfig};
use crate::policy::Policy;
use crate::reason::{PlanReason, ReasonKind};
use crate::target::TargetHost;

fn quic_only() -> Policy {
    Policy { transports: vec![Transport::Quic], ..Policy::of_first_tries() }
}

/// The loss observed in each handshake that has completed since the last call.
fn observed_loss(scene: &mut Scene) -> Vec<Option<bool>> {
    scene
        .learnt()
        .into_iter()
        .filter(|evidence| evidence.is_good())
        .map(|evidence| evidence.sent_again)
        .collect()
}

/// A race at home, where handshakes with other hosts had to retransmit.
fn on_a_lossy_network(policy: Policy) -> Scene {
    on_a_lossy_network_with(policy, None, None)
}

/// The same, with these round-trip times to the other hosts and to the target.
fn on_a_lossy_network_with(policy: Policy, others: Option<u64>, own: Option<u64>) -> Scene {
    let mut memory = Memory::new(MemoryConfig::default());
    for name in ["b.test", "c.test", "d.test"] {
        memory.learn(
            &Evidence {
                host: TargetHost::Name(name.into()),
                sent_again: Some(true),
                rtt: others.map(ms),
                ..good(Transport::Tcp)
            },
            &TrustContext::default(),
        );
    }
    if let Some(own) = own {
        let known = Evidence { rtt: Some(ms(own)), ..good(Transport::Quic) };
        memory.learn(&known, &TrustContext::default());
    }
    let mut setup = setup(policy);
    setup.view =
        memory.view(&NetworkId("home".into()), &setup.target.host, &TrustContext::default(), EPOCH);
    Scene::with(setup, &[V4])
}

#[test]
fn an_answer_within_its_round_trip_shows_no_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(40);
    scene.ready(0);
    assert_eq!(observed_loss(&mut scene), [Some(false)]);
}

#[test]
fn an_answer_after_the_probe_timeout_shows_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(1_030);
    scene.answered(0);
    scene.until(1_040);
    scene.ready(0);
    assert_eq!(observed_loss(&mut scene), [Some(true)]);
}

/// The peer is distant or slow: an answer after more than a second took one round trip.
#[test]
fn a_long_round_trip_is_not_loss() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(1_200);
    let (id, rtt) = (AttemptId(0), Some(ms(1_190)));
    scene.input(RaceInput::Ready { id, alpn: None, rtt });
    assert_eq!(observed_loss(&mut scene), [Some(false)]);
}

#[test]
fn a_second_try_that_overtakes_a_silent_first_one_shows_loss() {
    let mut scene = Scene::new(&[V4], Policy { second_tries: 1, ..quic_only() });
    scene.until(270);
    scene.ready(1);
    assert_eq!(observed_loss(&mut scene), [Some(true)]);
}

/// ```text
/// 0     quic ──▶
/// 100   quic ──▶        a second try, instead of 250
/// 120   tcp ──▶         instead of 30
/// ```
#[test]
fn on_a_lossy_network_the_preferred_transport_gets_more_time_and_a_second_try() {
    let mut scene = on_a_lossy_network(Policy::default());
    let lines = scene.until(120);
    assert_eq!(
        lines,
        ["0 start 0 quic 192.0.2.1", "100 start 1 quic 192.0.2.1", "120 start 2 tcp 192.0.2.1"]
    );
    let is_loss_note = |reason: &PlanReason| {
        matches!(reason, PlanReason(ReasonKind::NetworkLoses { second_tries: 3, .. }))
    };
    assert!(scene.race.plan().notes.iter().any(is_loss_note));
}

#[test]
fn without_the_memory_there_is_neither_more_time_nor_a_second_try() {
    let ignores = Policy { ignore_memory: true, ..Policy::default() };
    let lines = on_a_lossy_network(ignores).until(200);
    assert_eq!(lines, ["0 start 0 quic 192.0.2.1", "30 start 1 tcp 192.0.2.1"]);
    let refuses = Policy { second_tries: 0, ..Policy::default() };
    let lines = on_a_lossy_network(refuses).until(500);
    assert_eq!(lines, ["0 start 0 quic 192.0.2.1", "30 start 1 tcp 192.0.2.1"]);
}

/// Where the hosts of the network are near, the wait for another one is short.
#[test]
fn on_a_lossy_network_with_near_hosts_the_wait_is_short() {
    let lines = on_a_lossy_network_with(Policy::default(), Some(2), None).until(50);
    assert_eq!(
        lines,
        ["0 start 0 quic 192.0.2.1", "30 start 1 quic 192.0.2.1", "50 start 2 tcp 192.0.2.1"]
    );
}

/// For a distant remembered server, the second try and TCP start as early as for an unknown one.
#[test]
fn on_a_lossy_network_a_remembered_server_gets_no_more_time_than_an_unknown_one() {
    let unknown = on_a_lossy_network_with(Policy::default(), Some(80), None).until(150);
    let known = on_a_lossy_network_with(Policy::default(), Some(80), Some(80)).until(150);
    assert_eq!(known, unknown);
    assert_eq!(known[2], "120 start 2 tcp 192.0.2.1");
}

/// ```text
/// 0     tcp ──▶
/// 20    tcp ◀── SYN ACK
/// 40    TLS should have been established
/// 250   TLS is established: the flight of the server was retransmitted
/// ```
#[test]
fn a_retransmission_of_a_later_flight_shows_loss() {
    let tcp_only = || Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() };
    for (complete_at, lost) in [(70, false), (250, true)] {
        let mut scene = Scene::new(&[V4], tcp_only());
        scene.until(20);
        scene.reaches(0, EvidenceLevel::Transport, Some(ms(20)));
        scene.until(complete_at);
        scene.ready(0);
        assert_eq!(observed_loss(&mut scene), [Some(lost)], "TLS after {complete_at} ms");
    }
    for (complete_at, lost) in [(30, false), (110, true)] {
        let mut scene = Scene::new(&[V4], quic_only());
        scene.until(20);
        scene.answered(0);
        scene.until(complete_at);
        scene.ready(0);
        assert_eq!(observed_loss(&mut scene), [Some(lost)], "QUIC after {complete_at} ms");
    }
}

impl Scene {
    /// The evidence learnt since the last call.
    fn learnt(&mut self) -> Vec<Evidence> {
        let mut learnt = Vec::new();
        loop {
            match self.output() {
                RaceOutput::Learn(evidence) => learnt.push(evidence),
                RaceOutput::Timeout(_) => return learnt,
                _ => {}
            }
        }
    }
}
