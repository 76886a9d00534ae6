//! Tests of the counters: each request counts once, and parts add up to the whole.

use proptest::prelude::*;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn winner(transport: Transport) -> ResponseCarrier {
    ResponseCarrier {
        transport,
        family: AddressFamily::V4,
        security: Security::None,
        version: "HTTP/1.1",
    }
}

fn answered(millis: u32, status: u16, opening: Option<OpeningTimes>) -> LoadExchange {
    let answer = CompleteResponse {
        status,
        winner: winner(Transport::Tcp),
        opening,
        first_byte: MILLI * millis / 2,
        bytes: 1_024,
    };
    LoadExchange { late: MILLI, total: MILLI * millis, is_hit: false, result: Ok(answer) }
}

fn failed(kind: &'static str, detail: &str) -> LoadExchange {
    let result = Err(RequestError { kind, detail: detail.to_owned() });
    LoadExchange { late: MILLI, total: MILLI, is_hit: true, result }
}

#[test]
fn every_request_is_counted_once() {
    let mut tally = LoadTally::default();
    let opening = OpeningTimes { dns: None, connect: MILLI * 4, security: Some(MILLI * 3) };
    tally.record(answered(10, 200, Some(opening)));
    tally.record(answered(20, 200, None));
    tally.record(answered(30, 503, None));
    tally.record(failed("connect", "refused"));
    tally.record(failed("connect", "refused again"));
    tally.record_dropped();
    tally.record_unfinished(2);
    assert_eq!(tally.intended, 8);
    assert_eq!((tally.answered, tally.failed(), tally.refused()), (3, 2, 1));
    assert_eq!((tally.dropped, tally.unfinished, tally.hits), (1, 2, 2));
    assert_eq!((tally.opened, tally.bytes), (1, 3_072));
    assert_eq!(tally.errors["connect"].first, "refused");
    assert_eq!(tally.winners[&winner(Transport::Tcp)], 3);
    let times = &tally.times;
    assert_eq!((times.connect.len(), times.security.len(), times.dns.len()), (1, 1, 0));
    assert_eq!((times.total.len(), times.first_byte.len(), times.late.len()), (3, 3, 5));
}

#[test]
fn times_have_three_digits_and_a_maximum() {
    let mut tally = LoadTally::default();
    tally.record(answered(20, 200, None));
    let found = tally.times.total.max() as f64 / 20e6;
    assert!((0.999..1.001).contains(&found), "{found}");
    let forever = LoadExchange { total: MAX_TIME * 2, ..answered(1, 200, None) };
    tally.record(forever);
    let longest = tally.times.total.max() as f64 / MAX_TIME.as_nanos() as f64;
    assert!((0.999..1.001).contains(&longest), "{longest}");
}

fn exchanges() -> impl Strategy<Value = Vec<LoadExchange>> {
    let one = prop_oneof![
        (1_u32..5_000, 200_u16..600, any::<bool>()).prop_map(|(millis, status, opens)| {
            answered(millis, status, opens.then(OpeningTimes::default))
        }),
        prop_oneof![Just("dns"), Just("connect")].prop_map(|kind| failed(kind, "message")),
    ];
    prop::collection::vec(one, 0..60)
}

proptest! {
    #[test]
    fn parts_add_up_to_the_whole(all in exchanges(), at in any::<prop::sample::Index>()) {
        let at = if all.is_empty() { 0 } else { at.index(all.len()) };
        let count = |some: &[LoadExchange]| {
            let mut tally = LoadTally::default();
            some.iter().cloned().for_each(|exchange| tally.record(exchange));
            tally
        };
        let (whole, mut sum) = (count(&all), count(&all[..at]));
        sum.add(&count(&all[at..]));
        prop_assert_eq!(sum.intended, whole.intended);
        prop_assert_eq!(sum.answered + sum.failed(), all.len() as u64);
        prop_assert_eq!(&sum.statuses, &whole.statuses);
        prop_assert_eq!(&sum.winners, &whole.winners);
        prop_assert_eq!(&sum.errors, &whole.errors);
        for ((name, sum), (_, whole)) in sum.times.named().into_iter().zip(whole.times.named()) {
            prop_assert!(sum == whole, "{}", name);
        }
    }
}
