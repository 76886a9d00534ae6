//! Which networks are held to lose packets.

use super::*;

/// A handshake of this host that sent packets again, or did not.
fn handshake(name: &str, candidate: Candidate, at: Duration, sent_again: bool) -> Evidence {
    Evidence { sent_again: Some(sent_again), ..worked(name, candidate, at) }
}

fn loss(memory: &Memory, network: &str, now: Duration) -> Option<Loss> {
    memory.view(&NetworkId(network.into()), &host("unknown.test"), &platform(), now).loss(now)
}

/// Handshakes with as many hosts, those that sent packets again last.
fn handshakes(candidate: &Candidate, all: usize, again: usize) -> Vec<Evidence> {
    let one = |number: usize| {
        handshake(&format!("{number}.test"), candidate.clone(), NOW, number + again >= all)
    };
    (0..all).map(one).collect()
}

#[test]
fn one_lost_packet_can_happen_anywhere() {
    assert_eq!(loss(&after(&handshakes(&quic(), 3, 1)), "home", NOW), None);
    let two = Loss { sent_again: 2, handshakes: 3 };
    assert_eq!(loss(&after(&handshakes(&quic(), 3, 2)), "home", NOW), Some(two));
}

#[test]
fn a_few_among_many_are_no_sign_and_all_paths_count_together() {
    let mptcp = candidate(Transport::Mptcp, "192.0.2.1:443");
    let mut evidence = handshakes(&mptcp, 32, 0);
    evidence.extend(handshakes(&quic(), 32, 1));
    evidence.extend(handshakes(&tcp(), 32, 1));
    assert_eq!(loss(&after(&evidence), "home", NOW), None, "2 of 96");
    evidence.extend(handshakes(&tcp(), 4, 4));
    let now = Loss { sent_again: 6, handshakes: 96 };
    assert_eq!(loss(&after(&evidence), "home", NOW), Some(now), "the last 32 of each");
}

/// Of 32 handshakes over QUIC of which one in ten sends packets again, and then goes over TCP as well.
#[test]
fn a_tenth_lost_is_noticed_though_the_lesser_transport_won() {
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
fn losses_belong_to_their_network_and_fade() {
    let memory = after(&handshakes(&quic(), 4, 4));
    assert_eq!(loss(&memory, "elsewhere", NOW), None);
    let config = Config::default();
    assert!(loss(&memory, "home", NOW + config.good_for - MIN).is_some());
    assert_eq!(loss(&memory, "home", NOW + config.good_for), None);
}

#[test]
fn unknown_losses_change_nothing() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    let before = loss(&memory, "home", NOW);
    memory.learn(&worked("a.test", quic(), NOW), &platform());
    memory.learn(&failed("b.test", quic(), NOW, Cause::Tls, Level::Answered), &platform());
    assert_eq!(loss(&memory, "home", NOW), before);
}

#[test]
fn silence_erases_no_losses_and_an_answer_keeps_them() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    memory.learn(&was_silent("c.test", quic(), NOW), &platform());
    assert!(loss(&memory, "home", NOW).is_some());
    memory.learn(&handshake("d.test", quic(), NOW, false), &platform());
    assert_eq!(loss(&memory, "home", NOW), Some(Loss { sent_again: 3, handshakes: 4 }));
}

/// Silent now, before anything could have been sent again.
fn cut_short(name: &str, candidate: Candidate, at: Duration) -> Evidence {
    Evidence { doubt: Some(Doubt::CutShort), ..was_silent(name, candidate, at) }
}

#[test]
fn silence_counts_as_loss_only_from_a_peer_that_has_just_answered() {
    let strangers: Vec<Evidence> =
        ["a.test", "b.test"].map(|name| cut_short(name, quic(), NOW)).into();
    let mut memory = after(&handshakes(&quic(), 6, 0));
    strangers.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), None);
    let known = ["1.test", "2.test"].map(|name| cut_short(name, quic(), NOW));
    known.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), Some(Loss { sent_again: 2, handshakes: 8 }));
    // What is silent is silent, however often it is told.
    known.iter().for_each(|evidence| memory.learn(evidence, &platform()));
    assert_eq!(loss(&memory, "home", NOW), Some(Loss { sent_again: 2, handshakes: 8 }));
}

#[test]
fn on_a_lossy_network_one_silence_is_no_sign() {
    let silence = cut_short("a.test", tcp(), NOW);
    let calm = after(core::slice::from_ref(&silence));
    assert!(matches!(verdict(&calm, "a.test", &tcp(), NOW), Verdict::Bad { .. }));
    let mut lossy = after(&handshakes(&quic(), 4, 4));
    lossy.learn(&silence, &platform());
    assert_eq!(verdict(&lossy, "a.test", &tcp(), NOW), Verdict::Unknown);
    // A silence that nothing cut short is another matter.
    lossy.learn(&was_silent("a.test", tcp(), NOW), &platform());
    assert!(matches!(verdict(&lossy, "a.test", &tcp(), NOW), Verdict::Bad { .. }));
}

#[test]
fn forgetting_a_host_leaves_what_its_network_lost() {
    let mut memory = after(&handshakes(&quic(), 3, 3));
    memory.forget(&host("2.test"));
    assert!(loss(&memory, "home", NOW).is_some());
}
