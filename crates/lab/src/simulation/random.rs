//! One network drawn from a seed: all of its lines together, and each of them alone.

use std::time::Duration;

use super::application::Sink;
use super::network::Network;
use super::{measure, milliseconds};
use crate::run::RunResult;
use crate::situation::random::{RandomSetup, Wanted};
use crate::situation::{PathSetup, Setup};
use crate::statistics::percentile;

/// The size of a full packet, in bits.
const FULL: f64 = 12_000.0;

/// What an association did.
struct Observed {
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
    let alone: Vec<Observed> = alone.collect();
    let directions = [network.bound().rate, network.reversed().bound().rate];
    let relative = |of: &dyn Fn(usize, f64) -> f64| {
        let worse = all.rates.iter().enumerate().map(|(way, rate)| rate / of(way, directions[way]));
        worse.fold(f64::INFINITY, f64::min)
    };
    let most = |way: usize| alone.iter().map(|line| line.rates[way]).fold(0.0, f64::max);
    let sum = |way: usize| alone.iter().map(|line| line.rates[way]).sum::<f64>();
    let round_trip = best_round_trip(&network);
    let least = alone.iter().map(|line| line.keystroke).fold(f64::INFINITY, f64::min);
    let first = alone.iter().filter_map(|line| line.first).reduce(f64::min);
    let mut result = RunResult {
        events: all.events + alone.iter().map(|line| line.events).sum::<u64>(),
        ..RunResult::default()
    };
    let mut put = |column: &str, value: f64| {
        if !value.is_finite() {
            return;
        }
        result.columns.insert(column.to_owned(), vec![value]);
        for wanted in Wanted::ALL.iter().filter(|wanted| wanted.column == column) {
            let share = if wanted.is_met(value) { 100.0 } else { 0.0 };
            result.columns.insert(wanted.share.to_owned(), vec![share]);
        }
    };
    put("throughput", all.rates[0]);
    put("alone", most(0));
    put("best", relative(&|way, _| most(way)));
    put("sum", relative(&|way, bound| sum(way).min(bound / 1e6)));
    put("keystroke", all.keystroke - round_trip);
    put("keystroke-alone", least - round_trip);
    if let Some(first) = first {
        put("first", all.first.unwrap_or(all.end) / first);
    }
    result
}

fn observe(setup: &Setup, seed: u64) -> Observed {
    let mut network = Network::build(setup, seed);
    let run = measure(&mut network, setup);
    let (sink, time) = (network.sink(), &setup.time);
    let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6 / time.duration.0.as_secs_f64();
    let back = setup.application.both_ways.then(|| megabits(network.sink_of_sender().bytes()));
    let end = time.warm_up.0 + time.duration.0;
    let every = setup.application.keystrokes.map_or(Duration::MAX, |every| every.0);
    Observed {
        rates: [Some(megabits(run.bytes())), back].into_iter().flatten().collect(),
        first: sink.first_mebibyte().map(|at| at.as_secs_f64()),
        keystroke: slow_keystroke(&sink, end, every),
        events: run.events,
        end: end.as_secs_f64(),
    }
}

/// Returns the 99th percentile of the delays of keystrokes, in ms. One that has not arrived counts
/// with the time that it has waited, if it has already waited longer than that.
fn slow_keystroke(sink: &Sink, end: Duration, every: Duration) -> f64 {
    let of = |delays: &mut Vec<f64>| {
        delays.sort_by(f64::total_cmp);
        percentile(delays, 99.0)
    };
    let mut delays: Vec<f64> = sink.keystrokes().iter().map(|delay| *delay as f64 / 1e6).collect();
    let arrived = of(&mut delays);
    let waiting = end.saturating_sub(sink.last_keystroke());
    let count = (waiting.as_nanos() / every.as_nanos().max(1)) as u32;
    let waits = (1..=count).map(|keystroke| milliseconds(waiting - every * keystroke));
    delays.extend(waits.filter(|wait| *wait > arrived || arrived.is_nan()));
    of(&mut delays)
}

/// Returns the shortest round trip of a full packet in ms; where lines come, go or change, that of
/// the worse time.
fn best_round_trip(setup: &Setup) -> f64 {
    let round_trip = |path: &PathSetup| {
        let back = path.reversed();
        let sending = FULL / path.rate().0 as f64 + FULL / back.rate().0 as f64;
        milliseconds(path.delay.0 + back.delay.0) + sending * 1e3
    };
    let shortest = |setup: &Setup, is_there: &dyn Fn(&str, &PathSetup) -> bool| {
        let there = setup.path.iter().filter(|(name, path)| is_there(name, path));
        there.map(|(_, path)| round_trip(path)).fold(f64::INFINITY, f64::min)
    };
    let before = shortest(setup, &|_, path| path.joins.is_none());
    let mut changed = setup.clone();
    for event in &setup.event {
        if let Some(path) = changed.path.get_mut(&event.path) {
            event.apply(path);
        }
    }
    let goes = |name: &str| setup.event.iter().any(|it| it.path == name && it.up == Some(false));
    before.max(shortest(&changed, &|name, _| !goes(name)))
}
