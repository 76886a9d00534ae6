//! A world that has run for a while allocates nothing for a packet that goes from host to host.

use std::alloc::System;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::{LinkConfig, QueueConfig};
use eyas_netem::node::{Node, NodeInput, NodeOutput};
use eyas_netem::packet::{Packet, protocol};
use eyas_netem::router::Router;
use eyas_netem::world::World;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Sends a packet at a fixed pace; its payload is shared by all.
struct Metronome {
    packet: Packet,
    next: Duration,
    interval: Duration,
    arrived: u64,
}

impl Node for Metronome {
    fn handle_input(&mut self, _now: Duration, input: NodeInput) {
        self.arrived += u64::from(matches!(input, NodeInput::Arrived { .. }));
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput {
        if self.next > now {
            return NodeOutput::Timeout(Some(self.next));
        }
        self.next += self.interval;
        NodeOutput::Transmit { interface: 0, packet: self.packet.clone() }
    }
}

#[test]
fn packets_need_no_allocation() {
    let mut world: World<Box<dyn Node>> = World::new(1);
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let host = |own: usize| Metronome {
        packet: Packet {
            source: addresses[own].into(),
            destination: addresses[1 - own].into(),
            protocol: protocol::UDP,
            ecn: 2,
            dont_fragment: true,
            payload: Bytes::from_static(&[0; 1480]),
        },
        next: Duration::ZERO,
        interval: Duration::from_micros(1100),
        arrived: 0,
    };
    let (a, b) = (world.add_node(Box::new(host(0))), world.add_node(Box::new(host(1))));
    let router = Router::new().host(addresses[0].into(), 0).host(addresses[1].into(), 1);
    let middle = world.add_node(Box::new(router));
    // 1.2 ms a packet at a packet each 1.1 ms: the queue is full all the time.
    let config = || LinkConfig {
        queue: QueueConfig::Packets(50),
        ..LinkConfig::new(10_000_000, Duration::from_millis(10))
    };
    world.connect((a, 0), (middle, 0), config(), config());
    world.connect((middle, 1), (b, 0), config(), config());
    world.run_until(Duration::from_secs(2));
    // All threads are counted, and that of the test harness allocates now and then.
    let least = (1..=4).map(|quarter| {
        let (events, region) = (world.events(), Region::new(ALLOCATOR));
        world.run_until(Duration::from_secs(15 * quarter));
        let change = region.change();
        assert!(world.events() - events > 55_000);
        change.allocations + change.reallocations
    });
    assert_eq!(least.min(), Some(0));
}
