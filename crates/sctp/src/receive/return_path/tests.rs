use core::net::SocketAddr;

use super::*;
use crate::config::MultipathConfig;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn configured(sack_path: SackPath) -> AssociationConfig {
    let multipath = MultipathConfig { sack_path, ..MultipathConfig::default() };
    AssociationConfig { multipath: Some(multipath), ..AssociationConfig::default() }
}

/// Three active paths, with round trips of 100, 40 and 60 ms.
fn paths() -> AssociationPaths {
    let config = AssociationConfig::default();
    let remote = |last: u8| SocketAddr::from(([192, 0, 2, last], 0));
    let mut paths = AssociationPaths::new(remote(1), None, &config, [0; 32]);
    for (last, rtt) in [(1, 100), (2, 40), (3, 60)] {
        let path = paths.add(remote(last), None, &config).unwrap();
        paths.confirm(path);
        paths.get_mut(path).unwrap().on_round_trip(Duration::ZERO, ms(rtt));
    }
    paths
}

const A: PathId = PathId(0);
const B: PathId = PathId(1);
const C: PathId = PathId(2);

//= rfc9260 §6.4
//# SACKs go back to where the data came from
#[test]
fn without_cmt_sacks_return_to_the_source_of_the_last_data() {
    let mut back = ReturnPath::from_config(&AssociationConfig::default());
    let paths = paths();
    assert_eq!(back.choose(ms(0), &paths, false), None);
    back.on_packet(ms(0), A, true);
    back.on_packet(ms(1), B, true);
    back.on_packet(ms(2), C, false);
    assert_eq!(back.choose(ms(2), &paths, false), Some(B));
    back.on_sack(B, 52);
    assert_eq!(back.choose(ms(2), &paths, false), Some(B));
}

#[test]
fn first_selects_the_path_of_the_first_data_since_the_last_sack() {
    let mut back = ReturnPath::from_config(&configured(SackPath::First));
    let paths = paths();
    back.on_packet(ms(0), C, false);
    back.on_packet(ms(0), A, true);
    back.on_packet(ms(1), B, true);
    assert_eq!(back.choose(ms(1), &paths, false), Some(A));
    back.on_sack(A, 52);
    back.on_packet(ms(2), B, true);
    back.on_packet(ms(3), A, true);
    assert_eq!(back.choose(ms(3), &paths, false), Some(B));
}

#[test]
fn in_turn_the_paths_with_data_alternate() {
    let mut back = ReturnPath::from_config(&configured(SackPath::InTurn));
    let paths = paths();
    let mut chosen = Vec::new();
    for round in 0..4 {
        back.on_packet(ms(round), A, true);
        back.on_packet(ms(round), B, true);
        let path = back.choose(ms(round), &paths, false).unwrap();
        back.on_sack(path, 52);
        chosen.push(path);
    }
    assert_eq!(chosen, [A, B, A, B]);
    // A path without data since then gets no turn.
    back.on_packet(ms(5), B, true);
    assert_eq!(back.choose(ms(5), &paths, false), Some(B));
    back.on_sack(B, 52);
    back.on_packet(ms(6), B, true);
    back.on_packet(ms(6), C, true);
    assert_eq!(back.choose(ms(6), &paths, false), Some(C));
}

#[test]
fn the_fastest_path_is_used_while_packets_arrive_on_it() {
    let mut back = ReturnPath::from_config(&configured(SackPath::LowestRtt));
    let mut paths = paths();
    for path in [A, B, C] {
        back.on_packet(ms(0), path, true);
    }
    assert_eq!(back.choose(ms(0), &paths, false), Some(B));
    // 60 ms without a packet exceed one and a half round trips.
    back.on_packet(ms(61), A, true);
    back.on_packet(ms(61), C, true);
    assert_eq!(back.choose(ms(60), &paths, false), Some(B));
    assert_eq!(back.choose(ms(61), &paths, false), Some(C));
    // Any packet counts.
    back.on_packet(ms(62), B, false);
    assert_eq!(back.choose(ms(62), &paths, false), Some(B));
    paths.suspect(B);
    assert_eq!(back.choose(ms(62), &paths, false), Some(C));
    // After a long silence: the path of the last data.
    assert_eq!(back.choose(ms(10_000), &paths, false), Some(C));
}

/// B is the fastest, but what this end sends there has filled its queue.
#[test]
fn sacks_do_not_wait_behind_data_of_their_own_end() {
    for sack_path in [SackPath::LowestRtt, SackPath::Budgeted] {
        let mut back = ReturnPath::from_config(&configured(sack_path));
        let mut paths = paths();
        for path in [A, B, C] {
            back.on_packet(ms(0), path, true);
        }
        let queued = paths.get_mut(B).unwrap();
        for _ in 0..20 {
            queued.rto.on_sample(ms(0), ms(200));
        }
        assert_eq!(back.choose(ms(0), &paths, false), Some(B), "nothing is in flight there");
        paths.get_mut(B).unwrap().on_sent(ms(0), 1000, false);
        assert_eq!(back.choose(ms(0), &paths, false), Some(C));
    }
}

/// B is the fastest, and delivers a hundredth of the data.
#[test]
fn a_path_carries_sacks_in_proportion_to_its_data() {
    let mut back = ReturnPath::from_config(&configured(SackPath::Budgeted));
    let paths = paths();
    let mut bytes = [0; 3];
    for packet in 0..10_000_u64 {
        let now = ms(packet / 10);
        let path = if packet % 100 == 0 { B } else { A };
        back.on_packet(now, path, true);
        if packet % 2 == 1 {
            let chosen = back.choose(now, &paths, false).unwrap();
            bytes[usize::from(chosen.0)] += 100;
            back.on_sack(chosen, 100);
        }
    }
    let share = 100 * FULL_PACKET / DATA_PER_SACK_BYTE;
    assert!(bytes[1] <= share + MAX_CREDIT && bytes[1] >= share, "{bytes:?}, {share}");
    assert_eq!(bytes.iter().sum::<usize>(), 500_000, "SACKs are sent all the same");
    assert_eq!(bytes[2], 0, "nothing arrives there");
}

#[test]
fn duplicate_data_moves_sacks_to_another_path() {
    let mut back = ReturnPath::from_config(&configured(SackPath::LowestRtt));
    let paths = paths();
    let mut chosen = Vec::new();
    for round in 0..5 {
        back.on_packet(ms(round), A, true);
        back.on_packet(ms(round), B, true);
        let path = back.choose(ms(round), &paths, round > 0).unwrap();
        back.on_sack(path, 52);
        chosen.push(path);
    }
    assert_eq!(chosen, [B, A, B, A, B]);
}

#[test]
fn a_removed_path_is_not_used() {
    let mut back = ReturnPath::from_config(&configured(SackPath::InTurn));
    let mut paths = paths();
    back.on_packet(ms(0), B, true);
    back.on_packet(ms(1), C, true);
    paths.remove(B);
    assert_eq!(back.choose(ms(1), &paths, false), Some(C));
}

#[test]
fn the_history_is_bounded() {
    let mut back = ReturnPath::from_config(&configured(SackPath::InTurn));
    for number in 0..1000 {
        back.on_packet(ms(number.into()), PathId(number), true);
    }
    assert_eq!(back.received_on.len(), MAX_TRACKED);
    assert!(back.received_on.iter().any(|heard| heard.path == PathId(999)));
}
