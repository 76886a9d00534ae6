//! What an event of a world costs, by the size of the world.
//!
//! ```text
//! cargo run --release -p eyas-netem --example world -- LINKS EVENTS
//! ```
//!
//! Each link has a host at either end, which sends a packet of 1,500 bytes a millisecond. The answer
//! is one line of JSON: `links`, `events`, `cpu` (seconds).
#![expect(
    clippy::disallowed_methods,
    reason = "a driver has what the core must not have: a clock, a command line"
)]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_netem::node::{Node, NodeInput, NodeOutput};
use eyas_netem::packet::{Packet, protocol};
use eyas_netem::world::World;
use rustix::time::{ClockId, clock_gettime};

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

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let links = words.next().and_then(|word| word.parse::<u32>().ok()).filter(|links| *links > 0);
    let events = words.next().and_then(|word| word.parse::<u64>().ok());
    let (Some(links), Some(events)) = (links, events) else {
        let _ = writeln!(std::io::stderr(), "usage: world LINKS EVENTS");
        return ExitCode::FAILURE;
    };
    let mut world = world(links);
    world.run_until(WARM_UP);
    let (before, begin) = (world.events(), cpu());
    while world.events() - before < events {
        world.run_until(world.now() + STEP);
    }
    let (events, cpu) = (world.events() - before, cpu() - begin);
    let line = format!("{{\"links\": {links}, \"events\": {events}, \"cpu\": {cpu}}}");
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
