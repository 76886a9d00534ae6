use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::*;
use crate::event::PathChange;
use crate::identifier::PathId;

const INTERVAL: Duration = Duration::from_millis(500);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn paths(count: u8, interval: Option<Duration>) -> (AssociationPaths, AssociationConfig) {
    let config = AssociationConfig {
        path_mtu_discovery: false,
        hb_interval: None,
        max_probe_interval: interval,
        ..AssociationConfig::default()
    };
    let address = |last: u8| SocketAddr::from(([192, 0, 2, last], 0));
    let mut paths = AssociationPaths::new(address(1), None, &config, [3; 32]);
    for last in 2..=count {
        let id = paths.add(address(last), None, &config).unwrap();
        paths.confirm(id);
    }
    paths.start();
    while let Some(heartbeat) = paths.poll_heartbeat(ms(0), &config) {
        assert!(paths.on_heartbeat_ack(ms(0), &heartbeat.info, None));
    }
    while paths.poll_change().is_some() {}
    (paths, config)
}

/// The history of one path.
#[derive(Debug, Default)]
struct Seen {
    sent: Vec<Duration>,
    changes: Vec<(Duration, PathChange)>,
}

/// Lets time pass. Heartbeats sent at a time for which `answers` is true are acknowledged after
/// `round_trip`.
fn run(
    paths: &mut AssociationPaths,
    config: &AssociationConfig,
    (from, until): (Duration, Duration),
    round_trip: Duration,
    answers: impl Fn(Duration) -> bool,
) -> Seen {
    let (mut now, mut seen, mut return_path) =
        (from, Seen::default(), Vec::<(Duration, HeartbeatToSend)>::new());
    loop {
        paths.handle_timeout(now, config);
        while let Some(heartbeat) = paths.poll_heartbeat(now, config) {
            seen.sent.push(now);
            if answers(now) {
                return_path.push((now + round_trip, heartbeat));
            }
        }
        seen.changes.extend(core::iter::from_fn(|| paths.poll_change()).map(|(_, it)| (now, it)));
        let answer = return_path.first().map(|(time, _)| *time);
        let next = answer.into_iter().chain(paths.next_timeout()).min();
        let Some(next) = next.filter(|next| *next <= until) else { return seen };
        assert!(next > now || answer == Some(now), "a timer in the past");
        now = next;
        if answer == Some(now) {
            let (_, heartbeat) = return_path.remove(0);
            paths.on_heartbeat_ack(now, &heartbeat.info, None);
        }
    }
}

//= rfc7829 beyond §3.2
//# `max_probe_interval`: failed addresses are probed at least so often; such probes are no errors
#[test]
fn additional_probes_do_not_change_the_error_count() {
    let mut changed = Vec::new();
    for interval in [Some(INTERVAL), None] {
        let (mut paths, config) = paths(2, interval);
        paths.suspect(PathId(0));
        let span = (ms(0), ms(100_000));
        let seen = run(&mut paths, &config, span, ms(20), |_| false);
        let longest = seen.sent.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert_eq!(longest <= INTERVAL, interval.is_some(), "{longest:?}");
        assert!(seen.sent.len() <= 1 + 2 * 100 + 6, "{}", seen.sent.len());
        assert_eq!(paths.get(PathId(0)).unwrap().state(), PathState::Inactive);
        changed.push((seen.changes, paths.errors()));
    }
    assert_eq!(changed[0], changed[1]);
}

#[test]
fn a_recovered_path_is_detected_within_an_interval_and_a_round_trip() {
    // Whether or not the round trip has become longer than the interval meanwhile.
    for round_trip in [20, 1300] {
        let (mut paths, config) = paths(2, Some(INTERVAL));
        paths.suspect(PathId(0));
        let return_path = ms(40_000);
        let span = (ms(0), ms(60_000));
        let seen = run(&mut paths, &config, span, ms(round_trip), |now| now >= return_path);
        let (at, change) = *seen.changes.last().unwrap();
        assert_eq!(change, PathChange::Active);
        assert!(at <= return_path + INTERVAL + ms(round_trip), "{at:?}");
        let path = paths.get(PathId(0)).unwrap();
        assert_eq!(path.rto.smoothed(), Some(ms(round_trip)));
        assert!(path.additional.is_none(), "a working path has no failure state");
        let late = seen.sent.iter().filter(|sent| **sent > at);
        assert_eq!(late.count(), 0, "no probes on a working path");
    }
}

#[test]
fn all_paths_are_probed_when_the_last_one_fails() {
    let (mut paths, config) = paths(3, Some(ms(30_000)));
    paths.suspect(PathId(0));
    paths.suspect(PathId(1));
    run(&mut paths, &config, (ms(0), ms(20_000)), ms(20), |_| false);
    // Its acknowledgement is still outstanding.
    let now = ms(20_000);
    paths.on_error(PathId(2), &config);
    let mut probed = Vec::new();
    while let Some(heartbeat) = paths.poll_heartbeat(now, &config) {
        probed.push(heartbeat.path.0);
    }
    assert_eq!(probed, [0, 1, 2]);
    assert_eq!(paths.poll_heartbeat(now + ms(1), &config), None);
}

#[test]
fn probes_of_flapping_paths_are_bounded() {
    let (mut paths, config) = paths(2, Some(INTERVAL));
    paths.suspect(PathId(0));
    let mut probed = 0;
    for step in 0..1000 {
        let now = ms(1000 + step);
        paths.handle_timeout(now, &config);
        while let Some(heartbeat) = paths.poll_heartbeat(now, &config) {
            probed += usize::from(heartbeat.path == PathId(0));
        }
        // The other path works and fails alternately.
        if step % 2 == 0 { paths.on_error(PathId(1), &config) } else { paths.on_answer(PathId(1)) }
    }
    assert!((8..=12).contains(&probed), "{probed}");
}

#[test]
fn an_unconfirmed_address_is_not_probed_more_often() {
    let mut probed = Vec::new();
    for interval in [Some(INTERVAL), None] {
        let (mut paths, config) = paths(1, interval);
        paths.add(SocketAddr::from(([192, 0, 2, 9], 0)), None, &config).unwrap();
        paths.on_error(PathId(0), &config);
        paths.get_mut(PathId(0)).unwrap().t3 = Some(ms(1_000_000));
        let span = (ms(0), ms(50_000));
        let mut to_new = 0;
        let (mut now, until) = span;
        while now < until {
            paths.handle_timeout(now, &config);
            while let Some(heartbeat) = paths.poll_heartbeat(now, &config) {
                to_new += usize::from(heartbeat.path == PathId(1));
            }
            now += ms(10);
        }
        probed.push(to_new);
    }
    assert_eq!(probed[0], probed[1]);
}
