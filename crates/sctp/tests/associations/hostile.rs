//! Packets that no honest peer sends (issue of RFC 9260 §8.4, §8.5 and §12).

use crate::world::{B, World, ms, socket};
use bytes::Bytes;

#[test]
fn noise_is_counted_and_not_answered() {
    let mut world = World::new();
    for length in [0, 1, 11, 12, 40] {
        world.inject(B, socket(0, 0), Bytes::from(vec![7; length]));
    }
    world.run_for(ms(100));
    let counters = world.hosts[B].endpoint.counters();
    assert_eq!((counters.malformed_packets, counters.bad_checksums), (2, 2));
    assert!(world.ladder.is_empty());
}
