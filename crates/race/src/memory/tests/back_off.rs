//! How long successes are valid, and how failures back off.

use super::*;

#[test]
fn an_unknown_peer_has_no_verdict() {
    assert_eq!(verdict(&after(&[]), "a.test", &quic(), NOW), MemoryVerdict::Unknown);
}

#[test]
fn a_success_is_valid_for_ten_minutes() {
    let memory = after(&[worked("a.test", quic(), NOW)]);
    let good = MemoryVerdict::Good { rtt: Some(Duration::from_millis(80)) };
    assert_eq!(verdict(&memory, "a.test", &quic(), NOW + 10 * MIN - Duration::from_nanos(1)), good);
    assert_eq!(verdict(&memory, "a.test", &quic(), NOW + 10 * MIN), MemoryVerdict::Unknown);
}

#[test]
fn a_handshake_below_the_security_level_is_no_success() {
    let mut syn_ack = worked("a.test", tcp(), NOW);
    syn_ack.level = EvidenceLevel::Transport;
    assert_eq!(verdict(&after(&[syn_ack.clone()]), "a.test", &tcp(), NOW), MemoryVerdict::Unknown);

    syn_ack.candidate.security = Security::None;
    let plain = syn_ack.candidate.clone();
    assert!(matches!(
        verdict(&after(&[syn_ack]), "a.test", &plain, NOW),
        MemoryVerdict::Good { .. }
    ));
}

/// ```text
/// fail --5 min--> fail --10 min--> fail --20 min--> … --2 days--> fail --2 days-->
/// ```
#[test]
fn the_back_off_doubles_up_to_two_days() {
    let mut memory = after(&[]);
    let mut now = NOW;
    let mut waits = Vec::new();
    for _ in 0..12 {
        memory.learn(&was_silent("a.test", quic(), now), &platform());
        let MemoryVerdict::Bad { cause: FailureCause::Silent, until } =
            verdict(&memory, "a.test", &quic(), now)
        else {
            panic!("not in back-off at {now:?}");
        };
        waits.push((until - now).as_secs() / 60);
        now = until;
        let due = MemoryVerdict::RetestDue { cause: FailureCause::Silent, since: now };
        assert_eq!(verdict(&memory, "a.test", &quic(), now), due);
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 2880, 2880]);
}

#[test]
fn failures_during_a_back_off_add_nothing() {
    let once = after(&[was_silent("a.test", quic(), NOW)]);
    let ten_times = after(&[0; 10].map(|_| was_silent("a.test", quic(), NOW)));
    let late = NOW + 4 * MIN;
    let repeated = after(&[was_silent("a.test", quic(), NOW), was_silent("a.test", quic(), late)]);
    for memory in [&ten_times, &repeated] {
        assert_eq!(
            verdict(memory, "a.test", &quic(), late),
            verdict(&once, "a.test", &quic(), late)
        );
    }
}

#[test]
fn a_success_ends_the_back_off() {
    let memory = after(&[
        was_silent("a.test", quic(), NOW),
        was_silent("a.test", quic(), NOW + 5 * MIN),
        worked("a.test", quic(), NOW + 6 * MIN),
        was_silent("a.test", quic(), NOW + HOUR),
    ]);
    let single_failure =
        MemoryVerdict::Bad { cause: FailureCause::Silent, until: NOW + HOUR + 5 * MIN };
    assert_eq!(verdict(&memory, "a.test", &quic(), NOW + HOUR), single_failure);
}

#[test]
fn retest_after_overrides_rows_that_are_already_there() {
    let config =
        MemoryConfig { retest_after: Some(Duration::from_secs(2)), ..MemoryConfig::default() };
    let rows = after(&[was_silent("a.test", quic(), NOW)])
        .records()
        .map(|record| (record.key, record.entry))
        .collect::<Vec<_>>();
    let view = MemoryView::from_rows(rows, &platform(), NOW, &config);
    let since = NOW + Duration::from_secs(2);
    let due = MemoryVerdict::RetestDue { cause: FailureCause::Silent, since };
    assert!(matches!(
        view.verdict(&quic(), NOW + Duration::from_secs(1)),
        MemoryVerdict::Bad { .. }
    ));
    assert_eq!(view.verdict(&quic(), since), due);
}

#[test]
fn local_errors_are_no_evidence() {
    for cause in [FailureCause::Local, FailureCause::Unsupported] {
        let memory = after(&[failed("a.test", quic(), NOW, cause, EvidenceLevel::Started)]);
        assert!(memory.is_empty());
    }
}

#[test]
fn round_trips_are_smoothed_and_outlive_the_verdict() {
    let mut slow = worked("a.test", quic(), NOW + MIN);
    slow.rtt = Some(Duration::from_millis(160));
    let memory =
        after(&[worked("a.test", quic(), NOW), slow, was_silent("a.test", quic(), NOW + 2 * MIN)]);
    let view = memory.view(&home(), &host("a.test"), &platform(), NOW + 2 * MIN);
    let known = view.round_trip(&quic(), NOW + 2 * MIN).unwrap();
    assert_eq!(known.smoothed, Duration::from_millis(90));
    assert_eq!(known.min, Duration::from_millis(80));
}

#[test]
fn a_row_from_the_future_is_ignored() {
    for evidence in [worked("a.test", quic(), NOW + HOUR), was_silent("a.test", quic(), NOW + HOUR)]
    {
        let mut memory = after(&[evidence]);
        assert_eq!(verdict(&memory, "a.test", &quic(), NOW), MemoryVerdict::Unknown);
        memory.learn(&was_silent("a.test", quic(), NOW), &platform());
        let until = NOW + 5 * MIN;
        let bad = MemoryVerdict::Bad { cause: FailureCause::Silent, until };
        assert_eq!(verdict(&memory, "a.test", &quic(), NOW), bad);
    }
}

fn cut_short(now: Duration) -> Evidence {
    Evidence { doubt: Some(FailureDoubt::CutShort), ..was_silent("a.test", quic(), now) }
}

fn bad_until(memory: &Memory, now: Duration) -> Duration {
    match verdict(memory, "a.test", &quic(), now) {
        MemoryVerdict::Bad { cause: FailureCause::Silent, until } => until,
        other => panic!("not in back-off: {other:?}"),
    }
}

/// ```text
/// cut short --30 s--> cut short --5 min--> cut short --10 min--> …
/// ```
#[test]
fn silence_that_was_cut_short_is_doubtful_once() {
    let mut memory = after(&[]);
    let mut now = NOW;
    let mut waits = Vec::new();
    for _ in 0..4 {
        memory.learn(&cut_short(now), &platform());
        let until = bad_until(&memory, now);
        waits.push((until - now).as_secs());
        now = until;
    }
    assert_eq!(waits, [30, 300, 600, 1200]);
}

#[test]
fn a_success_makes_the_next_silence_doubtful_again() {
    let memory = after(&[
        cut_short(NOW),
        cut_short(NOW + MIN),
        worked("a.test", quic(), NOW + 7 * MIN),
        cut_short(NOW + 8 * MIN),
    ]);
    let until = NOW + 8 * MIN + Duration::from_secs(30);
    assert_eq!(bad_until(&memory, NOW + 8 * MIN), until);
}

#[test]
fn simultaneous_doubts_count_once_and_certainty_ends_them() {
    let second = Duration::from_secs(1);
    let doubts = after(&[0; 10].map(|_| cut_short(NOW)));
    assert_eq!(bad_until(&doubts, NOW), NOW + 30 * second);
    let certain = after(&[cut_short(NOW), was_silent("a.test", quic(), NOW + second)]);
    assert_eq!(bad_until(&certain, NOW + second), NOW + second + 5 * MIN);
    let doubted_later = after(&[was_silent("a.test", quic(), NOW), cut_short(NOW + second)]);
    assert_eq!(bad_until(&doubted_later, NOW + second), NOW + 5 * MIN);
}

#[test]
fn a_doubtful_back_off_is_never_the_longer_one() {
    let config = MemoryConfig { bad_first: Duration::from_secs(10), ..MemoryConfig::default() };
    assert_eq!(config.back_off(0), config.back_off(1));
    let fixed = MemoryConfig { retest_after: Some(MIN), ..config };
    assert_eq!(fixed.back_off(0), MIN);
}
