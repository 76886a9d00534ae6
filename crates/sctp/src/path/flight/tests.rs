use super::*;
use crate::config::AssociationConfig;
use crate::identifier::PathId;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn path() -> Path {
    let remote = "192.0.2.1:0".parse().unwrap();
    let config = AssociationConfig {
        congestion_control: crate::config::CongestionControlKind::NewReno.into(),
        ..AssociationConfig::default()
    };
    Path::new(PathId(0), remote, None, &config)
}

fn advanced(rtt: Option<Duration>) -> PathProgress {
    PathProgress { cumulative_advanced: true, rtt, ..PathProgress::default() }
}

#[test]
fn acknowledgements_grow_a_full_window() {
    let mut path = path();
    let first = path.next_packet();
    for _ in 0..4 {
        path.on_sent(ms(0), 1448, false);
    }
    path.on_chunk_acknowledged(ms(50), first, 1448);
    path.on_sack(ms(50), advanced(Some(ms(50))), SiblingPaths::default());
    assert_eq!(path.congestion.window(), 4404 + 1448);
    assert_eq!(path.rto.smoothed(), Some(ms(50)));
    // The rest is acknowledged while no new data is in flight.
    path.on_chunk_acknowledged(ms(51), PacketNumber(1), 1448);
    path.on_sack(ms(51), advanced(None), SiblingPaths::default());
    assert_eq!(path.congestion.window(), 4404 + 1448);
}

#[test]
fn a_chunk_is_in_flight_until_it_is_acknowledged_lost_or_forgotten() {
    let mut path = path();
    for _ in 0..3 {
        path.on_sent(ms(0), 100, true);
    }
    path.on_chunk_acknowledged(ms(1), PacketNumber(0), 60);
    path.on_chunk_lost(ms(1), PacketNumber(0), 40);
    path.on_chunk_forgotten(PacketNumber(1), 100);
    assert_eq!(path.outstanding(), 100);
    path.on_chunk_lost(ms(1), PacketNumber(2), 100);
    path.on_late_chunk(ms(2), 100);
    assert_eq!(path.outstanding(), 0);
    assert_eq!((path.rates.delivered(), path.rates.lost()), (160, 140));
}

//= rfc9260 §7.2.1
//# a path without data for an RTO: max(cwnd / 2, 4 MTU)
#[test]
fn a_path_idle_for_a_timeout_loses_half_of_its_window() {
    let mut path = path();
    path.on_sent(ms(0), 1448, false);
    path.on_chunk_acknowledged(ms(10), PacketNumber(0), 1448);
    path.on_sack(ms(10), advanced(Some(ms(10))), SiblingPaths::default());
    for round in 1..40 {
        let first = path.next_packet().0;
        let mut count = 0;
        while path.outstanding() < path.congestion.window() {
            path.on_sent(ms(round * 10), 1448, false);
            count += 1;
        }
        for index in 0..count {
            path.on_chunk_acknowledged(ms(round * 10 + 9), PacketNumber(first + index), 1448);
        }
        path.on_sack(ms(round * 10 + 9), advanced(None), SiblingPaths::default());
    }
    let window = path.congestion.window();
    assert!(window > 48_000);
    // RTO.Min is a second, so 2.5 s are two timeouts.
    path.on_sent(ms(2_900), 1448, true);
    assert_eq!(path.congestion.window(), window / 2 / 2);
    assert_eq!(path.congestion.slow_start_threshold(), window);
}

#[test]
fn a_timeout_revokes_grants() {
    let mut path = path();
    for _ in 0..4 {
        path.on_sent(ms(0), 1448, false);
    }
    path.grant_packet();
    path.on_timeout(ms(1000), SiblingPaths::default());
    assert_eq!(path.allowance(ms(1000), 1448), crate::path::SendAllowance::Closed);
}
