//! ClientHellos of two packets that did not get through.

use super::*;

const CAUSE: FailureCause = FailureCause::LongClientHello;

fn shortened(candidate: Candidate, at: Duration) -> Evidence {
    failed("a.test", candidate, at, CAUSE, EvidenceLevel::Transport)
}

fn short_until(memory: &Memory, candidate: &Candidate, now: Duration) -> Option<Duration> {
    memory.view(&home(), &host("a.test"), &platform(), now).short_hello_until(candidate, now)
}

#[test]
fn a_long_one_is_avoided_while_its_failure_holds_and_the_candidate_stays_good() {
    let memory = after(&[shortened(tcp(), NOW), worked("a.test", tcp(), NOW)]);
    assert_eq!(short_until(&memory, &tcp(), NOW), Some(NOW + 5 * MIN));
    assert_eq!(short_until(&memory, &tcp(), NOW + 5 * MIN), None);
    assert!(matches!(verdict(&memory, "a.test", &tcp(), NOW), MemoryVerdict::Good { .. }));
    // MPTCP is TCP to the devices in question; QUIC is not, nor is another network or another address.
    let mptcp = Candidate { transport: Transport::Mptcp, ..tcp() };
    assert!(short_until(&memory, &mptcp, NOW).is_some());
    let elsewhere = candidate(Transport::Tcp, "192.0.2.2:443");
    let plain = Candidate { security: Security::None, ..tcp() };
    for other in [quic(), elsewhere, plain] {
        assert_eq!(short_until(&memory, &other, NOW), None, "{other}");
    }
    let away = NetworkId("away".into());
    let view = memory.view(&away, &host("a.test"), &platform(), NOW);
    assert_eq!(view.short_hello_until(&tcp(), NOW), None);
    // Whoever asks: the length does not depend on trust.
    let view = memory.view(&home(), &host("a.test"), &TrustContext::default(), NOW);
    assert!(view.short_hello_until(&tcp(), NOW).is_some());
}

#[test]
fn it_is_avoided_twice_as_long_after_each_failure_until_it_gets_through() {
    let due = NOW + 5 * MIN;
    let fails_again = [shortened(tcp(), NOW), shortened(tcp(), due), worked("a.test", tcp(), due)];
    let memory = after(&fails_again);
    assert_eq!(short_until(&memory, &tcp(), due), Some(due + 10 * MIN));
    // What works in the meantime had a short one.
    let meanwhile = worked("a.test", tcp(), due + MIN);
    let memory = after(&[fails_again.as_slice(), &[meanwhile]].concat());
    assert_eq!(short_until(&memory, &tcp(), due + MIN), Some(due + 10 * MIN));
    let passes = worked("a.test", tcp(), due + 10 * MIN);
    let fails_later = shortened(tcp(), due + 20 * MIN);
    let memory = after(&[fails_again.as_slice(), &[passes, fails_later]].concat());
    let later = due + 20 * MIN;
    assert_eq!(short_until(&memory, &tcp(), later), Some(later + 5 * MIN));
}

#[test]
fn a_row_of_an_earlier_version_says_nothing_of_it() {
    let memory = after(&[shortened(tcp(), NOW), worked("a.test", tcp(), NOW)]);
    for record in memory.records() {
        let json = serde_json::to_string(&record.entry).unwrap();
        assert_eq!(serde_json::from_str::<MemoryEntry>(&json).unwrap(), record.entry);
        if let MemoryEntry::Peer(_) = &record.entry {
            let mut fields: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert!(fields["peer"].as_object_mut().unwrap().remove("long_hello").is_some());
            let MemoryEntry::Peer(earlier) = serde_json::from_value(fields).unwrap() else {
                panic!("a row about a peer")
            };
            assert_eq!(earlier.long_hello, None);
        }
    }
}
