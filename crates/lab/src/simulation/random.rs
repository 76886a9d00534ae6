//! One network drawn from a seed: all of its lines together, and each of them alone.

use super::measure;
use super::network::SimulatedNetwork;
use crate::run::{RunResult, SLOW_KEYSTROKE};
use crate::situation::SimulationSetup;
use crate::situation::random::{NetworkColumns, RandomSetup};
use crate::statistics::percentile;

/// What an association did.
struct AssociationObservation {
    /// The payload in Mbit/s towards the receiver, and back if both hosts send.
    rates: Vec<f64>,
    /// When the first MiB had arrived, in seconds; `None` if it did not arrive.
    first: Option<f64>,
    /// The 99th percentile of the delays of keystrokes, in ms.
    keystroke: f64,
    events: u64,
    /// The end, in seconds.
    end: f64,
}

/// Draws the network of this seed and measures it.
#[must_use]
pub(super) fn run(setup: &RandomSetup, seed: u64) -> RunResult {
    let network = setup.draw(seed);
    let all = observe(&network, seed);
    let alone = network.path.keys().map(|line| observe(&network.alone(line), seed));
    let alone: Vec<AssociationObservation> = alone.collect();
    let directions = [network.bound().rate, network.reversed().bound().rate];
    let relative = |of: &dyn Fn(usize, f64) -> f64| {
        let worse = all.rates.iter().enumerate().map(|(way, rate)| rate / of(way, directions[way]));
        worse.fold(f64::INFINITY, f64::min)
    };
    let most = |way: usize| alone.iter().map(|line| line.rates[way]).fold(0.0, f64::max);
    let sum = |way: usize| alone.iter().map(|line| line.rates[way]).sum::<f64>();
    let round_trip = network.best_round_trip();
    let least = alone.iter().map(|line| line.keystroke).fold(f64::INFINITY, f64::min);
    let first = alone.iter().filter_map(|line| line.first).reduce(f64::min);
    let mut columns = NetworkColumns::default();
    columns.insert("throughput", all.rates[0]);
    columns.insert("alone", most(0));
    columns.insert("best", relative(&|way, _| most(way)));
    columns.insert("sum", relative(&|way, bound| sum(way).min(bound / 1e6)));
    columns.insert("keystroke", all.keystroke - round_trip);
    columns.insert("keystroke-alone", least - round_trip);
    if let Some(first) = first {
        columns.insert("first-mib", all.first.unwrap_or(all.end) / first);
    }
    RunResult {
        events: all.events + alone.iter().map(|line| line.events).sum::<u64>(),
        columns: columns.into_map(),
        ..RunResult::default()
    }
}

fn observe(setup: &SimulationSetup, seed: u64) -> AssociationObservation {
    let mut network = SimulatedNetwork::build(setup, seed);
    let run = measure(&mut network, setup);
    let (sink, time) = (network.sink(), &setup.time);
    let rate = run.bytes() as f64 * 8.0 / 1e6 / time.duration.0.as_secs_f64();
    let back = run.columns.get("goodput-back").into_iter().flatten();
    let delays = run.columns.get("keystroke-delay").map_or(&[][..], Vec::as_slice);
    AssociationObservation {
        rates: [rate].into_iter().chain(back.copied()).collect(),
        first: sink.first_mebibyte().map(|at| at.as_secs_f64()),
        keystroke: percentile(delays, SLOW_KEYSTROKE),
        events: run.events,
        end: (time.warm_up.0 + time.duration.0).as_secs_f64(),
    }
}
