use core::time::Duration;

use crate::config::{AssociationConfig, FlightCap, MultipathConfig};
use crate::congestion::SiblingPaths;
use crate::identifier::PathId;
use crate::path::{Path, PathProgress, SendAllowance};

const PACKET: usize = 1452;
const MILLISECOND: Duration = Duration::from_millis(1);

/// A link that carries a packet per millisecond, and the data in flight on it.
struct Link {
    path: Path,
    now: Duration,
    free_at: Duration,
    in_flight: alloc::collections::VecDeque<(Duration, crate::congestion::PacketNumber, Duration)>,
    min_in_flight: usize,
}

impl Link {
    fn new() -> Self {
        let multipath = Some(MultipathConfig {
            flight_cap: Some(FlightCap::default()),
            ..MultipathConfig::default()
        });
        let config = AssociationConfig { multipath, ..AssociationConfig::default() };
        let remote = "192.0.2.1:0".parse().expect("an address");
        Self {
            path: Path::new(PathId(0), remote, None, &config),
            now: Duration::ZERO,
            free_at: Duration::ZERO,
            in_flight: alloc::collections::VecDeque::new(),
            min_in_flight: usize::MAX,
        }
    }

    /// Sends as much as allowed until then, with this round trip in milliseconds, in packets of
    /// `each` bytes.
    fn saturate(&mut self, until: u64, both_ways: u32, each: Duration) {
        self.min_in_flight = usize::MAX;
        while self.now < Duration::from_secs(until) {
            while let SendAllowance::Now(_) = self.path.allowance(self.now, PACKET) {
                let number = self.path.next_packet();
                self.path.on_sent(self.now, PACKET, false);
                self.free_at = self.free_at.max(self.now) + each;
                self.in_flight.push_back((
                    self.free_at + MILLISECOND * both_ways,
                    number,
                    self.now,
                ));
            }
            let Some((at, number, sent)) = self.in_flight.pop_front() else {
                panic!("data is always in flight")
            };
            self.now = at;
            self.path.on_chunk_acknowledged(at, number, PACKET);
            let rtt = at - sent;
            let answered = Some((PathId(0), rtt));
            let progress = PathProgress {
                cumulative_advanced: true,
                rtt: Some(rtt),
                answered,
                peer_sends: false,
            };
            self.path.on_sack(at, progress, SiblingPaths::default());
            self.min_in_flight = self.min_in_flight.min(self.path.outstanding());
        }
    }

    fn minimum(&self) -> Duration {
        self.path.min_rtt().expect("measured")
    }
}

#[test]
fn a_longer_route_is_detected_although_the_path_is_full() {
    let mut link = Link::new();
    link.saturate(10, 40, MILLISECOND);
    assert!(link.minimum() < 45 * MILLISECOND, "{:?}", link.minimum());
    link.saturate(20, 80, MILLISECOND);
    assert!(link.minimum() >= 80 * MILLISECOND, "{:?}", link.minimum());
    // The window is full again: 80 packets.
    link.saturate(21, 80, MILLISECOND);
    assert!(link.path.outstanding() >= 78 * PACKET, "{} in flight", link.path.outstanding());
}

#[test]
fn a_slower_path_is_not_mistaken_for_a_longer_one() {
    let mut link = Link::new();
    link.saturate(10, 40, MILLISECOND);
    let minimum = link.minimum();
    link.saturate(40, 40, 3 * MILLISECOND);
    assert!(
        link.minimum() <= minimum + 4 * MILLISECOND,
        "{:?}, before {minimum:?}",
        link.minimum()
    );
}

#[test]
fn explained_delays_do_not_reduce_the_cap() {
    let mut link = Link::new();
    link.saturate(10, 40, MILLISECOND);
    link.saturate(60, 40, MILLISECOND);
    assert!(link.min_in_flight >= 39 * PACKET, "{} in flight", link.min_in_flight);
    assert!(link.path.check_cap().is_none());
}
