//! Which of many retests is chosen, if one race cannot try them all.

use core::time::Duration;

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, NetworkId, TrustContext,
};
use crate::memory::{EntryOutcome, Memory, MemoryConfig, MemoryEntry, MemoryKey, PeerEntry};
use crate::policy::Policy;
use crate::race::{MAX_BACKGROUND, RaceSetup};
use crate::target::{TargetHost, TargetService};

const TRANSPORTS: [Transport; 4] =
    [Transport::Quic, Transport::SctpUdp, Transport::Mptcp, Transport::Tcp];

fn remember(
    memory: &mut Memory,
    transport: Transport,
    address: &str,
    outcome: EntryOutcome,
    at: u64,
) {
    let at = EPOCH - Duration::from_mins(at);
    let entry = MemoryEntry::Peer(PeerEntry::under_tls(at, outcome));
    let candidate = candidate(transport, address);
    memory.insert(MemoryKey::peer(&NetworkId("home".into()), &target().host, &candidate), entry);
}

fn bad() -> EntryOutcome {
    EntryOutcome::Bad { cause: FailureCause::Refused, reached: EvidenceLevel::Started, strikes: 1 }
}

/// TCP over IPv4 works; these failed this many minutes ago, each longer than its back-off.
fn race_after(failures: &[(Transport, &str, u64)], addresses: &[&str]) -> Vec<String> {
    let mut memory = Memory::new(MemoryConfig::default());
    let good = EntryOutcome::Good { level: EvidenceLevel::Security };
    remember(&mut memory, Transport::Tcp, V4, good, 1);
    for (transport, address, minutes) in failures {
        remember(&mut memory, *transport, address, bad(), *minutes);
    }
    let policy = Policy { transports: TRANSPORTS.to_vec(), ..Policy::of_first_tries() };
    let setup = setup(policy);
    let view = memory.view(&setup.network.id, &setup.target.host, &TrustContext::default(), EPOCH);
    let mut target = setup.target.clone();
    target.service = TargetService::Plain { transports: TRANSPORTS.to_vec(), alpn: Vec::new() };
    let mut scene = Scene::with(RaceSetup { view, target, ..setup }, addresses);
    scene.until(30);
    scene.ready(0);
    let lines = scene.until(2_900);
    let background = lines.into_iter().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.last() == Some(&"background")).then(|| words[3..5].join(" "))
    });
    background.collect()
}

#[test]
fn what_has_been_due_for_longest_goes_first() {
    let failures = [
        (Transport::Quic, V6, 30),
        (Transport::Quic, V4, 40),
        (Transport::SctpUdp, V6, 50),
        (Transport::SctpUdp, V4, 60),
        (Transport::Mptcp, V6, 70),
        (Transport::Mptcp, V4, 80),
        (Transport::Tcp, V6, 90),
    ];
    let tried = race_after(&failures, &[V6, V4]);
    let expected =
        ["tcp 2001:db8::1", "mptcp 192.0.2.1", "mptcp 2001:db8::1", "sctp-udp 192.0.2.1"];
    assert_eq!(tried, expected);
    assert_eq!(tried.len(), MAX_BACKGROUND);
}

/// An address that fails in each race does not keep another of the same transport from its turn.
#[test]
fn the_addresses_of_one_transport_take_turns() {
    let other = "192.0.2.2";
    for (due_longer, expected) in [(V4, "quic 192.0.2.1"), (other, "quic 192.0.2.2")] {
        let minutes = |address| if address == due_longer { 40 } else { 30 };
        let failures = [V4, other].map(|address| (Transport::Quic, address, minutes(address)));
        let tried = race_after(&failures, &[V4, other]);
        let over_quic: Vec<&String> =
            tried.iter().filter(|line| line.starts_with("quic")).collect();
        assert_eq!(over_quic, [expected]);
    }
}

/// QUIC worked a moment ago and is silent now; TCP has been silent for others, but works.
#[test]
fn dropped_candidates_get_a_turn_when_a_working_one_is_silent() {
    let mut memory = Memory::new(MemoryConfig::default());
    memory.learn(&good(Transport::Quic), &TrustContext::default());
    for name in ["b.test", "c.test", "d.test"] {
        let failure =
            AttemptFailure::new(FailureCause::Silent, EvidenceLevel::Started, "no answer");
        let silent = Evidence {
            host: TargetHost::Name(name.into()),
            level: EvidenceLevel::Started,
            failure: Some(failure),
            ..good(Transport::Tcp)
        };
        memory.learn(&silent, &TrustContext::default());
    }
    let mut setup = setup(Policy::of_first_tries());
    setup.view =
        memory.view(&setup.network.id, &setup.target.host, &TrustContext::default(), EPOCH);
    let lines = Scene::with(setup, &[V4]).until(1_000);
    assert_eq!(lines, ["0 start 0 quic 192.0.2.1", "50 start 1 tcp 192.0.2.1"]);
}
