//! What the outcomes of peers imply for the network.

use super::*;

fn silent_hosts() -> Vec<Evidence> {
    ["a.test", "b.test", "c.test"].map(|name| was_silent(name, quic(), NOW)).to_vec()
}

#[test]
fn three_silent_hosts_mark_the_path_as_blocked() {
    let evidence = silent_hosts();
    assert_eq!(verdict(&after(&evidence[..2]), "new.test", &quic(), NOW), MemoryVerdict::Unknown);
    let bad = MemoryVerdict::NetworkBad { silent_hosts: 3, probe_one_in: 4 };
    assert_eq!(verdict(&after(&evidence), "new.test", &quic(), NOW), bad);
}

#[test]
fn a_single_silent_host_says_nothing_about_the_network() {
    let evidence = [0, 1, 2, 3, 4].map(|n| was_silent("a.test", quic(), NOW + n * 12 * MIN));
    let memory = after(&evidence);
    assert_eq!(verdict(&memory, "new.test", &quic(), NOW + HOUR), MemoryVerdict::Unknown);
}

#[test]
fn the_path_is_a_transport_a_family_and_a_port() {
    let memory = after(&silent_hosts());
    let others = [
        tcp(),
        candidate(Transport::Quic, "192.0.2.1:8443"),
        candidate(Transport::Quic, "[2001:db8::1]:443"),
    ];
    for candidate in others {
        assert_eq!(
            verdict(&memory, "new.test", &candidate, NOW),
            MemoryVerdict::Unknown,
            "{candidate}"
        );
    }
}

#[test]
fn any_answer_clears_the_path() {
    let mut evidence = silent_hosts();
    evidence.push(worked("d.test", quic(), NOW + MIN));
    assert_eq!(verdict(&after(&evidence), "new.test", &quic(), NOW + MIN), MemoryVerdict::Unknown);

    // A certificate that is not accepted shows as well that packets pass.
    let last =
        failed("e.test", quic(), NOW + MIN, FailureCause::Certificate, EvidenceLevel::Transport);
    *evidence.last_mut().unwrap() = last;
    assert_eq!(verdict(&after(&evidence), "new.test", &quic(), NOW + MIN), MemoryVerdict::Unknown);
}

#[test]
fn a_recently_working_path_is_not_blamed_for_silent_hosts() {
    let mut evidence = vec![worked("d.test", quic(), NOW - MIN)];
    evidence.extend(silent_hosts());
    let memory = after(&evidence);
    assert_eq!(verdict(&memory, "new.test", &quic(), NOW), MemoryVerdict::Unknown);
    assert!(matches!(
        verdict(&memory, "new.test", &quic(), NOW + 9 * MIN),
        MemoryVerdict::NetworkBad { .. }
    ));
}

#[test]
fn refusals_and_certificates_do_not_count_against_the_network() {
    for cause in [
        FailureCause::Refused,
        FailureCause::Certificate,
        FailureCause::Tls,
        FailureCause::Protocol,
        FailureCause::Reset,
    ] {
        let names = ["a.test", "b.test", "c.test", "d.test"];
        let evidence = names.map(|name| failed(name, quic(), NOW, cause, EvidenceLevel::Started));
        assert_eq!(verdict(&after(&evidence), "new.test", &quic(), NOW), MemoryVerdict::Unknown);
    }
}

#[test]
fn the_inference_decays() {
    let memory = after(&silent_hosts());
    assert_eq!(verdict(&memory, "new.test", &quic(), NOW + HOUR), MemoryVerdict::Unknown);
}

#[test]
fn a_peer_known_to_work_is_not_affected_by_the_path() {
    let mut evidence = vec![worked("known.test", quic(), NOW)];
    evidence.extend(silent_hosts());
    let memory = after(&evidence);
    assert!(matches!(verdict(&memory, "known.test", &quic(), NOW), MemoryVerdict::Good { .. }));
}

//= hev3 §5.3
//# history MUST NOT cross provisioning domains: it belongs to a network, known by interface and
//# gateway
#[test]
fn evidence_never_crosses_networks() {
    let mut evidence = silent_hosts();
    evidence.push(worked("a.test", tcp(), NOW));
    let memory = after(&evidence);
    let cafe = memory.view(&NetworkId("cafe".into()), &host("a.test"), &platform(), NOW);
    assert!(cafe.is_empty());
    assert_eq!(cafe.verdict(&tcp(), NOW), MemoryVerdict::Unknown);
}

/// Three hosts are silent but refuse TCP: the service is not running there, and the network is
/// fine.
#[test]
fn silence_beside_a_refusal_does_not_count_against_the_network() {
    let hosts = ["a.test", "b.test", "c.test"];
    let memory = after(&hosts.map(|name| Evidence {
        doubt: Some(FailureDoubt::HostRefused),
        ..was_silent(name, quic(), NOW)
    }));
    let bad = MemoryVerdict::Bad { cause: FailureCause::Silent, until: NOW + 5 * MIN };
    assert_eq!(verdict(&memory, "a.test", &quic(), NOW), bad);
    assert_eq!(verdict(&memory, "d.test", &quic(), NOW), MemoryVerdict::Unknown);
}
