//! What an event of a world costs, by the size of the world.
//!
//! Each link has a host at either end, which sends a packet of 1,500 bytes a millisecond.

use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_netem::node::{Node, NodeInput, NodeOutput};
use eyas_netem::packet::{Packet, protocol};
use eyas_netem::world::World;

use crate::cpu;

/// Between two packets of a host.
const PACE: Duration = Duration::from_millis(1);
/// Simulated time before anything is measured: queues and buffers have their size.
const WARM_UP: Duration = Duration::from_millis(100);
/// Simulated time of a step: a look at the number of events costs little.
const STEP: Duration = Duration::from_millis(10);

/// Sends a packet at a fixed pace.
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
        self.next += PACE;
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
        // The hosts' turns are spread over the pace, and delays differ, so that the order of
        // events is not that of the hosts.
        let next = PACE * (link * 7919 % links) / links;
        let delay = Duration::from_micros(10_000 + u64::from(link * 104_729 % 5_000));
        let config = LinkConfig::new(100_000_000, delay);
        let hosts = [next, next + PACE / 2]
            .map(|next| world.add_node(Metronome { packet: packet.clone(), next }));
        world.connect((hosts[0], 0), (hosts[1], 0), config.clone(), config);
    }
    world
}

/// Runs a world of so many links for so many events, and gives the answer.
pub(crate) fn run(links: u32, events: u64) -> String {
    let mut world = world(links);
    world.run_until(WARM_UP);
    let (before, begin) = (world.events(), cpu());
    while world.events() - before < events {
        world.run_until(world.now() + STEP);
    }
    let (events, cpu) = (world.events() - before, cpu() - begin);
    format!("{{\"links\": {links}, \"events\": {events}, \"cpu\": {cpu}}}")
}
