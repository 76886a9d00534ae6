//! Single requests, input by input.

use super::{super::*, ms};

fn setup(may_repeat: bool) -> Setup {
    Setup { rtt: Some(ms(10)), idle: ms(0), may_repeat, can_check: true }
}

fn drained(core: &mut ReusedRequest) -> Vec<Output> {
    let mut outputs = Vec::new();
    loop {
        match core.poll_output() {
            Output::Timeout(_) => return outputs,
            output => outputs.push(output),
        }
    }
}

/// Feeds inputs and compares what comes out.
fn ladder(core: &mut ReusedRequest, steps: &[(u64, Input, &[Output])]) {
    for (at, input, expected) in steps {
        core.handle_input(ms(*at), *input);
        assert_eq!(drained(core), *expected, "after {input:?} at {at} ms");
    }
}

const NOTHING: Sign = Sign::NotWithin(Duration::ZERO);

/// Returns a request whose connection has been silent for so long that a race starts, at 100 ms.
fn doubting(setup: Setup) -> ReusedRequest {
    let mut core = ReusedRequest::new(setup, ms(0));
    drained(&mut core);
    ladder(
        &mut core,
        &[
            (100, Input::Tick, &[Output::Look]),
            (100, Input::Looked(NOTHING), &[Output::Doubt, Output::StartRace]),
        ],
    );
    core
}

/// Returns such a request whose race is won at 130 ms, with these outputs; the connection is dead.
fn overtaken(setup: Setup, outputs: &[Output]) -> ReusedRequest {
    let mut core = doubting(setup);
    ladder(
        &mut core,
        &[(130, Input::RaceWon, &[Output::Look]), (130, Input::Looked(NOTHING), outputs)],
    );
    core
}

#[test]
fn the_delay_follows_from_the_round_trip_time() {
    for (rtt, expected) in [(1, 100), (33, 100), (60, 180), (400, 1200), (9000, 3000)] {
        assert_eq!(delay(Some(ms(rtt))), ms(expected), "{rtt}");
    }
    assert_eq!(delay(None), ms(250));
}

#[test]
fn a_silent_connection_is_raced_and_the_request_repeated() {
    let mut core = ReusedRequest::new(setup(true), ms(0));
    assert_eq!(drained(&mut core), [Output::Send(Lane::Reused)]);
    ladder(&mut core, &[(99, Input::Tick, &[]), (100, Input::Tick, &[Output::Look])]);
    let mut core = overtaken(setup(true), &[Output::Dead, Output::Send(Lane::New)]);
    ladder(
        &mut core,
        &[
            (140, Input::Answered(Lane::New), &[Output::Use(Lane::New)]),
            (150, Input::Answered(Lane::Reused), &[]),
        ],
    );
}

#[test]
fn the_first_answer_is_used_whoever_gives_it() {
    let mut core = overtaken(setup(true), &[Output::Dead, Output::Send(Lane::New)]);
    ladder(
        &mut core,
        &[
            (135, Input::Failed(Lane::New), &[]),
            (140, Input::Answered(Lane::Reused), &[Output::Use(Lane::Reused)]),
        ],
    );
}

#[test]
fn a_request_that_may_not_be_repeated_waits() {
    let mut core = overtaken(setup(false), &[Output::Dead]);
    assert!(core.is_stuck());
    ladder(&mut core, &[(9000, Input::Failed(Lane::Reused), &[Output::Fail(Lane::Reused)])]);
}

/// A request that may not be repeated, on a connection that is dead at this time.
fn stuck(won_at: u64) -> ReusedRequest {
    let mut core = ReusedRequest::new(setup(false), ms(0));
    drained(&mut core);
    ladder(
        &mut core,
        &[
            (100, Input::Tick, &[Output::Look]),
            (100, Input::Looked(NOTHING), &[Output::Doubt, Output::StartRace]),
            (won_at, Input::RaceWon, &[Output::Look]),
            (won_at, Input::Looked(NOTHING), &[Output::Dead]),
        ],
    );
    core
}

#[test]
fn a_request_that_may_not_be_repeated_is_abandoned_after_a_while() {
    // A race that took long: the next retransmission may be as far away.
    for (won_at, abandoned_at) in [(130, 30_230), (45_000, 90_100)] {
        let mut core = stuck(won_at);
        let due = Output::Timeout(Some(ms(abandoned_at)));
        assert_eq!(core.poll_output(), due);
        ladder(
            &mut core,
            &[
                (abandoned_at, Input::Tick, &[Output::Look]),
                (abandoned_at, Input::Looked(NOTHING), &[Output::Abandon]),
            ],
        );
        assert!(core.is_stuck());
    }
}

#[test]
fn a_dead_connection_that_comes_back_is_waited_for() {
    let mut core = stuck(130);
    ladder(
        &mut core,
        &[(30_230, Input::Tick, &[Output::Look]), (30_230, Input::Looked(Sign::Seen), &[])],
    );
    assert!(!core.is_stuck());
    assert_eq!(core.poll_output(), Output::Timeout(None));
    ladder(&mut core, &[(90_000, Input::Answered(Lane::Reused), &[Output::Use(Lane::Reused)])]);
}

#[test]
fn a_late_sign_of_life_ends_the_race() {
    let mut core = doubting(setup(true));
    ladder(
        &mut core,
        &[
            (200, Input::Tick, &[Output::Look]),
            (200, Input::Looked(Sign::Seen), &[Output::EndRace, Output::Trust]),
            (5000, Input::Answered(Lane::Reused), &[Output::Use(Lane::Reused)]),
        ],
    );
    // The race is won in the same moment.
    let mut core = doubting(setup(true));
    ladder(
        &mut core,
        &[
            (150, Input::RaceWon, &[Output::Look]),
            (150, Input::Looked(Sign::Seen), &[Output::Trust]),
        ],
    );
}

#[test]
fn a_reset_leaves_the_race_to_the_request() {
    let mut core = doubting(setup(true));
    ladder(
        &mut core,
        &[
            (120, Input::Failed(Lane::Reused), &[]),
            (130, Input::RaceWon, &[Output::Look]),
            (130, Input::Looked(Sign::Seen), &[Output::Dead, Output::Send(Lane::New)]),
            (140, Input::Failed(Lane::New), &[Output::Fail(Lane::New)]),
        ],
    );
}

#[test]
fn a_failed_race_is_repeated_while_the_connection_may_come_back() {
    let mut core = doubting(setup(true));
    ladder(
        &mut core,
        &[
            (110, Input::RaceFailed, &[]),
            (200, Input::Tick, &[Output::Look]),
            (200, Input::Looked(NOTHING), &[]),
            (1110, Input::Tick, &[Output::StartRace, Output::Look]),
            (1110, Input::Looked(NOTHING), &[]),
            (1120, Input::RaceFailed, &[]),
            (3119, Input::Tick, &[Output::Look]),
            (3119, Input::Looked(Sign::Seen), &[Output::Trust]),
        ],
    );
}

#[test]
fn an_idle_connection_is_checked_before_what_may_not_be_repeated() {
    let checked = Setup { idle: CHECK_AFTER, ..setup(false) };
    let mut core = ReusedRequest::new(checked, ms(0));
    assert_eq!(drained(&mut core), [Output::Probe]);
    ladder(
        &mut core,
        &[
            (9, Input::Tick, &[]),
            (10, Input::Tick, &[Output::Look]),
            (10, Input::Looked(NOTHING), &[]),
            (20, Input::Tick, &[Output::Look]),
            (20, Input::Looked(Sign::Seen), &[Output::Send(Lane::Reused)]),
        ],
    );
    let mut core = overtaken(checked, &[Output::Dead, Output::Send(Lane::New)]);
    ladder(&mut core, &[(140, Input::Failed(Lane::New), &[Output::Fail(Lane::New)])]);
    let mut core = doubting(checked);
    ladder(&mut core, &[(130, Input::RaceFailed, &[Output::GiveUp])]);
    for unchecked in [
        Setup { idle: CHECK_AFTER - ms(1), ..checked },
        Setup { can_check: false, ..checked },
        Setup { may_repeat: true, ..checked },
    ] {
        assert_eq!(
            drained(&mut ReusedRequest::new(unchecked, ms(0))),
            [Output::Send(Lane::Reused)]
        );
    }
}

#[test]
fn a_host_that_was_suspended_looks_again_before_it_races() {
    let mut core = ReusedRequest::new(setup(true), ms(0));
    drained(&mut core);
    ladder(
        &mut core,
        &[
            (60_000, Input::Tick, &[]),
            (60_099, Input::Tick, &[]),
            (60_100, Input::Tick, &[Output::Look]),
            (60_100, Input::Looked(NOTHING), &[Output::Doubt, Output::StartRace]),
        ],
    );
}

/// Returns a request whose connection showed a sign of life at 100 ms.
fn acknowledged(setup: Setup) -> ReusedRequest {
    let mut core = ReusedRequest::new(setup, ms(0));
    drained(&mut core);
    ladder(
        &mut core,
        &[(100, Input::Tick, &[Output::Look]), (100, Input::Looked(Sign::Seen), &[])],
    );
    core
}

#[test]
fn a_host_that_works_is_asked_ever_less_often() {
    let mut core = acknowledged(setup(false));
    let (mut now, mut waits) = (100, Vec::new());
    for _ in 0..5 {
        let Output::Timeout(Some(due)) = core.poll_output() else { panic!("no question") };
        let due = u64::try_from(due.as_millis()).expect("short");
        waits.push(due - now);
        ladder(
            &mut core,
            &[
                (due, Input::Tick, &[Output::Probe]),
                (due + 1999, Input::Tick, &[]),
                (due + 2000, Input::Tick, &[Output::Look]),
                (due + 2000, Input::Looked(Sign::Seen), &[]),
            ],
        );
        now = due + 2000;
    }
    assert_eq!(waits, [2000, 4000, 8000, 10_000, 10_000]);
    let mut unable = acknowledged(Setup { can_check: false, ..setup(true) });
    assert_eq!(unable.poll_output(), Output::Timeout(None));
}

#[test]
fn a_host_that_dies_while_it_works_is_raced() {
    let asked = |may_repeat| {
        let mut core = acknowledged(setup(may_repeat));
        ladder(
            &mut core,
            &[
                (2100, Input::Tick, &[Output::Probe]),
                (4100, Input::Tick, &[Output::Look]),
                (4100, Input::Looked(NOTHING), &[Output::Doubt, Output::StartRace]),
                (4130, Input::RaceWon, &[Output::Look]),
            ],
        );
        core
    };
    let dead = Input::Looked(NOTHING);
    ladder(&mut asked(true), &[(4130, dead, &[Output::Dead, Output::Send(Lane::New)])]);
    let mut waits = asked(false);
    ladder(&mut waits, &[(4130, dead, &[Output::Dead])]);
    assert!(waits.is_stuck());
    // The answer was late.
    ladder(
        &mut asked(true),
        &[
            (4130, Input::Looked(Sign::Seen), &[Output::Trust]),
            (5000, Input::Answered(Lane::Reused), &[Output::Use(Lane::Reused)]),
        ],
    );
}
