//! Networks drawn at random, on real sockets: eyas's SCTP over all lines, each line alone, and MPTCP.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::{LiveError, RunLive};
use crate::run::{RunResult, SLOW_KEYSTROKE};
use crate::situation::live::{DrawnSetup, MultipathSetup, MultipathStack};
use crate::situation::random::NetworkColumns;
use crate::statistics::percentile;

/// What one stack did in a network.
struct StackObservation {
    /// The payload in Mbit/s towards the receiver, and back if both hosts send.
    rates: Vec<f64>,
    /// The 99th percentile of the delays of keystrokes, in ms; NaN without any.
    keystroke: f64,
}

impl StackObservation {
    fn new(run: &RunResult) -> Self {
        let all = |column: &str| run.columns.get(column).map_or(&[][..], Vec::as_slice);
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let directions = [all("goodput"), all("goodput-back")];
        let rates = directions.into_iter().filter(|rates| !rates.is_empty()).map(mean).collect();
        Self { rates, keystroke: percentile(all("keystroke-delay"), SLOW_KEYSTROKE) }
    }

    /// Returns its payload relative to another one's, in the direction in which it is less.
    fn relative(&self, other: &[f64]) -> f64 {
        let ratios = self.rates.iter().zip(other).map(|(rate, other)| rate / other);
        ratios.fold(f64::INFINITY, f64::min)
    }
}

impl RunLive for DrawnSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let network = self.network.draw(seed);
        let observe =
            |setup: MultipathSetup| setup.run(seed, stop).map(|run| StackObservation::new(&run));
        let over_all = |stack| observe(self.over_all(&network, stack));
        let over_each = |stack| -> Result<Vec<StackObservation>, LiveError> {
            network.path.keys().map(|line| observe(self.alone(&network, line, stack))).collect()
        };
        // First what may be missing here.
        let mptcp = over_all(MultipathStack::Mptcp)?;
        let (all, alone) = (over_all(self.stack)?, over_each(self.stack)?);
        let (tcp, simulated) =
            (over_each(MultipathStack::Tcp)?, over_all(MultipathStack::Simulator)?);

        let ways = 0..all.rates.len();
        let most = |lines: &[StackObservation]| -> Vec<f64> {
            let of = |way: usize| lines.iter().map(|line| line.rates[way]).fold(0.0, f64::max);
            ways.clone().map(of).collect()
        };
        let bounds = [network.bound().rate, network.reversed().bound().rate];
        let sum = |way: usize| alone.iter().map(|line| line.rates[way]).sum::<f64>();
        let ceilings: Vec<f64> = ways.clone().map(|way| sum(way).min(bounds[way] / 1e6)).collect();
        let round_trip = network.best_round_trip();
        let least = alone.iter().map(|line| line.keystroke).fold(f64::INFINITY, f64::min);

        let mut columns = NetworkColumns::default();
        columns.insert("throughput", all.rates[0]);
        columns.insert("alone", most(&alone)[0]);
        columns.insert("best", all.relative(&most(&alone)));
        columns.insert("sum", all.relative(&ceilings));
        columns.insert("keystroke", all.keystroke - round_trip);
        columns.insert("keystroke-alone", least - round_trip);
        columns.insert("simulated", simulated.rates[0]);
        columns.insert("agree", all.rates[0] / simulated.rates[0]);
        columns.insert("mptcp", mptcp.rates[0]);
        columns.insert("tcp-alone", most(&tcp)[0]);
        columns.insert("mptcp-best", mptcp.relative(&most(&tcp)));
        columns.insert("beside-mptcp", all.relative(&mptcp.rates));
        let columns: BTreeMap<String, Vec<f64>> = columns.into_map();
        Ok(RunResult { columns, ..RunResult::default() })
    }
}
