use core::net::SocketAddr;

use super::*;
use crate::config::AssociationConfig;

const A: PathId = PathId(0);
const B: PathId = PathId(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Two paths with these forward and return delays, and for which paths SACKs came back on which.
fn paths(forward: [u64; 2], back: [u64; 2], sacks: &[(PathId, PathId)]) -> Paths {
    let config = AssociationConfig::default();
    let remote = |last: u8| SocketAddr::from(([192, 0, 2, last], 0));
    let mut paths = Paths::new(remote(1), None, &config, [0; 32]);
    let second = paths.add(remote(2), None, &config).unwrap();
    paths.confirm(second);
    for id in [A, B] {
        let index = usize::from(id.0);
        let rtt = ms(forward[index] + back[index]);
        paths.get_mut(id).unwrap().on_round_trip(Duration::ZERO, rtt);
    }
    for (on, returned) in sacks {
        let least = forward[usize::from(on.0)] + back[usize::from(returned.0)];
        let rtts = &mut paths.get_mut(*on).unwrap().estimates.return_rtts;
        // Queues only ever add.
        for queue in [30, 0, 80] {
            rtts.on_sample(*returned, ms(least + queue), false);
        }
    }
    paths
}

#[test]
fn sacks_on_a_common_path_show_the_difference_of_the_forward_delays() {
    // The round trips are the same.
    let paths = paths([10, 50], [60, 20], &[(A, A), (B, A)]);
    assert_eq!(paths.forward_lag(A), Some(ms(0)));
    assert_eq!(paths.forward_lag(B), Some(ms(40)));
}

#[test]
fn without_a_common_path_it_is_half_of_the_difference_of_the_round_trips() {
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
fn a_path_that_does_not_work_is_not_compared_with() {
    let mut paths = paths([10, 50], [10, 50], &[(A, B), (B, B)]);
    paths.suspect(A);
    assert_eq!(paths.forward_lag(B), Some(ms(0)));
}

#[test]
fn the_history_is_bounded() {
    let mut rtts = RttsByReturnPath::default();
    for back in 0..1000 {
        rtts.on_sample(PathId(back), ms(1), false);
    }
    assert_eq!(rtts.rtts.len(), MAX_RETURN_PATHS);
}

#[test]
fn what_came_back_on_a_path_is_forgotten() {
    let mut rtts = RttsByReturnPath::default();
    rtts.on_sample(PathId(0), ms(80), true);
    rtts.on_sample(PathId(1), ms(45), true);
    assert_eq!(rtts.least(), Some(ms(45)));
    assert!(rtts.forget(PathId(1)));
    assert_eq!(rtts.least(), Some(ms(80)));
    assert!(!rtts.forget(PathId(1)));
}
