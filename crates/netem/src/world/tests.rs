//! Worlds of a few nodes.

mod properties;
mod values;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use bytes::Bytes;

use super::*;
use crate::link::{LossConfig, QueueConfig};
use crate::packet::protocol;

const A: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2));

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn packet(bytes: usize) -> Packet {
    Packet {
        source: A,
        destination: B,
        protocol: protocol::SCTP,
        ecn: 0,
        dont_fragment: true,
        payload: Bytes::from(alloc::vec![0; bytes - 20]),
    }
}

/// Sends packets at given times, records when packets arrive, and may send them back.
#[derive(Default)]
struct Host {
    to_send: VecDeque<(Duration, u32, Packet)>,
    echoes: bool,
    outgoing: VecDeque<(u32, Packet)>,
    arrived: Vec<(Duration, u32, usize)>,
    starts: u32,
    timers: u32,
}

impl Host {
    fn sending(times: impl IntoIterator<Item = (u64, u32, usize)>) -> Self {
        let to_send = times
            .into_iter()
            .map(|(at, interface, bytes)| (milliseconds(at), interface, packet(bytes)));
        Self { to_send: to_send.collect(), ..Self::default() }
    }

    fn echo() -> Self {
        Self { echoes: true, ..Self::default() }
    }
}

impl Node for Host {
    fn handle_input(&mut self, now: Duration, input: NodeInput) {
        match input {
            NodeInput::Start => self.starts += 1,
            NodeInput::Timer => self.timers += 1,
            NodeInput::Arrived { interface, packet } => {
                self.arrived.push((now, interface, packet.len()));
                if self.echoes {
                    self.outgoing.push_back((interface, packet));
                }
            }
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput {
        if let Some((interface, packet)) = self.outgoing.pop_front() {
            return NodeOutput::Transmit { interface, packet };
        }
        match self.to_send.front() {
            Some((at, ..)) if *at > now => NodeOutput::Timeout(Some(*at)),
            Some(_) => match self.to_send.pop_front() {
                Some((_, interface, packet)) => NodeOutput::Transmit { interface, packet },
                None => NodeOutput::Timeout(None),
            },
            None => NodeOutput::Timeout(None),
        }
    }
}

/// 10 Mbit/s and 10 ms: a packet of 1,500 bytes takes 1.2 + 10 ms.
fn link() -> LinkConfig {
    LinkConfig::new(10_000_000, milliseconds(10))
}

/// ```text
/// a ──1500──▶ 11.2 ms ──▶ b
/// a ◀── 22.4 ms ◀──1500── b
/// ```
#[test]
fn a_packet_there_and_back_takes_two_transmissions_and_two_delays() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(0, 0, 1500), (5, 0, 1500)]));
    let b = world.add_node(Host::echo());
    let link = world.connect((a, 0), (b, 0), link(), link());
    world.run_until(milliseconds(1000));
    let micros = |micros| Duration::from_micros(micros);
    assert_eq!(world.node(b).arrived, [(micros(11_200), 0, 1500), (micros(16_200), 0, 1500)]);
    assert_eq!(world.node(a).arrived, [(micros(22_400), 0, 1500), (micros(27_400), 0, 1500)]);
    assert_eq!((world.node(a).starts, world.node(a).timers), (1, 1));
    // Two starts, one timer, four packets.
    assert_eq!(world.events(), 7);
    assert_eq!(world.link_counters(link, LinkDirection::Forward).delivered.packets, 2);
    assert_eq!(world.now(), milliseconds(1000));
    assert_eq!(world.next_event(), None);
}

#[test]
fn simultaneous_events_occur_in_the_order_of_scheduling() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(1, 2, 100), (1, 0, 100), (1, 1, 100)]));
    let b = world.add_node(Host::default());
    for interface in 0..3 {
        world.connect((a, interface), (b, interface), LinkConfig::default(), LinkConfig::default());
    }
    world.run_until(milliseconds(2));
    let order: Vec<u32> = world.node(b).arrived.iter().map(|(_, by, _)| *by).collect();
    assert_eq!(order, [2, 0, 1]);
}

#[test]
fn links_change_during_a_run() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(0, 0, 1500), (100, 0, 1500), (200, 0, 1500)]));
    let b = world.add_node(Host::default());
    let id = world.connect((a, 0), (b, 0), link(), link());
    world.schedule(milliseconds(50), WorldAction::link(id, LinkChange::Rate(Some(1_000_000))));
    world.schedule(milliseconds(60), WorldAction::link(id, LinkChange::Delay(milliseconds(20))));
    world.schedule(milliseconds(150), WorldAction::link(id, LinkChange::Down));
    world.schedule(milliseconds(250), WorldAction::link(id, LinkChange::Up));
    world.schedule(
        milliseconds(300),
        WorldAction::node(a, |host: &mut Host, now| {
            host.to_send.push_back((now, 0, packet(1500)));
        }),
    );
    world.run_until(milliseconds(1000));
    let arrived: Vec<_> = world.node(b).arrived.iter().map(|(at, ..)| at.as_micros()).collect();
    assert_eq!(arrived, [11_200, 132_000, 332_000]);
    let counters = world.link_counters(id, LinkDirection::Forward);
    assert_eq!(counters.dropped(DropCause::Down).packets, 1);
}

#[test]
fn a_packet_without_a_link_is_counted() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(0, 7, 100)]));
    world.run_until(milliseconds(1));
    assert_eq!(world.counters().unconnected, 1);
    world.with_node(a, |host, now| host.to_send.push_back((now, 3, packet(100))));
    assert_eq!(world.counters().unconnected, 2);
}

#[test]
fn a_node_with_a_timeout_in_the_past_does_not_stop_time() {
    struct Impatient(u32);
    impl Node for Impatient {
        fn handle_input(&mut self, _: Duration, _: NodeInput) {
            self.0 += 1;
        }
        fn poll_output(&mut self, _: Duration) -> NodeOutput {
            NodeOutput::Timeout(Some(Duration::ZERO))
        }
    }
    let mut world = World::new(1);
    let id = world.add_node(Impatient(0));
    world.run_until(Duration::from_nanos(100));
    assert_eq!(world.node(id).0, 101);
}

/// Arrivals at the far end of a lossy link, in a world with this many lossy links added before it.
fn arrivals_beside(others: u32, seed: u64) -> Vec<(Duration, u32, usize)> {
    let mut world = World::new(seed);
    let times = |interface| (0..200_u64).map(move |at| (at, interface, 500));
    let mut sent: Vec<_> = (0..=others).flat_map(times).collect();
    sent.sort_unstable();
    let a = world.add_node(Host::sending(sent));
    let b = world.add_node(Host::default());
    let lossy = || LinkConfig {
        loss: LossConfig::Probability(0.3),
        jitter: milliseconds(5),
        queue: QueueConfig::Bytes(3000),
        ..link()
    };
    for interface in (0..=others).rev() {
        world.connect((a, interface), (b, interface), lossy(), lossy());
    }
    world.run_until(milliseconds(1000));
    let arrived = world.node(b).arrived.iter();
    arrived.filter(|(_, interface, _)| *interface == 0).copied().collect()
}

#[test]
fn an_additional_link_does_not_change_the_randomness_of_others() {
    let alone = arrivals_beside(0, 7);
    assert!((100..180).contains(&alone.len()));
    assert_eq!(alone, arrivals_beside(0, 7));
    assert_eq!(alone, arrivals_beside(3, 7));
    assert_ne!(alone, arrivals_beside(0, 8));
}

#[test]
fn boxed_worlds_contain_nodes_of_all_kinds() {
    let mut world: World<alloc::boxed::Box<dyn Node + Send>> = World::new(1);
    let a = world.add_node(alloc::boxed::Box::new(Host::sending([(0, 0, 100)])));
    let router = crate::router::Router::new().host(B, 1);
    let middle = world.add_node(alloc::boxed::Box::new(router));
    let b = world.add_node(alloc::boxed::Box::new(Host::default()));
    world.connect((a, 0), (middle, 0), link(), link());
    let last = world.connect((middle, 1), (b, 0), link(), link());
    world.run_until(milliseconds(100));
    assert_eq!(world.link_counters(last, LinkDirection::Forward).delivered.packets, 1);
}

#[test]
fn a_record_describes_the_run_line_by_line() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(1, 0, 1500), (1, 0, 1500)]));
    let b = world.add_node(Host::default());
    let config = LinkConfig { queue: QueueConfig::Packets(0), ..link() };
    let id = world.connect((a, 0), (b, 0), config, link());
    world.keep_records(5);
    world.schedule(milliseconds(20), WorldAction::link(id, LinkChange::Down));
    world.run_until(milliseconds(30));
    let lines: Vec<_> = world.records().iter().map(alloc::string::ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "0.000000000 node 0 timer",
            "0.000000000 node 1 timer",
            "0.001000000 node 0 timer",
            "0.001000000 link 0 → sent 1500 of 132",
            "0.001000000 link 0 → sent 1500 of 132: queue full",
        ]
    );
    // The arrival and the change.
    assert_eq!(world.missed_records(), 2);
}

#[test]
fn a_tap_sees_both_ends() {
    let mut world = World::new(1);
    let a = world.add_node(Host::sending([(1, 0, 1500), (2, 0, 100)]));
    let b = world.add_node(Host::echo());
    let lossy = LinkConfig { loss: LossConfig::List(alloc::vec![1]), ..link() };
    let id = world.connect((a, 0), (b, 0), lossy, link());
    world.tap(id, TapPoint::Sender, "path");
    world.tap(id, TapPoint::Receiver, "path");
    world.run_until(milliseconds(100));
    let file = world.capture_mut().expect("there are taps").drain();
    // A header, four interfaces, three packets that are sent and two that arrive.
    let names = file.windows(4).filter(|window| *window == b"path").count();
    assert_eq!(names, 4);
    assert_eq!(world.link_counters(id, LinkDirection::Forward).sent.packets, 2);
    assert_eq!(world.node(a).arrived.len(), 1);
    assert!(file.len() > 4 * 1500 + 100);
}
