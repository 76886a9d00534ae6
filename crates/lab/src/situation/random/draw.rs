//! The network of a seed. Only integers are drawn, so that it is the same on every machine.

use std::time::Duration;

use eyas_emulator::units::{
    BitRate, FramingSize, JitterSpec, LinkRate, LinkSpec, LossSpec, PercentValue, QueueSpec,
    ReorderSpec, TimeSpan,
};
use eyas_netem::random::derive;

use super::RandomSetup;
use crate::situation::{
    AccessSetup, ApplicationSetup, BackEventSetup, EventSetup, PacketMode, PathSetup, QueueInfo,
    SimulationSetup, SimulationTimes,
};

/// The names of lines.
const NAMES: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];
/// The purposes of random numbers, apart from those of runs.
const PURPOSE: u64 = 1000;
/// The purposes of one line.
const PER_LINE: u64 = 20;
/// The smallest queue: 10 packets of 1,500 bytes.
const LEAST_QUEUE: u64 = 15_000;
const PACKET_BITS: u64 = 12_000;
/// The time between keystrokes, and the limit of a change: to a quarter, or four times.
const KEYSTROKES: Duration = Duration::from_millis(50);
const CHANGE: u64 = 4;
/// How long an association may settle before it is measured: a time, and round trips.
const SETTLES: Duration = Duration::from_secs(2);
const SETTLING_ROUND_TRIPS: u32 = 10;

/// The random numbers of one network.
#[derive(Clone, Copy)]
struct NetworkDraws(u64);

impl NetworkDraws {
    fn raw(self, what: u64) -> u64 {
        derive(self.0, PURPOSE, what)
    }

    /// Returns a number below `count`.
    fn below(self, what: u64, count: u64) -> u64 {
        ((u128::from(self.raw(what)) * u128::from(count)) >> 64) as u64
    }

    fn chance(self, what: u64, part: PercentValue) -> bool {
        (self.raw(what) >> 32) < (part.0 * f64::from(u32::MAX)) as u64
    }

    /// Returns a number of this range with three digits. Each step of a quarter is as likely as any
    /// other: about the same for each doubling.
    fn spread(self, what: u64, low: u64, high: u64) -> u64 {
        let next = |at: &u64| (*at < high).then(|| (at + (at / 4).max(1)).min(high));
        let steps: Vec<u64> = std::iter::successors(Some(low), next).collect();
        let index = self.below(what, steps.len().saturating_sub(1).max(1) as u64) as usize;
        let (from, to) = (steps[index], *steps.get(index + 1).unwrap_or(&steps[index]));
        let inside = derive(self.raw(what), PURPOSE, what);
        let drawn = from + ((u128::from(inside) * u128::from(to - from)) >> 64) as u64;
        let unit = std::iter::successors(Some(1), |unit| Some(unit * 10))
            .find(|unit| drawn / unit < 1000)
            .unwrap_or(1);
        (drawn / unit * unit).max(low)
    }

    fn time(self, what: u64, [low, high]: [TimeSpan; 2]) -> TimeSpan {
        let micros = |time: TimeSpan| u64::try_from(time.0.as_micros()).unwrap_or(u64::MAX);
        TimeSpan(Duration::from_micros(self.spread(what, micros(low), micros(high))))
    }
}

impl RandomSetup {
    /// Returns the network of this seed, with all of its lines.
    pub(crate) fn draw(&self, seed: u64) -> SimulationSetup {
        let draws = NetworkDraws(seed);
        let count = 2 + draws.below(0, u64::from(self.lines) - 1);
        let names = NAMES.iter().map(|name| (*name).to_owned());
        let mut lines: Vec<PathSetup> =
            (0..count).map(|line| self.line(draws, (line + 1) * PER_LINE)).collect();
        // An association is opened over the line that answers first, as a race finds it.
        lines.sort_by_key(round_trip);
        let mut setup = SimulationSetup {
            mode: PacketMode::Struct,
            time: SimulationTimes {
                start: [TimeSpan::default(); 2],
                warm_up: self.delay[1],
                duration: self.duration[0],
            },
            path: names.zip(lines).collect(),
            access: AccessSetup::default(),
            association: self.association.clone(),
            application: ApplicationSetup {
                message: draws.spread(1, self.message[0] as u64, self.message[1] as u64) as usize,
                streams: 1,
                queue_info: QueueInfo::None,
                both_ways: draws.chance(2, self.both_ways),
                keystrokes: Some(TimeSpan(KEYSTROKES)),
            },
            rival: Default::default(),
            event: Vec::new(),
        };
        self.set_times(&mut setup);
        if draws.chance(3, self.changing) {
            let line = NAMES[draws.below(4, count) as usize];
            change(&mut setup, draws, line);
        }
        setup
    }

    fn line(&self, draws: NetworkDraws, of: u64) -> PathSetup {
        let [low, high] = [self.rate[0].0, self.rate[1].0];
        let there = draws.spread(of, low, high);
        let most = there.saturating_mul(self.ratio).min(high);
        let back = draws.spread(of + 1, (there / self.ratio).max(low), most);
        let delay = draws.time(of + 2, self.delay);
        // The ways there and back differ in length, but seldom much.
        let other =
            [TimeSpan(delay.0 / 2).max(self.delay[0]), TimeSpan(delay.0 * 2).min(self.delay[1])];
        let loss = self.loss[draws.below(of + 4, self.loss.len() as u64) as usize];
        PathSetup {
            rate: BitRate(there),
            trace: None,
            delay,
            jitter: JitterSpec::default(),
            queue: self.queue(draws, of + 5, there),
            framing: FramingSize::default(),
            loss: LossSpec { probability: loss, ..LossSpec::default() },
            duplicate: PercentValue::default(),
            reorder: ReorderSpec::default(),
            back: LinkSpec {
                rate: Some(LinkRate::Limited(BitRate(back))),
                delay: Some(draws.time(of + 3, other)),
                queue: Some(self.queue(draws, of + 7, back)),
                ..LinkSpec::default()
            },
            middlebox: Vec::new(),
            through: None,
            joins: None,
        }
    }

    /// Returns the queue of a direction of this rate.
    fn queue(&self, draws: NetworkDraws, of: u64, rate: u64) -> QueueSpec {
        let time = draws.time(of, self.queue).0.as_micros();
        let bytes = (u128::from(rate) * time / 8_000_000) as u64;
        let bytes = bytes.max(LEAST_QUEUE);
        match draws.chance(of + 1, self.red) {
            true => QueueSpec::Red((bytes * 8 / PACKET_BITS) as usize),
            false => QueueSpec::Bytes(bytes as usize),
        }
    }

    /// Sets the times so that all associations can settle, and about the wanted number of packets
    /// pass.
    fn set_times(&self, setup: &mut SimulationSetup) {
        let longest = setup.path.values().map(round_trip).max().unwrap_or_default();
        let both = setup.application.both_ways;
        let rate = |path: &PathSetup| {
            let back = path.reversed();
            carried(path) + if both { carried(&back) } else { 0 }
        };
        let sum: u64 = setup.path.values().map(rate).sum();
        let wanted = Duration::from_millis(self.packets * PACKET_BITS * 1000 / sum.max(1));
        let [least, most] =
            [self.duration[0].0.max(longest * SETTLING_ROUND_TRIPS), self.duration[1].0];
        setup.time.warm_up = TimeSpan(SETTLES + longest * SETTLING_ROUND_TRIPS);
        setup.time.duration = TimeSpan(wanted.min(most).max(least));
    }
}

fn round_trip(path: &PathSetup) -> Duration {
    path.delay.0 + path.reversed().delay.0
}

/// Returns about what a direction of a line carries, in bit/s: with losses, a window of √(3 / 2p)
/// packets in a round trip (Mathis et al. 1997) at the most.
fn carried(path: &PathSetup) -> u64 {
    let loss = path.loss.probability.0;
    if loss <= 0.0 {
        return path.rate.0;
    }
    let round_trip = round_trip(path).as_micros().max(1) as u64;
    let window = (1.5 / loss).sqrt() as u64 + 1;
    path.rate.0.min(window * PACKET_BITS * 1_000_000 / round_trip)
}

/// Lets a line come, go, or change its rate or its delay in the middle of the measurement.
fn change(setup: &mut SimulationSetup, draws: NetworkDraws, line: &str) {
    let at = TimeSpan(setup.time.warm_up.0 + setup.time.duration.0 / 2);
    let Some(path) = setup.path.get_mut(line) else { return };
    let back = path.reversed();
    let mut event = EventSetup {
        at,
        path: line.to_owned(),
        rate: None,
        delay: None,
        back: BackEventSetup::default(),
        up: None,
    };
    match draws.below(5, 4) {
        0 => {
            path.joins = Some(at);
            return;
        }
        1 => event.up = Some(false),
        2 => {
            let rate =
                |what, now: BitRate| BitRate(draws.spread(what, now.0 / CHANGE, now.0 * CHANGE));
            (event.rate, event.back.rate) = (Some(rate(6, path.rate)), Some(rate(7, back.rate)));
        }
        _ => {
            let delay = |what, now: TimeSpan| {
                draws.time(what, [TimeSpan(now.0 / CHANGE as u32), TimeSpan(now.0 * CHANGE as u32)])
            };
            (event.delay, event.back.delay) =
                (Some(delay(6, path.delay)), Some(delay(7, back.delay)));
        }
    }
    setup.event.push(event);
}
