use super::*;
use crate::config::AssociationConfig;
use crate::congestion::SiblingPaths;
use crate::identifier::PathId;
use crate::path::PathProgress;

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

//= rfc9260 §6.1 B
//# no new data beyond the congestion window; any room in it admits a packet
#[test]
fn a_window_with_any_room_admits_a_whole_packet() {
    let mut path = path();
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Now(4404));
    for _ in 0..3 {
        path.on_sent(ms(0), 1448, false);
    }
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Now(1448));
    path.on_sent(ms(0), 1448, false);
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Closed);
}

#[test]
fn a_granted_packet_ignores_the_window_once() {
    let mut path = path();
    for _ in 0..4 {
        path.on_sent(ms(0), 1448, false);
    }
    path.grant_packet();
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Now(1448));
    path.on_sent(ms(0), 1448, false);
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Closed);
    path.grant_packet();
    path.revoke_grants();
    assert_eq!(path.allowance(ms(0), 1448), SendAllowance::Closed);
}

//= rfc9260 §6.1 D
//# bursts are limited by the acknowledged data and Max.Burst
#[test]
fn bursts_are_limited_to_acknowledged_bytes_plus_max_burst() {
    let mut path = path();
    let mut burst = 0;
    // Slow start: each SACK acknowledges everything.
    for round in 1..20 {
        let start = path.next_packet().0;
        burst = 0;
        while let SendAllowance::Now(_) = path.allowance(ms(round), 1448) {
            path.on_sent(ms(round), 1448, false);
            burst += 1;
        }
        for index in 0..burst {
            let number = crate::congestion::PacketNumber(start + index);
            path.on_chunk_acknowledged(ms(round), number, 1448);
        }
        let progress = PathProgress { cumulative_advanced: true, ..Default::default() };
        path.on_sack(ms(round), progress, SiblingPaths::default());
    }
    assert_eq!(burst, 22);
    // The application was idle: the window is still large, the allowed burst is not.
    path.pacer.burst = 0;
    let mut burst = 0;
    while let SendAllowance::Now(_) = path.allowance(ms(20), 1448) {
        path.on_sent(ms(20), 1448, false);
        burst += 1;
    }
    assert_eq!(burst, 5);
}

/// The packets sent in a second at one packet per millisecond, if the pacer is next polled at the
/// time that `next` derives from the current time and the time that the pacer returned.
fn packets_in_a_second(next: impl Fn(u64, u64) -> u64) -> u64 {
    let mut pacer = PathPacer::new(2, BurstLimit::Acknowledged, 1500);
    let rate = 1_500_000;
    let (mut now, mut sent) = (0, 0);
    while now < 1_000_000_000 {
        match pacer.paced(now, rate, 1500, 1500) {
            SendAllowance::Now(bytes) => {
                assert!(bytes >= 1500);
                pacer.consume(now, Some(rate), 1500);
                sent += 1;
            }
            SendAllowance::At(time) => {
                assert!(nanoseconds(time) > now);
                now = next(now, nanoseconds(time));
            }
            SendAllowance::Closed => unreachable!("a pacer only waits"),
        }
    }
    sent
}

#[test]
fn paced_packets_are_sent_at_the_pacing_rate() {
    let sent = packets_in_a_second(|_, named| named);
    assert!((1000..=1004).contains(&sent), "{sent} packets in a second");
}

#[test]
fn early_polls_get_smaller_bursts_at_the_same_rate() {
    let sent = packets_in_a_second(|now, _| now + 50_000);
    assert!((1000..=1004).contains(&sent), "{sent} packets in a second");
}

#[test]
fn a_fast_path_may_burst_within_the_timer_granularity() {
    let pacer = PathPacer::new(4, BurstLimit::Acknowledged, 1500);
    assert_eq!(pacer.capacity(1_000_000, 1500), 6000);
    assert_eq!(pacer.capacity(30_000_000, 1500), 30_000);
    assert_eq!(pacer.capacity(10_000_000_000, 1500), 96_000);
}
