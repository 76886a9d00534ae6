use core::time::Duration;

use super::super::{Path, PathProgress};
use crate::config::{AssociationConfig, FlightCap, MultipathConfig};
use crate::congestion::SiblingPaths;
use crate::identifier::PathId;
use crate::path::SendAllowance;

const PACKET: usize = 1452;

/// A path whose flight is capped at this percentage of the bandwidth-delay product.
fn path(flight_cap: Option<FlightCap>) -> Path {
    let multipath = Some(MultipathConfig { flight_cap, ..MultipathConfig::default() });
    let config = AssociationConfig { multipath, ..AssociationConfig::default() };
    Path::new(PathId(0), "192.0.2.1:0".parse().expect("an address"), None, &config)
}

/// Sends as much as allowed over a link of 10 packets per 10 ms and a round trip of 50 ms, for this
/// many round trips. Returns the largest flight size.
fn saturate(path: &mut Path, rounds: u64) -> usize {
    let (mut now, mut free_at) = (Duration::ZERO, Duration::ZERO);
    let mut in_flight = alloc::collections::VecDeque::new();
    let mut most = 0;
    while now < Duration::from_millis(50 * rounds) {
        while let SendAllowance::Now(_) = path.allowance(now, PACKET) {
            let number = path.next_packet();
            path.on_sent(now, PACKET, false);
            free_at = free_at.max(now) + Duration::from_millis(1);
            in_flight.push_back((free_at + Duration::from_millis(49), number, now));
            most = most.max(path.outstanding());
        }
        let (at, number, sent) = in_flight.pop_front().expect("data is always in flight");
        now = at;
        path.on_chunk_acknowledged(now, number, PACKET);
        let progress = PathProgress {
            cumulative_advanced: true,
            rtt: Some(now - sent),
            ..PathProgress::default()
        };
        path.on_sack(now, progress, SiblingPaths::default());
        if now > Duration::from_secs(5) && most > 0 {
            most = path.outstanding().max(if now < Duration::from_millis(5100) { 0 } else { most });
        }
    }
    most
}

#[test]
fn data_in_flight_stays_near_the_bandwidth_delay_product() {
    // 50 packets fill the path.
    let capped = saturate(&mut path(Some(FlightCap { percent: 125 })), 400);
    assert!((50..=67).contains(&(capped / PACKET)), "{} packets", capped / PACKET);
    let free = saturate(&mut path(None), 400);
    assert!(free / PACKET > 100, "{} packets", free / PACKET);
}

/// The same for this long, with acknowledgements that return over another path as well; in the end
/// everything is acknowledged. Returns the largest flight size in the second half.
fn flow(path: &mut Path, (from, to): (u64, u64), delay: u64, return_path: PathId) -> usize {
    let (mut now, end) = (Duration::from_millis(from), Duration::from_millis(to));
    let half = Duration::from_millis(u64::midpoint(from, to));
    let (mut free_at, mut most) = (now, 0);
    let mut in_flight = alloc::collections::VecDeque::new();
    loop {
        while now < end
            && let SendAllowance::Now(_) = path.allowance(now, PACKET)
        {
            let number = path.next_packet();
            path.on_sent(now, PACKET, false);
            free_at = free_at.max(now) + Duration::from_millis(1);
            in_flight.push_back((free_at + Duration::from_millis(delay), number, now));
        }
        if now > half {
            most = most.max(path.outstanding());
        }
        let Some((at, number, sent)) = in_flight.pop_front() else { return most };
        now = at;
        path.on_chunk_acknowledged(now, number, PACKET);
        let (rtt, answered) = (Some(now - sent), Some((return_path, now - sent)));
        let progress = PathProgress { cumulative_advanced: true, rtt, answered, peer_sends: false };
        path.on_sack(now, progress, SiblingPaths::default());
    }
}

#[test]
fn a_path_stays_full_when_its_return_path_is_lost() {
    let other = PathId(1);
    let in_flight_after = |forgets: bool| {
        let mut path = path(Some(FlightCap { percent: 110 }));
        // 25 packets fill it as long as acknowledgements return quickly; after that it takes 80.
        flow(&mut path, (0, 1000), 24, other);
        if forgets {
            path.forget_return_path(other);
        }
        flow(&mut path, (1100, 2100), 79, PathId(0)) / PACKET
    };
    assert!(in_flight_after(true) >= 80, "{} packets", in_flight_after(true));
    // The path stays full even if nothing says that it is lost: the mean follows.
    assert!(in_flight_after(false) >= 80, "{} packets", in_flight_after(false));
}
