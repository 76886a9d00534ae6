use alloc::vec::Vec;
use core::net::SocketAddr;

use super::*;
use crate::event::PathChange;
use crate::path::MtuState;

const PATH: PathId = PathId(0);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 0))
}

fn paths(count: u8) -> (AssociationPaths, AssociationConfig) {
    let config = AssociationConfig { path_mtu_discovery: false, ..AssociationConfig::default() };
    let mut paths = AssociationPaths::new(address(1), None, &config, [3; 32]);
    for last in 2..=count {
        paths.add(address(last), None, &config).unwrap();
    }
    paths.start();
    (paths, config)
}

/// Lets time pass. Heartbeats are acknowledged after 20 ms on the paths for which `answers` is
/// true. Returns the time and the path of each heartbeat.
fn run(
    paths: &mut AssociationPaths,
    config: &AssociationConfig,
    from: Duration,
    until: Duration,
    answers: impl Fn(u16, Duration) -> bool,
) -> Vec<(Duration, u16)> {
    let (mut now, mut sent, mut return_path) =
        (from, Vec::new(), Vec::<(Duration, HeartbeatToSend)>::new());
    loop {
        paths.handle_timeout(now, config);
        while let Some(heartbeat) = paths.poll_heartbeat(now, config) {
            sent.push((now, heartbeat.path.0));
            if answers(heartbeat.path.0, now) {
                return_path.push((now + ms(20), heartbeat));
            }
        }
        let answer = return_path.first().map(|(time, _)| *time);
        let timeout = paths.next_timeout();
        let next = [answer, timeout].into_iter().flatten().min().unwrap();
        assert!(next > now || answer == Some(now), "a timer in the past");
        if next > until {
            return sent;
        }
        now = next;
        if answer == Some(now) {
            let (_, heartbeat) = return_path.remove(0);
            assert!(paths.on_heartbeat_ack(now, &heartbeat.info, None));
        }
    }
}

fn state(paths: &AssociationPaths, id: u16) -> PathState {
    paths.get(PathId(id)).unwrap().state()
}

//= rfc9260 §8.3
//# idle addresses are probed every RTO + HB.interval, with 50 % jitter
#[test]
fn idle_paths_get_heartbeats_at_the_interval_plus_rto_with_jitter() {
    let (mut paths, config) = paths(1);
    let sent = run(&mut paths, &config, ms(0), ms(400_000), |_, _| true);
    let times: Vec<Duration> = sent.iter().map(|(time, _)| *time).collect();
    assert!((12..=13).contains(&times.len()), "{times:?}");
    for pair in times.windows(2) {
        // 30 s, and 0.5 to 1.5 times the timeout of 1 s.
        let gap = pair[1] - pair[0] - ms(20);
        assert!((ms(30_500)..=ms(31_500)).contains(&gap), "{gap:?}");
    }
    let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.dedup();
    assert!(gaps.len() > 5, "there is jitter");
}

#[test]
fn data_postpones_heartbeats() {
    let (mut paths, config) = paths(1);
    assert_eq!(paths.poll_heartbeat(ms(0), &config), None);
    let first = paths.next_timeout().unwrap();
    paths.get_mut(PATH).unwrap().on_sent(first - ms(1), 100, true);
    paths.handle_timeout(first, &config);
    assert_eq!(paths.poll_heartbeat(first, &config), None);
    assert!(paths.next_timeout().unwrap() > first + ms(30_000));
}

#[test]
fn without_an_interval_active_paths_get_no_heartbeats() {
    let (mut paths, mut config) = paths(1);
    config.hb_interval = None;
    assert_eq!(paths.poll_heartbeat(ms(0), &config), None);
    assert_eq!(paths.next_timeout(), None);
    paths.request_heartbeat(PATH);
    assert!(paths.poll_heartbeat(ms(10), &config).is_some());
}

//= rfc7829 §3.2, 8
//# beyond PMR an address is inactive, and probed at HB.interval
//= rfc9260 §8.2
//# beyond Path.Max.Retrans an address is inactive until it answers
#[test]
fn a_silent_path_fails_in_steps_and_recovers() {
    let (mut paths, config) = paths(1);
    let return_path = ms(300_000);
    let sent = run(&mut paths, &config, ms(0), ms(420_000), |_, now| now >= return_path);
    let changes: Vec<PathChange> =
        core::iter::from_fn(|| paths.poll_change()).map(|(_, change)| change).collect();
    let expected = [PathChange::PotentiallyFailed, PathChange::Inactive, PathChange::Active];
    assert_eq!(changes, expected);
    // The first after about 31 s, then one per timeout: 1, 2, 4, 8, 16 s.
    let times: Vec<Duration> = sent.iter().map(|(time, _)| *time - sent[0].0).collect();
    let expected = [ms(0), ms(1000), ms(3000), ms(7000), ms(15_000), ms(31_000)];
    assert_eq!(times[..6], expected);
    // Then at the interval plus the doubled timeout.
    assert!(times[6] - times[5] > ms(60_000));
}

//= rfc9260 §8.1
//# HEARTBEATs on paths without data SHOULD NOT count for the association
/// RFC 9260 §8.1: an idle association does not fail because of its alternate paths.
#[test]
fn heartbeats_lost_on_other_paths_are_no_errors_of_the_association() {
    let (mut paths, config) = paths(4);
    run(&mut paths, &config, ms(0), ms(10_000), |_, _| true);
    for _ in 0..=config.path_max_retrans {
        (1..4).for_each(|id| paths.on_heartbeat_lost(PathId(id), &config));
    }
    let states = [1, 2, 3].map(|id| state(&paths, id));
    assert_eq!((states, paths.errors()), ([PathState::Inactive; 3], 0));
    for _ in 0..=config.association_max_retrans {
        assert!(!paths.is_peer_unreachable(&config));
        let usual = paths.for_data(None).expect("a path");
        paths.on_heartbeat_lost(usual, &config);
    }
    assert!(paths.is_peer_unreachable(&config));
}

//= rfc9260 §5.4
//# addresses are probed once per RTO, eight times with CMT; after sixteen probes without an answer
//# once per 30 s
#[test]
fn one_address_is_verified_per_timeout() {
    let (mut paths, config) = paths(4);
    let sent = run(&mut paths, &config, ms(0), ms(5_000), |_, _| true);
    assert_eq!(sent, [(ms(0), 1), (ms(1000), 2), (ms(2000), 3)]);
    for id in 1..=3 {
        assert_eq!(state(&paths, id), PathState::Active);
    }
}

//= rfc9260 §5.4
//# a silent address stays unconfirmed, and is no error of the association
#[test]
fn a_silent_address_stays_unconfirmed_and_is_probed_less_often() {
    let (mut paths, config) = paths(2);
    let sent = run(&mut paths, &config, ms(0), ms(200_000), |id, _| id == 0);
    assert_eq!(state(&paths, 1), PathState::Unconfirmed);
    assert_eq!(paths.errors(), 0);
    let asked = sent.iter().filter(|(_, id)| *id == 1).count();
    assert!((6..=9).contains(&asked), "{asked}");
}

//= rfc9260 §5.4
//# a forged answer to a probe confirms no address
#[test]
fn a_forged_response_confirms_nothing() {
    let (mut paths, config) = paths(2);
    let heartbeat = paths.poll_heartbeat(ms(0), &config).unwrap();
    assert_eq!(heartbeat.path, PathId(1));
    let mut forged = heartbeat.info;
    forged[9] ^= 1;
    for info in [&forged[..], &heartbeat.info[..9], &[], &[0xff; 10]] {
        assert!(!paths.on_heartbeat_ack(ms(5), info, None));
    }
    assert_eq!(state(&paths, 1), PathState::Unconfirmed);
    // The error count of one path does not affect another.
    let mut moved = heartbeat.info;
    moved[1] = 0;
    assert!(!paths.on_heartbeat_ack(ms(5), &moved, None));
    assert!(paths.on_heartbeat_ack(ms(5), &heartbeat.info, None));
    assert_eq!(state(&paths, 1), PathState::Active);
    assert!(!paths.on_heartbeat_ack(ms(6), &heartbeat.info, None));
}

//= rfc9260 §8.3
//# an answer measures the RTT and shows the address by its nonce
#[test]
fn a_response_measures_the_rtt_and_shows_the_source() {
    let (mut paths, config) = paths(1);
    paths.request_heartbeat(PATH);
    let heartbeat = paths.poll_heartbeat(ms(100), &config).unwrap();
    let local = "10.0.0.1".parse().ok();
    assert!(paths.on_heartbeat_ack(ms(180), &heartbeat.info, local));
    let path = paths.get(PATH).unwrap();
    assert_eq!(path.rto.smoothed(), Some(ms(80)));
    assert_eq!(path.local, local);
}

//= rfc7829 §3.2, 6
//# a HEARTBEAT is sent when an address becomes PF, and after each unanswered one
#[test]
fn a_doubted_path_is_probed_immediately() {
    let (mut paths, config) = paths(2);
    run(&mut paths, &config, ms(0), ms(1_000), |_, _| true);
    paths.suspect(PATH);
    let heartbeat = paths.poll_heartbeat(ms(1_000), &config).unwrap();
    assert_eq!((heartbeat.path, heartbeat.probe), (PATH, None));
    assert_eq!(paths.for_data(None), Some(PathId(1)));
    paths.on_heartbeat_ack(ms(1_050), &heartbeat.info, None);
    assert_eq!(paths.for_data(None), Some(PATH));
}

//= rfc9260 RFC 8899 §4.3, §6.2.2
//# probes with larger packets, as HEARTBEAT with PAD: `path_mtu_discovery`
#[test]
fn the_mtu_search_starts_once_data_gets_through() {
    let config = AssociationConfig::default();
    let mut paths = AssociationPaths::new(address(1), None, &config, [3; 32]);
    paths.start();
    assert_eq!(paths.poll_heartbeat(ms(0), &config), None);
    paths.get_mut(PATH).unwrap().on_sent(ms(0), 1448, true);
    paths.on_answer(PATH);
    let mut largest = 0;
    while let Some(heartbeat) = paths.poll_heartbeat(ms(1), &config) {
        let packet = heartbeat.probe.unwrap();
        assert!(packet > largest && packet % 4 == 0);
        largest = packet;
        assert!(paths.on_heartbeat_ack(ms(1), &heartbeat.info, None));
    }
    let path = paths.get(PATH).unwrap();
    assert_eq!((path.mtu(), path.mtu_state()), (8980, MtuState::Complete));
    assert_eq!(largest, 8980);
    assert_eq!(path.state(), PathState::Active);
}

#[test]
fn lost_mtu_probes_are_no_path_errors() {
    let config = AssociationConfig { hb_interval: None, ..AssociationConfig::default() };
    let mut paths = AssociationPaths::new(address(1), None, &config, [3; 32]);
    paths.start();
    paths.get_mut(PATH).unwrap().on_sent(ms(0), 1448, true);
    paths.on_answer(PATH);
    let (mut now, mut probes) = (ms(1), 0);
    loop {
        while let Some(heartbeat) = paths.poll_heartbeat(now, &config) {
            assert!(heartbeat.probe.is_some());
            probes += 1;
        }
        now = paths.next_timeout().unwrap();
        if now > ms(60_000) {
            break;
        }
        paths.handle_timeout(now, &config);
    }
    assert_eq!(probes, 3);
    assert_eq!(paths.errors(), 0);
    assert_eq!(paths.get(PATH).unwrap().mtu_state(), MtuState::Complete);
    assert!((ms(600_000)..ms(610_000)).contains(&now));
}

#[test]
fn an_icmp_message_makes_packets_smaller() {
    let (mut paths, _) = paths(1);
    paths.on_too_big(ms(0), PATH, 1400);
    assert_eq!(paths.get(PATH).unwrap().mtu(), 1380);
    paths.on_too_big(ms(0), PathId(7), 1300);
}

#[test]
fn no_heartbeats_are_sent_before_the_start_or_after_the_end() {
    let (mut paths, config) = paths(2);
    paths.stop();
    assert_eq!((paths.poll_heartbeat(ms(0), &config), paths.next_timeout()), (None, None));
    paths.start();
    assert!(paths.poll_heartbeat(ms(0), &config).is_some());
}
