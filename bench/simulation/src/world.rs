//! The cost of an event in a world, depending on the size of the world.
//!
//! Each link has a host at both ends, which sends a packet of 1,500 bytes every millisecond.

use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_netem::node::{Node, NodeInput, NodeOutput};
use eyas_netem::packet::{Packet, protocol};
use eyas_netem::world::World;

use crate::cpu;

/// The interval between two packets of a host.
const INTERVAL: Duration = Duration::from_millis(1);
/// Simulated time before the measurement, in which queues and buffers reach their final size.
const WARM_UP: Duration = Duration::from_millis(100);
/// Simulated time per step, after which the number of events is checked.
const STEP: Duration = Duration::from_millis(10);

/// Sends packets at a fixed rate.
struct Metronome {
    packet: Packet,
    next: Duration,
}

impl Node for Metronome {
    fn handle_input(&mut self, _now: Duration, _input: NodeInput) {}

    fn poll_output(&mut self, now: Duration) -> NodeOutput {
        if self.next > now {
            return NodeOutput::Timeout(Some(self.next));
        }
        self.next += INTERVAL;
        NodeOutput::Transmit { interface: 0, packet: self.packet.clone() }
    }
}

fn world(links: u32) -> World<Metronome> {
    let mut world = World::new(1);
    let packet = Packet {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: protocol::UDP,
        ecn: 0,
        dont_fragment: true,
        payload: Bytes::from_static(&[0; 1480]),
    };
    for link in 0..links {
        // Start times are spread over the interval, and delays differ, so that the order of events is not that of
        // the hosts.
        let next = INTERVAL * (link * 7919 % links) / links;
        let delay = Duration::from_micros(10_000 + u64::from(link * 104_729 % 5_000));
        let config = LinkConfig::new(100_000_000, delay);
        let hosts = [next, next + INTERVAL / 2]
            .map(|next| world.add_node(Metronome { packet: packet.clone(), next }));
        world.connect((hosts[0], 0), (hosts[1], 0), config.clone(), config);
    }
    world
}

/// Runs a world with `links` links for at least `events` events; returns the output.
pub(crate) fn run(links: u32, events: u64) -> String {
    let mut world = world(links);
    world.run_until(WARM_UP);
    let (before, start) = (world.events(), cpu());
    while world.events() - before < events {
        world.run_until(world.now() + STEP);
    }
    let (events, cpu) = (world.events() - before, cpu() - start);
    format!("{{\"links\": {links}, \"events\": {events}, \"cpu\": {cpu}}}")
}
