//! Which policies are valid.

use alloc::{string::ToString, vec};

use super::*;

fn with(change: impl FnOnce(&mut Policy)) -> Result<Policy, PolicyError> {
    let mut policy = Policy::default();
    change(&mut policy);
    policy.validated()
}

//= rfc8305 §8
//# the recommended delays are the defaults
#[test]
fn the_defaults_are_valid() {
    assert_eq!(Policy::default().validated(), Ok(Policy::default()));
}

//= hev3 §6, §9
//# two attempts MUST NOT start within 10 ms
#[test]
fn no_attempt_delay_goes_below_ten_milliseconds() {
    let below = Duration::from_millis(9);
    let error = with(|policy| policy.attempt_delay_min = below).unwrap_err();
    let expected = PolicyError::TooShort {
        field: "attempt_delay_min",
        value: below,
        least: ATTEMPT_DELAY_FLOOR,
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "attempt_delay_min is 9 ms, but must be at least 10 ms");
    assert!(with(|policy| policy.attempt_delay_min = ATTEMPT_DELAY_FLOOR).is_ok());
}

//= rfc8305 §5
//# an upper bound of the delay, 2 s
#[test]
fn the_attempt_delay_lies_between_its_bounds() {
    let short = with(|policy| policy.attempt_delay = Duration::from_millis(99));
    assert!(matches!(short, Err(PolicyError::TooShort { field: "attempt_delay", .. })));
    let long = with(|policy| policy.attempt_delay = Duration::from_millis(2001));
    assert!(matches!(long, Err(PolicyError::TooLong { field: "attempt_delay", .. })));
    let min_above_delay = with(|policy| policy.attempt_delay_min = Duration::from_secs(3));
    assert!(matches!(
        min_above_delay,
        Err(PolicyError::TooLong { field: "attempt_delay_min", .. })
    ));
    let endless = with(|policy| policy.attempt_delay_max = Duration::MAX);
    assert!(matches!(endless, Err(PolicyError::TooLong { field: "attempt_delay_max", .. })));
}

#[test]
fn every_other_duration_has_an_upper_bound() {
    type Change = fn(&mut Policy);
    let cases: [(&str, Change); 11] = [
        ("resolution_delay", |policy| policy.resolution_delay = Duration::MAX),
        ("head_start", |policy| policy.head_start = Duration::MAX),
        ("grace", |policy| policy.grace = Duration::MAX),
        ("deadline", |policy| policy.deadline = Duration::MAX),
        ("late_switch_for", |policy| policy.late_switch_for = Duration::MAX),
        ("refused_host_patience", |policy| policy.refused_host_patience = Duration::MAX),
        ("dns_after_win", |policy| policy.dns_after_win = Duration::MAX),
        ("second_try_delay", |policy| policy.second_try_delay = Duration::MAX),
        ("second_try_delay_min", |policy| policy.second_try_delay_min = Duration::MAX),
        ("lossy_second_try_delay", |policy| policy.lossy_second_try_delay = Duration::MAX),
        ("losers", |policy| policy.losers = LoserPolicy::Finish(Duration::MAX)),
    ];
    for (expected, change) in cases {
        match with(change) {
            Err(PolicyError::TooLong { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn zero_is_a_value_only_where_it_means_something() {
    assert!(with(|policy| policy.head_start = Duration::ZERO).is_ok());
    assert!(with(|policy| policy.resolution_delay = Duration::ZERO).is_ok());
    let never = with(|policy| policy.deadline = Duration::ZERO);
    assert!(matches!(never, Err(PolicyError::TooShort { field: "deadline", .. })));
    assert_eq!(with(|policy| policy.max_in_flight = 0), Err(PolicyError::MaxInFlight(0)));
    assert_eq!(with(|policy| policy.max_in_flight = 257), Err(PolicyError::MaxInFlight(257)));
    let none = with(|policy| policy.preferred_family_count = 0);
    assert_eq!(none, Err(PolicyError::PreferredFamilyCount));
}

#[test]
fn transports_are_named_once_and_at_least_one() {
    assert_eq!(with(|policy| policy.transports = vec![]), Err(PolicyError::NoTransport));
    let twice = vec![Transport::Tcp, Transport::Quic, Transport::Tcp];
    let error = with(|policy| policy.transports = twice).unwrap_err();
    assert_eq!(error, PolicyError::TransportTwice(Transport::Tcp));
    assert!(error.to_string().starts_with("tcp is listed twice"));
}

#[test]
fn an_attempt_wins_between_answered_and_first_byte() {
    for level in [
        EvidenceLevel::Answered,
        EvidenceLevel::Transport,
        EvidenceLevel::Security,
        EvidenceLevel::FirstByte,
    ] {
        assert!(with(|policy| policy.win_at = level).is_ok(), "{level:?}");
    }
    for level in [EvidenceLevel::Started, EvidenceLevel::FullPacket] {
        assert_eq!(with(|policy| policy.win_at = level), Err(PolicyError::WinAt(level)));
    }
}
