//! Limits on attempts in flight, per race and per process, and whose turn it is when they are
//! reached.

use core::time::Duration;

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{Evidence, FailureCause, TrustContext};
use crate::io::RaceInput;
use crate::policy::Policy;

const FOUR: [&str; 4] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() }
}

fn two_at_once() -> Policy {
    Policy { max_in_flight: 2, ..tcp_only() }
}

fn starts(lines: &[String]) -> Vec<&str> {
    let starts = lines.iter().filter(|line| line.contains(" start "));
    starts.map(|line| line.rsplit(' ').next().unwrap()).collect()
}

/// The time of the first line that contains this.
fn time_of(lines: &[String], event: &str) -> u64 {
    let line =
        lines.iter().find(|line| line.contains(event)).unwrap_or_else(|| panic!("{lines:?}"));
    line.split(' ').next().unwrap().parse().unwrap()
}

/// Found by fuzzing: all candidates made room for one another within one instant, forever.
#[test]
fn a_turn_takes_time_even_without_a_delay() {
    let policy = Policy {
        max_in_flight: 1,
        simultaneous: true,
        attempt_delay: Duration::ZERO,
        attempt_delay_max: Duration::ZERO,
        ..tcp_only()
    };
    let mut scene = Scene::new(&FOUR, policy);
    let lines = scene.until(1_000);
    assert_eq!(starts(&lines)[..4], FOUR);
    assert!(starts(&lines).len() < 40, "{lines:?}");
}

/// ```text
/// 0     1 ──▶
/// 250   2 ──▶
/// 500   1 ✕ makes room
/// 500   3 ──▶
/// 750   2 ✕ makes room
/// 750   4 ──▶        everything has had its turn
/// 1000  3 ✕ makes room
/// 1000  1 ──▶        again, with a turn twice as long
/// ```
#[test]
fn unanswered_attempts_make_room() {
    let mut scene = Scene::new(&FOUR, two_at_once());
    let lines = [
        "0 start 0 tcp 192.0.2.1",
        "250 start 1 tcp 192.0.2.2",
        "500 close 0 MadeRoom",
        "500 start 2 tcp 192.0.2.3",
        "750 close 1 MadeRoom",
        "750 start 3 tcp 192.0.2.4",
        "1000 close 2 MadeRoom",
        "1000 start 4 tcp 192.0.2.1",
        "1250 close 3 MadeRoom",
        "1250 start 5 tcp 192.0.2.2",
        "2000 close 4 MadeRoom",
        "2000 start 6 tcp 192.0.2.3",
    ];
    assert_eq!(scene.until(2_000), lines);
}

/// A short silence is not significant when an attempt makes room. A silence as long as would count
/// at the deadline is remembered.
#[test]
fn only_a_long_silence_counts_against_attempts_that_made_room() {
    let mut scene = Scene::new(&FOUR, two_at_once());
    let lines = scene.until(29_000);
    let learnt = lines.iter().position(|line| line.contains("learn")).unwrap();
    assert_eq!(lines[learnt], "11000 learn tcp silent at Started");
    assert_eq!(lines[learnt + 1], "11000 close 12 MadeRoom");
    assert!(lines.contains(&"7000 start 12 tcp 192.0.2.1".to_owned()), "{lines:?}");
}

/// Nine addresses of each family, of which only the last IPv6 one answers: libcurl 8.14 needs 3.2
/// s, Node 22 4.0 s.
#[test]
fn the_last_of_many_addresses_is_found_as_soon_as_by_curl() {
    for transports in [vec![Transport::Tcp], Policy::default().transports] {
        let v6 = (1..=9).map(|host| format!("2001:db8::{host}"));
        let v4 = (1..=9).map(|host| format!("192.0.2.{host}"));
        let addresses: Vec<String> = v6.chain(v4).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let mut scene = Scene::new(&addresses, Policy { transports, ..Policy::default() });
        let lines = scene.until(3_000);
        let start = lines.iter().find(|line| line.ends_with("tcp 2001:db8::9")).unwrap();
        let words: Vec<&str> = start.split(' ').collect();
        let at: u64 = words[0].parse().unwrap();
        assert!(at <= 2_800, "including two round trips of 100 ms for TCP and TLS: {lines:?}");

        let mut scene = Scene::new(&addresses, scene.race.setup().policy.clone());
        scene.until(at + 100);
        scene.answered(words[2].parse().unwrap());
        scene.until(at + 200);
        scene.ready(words[2].parse().unwrap());
        let lines = scene.until(3_200);
        let usable = format!(" usable {}", words[2]);
        assert!(lines.iter().any(|line| line.ends_with(&usable)), "{lines:?}");
    }
}

/// Six records, five of them silent, and room for four attempts.
#[test]
fn silent_addresses_do_not_block_others() {
    let addresses: Vec<String> = (1..=6).map(|host| format!("192.0.2.{host}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let mut scene = Scene::new(&addresses, Policy { max_in_flight: 4, ..tcp_only() });
    let lines = scene.until(1_000);
    assert_eq!(lines.last().unwrap(), "950 start 5 tcp 192.0.2.6");
    scene.ready(5);
    assert!(scene.until(1_000).contains(&"1000 usable 5".to_owned()));
}

/// ```text
/// 500   1 ✕ makes room          its round trip is 700 ms
/// 750   3 ✕ makes room
/// 1000  1 ──▶                   its second turn is long enough
/// 1700  1 ◀── SYN ACK: it keeps its place
/// ```
#[test]
fn a_slow_candidate_connects_in_a_later_turn() {
    let mut scene = Scene::new(&FOUR[..3], Policy { max_in_flight: 2, ..tcp_only() });
    let lines = scene.until(1_700);
    let second_turn = lines.iter().filter(|line| line.ends_with("tcp 192.0.2.1")).nth(1).unwrap();
    assert_eq!(second_turn, "750 start 3 tcp 192.0.2.1");
    assert!(!lines.contains(&"1450 close 3 MadeRoom".to_owned()), "{lines:?}");
    scene.answered(3);
    let lines = scene.until(3_699);
    assert!(!lines.iter().any(|line| line.contains("close 3")), "{lines:?}");
    scene.ready(3);
    assert!(scene.until(3_699).contains(&"3699 usable 3".to_owned()));
}

/// A middlebox that accepts every connection and then stays silent must not block other candidates.
#[test]
fn stalled_attempts_make_room_too() {
    let mut scene = Scene::new(&FOUR[..2], Policy { max_in_flight: 1, ..tcp_only() });
    scene.until(100);
    scene.answered(0);
    let lines = ["2100 close 0 MadeRoom", "2100 start 1 tcp 192.0.2.2"];
    assert_eq!(scene.until(2_500), lines);
}

#[test]
fn a_long_remembered_round_trip_makes_the_turn_longer() {
    use crate::memory::{Memory, MemoryConfig};
    let mut memory = Memory::new(MemoryConfig::default());
    let rtt = Some(ms(400));
    memory.learn(&Evidence { rtt, ..good(Transport::Tcp) }, &TrustContext::default());
    let mut setup = setup(Policy { max_in_flight: 1, ..tcp_only() });
    setup.view =
        memory.view(&setup.network.id, &setup.target.host, &TrustContext::default(), EPOCH);
    let lines = Scene::with(setup, &FOUR).until(3_000);
    assert_eq!(lines[..2], ["0 start 0 tcp 192.0.2.1", "1600 close 0 MadeRoom"]);
}

/// A refusal ends the wait for a turn: that nothing works is reported long before the deadline,
/// although the limit allowed only some candidates to be tried at once.
#[test]
fn many_refusing_addresses_end_the_race_soon() {
    let policy = Policy { max_in_flight: 2, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&FOUR, policy);
    let mut lines = Vec::new();
    for until in (0..10_000).step_by(10) {
        let new_lines = scene.until(until);
        for line in new_lines.iter().filter(|line| line.contains(" tcp ") && line.contains("start"))
        {
            scene.fails(line.split(' ').nth(2).unwrap().parse().unwrap(), FailureCause::Refused);
        }
        lines.extend(new_lines);
    }
    let failed = lines.iter().find(|line| line.contains("AllFailed")).unwrap();
    assert!(time_of(&lines, "AllFailed") < 8_000, "{failed}");
    assert!(FOUR.iter().all(|address| failed.contains(address)), "{failed}");
}

/// The failure names everything that was tried, including candidates that wait for another turn.
#[test]
fn the_deadline_names_what_made_room() {
    let mut scene = Scene::new(&FOUR, two_at_once());
    let lines = scene.until(30_000);
    let failed = lines.iter().find(|line| line.contains("failed Deadline")).unwrap();
    assert_eq!(failed.matches("Candidate").count(), 4, "{failed}");
}

/// ```text
/// 0     1 to 8 ──▶
/// 3000  each ✕ silent, the next ──▶
/// 30000 the deadline ends the last ones
/// ```
#[test]
fn an_exhaustive_race_tries_everything_to_its_end() {
    let addresses: Vec<String> = (1..=20).map(|host| format!("192.0.2.{host}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let policy = Policy { exhaustive: true, ..tcp_only() };
    let mut scene = Scene::new(&addresses, policy.clone());
    let lines = scene.until(29_999);
    assert_eq!(starts(&lines), addresses, "each was silent for a whole turn");
    assert_eq!(time_of(&lines, "close 0 MadeRoom"), 3_000);
    assert_eq!(time_of(&lines, "learn tcp silent"), 3_000);
    let lines = scene.until(30_000);
    let failed = lines.iter().find(|line| line.contains("failed Deadline")).unwrap();
    assert_eq!(failed.matches("Candidate").count(), 20, "{failed}");
    assert!(failed.contains("other candidates waited for a turn"), "{failed}");

    let mut scene = Scene::new(&addresses, Policy { deadline: ms(5_000), ..policy });
    let lines = scene.until(4_999);
    assert_eq!(starts(&lines)[..20], addresses, "a shorter deadline is shared out");
    assert_eq!(time_of(&lines, "close 0 MadeRoom"), 1_850, "too early to be learnt");
    assert!(!lines.iter().any(|line| line.contains("learn")), "{lines:?}");
}

/// ```text
/// 0     QUIC ──▶
/// 158   QUIC is answered
/// 3158  QUIC ✕ makes room, after 3 s without progress
/// 3158  TCP ──▶           nobody else waits now, so QUIC gets a second turn after it
/// 6158  TCP ✕             silent for 3 s: it has failed
/// 6158  QUIC ──▶
/// 10658  QUIC is complete
/// ```
#[test]
fn an_exhaustive_race_gives_a_second_turn_to_what_was_cut_short() {
    let deadline = Duration::from_secs(300);
    let policy =
        Policy { exhaustive: true, max_in_flight: 1, deadline, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&["192.0.2.1"], policy);
    assert_eq!(scene.until(158), ["0 start 0 quic 192.0.2.1"]);
    scene.answered(0);
    let lines = scene.until(6_300);
    let wanted = [
        "3158 close 0 MadeRoom",
        "3158 start 1 tcp 192.0.2.1",
        "6158 learn tcp silent at Started",
        "6158 close 1 MadeRoom",
        "6158 start 2 quic 192.0.2.1",
    ];
    assert_eq!(lines, wanted);
    scene.until(6_316);
    scene.answered(2);
    assert_eq!(scene.until(10_658), Vec::<String>::new(), "it has all the time that it needs");
    scene.ready(2);
    let lines = scene.until(10_658);
    assert!(lines.contains(&"10658 usable 2".to_owned()), "{lines:?}");
    assert!(lines.contains(&"10658 finished".to_owned()), "{lines:?}");
}

/// Two slow candidates and one slot: their turns become longer until both have completed.
#[test]
fn slow_candidates_of_an_exhaustive_race_take_longer_and_longer_turns() {
    let deadline = Duration::from_secs(300);
    let policy = Policy { exhaustive: true, max_in_flight: 1, deadline, ..tcp_only() };
    let mut scene = Scene::new(&FOUR[..2], policy);
    let (mut lines, mut at, mut complete) = (Vec::new(), 0, 0);
    // Each is answered after 100 ms, and would be complete 7 s later.
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    while at < 120_000 {
        at += 100;
        for line in scene.until(at) {
            if let [time, "start", id, ..] = line.split(' ').collect::<Vec<_>>()[..] {
                let (time, id) = (time.parse::<u64>().unwrap(), id.parse().unwrap());
                events.extend([(time + 200, false, id), (time + 7_200, true, id)]);
            } else if let [_, "close", id, _] = line.split(' ').collect::<Vec<_>>()[..] {
                let id: u32 = id.parse().unwrap();
                events.retain(|(_, _, of)| *of != id);
            }
            lines.push(line);
        }
        let (due, rest): (Vec<_>, Vec<_>) = events.into_iter().partition(|(time, ..)| *time <= at);
        events = rest;
        for (_, is_complete, id) in due {
            if is_complete {
                scene.ready(id);
                complete += 1;
            } else {
                scene.answered(id);
            }
        }
    }
    assert_eq!(complete, 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("usable")), "{lines:?}");
}

/// The slot that an attempt releases may go to another race, so only long silent attempts make
/// room, and nothing starts before the driver reports that there is room.
#[test]
fn a_race_waits_for_slots_of_the_process() {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    scene.input(RaceInput::Slots(2));
    scene.answer(&FOUR);
    let lines = ["0 start 0 tcp 192.0.2.1", "250 start 1 tcp 192.0.2.2"];
    assert_eq!(scene.until(2_999), lines);
    let lines = ["3000 learn tcp silent at Started", "3000 close 0 MadeRoom"];
    assert_eq!(scene.until(3_500), lines, "one at a time");
    scene.input(RaceInput::Slots(1));
    assert_eq!(scene.until(3_500), ["3500 start 2 tcp 192.0.2.3"]);
    scene.input(RaceInput::Slots(1));
    assert_eq!(scene.until(3_800), ["3750 start 3 tcp 192.0.2.4"]);
    scene.input(RaceInput::Slots(9));
    assert_eq!(scene.until(5_000), ["4000 start 4 tcp 192.0.2.1"]);
}

#[test]
fn a_race_without_waiting_attempts_releases_no_slots() {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    scene.input(RaceInput::Slots(2));
    scene.answer(&FOUR[..2]);
    assert_eq!(starts(&scene.until(29_000)), FOUR[..2]);
}

#[test]
fn limits_hold_for_a_simultaneous_race_too() {
    let policy = Policy { simultaneous: true, max_in_flight: 3, ..tcp_only() };
    let mut scene = Scene::new(&FOUR, policy);
    assert_eq!(scene.until(100).len(), 3);
    scene.fails(1, FailureCause::Refused);
    assert_eq!(scene.until(100).last().unwrap(), "100 start 3 tcp 192.0.2.4");
}

#[test]
fn a_thousand_addresses_are_tried_in_a_bounded_way() {
    let many: Vec<String> = (0..1_000).map(|n| format!("192.0.{}.{}", n / 250, n % 250)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut scene = Scene::new(&many, tcp_only());
    let lines = scene.until(29_999);
    let started = starts(&lines);
    let turns = |address: &&str| started.iter().filter(|start| *start == address).count();
    let tried: Vec<usize> = many.iter().map(turns).filter(|turns| *turns > 0).collect();
    assert_eq!(tried.len(), crate::resolve::MAX_ADDRESSES, "all that the plan takes");
    assert!(tried.iter().all(|turns| *turns <= 3), "{tried:?}");
}

/// Attempts that made room on another network do not get longer turns on this one.
#[test]
fn turns_restart_on_another_network() {
    let mut scene = Scene::new(&FOUR, two_at_once());
    scene.until(2_100);
    scene.moves_to("cafe");
    scene.until(2_100);
    scene.answer(&FOUR);
    let lines = scene.until(2_700);
    let closed: Vec<_> = lines.iter().filter(|line| line.contains("MadeRoom")).collect();
    assert_eq!(closed, ["2600 close 7 MadeRoom"], "{lines:?}");
}

/// Second tries are expendable: they make room before any first attempt.
#[test]
fn a_second_try_makes_room_before_any_first_one() {
    let policy = Policy { second_tries: 2, max_in_flight: 3, ..tcp_only() };
    let mut scene = Scene::unanswered(setup(policy));
    scene.answer_only(crate::dns::RecordType::Aaaa, &[V6]);
    let lines = scene.until(810);
    assert_eq!(starts(&lines), [V6, V6, V6]);
    scene.answer(&[V4]);
    let lines = ["810 close 2 Lost", "810 start 3 tcp 192.0.2.1"];
    assert_eq!(scene.until(810), lines);
}
