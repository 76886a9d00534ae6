//! One link, packet by packet.

mod properties;

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::*;
use crate::packet::{ecn, protocol};

/// A packet of this size with its IP header, whose payload begins with its number.
fn numbered(number: u32, bytes: usize) -> Packet {
    let mut payload = vec![0; bytes - 20];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    Packet {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: protocol::UDP,
        ecn: ecn::NOT_CAPABLE,
        dont_fragment: true,
        payload: Bytes::from(payload),
    }
}

fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.payload[..4].try_into().expect("four bytes"))
}

fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

/// Polls as a simulation does until the link is empty; returns when each packet arrived.
fn arrivals(link: &mut Link) -> Vec<(u64, u32)> {
    let mut arrived = Vec::new();
    while let Some(time) = link.next_timeout() {
        while let Some(packet) = link.poll(time) {
            arrived.push((time.as_micros() as u64, number(&packet)));
        }
    }
    arrived
}

/// 10 Mbit/s, 1 ms: 1,250 bytes take 1,000 µs to send and arrive 1,000 µs later.
fn config() -> LinkConfig {
    LinkConfig::new(10_000_000, micros(1000))
}

#[test]
fn packets_are_sent_sequentially() {
    let mut link = Link::new(config(), 1);
    for packet in 0..3 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    assert_eq!(link.queued(micros(0)), PacketCount { packets: 2, bytes: 2500 });
    assert_eq!(link.in_flight(), PacketCount { packets: 1, bytes: 1250 });
    assert_eq!(link.queued(micros(1000)).packets, 1);
    assert_eq!(arrivals(&mut link), [(2000, 0), (3000, 1), (4000, 2)]);
    assert_eq!(link.next_timeout(), None);
}

#[test]
fn framing_takes_time_but_is_not_counted_in_bytes() {
    let mut link = Link::new(LinkConfig { framing: 50, ..config() }, 1);
    link.offer(micros(0), numbered(0, 1200)).unwrap();
    link.offer(micros(0), numbered(1, 1200)).unwrap();
    assert_eq!(arrivals(&mut link), [(2000, 0), (3000, 1)]);
    assert_eq!(link.counters().delivered, PacketCount { packets: 2, bytes: 2400 });
}

#[test]
fn a_full_queue_drops_the_newest_packet() {
    let mut link = Link::new(LinkConfig { queue: QueueConfig::Packets(2), ..config() }, 1);
    let offered: Vec<_> =
        (0..5).map(|packet| link.offer(micros(0), numbered(packet, 1250))).collect();
    let full = Err(DropCause::QueueFull);
    // One is being sent, two wait.
    assert_eq!(offered, [Ok(()), Ok(()), Ok(()), full, full]);
    // When the first one has been sent there is room for one more.
    assert_eq!(link.offer(micros(999), numbered(5, 1250)), full);
    assert_eq!(link.offer(micros(1000), numbered(6, 1250)), Ok(()));
    assert_eq!(link.counters().dropped(DropCause::QueueFull).packets, 3);
}

#[test]
fn a_queue_in_bytes_accepts_a_small_packet_if_a_large_one_does_not_fit() {
    let mut link = Link::new(LinkConfig { queue: QueueConfig::Bytes(1500), ..config() }, 1);
    link.offer(micros(0), numbered(0, 1250)).unwrap();
    link.offer(micros(0), numbered(1, 1250)).unwrap();
    assert!(link.offer(micros(0), numbered(2, 251)).is_err());
    assert!(link.offer(micros(0), numbered(3, 250)).is_ok());
}

#[test]
fn late_calls_do_not_change_departure_times() {
    let mut link = Link::new(config(), 1);
    for packet in 0..4 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    // A single late call gives the same result as timely ones.
    let late = micros(4500);
    assert_eq!(link.queued(late).packets, 0);
    let numbers: Vec<_> = core::iter::from_fn(|| link.poll(late)).map(|it| number(&it)).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(link.next_timeout(), Some(micros(5000)));
    // A time before the latest one counts as the latest.
    link.offer(micros(10), numbered(4, 1250)).unwrap();
    assert_eq!(arrivals(&mut link), [(5000, 3), (6500, 4)]);
}

#[test]
fn lost_packets_still_take_transmission_time() {
    let mut link = Link::new(LinkConfig { loss: LossConfig::List(vec![0, 2]), ..config() }, 1);
    for packet in 0..4 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    assert_eq!(arrivals(&mut link), [(3000, 1), (5000, 3)]);
    assert_eq!(link.counters().dropped(DropCause::Loss), PacketCount { packets: 2, bytes: 2500 });
    assert_eq!(link.counters().sent.packets, 4);
}

#[test]
fn jitter_alone_does_not_reorder() {
    let jittery = LinkConfig { jitter: micros(20_000), ..config() };
    let mut link = Link::new(jittery.clone(), 1);
    let mut reordering =
        Link::new(LinkConfig { reordering: ReorderingMode::ByJitter, ..jittery }, 1);
    for packet in 0..50 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
        reordering.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    let arrived = arrivals(&mut link);
    assert!(arrived.is_sorted_by_key(|(_, number)| *number));
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    let overtaken = arrivals(&mut reordering);
    assert_eq!(overtaken.len(), 50);
    assert!(overtaken.is_sorted_by_key(|(at, _)| *at));
    assert!(!overtaken.is_sorted_by_key(|(_, number)| *number));
    let after = |(at, number): &(u64, u32)| at - (u64::from(*number) + 2) * 1000;
    assert!(overtaken.iter().all(|it| after(it) <= 20_000));
}

#[test]
fn tc_reorders_when_a_packet_has_much_less_jitter_than_the_one_before() {
    // `tc qdisc add … netem delay 50ms 10ms distribution normal`, with a packet each millisecond.
    let config = |jitter_correlation, reordering| LinkConfig {
        jitter: micros(10_000),
        jitter_distribution: JitterDistribution::Normal,
        jitter_correlation,
        reordering,
        delay: micros(50_000),
        ..LinkConfig::default()
    };
    let overtaken = |config| {
        let mut link = Link::new(config, 1);
        let mut order = Vec::new();
        for packet in 0..20_000_u64 {
            link.offer(micros(packet * 1000), numbered(packet as u32, 100)).unwrap();
            order.extend(core::iter::from_fn(|| link.poll(micros(packet * 1000))));
        }
        let pairs = order.windows(2).filter(|pair| number(&pair[0]) > number(&pair[1]));
        pairs.count() as f64 / order.len() as f64
    };
    // Neighbours differ by a normal deviation of √2 · 10 ms, which exceeds 1 ms in 47 % of the
    // cases; in the order of arrival, the share of descents is about that of a random order, a
    // half.
    let alone = overtaken(config(0.0, ReorderingMode::ByJitter));
    assert!((0.44..0.50).contains(&alone), "{alone}");
    // With correlation, neighbours have similar delays.
    let together = overtaken(config(0.99, ReorderingMode::ByJitter));
    assert!((0.05..0.35).contains(&together), "{together}");
    assert_eq!(overtaken(config(0.0, ReorderingMode::Never)), 0.0);
}

#[test]
fn a_new_trace_begins_at_once_and_the_same_one_continues() {
    let recorded = |text: &str| LinkConfig {
        trace: Some(DeliveryTrace::parse(text).unwrap()),
        ..LinkConfig::default()
    };
    let mut link = Link::new(recorded("10\n20"), 1);
    assert_eq!(link.rate(), Some(1_200_000));
    link.offer(micros(0), numbered(0, 1500)).unwrap();
    link.reconfigure(micros(11_000), LinkConfig { delay: micros(500), ..recorded("10\n20") });
    link.offer(micros(11_000), numbered(1, 1500)).unwrap();
    assert_eq!(arrivals(&mut link), [(10_000, 0), (20_500, 1)]);
    link.reconfigure(micros(25_000), recorded("3"));
    link.offer(micros(25_000), numbered(2, 1500)).unwrap();
    assert_eq!(arrivals(&mut link), [(28_000, 2)]);
    link.change(micros(30_000), LinkChange::Rate(Some(12_000_000)));
    link.offer(micros(30_000), numbered(3, 1500)).unwrap();
    assert_eq!(arrivals(&mut link), [(31_000, 3)]);
}

#[test]
fn delayed_packets_are_overtaken() {
    let by = micros(2500);
    let reordering = ReorderingMode::Late { probability: 0.2, by };
    let mut link = Link::new(LinkConfig { reordering, ..config() }, 1);
    for packet in 0..100 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    let arrived = arrivals(&mut link);
    let late = arrived.iter().filter(|(at, number)| *at != (u64::from(*number) + 2) * 1000);
    let late: Vec<_> = late.collect();
    assert!((10..30).contains(&late.len()));
    assert_eq!(link.counters().late.packets, late.len() as u64);
    assert!(late.iter().all(|(at, number)| *at == (u64::from(*number) + 2) * 1000 + 2500));
}

#[test]
fn duplicates_arrive_beside_their_originals() {
    let mut link = Link::new(LinkConfig { duplication: 1.0, ..config() }, 1);
    link.offer(micros(0), numbered(7, 1250)).unwrap();
    assert_eq!(arrivals(&mut link), [(2000, 7), (2000, 7)]);
    assert_eq!(link.counters().duplicated.packets, 1);
}

#[test]
fn oversized_packets_are_dropped_or_fragmented() {
    let mut link = Link::new(LinkConfig { mtu: Some(1000), framing: 10, ..config() }, 1);
    assert_eq!(link.offer(micros(0), numbered(0, 1001)), Err(DropCause::TooBig));
    let mut packet = numbered(1, 2220);
    packet.dont_fragment = false;
    // 2,200 bytes after the header: 976, 976 and 248, each preceded by 20 + 10 bytes.
    link.offer(micros(0), packet).unwrap();
    assert_eq!(arrivals(&mut link), [(2832, 1)]);
    let mut packet = numbered(2, 1200);
    packet.dont_fragment = false;
    (packet.source, packet.destination) =
        ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    // Links do not fragment IPv6 packets (RFC 8200 §5).
    assert_eq!(link.offer(micros(0), packet), Err(DropCause::TooBig));
}

#[test]
fn a_link_that_goes_down_loses_its_packets() {
    let mut link = Link::new(config(), 1);
    for packet in 0..3 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    link.change(micros(1500), LinkChange::Down);
    assert!(!link.is_up());
    assert_eq!(link.next_timeout(), None);
    assert_eq!(link.offer(micros(1600), numbered(3, 1250)), Err(DropCause::Down));
    assert_eq!(link.counters().dropped(DropCause::Down).packets, 4);
    link.change(micros(1700), LinkChange::Up);
    link.offer(micros(1700), numbered(4, 1250)).unwrap();
    assert_eq!(arrivals(&mut link), [(3700, 4)]);
}

#[test]
fn a_new_configuration_keeps_packets_in_flight() {
    let mut link = Link::new(config(), 1);
    for packet in 0..3 {
        link.offer(micros(0), numbered(packet, 1250)).unwrap();
    }
    // The first has been sent, the second is half sent, the third waits.
    let faster = LinkConfig::new(100_000_000, micros(5000));
    link.reconfigure(micros(1500), LinkConfig { queue: QueueConfig::Packets(1), ..faster });
    link.offer(micros(1500), numbered(3, 1250)).unwrap_err();
    assert_eq!(link.queued(micros(1500)).packets, 1);
    assert_eq!(arrivals(&mut link), [(2000, 0), (3000, 1), (7100, 2)]);
    link.change(micros(7100), LinkChange::Down);
    link.reconfigure(micros(7100), config());
    assert_eq!(link.offer(micros(7100), numbered(4, 1250)), Err(DropCause::Down));
}

#[test]
fn a_rate_of_zero_stops_the_queue() {
    let mut link = Link::new(config(), 1);
    link.change(micros(0), LinkChange::Rate(Some(0)));
    link.offer(micros(10), numbered(0, 1250)).unwrap();
    assert_eq!(link.next_timeout(), None);
    assert_eq!(link.queued(micros(1_000_000)).packets, 1);
    link.change(micros(2_000_000), LinkChange::Rate(None));
    assert_eq!(arrivals(&mut link), [(2_001_000, 0)]);
}

#[test]
fn a_shorter_delay_causes_no_reordering() {
    let mut link = Link::new(config(), 1);
    link.offer(micros(0), numbered(0, 1250)).unwrap();
    link.change(micros(1000), LinkChange::Delay(micros(0)));
    link.offer(micros(1000), numbered(1, 125)).unwrap();
    assert_eq!(arrivals(&mut link), [(2000, 0), (2000, 1)]);
    assert_eq!(link.delay(), micros(0));
}

/// A sender that offers 120 % of the rate for two seconds: the mean wait in microseconds, and the
/// marked and dropped packets.
fn overload(queue: QueueConfig, mark: u8) -> (u64, u64, u64) {
    let mut link = Link::new(LinkConfig { queue, ..config() }, 1);
    let (mut waits, mut arrived) = (0, 0);
    for packet in 0..2400_u32 {
        let sent = u64::from(packet) * 833;
        let offered = Packet { ecn: mark, ..numbered(sent as u32, 1250) };
        // The counters record drops.
        let _ = link.offer(micros(sent), offered);
        while let Some(packet) = link.poll(micros(sent)) {
            waits += sent - u64::from(number(&packet));
            arrived += 1;
        }
    }
    let counters = link.counters();
    (waits / arrived, counters.marked.packets, counters.total_dropped().packets)
}

#[test]
fn codel_and_red_keep_the_queue_short() {
    let (fifo, ..) = overload(QueueConfig::Packets(300), ecn::NOT_CAPABLE);
    let (codel, marked, dropped) =
        overload(QueueConfig::CoDel(CoDelConfig::default()), ecn::NOT_CAPABLE);
    assert!(codel < fifo, "{codel} {fifo}");
    assert!(marked == 0 && dropped > 20, "{dropped}");
    let (red, marked, dropped) = overload(QueueConfig::Red(RedConfig::default()), ecn::NOT_CAPABLE);
    assert!(red < fifo / 2, "{red} {fifo}");
    assert!(marked == 0 && dropped > 100, "{dropped}");
}

#[test]
fn ecn_capable_packets_are_marked() {
    let (_, marked, dropped) = overload(QueueConfig::CoDel(CoDelConfig::default()), ecn::CAPABLE_0);
    assert!(marked > 20 && dropped == 0, "{marked} {dropped}");
    let (_, marked, _) = overload(QueueConfig::Red(RedConfig::default()), ecn::CAPABLE_1);
    assert!(marked > 10, "{marked}");
    let without_ecn = QueueConfig::CoDel(CoDelConfig { ecn: false, ..CoDelConfig::default() });
    let (_, marked, dropped) = overload(without_ecn, ecn::CAPABLE_0);
    assert!(marked == 0 && dropped > 20);
}
