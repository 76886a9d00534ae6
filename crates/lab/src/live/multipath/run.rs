//! A run: hosts and paths, a sender and a receiver, and the change halfway through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::meter::PayloadMeter;
use super::network::{EmulatedNetwork, PathTraffic};
use super::shared::{CHECK_INTERVAL, PairState, RunningPair};
use super::{mptcp, sctp, simulated, usrsctp};
use crate::live::{LiveError, RunLive};
use crate::run::RunResult;
use crate::situation::live::{MultipathSetup, MultipathStack};

/// The time limit of the first message: far longer than any handshake here.
const PATIENCE: Duration = Duration::from_secs(60);
impl RunLive for MultipathSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        if self.stack == MultipathStack::Simulator {
            return Ok(simulated::run(self, seed));
        }
        let network = EmulatedNetwork::start(self, seed)?;
        let shared = Arc::new(PairState::new(self));
        let mut pair =
            RunningPair { shared: shared.clone(), threads: Vec::new(), programs: Vec::new() };
        match self.stack {
            MultipathStack::Mptcp | MultipathStack::Tcp => mptcp::start(&network, self, &mut pair)?,
            MultipathStack::Usrsctp => {
                usrsctp::receive(&network, self, &mut pair)?;
                usrsctp::send(&network, self, &mut pair)?;
            }
            MultipathStack::EyasToUsrsctp => {
                usrsctp::receive(&network, self, &mut pair)?;
                sctp::send(&network, self, &mut pair)?;
            }
            MultipathStack::Eyas | MultipathStack::EyasUdp | MultipathStack::Simulator => {
                sctp::receive(&network, self, &mut pair)?;
                sctp::send(&network, self, &mut pair)?;
            }
        }
        let [before, after] = watch(self, &network, &shared, stop)?;
        drop(pair);
        let mut meter = shared.meter().clone();
        meter.end();
        Ok(summarise(self, &meter, network.names(), &before, &after))
    }
}

/// Waits until the measurement is over, and returns what had crossed the paths before and after it.
fn watch(
    setup: &MultipathSetup,
    network: &EmulatedNetwork,
    shared: &PairState,
    stop: &AtomicBool,
) -> Result<[Vec<PathTraffic>; 2], LiveError> {
    let until = |moment: Duration| -> Result<(), LiveError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            }
            if let Some(cause) = shared.failure() {
                return Err(LiveError::Inside(cause));
            }
            match moment.checked_sub(shared.elapsed()) {
                Some(left) if !left.is_zero() => thread::sleep(left.min(CHECK_INTERVAL)),
                _ => return Ok(()),
            }
        }
    };
    let begins = loop {
        if let Some(begins) = shared.meter().begins() {
            break begins;
        }
        let now = shared.elapsed();
        if now > PATIENCE {
            let cause = format!("nothing arrived within {} s", PATIENCE.as_secs());
            return Err(LiveError::Inside(cause));
        }
        until(now + CHECK_INTERVAL)?;
    };
    until(begins)?;
    let before = network.traffic()?;
    until(begins + setup.duration.0 / 2)?;
    if let Some(name) = &setup.failing_path {
        network.cut(name)?;
    }
    network.add_path()?;
    until(begins + setup.duration.0)?;
    Ok([before, network.traffic()?])
}

fn summarise(
    setup: &MultipathSetup,
    meter: &PayloadMeter,
    names: &[String],
    before: &[PathTraffic],
    after: &[PathTraffic],
) -> RunResult {
    let mut run = RunResult::default();
    let mut put = |column: &str, numbers: &[f64]| {
        run.columns.insert(column.to_owned(), numbers.to_vec());
    };
    let rates = meter.rates();
    let ceiling = setup.ceiling();
    put("goodput", &rates);
    put("ceiling", &[ceiling]);
    put("share", &rates.map(|rate| 100.0 * rate / ceiling));
    put("gap", &[meter.longest_gap().as_secs_f64() * 1e3]);
    if setup.application.both_ways {
        put("goodput-back", &meter.back_rates());
    }
    if let Some(every) = setup.application.keystrokes {
        put("keystroke-delay", &meter.keystrokes(every.0));
    }
    if setup.failing_path.is_some() || setup.added_path.is_some() {
        put("before", &rates[..rates.len() / 2]);
        put("after", &rates[rates.len() / 4 * 3..]);
    }
    let seconds = setup.duration.0.as_secs_f64();
    let (mut packets, mut dropped) = (0, 0);
    for ((name, before), after) in names.iter().zip(before).zip(after) {
        let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
        put(&format!("on-{name}"), &[megabits(after.bytes - before.bytes)]);
        put(&format!("back-{name}"), &[megabits(after.back_bytes - before.back_bytes)]);
        dropped += after.dropped - before.dropped;
        packets += after.packets - before.packets;
    }
    put("dropped", &[100.0 * dropped as f64 / (packets + dropped).max(1) as f64]);
    run
}
