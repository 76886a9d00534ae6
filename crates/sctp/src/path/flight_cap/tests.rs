use core::time::Duration;

use super::super::{Path, Progress};
use crate::config::{AssociationConfig, FlightCap, Multipath};
use crate::congestion::Siblings;
use crate::identifier::PathId;
use crate::path::Allowance;

const PACKET: usize = 1452;

/// A path that is capped at so many percent of bandwidth by round trip.
fn path(flight_cap: Option<FlightCap>) -> Path {
    let multipath = Some(Multipath { flight_cap, ..Multipath::default() });
    let config = AssociationConfig { multipath, ..AssociationConfig::default() };
    Path::new(PathId(0), "192.0.2.1:0".parse().expect("an address"), None, &config)
}

/// Sends what may be sent over a link of 10 packets in 10 ms and 50 ms both ways, for so many round
/// trips. Gives the most that was under way.
fn saturate(path: &mut Path, rounds: u64) -> usize {
    let (mut now, mut free_at) = (Duration::ZERO, Duration::ZERO);
    let mut under_way = alloc::collections::VecDeque::new();
    let mut most = 0;
    while now < Duration::from_millis(50 * rounds) {
        while let Allowance::Now(_) = path.allowance(now, PACKET) {
            let number = path.next_packet();
            path.on_sent(now, PACKET, false);
            free_at = free_at.max(now) + Duration::from_millis(1);
            under_way.push_back((free_at + Duration::from_millis(49), number, now));
            most = most.max(path.outstanding());
        }
        let (at, number, sent) = under_way.pop_front().expect("something is always under way");
        now = at;
        path.on_chunk_acknowledged(now, number, PACKET);
        let progress =
            Progress { cumulative_advanced: true, rtt: Some(now - sent), ..Progress::default() };
        path.on_sack(now, progress, Siblings::default());
        if now > Duration::from_secs(5) && most > 0 {
            most = path.outstanding().max(if now < Duration::from_millis(5100) { 0 } else { most });
        }
    }
    most
}

#[test]
fn what_is_under_way_stays_near_bandwidth_by_round_trip() {
    // 50 packets fill the path.
    let capped = saturate(&mut path(Some(FlightCap { percent: 125 })), 400);
    assert!((50..=67).contains(&(capped / PACKET)), "{} packets", capped / PACKET);
    let free = saturate(&mut path(None), 400);
    assert!(free / PACKET > 100, "{} packets", free / PACKET);
}
