//! An unanswered attempt at a host that refuses another is not waited for until the deadline.

use proptest::prelude::*;

use super::scene::*;
use super::world::{Fate, World};
use crate::candidate::Transport;
use crate::evidence::{FailureCause, FailureDoubt, TrustContext};
use crate::io::{RaceFailure, RaceInput, RaceOutput};
use crate::policy::Policy;

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 51    tcp ◀── refused
/// 1251  quic: given up
/// ```
#[test]
fn a_host_that_refuses_ends_the_race_soon() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(51);
    scene.fails(1, FailureCause::Refused);
    let lines = scene.until(60_000);
    assert_eq!(
        lines[..3],
        [
            "51 learn tcp refused at Started",
            "1251 learn quic silent at Started",
            "1251 close 0 Silent",
        ]
    );
    assert!(lines[3].starts_with("1251 failed AllFailed([("), "{lines:?}");
    let expected = "no answer in 1251 ms, while the same host refused tcp";
    assert!(lines[3].contains(expected), "{lines:?}");
    assert_eq!(lines[4..], ["1251 finished"]);
}

/// The host is up, and would present the same certificate over QUIC as over TCP.
///
/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 90    tcp ◀── a certificate that is not accepted
/// 290   quic: given up
/// ```
#[test]
fn a_bad_certificate_is_reported_at_once_though_quic_is_silent() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.fails(1, FailureCause::Certificate);
    let lines = scene.until(60_000);
    let close = lines.iter().position(|line| line == "290 close 0 Silent");
    assert!(close.is_some(), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("learn quic")), "cut short: {lines:?}");
    let expected = "no answer in 290 ms, while the certificate that the same host presented over tcp is \
                not accepted";
    assert!(
        lines.iter().any(|line| line.starts_with("290 failed") && line.contains(expected)),
        "{lines:?}"
    );
}

#[test]
fn quic_that_has_been_answered_shows_its_own_certificate() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.fails(1, FailureCause::Certificate);
    scene.until(200);
    scene.answered(0);
    scene.until(600);
    scene.ready(0);
    assert!(scene.until(60_000).contains(&"600 usable 0".to_owned()));
}

/// The first Initial is lost; the second goes out after a second, and is answered.
#[test]
fn a_quic_only_server_wins_in_spite_of_a_lost_packet() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(51);
    scene.fails(1, FailureCause::Refused);
    scene.until(1_200);
    scene.answered(0);
    scene.until(1_400);
    scene.ready(0);
    let lines = ["1400 learn quic good at Security", "1400 usable 0", "1400 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn an_answer_in_the_last_moment_counts() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(51);
    scene.fails(1, FailureCause::Refused);
    scene.until(1_250);
    let at_the_end = EPOCH + ms(1_251);
    let id = crate::io::AttemptId(0);
    let level = crate::evidence::EvidenceLevel::Answered;
    scene.race.handle_input(at_the_end, RaceInput::Progress { id, level, rtt: None });
    assert!(matches!(scene.race.poll_output(at_the_end), RaceOutput::Timeout(_)));
}

#[test]
fn a_host_that_refuses_late_is_far_away_and_gets_its_round_trip() {
    let mut setup = setup(Policy::of_first_tries());
    setup.policy.transports.reverse();
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(600);
    scene.fails(0, FailureCause::Refused);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"1850 close 1 Silent".to_owned()), "started at 50: {lines:?}");
}

#[test]
fn without_a_refusal_the_deadline_holds() {
    for cause in
        [FailureCause::Unreachable, FailureCause::Silent, FailureCause::Reset, FailureCause::Tls]
    {
        let mut scene = Scene::new(&[V4], Policy::of_first_tries());
        scene.until(60);
        scene.fails(1, cause);
        let lines = scene.until(60_000);
        assert!(lines.contains(&"30000 close 0 Deadline".to_owned()), "{cause}: {lines:?}");
    }
}

#[test]
fn another_hosts_refusal_says_nothing() {
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    scene.until(260);
    scene.fails(0, FailureCause::Refused);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"30000 close 1 Deadline".to_owned()), "{lines:?}");
}

/// An address without a refusal is waited for; the one with a refusal is not.
#[test]
fn a_refusal_affects_only_its_own_address() {
    let policy = Policy { simultaneous: true, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    let starts = scene.until(0);
    assert_eq!(starts[0], "0 start 0 quic 2001:db8::1");
    let refused = starts.iter().position(|line| line.ends_with("tcp 2001:db8::1")).unwrap();
    scene.fails(u32::try_from(refused).unwrap(), FailureCause::Refused);
    let closed: Vec<_> =
        scene.until(60_000).into_iter().filter(|line| line.contains("close")).collect();
    assert_eq!(closed[0], "1200 close 0 Silent");
    assert_eq!(closed.len(), 3);
    assert!(closed[1..].iter().all(|line| line.starts_with("30000 ")), "{closed:?}");
}

#[test]
fn what_has_been_answered_keeps_the_deadline() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(51);
    scene.answered(0);
    scene.fails(1, FailureCause::Refused);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"30000 close 0 Deadline".to_owned()), "{lines:?}");
}

#[test]
fn dns_may_still_name_another_address() {
    let mut scene = Scene::unanswered(setup(Policy::of_first_tries()));
    scene.answer_only(crate::dns::RecordType::Aaaa, &[V6]);
    scene.answer_only(crate::dns::RecordType::Https, &[]);
    scene.until(60);
    scene.fails(1, FailureCause::Refused);
    let lines = scene.until(5_000);
    assert!(!lines.iter().any(|line| line.contains("Silent")), "{lines:?}");
}

/// A remembered round trip is the transport's first estimate, and its second packet goes out after
/// three of them.
#[test]
fn a_distant_host_gets_the_time_that_its_remembered_round_trip_needs() {
    use crate::memory::{Memory, MemoryConfig};
    let mut world = World { addresses: vec![V4.parse().unwrap()], ..World::default() };
    let address = "192.0.2.1:443".parse().unwrap();
    world.fates.insert((Transport::Quic, address), Fate::Works(ms(800)));
    world.fates.insert((Transport::Tcp, address), Fate::Fails(FailureCause::Refused, ms(10)));
    let mut memory = Memory::new(MemoryConfig::default());
    world
        .run(setup(Policy::of_first_tries()), EPOCH, None)
        .learnt()
        .for_each(|seen| memory.learn(seen, &TrustContext::default()));
    world.fates.insert((Transport::Quic, address), Fate::Silent);
    let host = target().host;
    let view =
        memory.view(&network("home").id, &host, &TrustContext::default(), EPOCH + ms(10_000));
    let next_setup = crate::race::RaceSetup { view, ..setup(Policy::of_first_tries()) };
    let run = world.run(next_setup, EPOCH + ms(10_000), None);
    let (quic, ended) = (run.starts()[0].0, run.outputs.last().unwrap().0);
    assert!(ended - quic >= 4 * ms(800), "given up after {:?}", ended - quic);
    assert!(ended - quic < ms(6_000), "given up after {:?}", ended - quic);
}

/// The server with the bad certificate may be near, and the working one far behind it.
#[test]
fn a_remembered_round_trip_is_waited_for_beside_a_certificate() {
    use crate::memory::{Memory, MemoryConfig};
    let mut world = World { addresses: vec![V4.parse().unwrap()], ..World::default() };
    let address = "192.0.2.1:443".parse().unwrap();
    world.fates.insert((Transport::Quic, address), Fate::Works(ms(330)));
    let mut memory = Memory::new(MemoryConfig::default());
    let first = world.run(setup(Policy::of_first_tries()), EPOCH, None);
    first.learnt().for_each(|seen| memory.learn(seen, &TrustContext::default()));
    world.fates.insert((Transport::Tcp, address), Fate::Fails(FailureCause::Certificate, ms(10)));
    let later = EPOCH + ms(10_000);
    let view = memory.view(&network("home").id, &target().host, &TrustContext::default(), later);
    let next_setup = crate::race::RaceSetup { view, ..setup(Policy::of_first_tries()) };
    let run = world.run(next_setup, later, None);
    assert_eq!(run.last_transport(), Some(Transport::Quic), "{:?}", run.outputs);
}

/// Three hosts without the service do not mean that the network drops UDP.
#[test]
fn a_refusing_host_says_nothing_about_the_network() {
    let mut world = World { addresses: vec![V4.parse().unwrap()], ..World::default() };
    let address = "192.0.2.1:443".parse().unwrap();
    world.fates.insert((Transport::Tcp, address), Fate::Fails(FailureCause::Refused, ms(1)));
    let run = world.run(setup(Policy::of_first_tries()), EPOCH, None);
    let silent: Vec<_> =
        run.learnt().filter(|e| e.candidate.transport == Transport::Quic).collect();
    assert_eq!(silent.len(), 1);
    assert_eq!(silent[0].doubt, Some(FailureDoubt::HostRefused));
}

/// Milliseconds.
fn any_round_trip() -> impl Strategy<Value = u64> {
    1..1_500_u64
}

proptest! {
    /// However distant the host is: one that answers the second packet wins, and one without a
    /// listening service is given up within the patience and two of its round trips.
    #[test]
    fn one_lost_first_packet_is_tolerated_and_nothing_more(
        round_trip in any_round_trip(),
        quic_first in any::<bool>(),
        listens in any::<bool>(),
    ) {
        let mut world = World { addresses: vec![V4.parse().unwrap()], ..World::default() };
        let address = "192.0.2.1:443".parse().unwrap();
        world.fates.insert((Transport::Tcp, address), Fate::Fails(FailureCause::Refused, ms(round_trip)));
        // The whole handshake takes two round trips of the fate.
        let second_try = Fate::Works(ms(1_000 + round_trip));
        world.fates.insert((Transport::Quic, address), if listens { second_try } else { Fate::Silent });
        let mut policy = Policy::of_first_tries();
        if !quic_first {
            policy.transports.reverse();
        }
        let patience = policy.refused_host_patience;
        let run = world.run(setup(policy), EPOCH, None);
        prop_assert_eq!(run.usable().is_some(), listens, "{:?}", run.outputs);
        if !listens {
            let last_start = run.starts().last().unwrap().0;
            let ended = run.outputs.last().unwrap().0;
            prop_assert!(ended <= last_start + patience + 2 * ms(round_trip), "{:?}", run.outputs);
            let all_failed =
                |output: &RaceOutput| matches!(output, RaceOutput::Failed(RaceFailure::AllFailed(tried)) if tried.len() == 2);
            prop_assert_eq!(run.count(all_failed), 1);
        }
    }
}
