//! Which networks count as lossy.

use super::*;

/// A handshake with this host that had to retransmit, or did not.
fn handshake(name: &str, candidate: Candidate, at: Duration, sent_again: bool) -> Evidence {
    Evidence { sent_again: Some(sent_again), ..worked(name, candidate, at) }
}

fn loss(memory: &Memory, network: &str, now: Duration) -> Option<HandshakeLoss> {
    memory.view(&NetworkId(network.into()), &host("unknown.test"), &platform(), now).loss(now)
}

/// Handshakes with `all` hosts, of which the last `lossy_count` had to retransmit.
fn handshakes(candidate: &Candidate, all: usize, lossy_count: usize) -> Vec<Evidence> {
    let handshake_with = |number: usize| {
        handshake(&format!("{number}.test"), candidate.clone(), NOW, number + lossy_count >= all)
    };
    (0..all).map(handshake_with).collect()
}

#[test]
fn a_single_lost_packet_is_not_significant() {
    assert_eq!(loss(&after(&handshakes(&quic(), 3, 1)), "home", NOW), None);
    let two = HandshakeLoss { sent_again: 2, handshakes: 3 };
    assert_eq!(loss(&after(&handshakes(&quic(), 3, 2)), "home", NOW), Some(two));
}

#[test]
fn a_few_losses_among_many_are_not_significant_and_all_paths_count_together() {
    let mptcp = candidate(Transport::Mptcp, "192.0.2.1:443");
    let mut evidence = handshakes(&mptcp, 32, 0);
    evidence.extend(handshakes(&quic(), 32, 1));
    evidence.extend(handshakes(&tcp(), 32, 1));
    assert_eq!(loss(&after(&evidence), "home", NOW), None, "2 of 96");
    evidence.extend(handshakes(&tcp(), 4, 4));
    let now = HandshakeLoss { sent_again: 6, handshakes: 96 };
    assert_eq!(loss(&after(&evidence), "home", NOW), Some(now), "the last 32 of each");
}

/// 32 handshakes over QUIC, one in ten of which retransmits and is followed by one over TCP.
#[test]
fn a_loss_of_a_tenth_is_noticed_although_the_less_preferred_transport_won() {
    let noticed = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut evidence = Vec::new();
        for number in 0..32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            let lost = (state >> 33).is_multiple_of(10);
            let name = format!("{number}.test");
            evidence.push(handshake(&name, quic(), NOW, lost));
            if lost {
                evidence.push(handshake(&name, tcp(), NOW, false));
            }
        }
        loss(&after(&evidence), "home", NOW).is_some()
    };
    let times = (0..400).filter(|seed| noticed(*seed)).count();
    assert!(times >= 320, "noticed {times} times of 400");
}

#[test]
fn losses_belong_to_their_network_and_expire() {
    let memory = after(&handshakes(&quic(), 4, 4));
    assert_eq!(loss(&memory, "elsewhere", NOW), None);
    let config = MemoryConfig::default();
    assert!(loss(&memory, "home", NOW + config.good_for - MIN).is_some());
    assert_eq!(loss(&memory, "home", NOW + config.good_for), None);
}

#[test]
fn unknown_losses_change_nothing() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    let before = loss(&memory, "home", NOW);
    memory.learn(&worked("a.test", quic(), NOW), &platform());
    memory.learn(
        &failed("b.test", quic(), NOW, FailureCause::Tls, EvidenceLevel::Answered),
        &platform(),
    );
    assert_eq!(loss(&memory, "home", NOW), before);
}

#[test]
fn silence_erases_no_losses_and_an_answer_keeps_them() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    memory.learn(&was_silent("c.test", quic(), NOW), &platform());
    assert!(loss(&memory, "home", NOW).is_some());
    memory.learn(&handshake("d.test", quic(), NOW, false), &platform());
    assert_eq!(loss(&memory, "home", NOW), Some(HandshakeLoss { sent_again: 3, handshakes: 4 }));
}

/// Silent, and cut short before anything could have been retransmitted.
fn cut_short(name: &str, candidate: Candidate, at: Duration) -> Evidence {
    Evidence { doubt: Some(FailureDoubt::CutShort), ..was_silent(name, candidate, at) }
}

#[test]
fn silence_counts_as_loss_only_from_a_peer_that_has_just_answered() {
    let unknown_hosts: Vec<Evidence> =
        ["a.test", "b.test"].map(|name| cut_short(name, quic(), NOW)).into();
    let mut memory = after(&handshakes(&quic(), 6, 0));
    unknown_hosts.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), None);
    let known = ["1.test", "2.test"].map(|name| cut_short(name, quic(), NOW));
    known.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), Some(HandshakeLoss { sent_again: 2, handshakes: 8 }));
    // Repeated reports of the same silence count once.
    known.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), Some(HandshakeLoss { sent_again: 2, handshakes: 8 }));
}

#[test]
fn on_a_lossy_network_a_single_silence_is_not_significant() {
    let silence = cut_short("a.test", tcp(), NOW);
    let lossless = after(core::slice::from_ref(&silence));
    assert!(matches!(verdict(&lossless, "a.test", &tcp(), NOW), MemoryVerdict::Bad { .. }));
    let mut lossy = after(&handshakes(&quic(), 4, 4));
    lossy.learn(&silence, &platform());
    assert_eq!(verdict(&lossy, "a.test", &tcp(), NOW), MemoryVerdict::Unknown);
    // A silence that was not cut short counts.
    lossy.learn(&was_silent("a.test", tcp(), NOW), &platform());
    assert!(matches!(verdict(&lossy, "a.test", &tcp(), NOW), MemoryVerdict::Bad { .. }));
}

#[test]
fn forgetting_a_host_keeps_the_loss_of_its_network() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    memory.forget(&host("2.test"));
    assert!(loss(&memory, "home", NOW).is_some());
}
