use core::net::SocketAddr;

use super::*;
use crate::config::AssociationConfig;

const A: PathId = PathId(0);
const B: PathId = PathId(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Two paths with these forward and return delays; `sacks` pairs the data's path with the SACK's.
fn paths(forward: [u64; 2], return_path: [u64; 2], sacks: &[(PathId, PathId)]) -> AssociationPaths {
    let config = AssociationConfig::default();
    let remote = |last: u8| SocketAddr::from(([192, 0, 2, last], 0));
    let mut paths = AssociationPaths::new(remote(1), None, &config, [0; 32]);
    let second = paths.add(remote(2), None, &config).unwrap();
    paths.confirm(second);
    for id in [A, B] {
        let index = usize::from(id.0);
        let rtt = ms(forward[index] + return_path[index]);
        paths.get_mut(id).unwrap().on_round_trip(Duration::ZERO, rtt);
    }
    for (on, returned) in sacks {
        let minimum = forward[usize::from(on.0)] + return_path[usize::from(returned.0)];
        let rtts = &mut paths.get_mut(*on).unwrap().estimates.return_rtts;
        // Queueing only ever adds delay.
        for queue in [30, 0, 80] {
            rtts.on_sample(*returned, ms(minimum + queue), 1500, false);
        }
    }
    paths
}

#[test]
fn sacks_on_a_common_path_measure_the_forward_delay_difference() {
    // The round-trip times are equal.
    let paths = paths([10, 50], [60, 20], &[(A, A), (B, A)]);
    assert_eq!(paths.forward_lag(A), Some(ms(0)));
    assert_eq!(paths.forward_lag(B), Some(ms(40)));
}

#[test]
fn without_a_common_path_half_of_the_rtt_difference_is_used() {
    let paths = paths([10, 50], [10, 50], &[(A, A), (B, B)]);
    assert_eq!(paths.forward_lag(A), Some(ms(0)));
    assert_eq!(paths.forward_lag(B), Some(ms(40)));
}

#[test]
fn unmeasured_values_are_unknown() {
    let mut paths = paths([10, 50], [10, 50], &[]);
    let config = AssociationConfig::default();
    let third = paths.add("192.0.2.3:0".parse().unwrap(), None, &config).unwrap();
    paths.confirm(third);
    assert_eq!(paths.forward_lag(third), None);
    assert_eq!(paths.forward_lag(PathId(9)), None);
    assert_eq!(paths.forward_lag(B), Some(ms(40)));
}

#[test]
fn inactive_paths_are_not_compared() {
    let mut paths = paths([10, 50], [10, 50], &[(A, B), (B, B)]);
    paths.suspect(A);
    assert_eq!(paths.forward_lag(B), Some(ms(0)));
}

#[test]
fn the_history_is_bounded() {
    let mut rtts = RttsByReturnPath::default();
    for return_path in 0..1000 {
        rtts.on_sample(PathId(return_path), ms(1), 1500, false);
    }
    assert_eq!(rtts.rtts.len(), MAX_RETURN_PATHS);
}

#[test]
fn measurements_of_a_removed_return_path_are_dropped() {
    let mut rtts = RttsByReturnPath::default();
    rtts.on_sample(PathId(0), ms(80), 1500, true);
    rtts.on_sample(PathId(1), ms(45), 1500, true);
    assert_eq!(rtts.minimum(), Some(ms(45)));
    assert!(rtts.forget(PathId(1)));
    assert_eq!(rtts.minimum(), Some(ms(80)));
    assert!(!rtts.forget(PathId(1)));
}
