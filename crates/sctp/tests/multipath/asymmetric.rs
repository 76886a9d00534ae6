//! Lines whose directions differ: acknowledgements must not exceed what a line carries back.

use std::time::Duration;

use eyas_netem::link::{LinkConfig, QueueConfig};
use eyas_netem::random::derive;
use eyas_sctp::config::{AssociationConfig, MultipathConfig};

use crate::multipath::world::{User, World};
use crate::network::Network;
use crate::saturated::{Arrivals, Traffic};

/// A line: the rates in kbit/s towards the receiver and back, and the one-way delay.
#[derive(Clone, Copy, Debug)]
struct Line {
    down: u64,
    up: u64,
    delay: u64,
    /// The longest queueing delay in milliseconds.
    queue: u64,
}

impl Line {
    const fn new(down: u64, up: u64, delay: u64) -> Self {
        Self { down, up, delay, queue: 100 }
    }

    fn link(&self, rate: u64) -> LinkConfig {
        let bytes = (rate * self.queue / 8).max(15_000) as usize;
        LinkConfig {
            queue: QueueConfig::Bytes(bytes),
            ..LinkConfig::new(rate * 1000, Duration::from_millis(self.delay))
        }
    }
}

const START: Duration = Duration::from_secs(4);
const END: Duration = Duration::from_secs(10);

/// Mbit/s of user data over these lines.
fn throughput(lines: &[Line], config: &AssociationConfig, seed: u8) -> f64 {
    throughput_of(lines, config, seed, false)
}

/// The same while the receiver sends as much, if `both_ways`.
fn throughput_of(lines: &[Line], config: &AssociationConfig, seed: u8, both_ways: bool) -> f64 {
    let mut traffic = Traffic::new(config, lines.len());
    traffic.message = 1452;
    traffic.udp = 0;
    traffic.both_ways = both_ways;
    traffic.user = User::InTurn;
    let there: Vec<LinkConfig> = lines.iter().map(|line| line.link(line.down)).collect();
    let back: Vec<LinkConfig> = lines.iter().map(|line| line.link(line.up)).collect();
    let mut network = Network::of_two_asymmetric(&there, &back);
    network.seed(seed.into());
    let mut world = World::between(traffic.hosts(seed).into(), network, Arrivals::on(lines.len()));
    world.run_to(END);
    world.delivered(START, END) as f64 * 8.0 / (END - START).as_secs_f64() / 1e6
}

/// The default configuration with buffers of 4 MiB, as the command has it.
fn config() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.extensions.nr_sack = true;
    config.extensions.interleaving = false;
    config.path_mtu_discovery = false;
    (config.send_buffer, config.receive_buffer) = (4 << 20, 4 << 20);
    config
}

fn multipath() -> AssociationConfig {
    let mut config = config();
    config.multipath = Some(MultipathConfig::default());
    config
}

/// Asserts that all lines together carry no less than the best one alone, and returns their share of
/// the sum of their rates.
fn compare(lines: &[Line], seed: u8) -> f64 {
    let all = throughput(lines, &multipath(), seed);
    let alone = lines.iter().map(|line| throughput(&[*line], &config(), seed)).fold(0.0, f64::max);
    let sum = lines.iter().map(|line| line.down).sum::<u64>() as f64 / 1e3;
    assert!(all >= 0.98 * alone, "{all:.1} instead of {alone:.1} Mbit/s: {lines:?}");
    all / sum
}

/// DSL beside LTE.
#[test]
fn a_line_that_carries_little_back_slows_no_other_line() {
    let share = compare(&[Line::new(16_000, 1_000, 8), Line::new(50_000, 20_000, 35)], 1);
    assert!(share > 0.95, "{share}");
}

#[test]
fn a_slow_line_of_low_delay_slows_no_other_line() {
    for rate in [1_000, 5_000, 20_000] {
        let slow = Line::new(rate, rate, 5);
        let lines = [slow, Line::new(20_000, 20_000, 30), Line::new(50_000, 50_000, 80)];
        let share = compare(&lines, 1);
        assert!(share > 0.95, "{share}");
    }
}

/// While both hosts send, acknowledgements wait behind the peer's data. That is no queue of the
/// sender's own, which would have to be kept short.
#[test]
fn data_both_ways_empties_no_line() {
    for lines in [
        [Line::new(45_500, 6_810, 4), Line::new(5_220, 6_970, 5)],
        [Line::new(20_000, 20_000, 10), Line::new(20_000, 20_000, 10)],
        [Line::new(50_000, 2_000, 20), Line::new(10_000, 10_000, 5)],
    ] {
        let all = throughput_of(&lines, &multipath(), 1, true);
        let alone = |line: &Line| throughput_of(&[*line], &config(), 1, true);
        let best = lines.iter().map(alone).fold(0.0, f64::max);
        assert!(all >= 0.98 * best, "{all:.1} instead of {best:.1} Mbit/s: {lines:?}");
    }
}

/// Networks drawn from a seed: two to four lines of 0.5 to 60 Mbit/s, of which the way back has as
/// much as twice the rate or as little as a fiftieth.
fn drawn(number: u64) -> Vec<Line> {
    let draw = |what: u64, low: f64, high: f64| {
        let unit = derive(7, number, what) as f64 / u64::MAX as f64;
        low * (high / low).powf(unit)
    };
    let line = |line: u64| {
        let of = |what| 10 + line * 10 + what;
        let down = draw(of(0), 500.0, 60_000.0);
        Line {
            down: down as u64,
            up: (down / draw(of(1), 0.5, 50.0)).max(30.0) as u64,
            delay: draw(of(2), 2.0, 300.0) as u64,
            queue: draw(of(3), 20.0, 500.0) as u64,
        }
    };
    (0..2 + derive(7, number, 1) % 3).map(line).collect()
}

#[test]
fn random_lines_slow_no_other_line() {
    for number in 0..4 {
        compare(&drawn(number), 1);
    }
}
