//! A failure with one offer, or under one trust, says nothing about another.

use super::*;

fn offering(transport: Transport, alpn: &[&str]) -> Candidate {
    let alpn = alpn.iter().map(|name| (*name).into()).collect();
    Candidate { alpn, ..candidate(transport, "192.0.2.1:443") }
}

fn h3() -> Candidate {
    offering(Transport::Quic, &["h3"])
}

fn nothing() -> Candidate {
    offering(Transport::Quic, &[])
}

/// As with `--cacert`.
fn own_root() -> TrustContext {
    TrustContext { parameters: "roots-1".into(), certificate_host: None }
}

fn no_common_protocol(at: Duration) -> Evidence {
    failed("a.test", nothing(), at, FailureCause::Tls, EvidenceLevel::Answered)
}

fn unknown_issuer(candidate: Candidate, at: Duration) -> Evidence {
    failed("a.test", candidate, at, FailureCause::Certificate, EvidenceLevel::Transport)
}

fn verdict_under(
    memory: &Memory,
    trust: &TrustContext,
    candidate: &Candidate,
    now: Duration,
) -> MemoryVerdict {
    memory.view(&home(), &host("a.test"), trust, now).verdict(candidate, now)
}

fn good() -> MemoryVerdict {
    MemoryVerdict::Good { rtt: Some(Duration::from_millis(80)) }
}

/// HTTP/3 works, and then QUIC is tried without offering `h3`.
#[test]
fn a_rejected_offer_does_not_demote_others() {
    let memory = after(&[worked("a.test", h3(), NOW), no_common_protocol(NOW + MIN)]);
    let now = NOW + MIN;
    assert_eq!(verdict(&memory, "a.test", &h3(), now), good());
    let bad = MemoryVerdict::Bad { cause: FailureCause::Tls, until: now + 5 * MIN };
    assert_eq!(verdict(&memory, "a.test", &nothing(), now), bad);
}

/// `--cacert` was forgotten.
#[test]
fn an_untrusted_certificate_does_not_demote_a_candidate_for_those_who_trust_it() {
    for candidate in [tcp(), h3()] {
        let mut memory = after(&[]);
        memory.learn(&worked("a.test", candidate.clone(), NOW), &own_root());
        memory.learn(&unknown_issuer(candidate.clone(), NOW + MIN), &platform());
        let now = NOW + MIN;
        assert_eq!(verdict_under(&memory, &own_root(), &candidate, now), good());
        let bad = MemoryVerdict::Bad { cause: FailureCause::Certificate, until: now + 5 * MIN };
        assert_eq!(verdict_under(&memory, &platform(), &candidate, now), bad);
    }
}

#[test]
fn the_certificate_of_another_host_is_another_trust() {
    let mut memory = after(&[worked("a.test", h3(), NOW)]);
    let of_b = TrustContext { certificate_host: Some(host("b.test")), ..platform() };
    memory.learn(&unknown_issuer(h3(), NOW), &of_b);
    assert_eq!(verdict(&memory, "a.test", &h3(), NOW), good());
    assert!(matches!(verdict_under(&memory, &of_b, &h3(), NOW), MemoryVerdict::Bad { .. }));
    memory.forget(&host("b.test"));
    assert_eq!(
        verdict_under(&memory, &of_b, &h3(), NOW),
        MemoryVerdict::Unknown,
        "b.test is forgotten"
    );
    assert_eq!(verdict(&memory, "a.test", &h3(), NOW), good());
}

#[test]
fn success_with_one_set_up_says_nothing_about_another() {
    let memory = after(&[worked("a.test", h3(), NOW)]);
    assert_eq!(verdict_under(&memory, &own_root(), &h3(), NOW), MemoryVerdict::Unknown);
    assert_eq!(verdict(&memory, "a.test", &nothing(), NOW), MemoryVerdict::Unknown);
}

#[test]
fn ech_that_a_device_fails_says_nothing_about_the_name_in_the_clear() {
    let encrypted = || Candidate { ech: Some(vec![0xfe, 0x0d]), ..h3() };
    let broken =
        failed("a.test", encrypted(), NOW + MIN, FailureCause::EchBroken, EvidenceLevel::Answered);
    let memory = after(&[worked("a.test", h3(), NOW), broken]);
    let now = NOW + MIN;
    assert_eq!(verdict(&memory, "a.test", &h3(), now), good());
    let bad = MemoryVerdict::Bad { cause: FailureCause::EchBroken, until: now + 5 * MIN };
    assert_eq!(verdict(&memory, "a.test", &encrypted(), now), bad);
}

/// `--ech require`, and there is no record: an attempt that sends nothing says nothing about the peer.
#[test]
fn a_name_that_cannot_be_encrypted_is_not_held_against_the_peer() {
    for candidate in [tcp(), h3(), Candidate { ech: Some(vec![0xfe]), ..h3() }] {
        let refused =
            |reached| failed("a.test", candidate.clone(), NOW, FailureCause::Ech, reached);
        let memory = after(&[refused(EvidenceLevel::Started)]);
        assert_eq!(verdict(&memory, "a.test", &candidate, NOW), MemoryVerdict::Unknown);
        let memory = after(&[refused(EvidenceLevel::Transport)]);
        let bad = MemoryVerdict::Bad { cause: FailureCause::Ech, until: NOW + 5 * MIN };
        assert_eq!(verdict(&memory, "a.test", &candidate, NOW), bad);
    }
}

#[test]
fn silence_concerns_every_set_up() {
    let memory = after(&[worked("a.test", h3(), NOW), was_silent("a.test", nothing(), NOW + MIN)]);
    let now = NOW + MIN;
    let bad = MemoryVerdict::Bad { cause: FailureCause::Silent, until: now + 5 * MIN };
    for (trust, candidate) in [(platform(), h3()), (own_root(), h3()), (own_root(), nothing())] {
        assert_eq!(verdict_under(&memory, &trust, &candidate, now), bad);
    }
}

/// An alert comes from the peer, so a peer that was silent before can be reached again.
#[test]
fn a_peer_that_refuses_one_set_up_is_reachable_for_all() {
    let mut memory = after(&[was_silent("a.test", h3(), NOW)]);
    memory.learn(&no_common_protocol(NOW + MIN), &platform());
    assert_eq!(verdict(&memory, "a.test", &h3(), NOW + MIN), MemoryVerdict::Unknown);
}

#[test]
fn an_alert_proves_that_packets_pass() {
    let silent = ["b.test", "c.test", "d.test"].map(|name| was_silent(name, h3(), NOW));
    let mut memory = after(&silent);
    assert!(matches!(verdict(&memory, "new.test", &h3(), NOW), MemoryVerdict::NetworkBad { .. }));
    memory.learn(&no_common_protocol(NOW), &platform());
    assert_eq!(verdict(&memory, "new.test", &h3(), NOW), MemoryVerdict::Unknown);
}

/// The network drops QUIC to other peers; this peer answers all the same.
#[test]
fn a_peer_that_answers_is_not_affected_by_the_path() {
    let mut evidence = vec![no_common_protocol(NOW)];
    for minute in [10, 11, 12] {
        let name = format!("silent-{minute}.test");
        evidence.push(was_silent(&name, h3(), NOW + minute * MIN));
    }
    evidence.push(no_common_protocol(NOW + 13 * MIN));
    for minute in [14, 15, 16] {
        let name = format!("silent-{minute}.test");
        evidence.push(was_silent(&name, h3(), NOW + minute * MIN));
    }
    let memory = after(&evidence);
    assert_eq!(verdict(&memory, "a.test", &h3(), NOW + 16 * MIN), MemoryVerdict::Unknown);
}

#[test]
fn each_set_up_has_a_back_off_of_its_own() {
    let mut memory = after(&[no_common_protocol(NOW)]);
    memory.learn(&no_common_protocol(NOW + 5 * MIN), &platform());
    memory.learn(&unknown_issuer(h3(), NOW + 6 * MIN), &platform());
    let now = NOW + 6 * MIN;
    let twice = MemoryVerdict::Bad { cause: FailureCause::Tls, until: NOW + 15 * MIN };
    assert_eq!(verdict(&memory, "a.test", &nothing(), now), twice);
    let once = MemoryVerdict::Bad { cause: FailureCause::Certificate, until: NOW + 11 * MIN };
    assert_eq!(verdict(&memory, "a.test", &h3(), now), once);
    let due = MemoryVerdict::RetestDue { cause: FailureCause::Certificate, since: NOW + 11 * MIN };
    assert_eq!(verdict(&memory, "a.test", &h3(), NOW + 12 * MIN), due);
}

/// Without security there is neither an offer nor a trust.
#[test]
fn evidence_without_security_applies_to_all() {
    let plain = Candidate { security: Security::None, ..tcp() };
    let up = Evidence { level: EvidenceLevel::Transport, ..worked("a.test", plain.clone(), NOW) };
    let mut memory = after(&[up]);
    assert_eq!(verdict_under(&memory, &own_root(), &plain, NOW), good());
    let reset =
        failed("a.test", plain.clone(), NOW + MIN, FailureCause::Reset, EvidenceLevel::Transport);
    memory.learn(&reset, &platform());
    let bad = MemoryVerdict::Bad { cause: FailureCause::Reset, until: NOW + 6 * MIN };
    assert_eq!(verdict_under(&memory, &own_root(), &plain, NOW + MIN), bad);
}

/// SCTP is not established at the INIT ACK, so a failure there does not concern TLS.
#[test]
fn a_failure_before_the_transport_is_established_concerns_every_set_up() {
    let sctp = offering(Transport::SctpUdp, &["http/1.1"]);
    let memory = after(&[failed(
        "a.test",
        sctp.clone(),
        NOW,
        FailureCause::Silent,
        EvidenceLevel::Answered,
    )]);
    let bad = MemoryVerdict::Bad { cause: FailureCause::Silent, until: NOW + 5 * MIN };
    assert_eq!(verdict_under(&memory, &own_root(), &sctp, NOW), bad);
}

#[test]
fn a_row_keeps_only_the_most_recently_used_set_ups() {
    let mut memory = after(&[]);
    let trust = |n: u32| TrustContext { parameters: format!("roots-{n}"), certificate_host: None };
    for n in 0..100 {
        let at = NOW + Duration::from_secs(u64::from(n));
        memory.learn(&worked("a.test", h3(), at), &trust(n));
    }
    let rows: Vec<MemoryRecord> = memory.records().filter(|row| row.key.host().is_some()).collect();
    assert_eq!(rows.len(), 1, "set-ups share one row");
    let MemoryEntry::Peer(entry) = &rows[0].entry else { panic!("a peer key has a peer row") };
    assert_eq!(entry.secured.len(), PeerEntry::MAX_SET_UPS);
    let now = NOW + 2 * MIN;
    assert_eq!(verdict_under(&memory, &trust(99), &h3(), now), good());
    assert_eq!(verdict_under(&memory, &trust(0), &h3(), now), MemoryVerdict::Unknown);
}

#[test]
fn a_view_contains_nothing_of_other_trusts() {
    let mut memory = after(&[worked("a.test", h3(), NOW)]);
    memory.learn(&worked("a.test", h3(), NOW), &own_root());
    let view = memory.view(&home(), &host("a.test"), &platform(), NOW);
    let text = serde_json::to_string(&view).unwrap();
    assert!(text.contains("platform") && !text.contains("roots-1"), "{text}");
}
