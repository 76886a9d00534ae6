//! Tests of the summary.

use eyas::race::candidate::{AddressFamily, Security};

use super::super::load_tally::{CompleteResponse, LoadExchange, RequestError, ResponseCarrier};
use super::*;

fn load() -> Load {
    Load::new("http://127.0.0.1/".parse().expect("a URL"))
}

fn finished(arriving: u64, last_end: u64) -> FinalReport {
    let tcp = TransportAttempts { started: 10, completed: 8, used: 5, failed: 1 };
    FinalReport {
        attempts: [(Transport::Tcp, tcp)].into(),
        most_in_flight: 3,
        warm_up: 7,
        arriving_until: Duration::from_secs(arriving),
        last_end: Duration::from_secs(last_end),
        fell_behind: false,
    }
}

fn exchange(millis: u64) -> LoadExchange {
    let winner = ResponseCarrier {
        transport: Transport::Tcp,
        family: AddressFamily::V6,
        security: Security::Tls,
        version: "HTTP/2",
    };
    let total = Duration::from_millis(millis);
    let answer =
        CompleteResponse { status: 200, winner, opening: None, first_byte: total, bytes: 10 };
    LoadExchange { late: Duration::ZERO, total, is_hit: false, result: Ok(answer) }
}

#[test]
fn rates_are_those_of_the_time_after_the_warm_up() {
    let mut outcome = LoadOutcome::new(&Load { warm_up: Duration::from_secs(10), ..load() });
    (1..=100).for_each(|millis| outcome.tally.record(exchange(millis)));
    outcome.tally.record_dropped();
    outcome.add(&finished(20, 35));
    outcome.add(&finished(20, 15));
    assert_eq!(outcome.arriving, Duration::from_secs(10));
    assert_eq!(outcome.elapsed, Duration::from_secs(25));
    let summary = outcome.summary();
    assert_eq!((summary.offered_per_second, summary.answered_per_second), (10.1, 4.0));
    assert_eq!((summary.most_in_flight, summary.warm_up_requests), (6, 14));
    assert_eq!(summary.attempts_per_connection, Some(2.0));
    assert_eq!(summary.wasted_handshakes, 6);
}

#[test]
fn percentiles_include_all_but_failed_connections() {
    let mut outcome = LoadOutcome::new(&load());
    (1..=1_000).for_each(|millis| outcome.tally.record(exchange(millis)));
    let summary = outcome.summary();
    let total = summary.times_ms["total"];
    assert_eq!(total.count, 1_000);
    for (found, wanted) in [(total.p50, 500.0), (total.p99, 990.0), (total.max, 1_000.0)] {
        assert!((found / wanted - 1.0).abs() < 0.002, "{found} for {wanted}");
    }
    assert!(!summary.times_ms.contains_key("dns"));
    assert_eq!(summary.winners[0].family, "v6");
}

#[test]
fn an_empty_result_has_a_summary() {
    let mut outcome = LoadOutcome::new(&load());
    let result = Err(RequestError { kind: "connect", detail: "refused".to_owned() });
    let zero = Duration::ZERO;
    outcome.tally.record(LoadExchange { late: zero, total: zero, is_hit: false, result });
    let summary = outcome.summary();
    assert_eq!((summary.answered, summary.failed), (0, 1));
    assert_eq!(summary.attempts_per_connection, None);
    assert_eq!(summary.errors[0].first, "refused");
    let text = serde_json::to_string(&summary).expect("data");
    assert_eq!(serde_json::from_str::<LoadSummary>(&text).expect("the same"), summary);
}
