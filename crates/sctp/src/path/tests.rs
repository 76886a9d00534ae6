mod properties;

use alloc::vec::Vec;

use super::*;
use crate::congestion::{CongestionKind, SiblingPaths};

fn to(remote: &str) -> Path {
    let remote = remote.parse().unwrap();
    Path::new(PathId(0), remote, None, &AssociationConfig::default())
}

#[test]
fn lower_headers_reduce_the_mtu() {
    assert_eq!(to("192.0.2.1:0").mtu(), 1480);
    assert_eq!(to("192.0.2.1:9899").mtu(), 1472);
    assert_eq!(to("[2001:db8::1]:0").mtu(), 1460);
    assert_eq!(to("[2001:db8::1]:9899").mtu(), 1452);
}

//= rfc8261 §4
//# the overhead of the DTLS record counts for the path MTU
#[test]
fn the_overhead_of_lower_layers_is_part_of_the_ip_packet() {
    let config = AssociationConfig { packet_overhead: 37, ..AssociationConfig::default() };
    let path = Path::new(PathId(0), "192.0.2.1:9899".parse().unwrap(), None, &config);
    assert_eq!((path.overhead(), path.mtu()), (20 + 8 + 37, 1432));
    let config = AssociationConfig { mtu: 0, packet_overhead: u8::MAX, ..config };
    let path = Path::new(PathId(0), "192.0.2.1:9899".parse().unwrap(), None, &config);
    assert_eq!(path.mtu(), 292);
}

#[test]
fn packets_are_a_multiple_of_four_and_never_tiny() {
    for mtu in [0, 570, 1499, 1501, 9000, 65_535] {
        let config = AssociationConfig { mtu, ..AssociationConfig::default() };
        let path = Path::new(PathId(0), "[2001:db8::1]:9".parse().unwrap(), None, &config);
        assert_eq!(path.mtu() % 4, 0);
        assert!(path.mtu() >= 528);
    }
}

#[test]
fn losses_and_timeouts_move_the_window() {
    let mut path = to("192.0.2.1:0");
    let now = Duration::ZERO;
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(path.next_packet());
        path.on_sent(now, 1448, false);
    }
    assert_eq!(path.outstanding(), 5792);
    path.on_chunk_lost(now, sent[0], 1448);
    path.on_congestion(now, CongestionKind::Loss, SiblingPaths::default());
    assert_eq!((path.outstanding(), path.congestion.window()), (4344, 6000));
    path.on_timeout(now, SiblingPaths::default());
    assert_eq!(path.congestion.window(), 1500);
    assert_eq!(path.rto.current(), Duration::from_secs(2));
}
