//! The same in virtual time.

use super::MultipathSetup;
#[cfg(any(test, all(target_os = "linux", feature = "load")))]
use super::Stack;
use crate::plan::{ApplicationSetup, EventSetup, Setup, Time, Times};
#[cfg(any(test, all(target_os = "linux", feature = "load")))]
use crate::{results::RunResult, simulation};

impl MultipathSetup {
    /// The same paths, association and application, to be simulated.
    pub(crate) fn simulation(&self) -> Setup {
        let time =
            Times { start: [Time::default(); 2], warm_up: self.warm_up, duration: self.duration };
        let middle = Time(self.warm_up.0 + self.duration.0 / 2);
        let mut path = self.path.clone();
        for (name, path) in &mut path {
            if self.comes.as_ref() == Some(name) {
                path.joins = Some(middle);
            }
        }
        let event = self.dies.iter().map(|path| EventSetup {
            at: middle,
            path: path.clone(),
            rate: None,
            delay: None,
            up: Some(false),
        });
        let message = self.message();
        Setup {
            mode: Default::default(),
            time,
            access: Self::access(),
            path,
            association: self.association.clone(),
            application: ApplicationSetup { message, ..self.application },
            rival: Default::default(),
            event: event.collect(),
        }
    }
}

/// One run, in columns like those of a live one.
#[cfg(any(test, all(target_os = "linux", feature = "load")))]
pub(super) fn run(setup: &MultipathSetup, seed: u64) -> RunResult {
    let result = simulation::run(&setup.simulation(), seed);
    let seconds = setup.duration.0.as_secs_f64();
    let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
    let goodput = megabits(result.bytes());
    let mut run = RunResult { events: result.events, ..RunResult::default() };
    let mut put = |column: &str, number: f64| {
        run.columns.insert(column.to_owned(), vec![number]);
    };
    debug_assert_eq!(setup.stack, Stack::Simulator);
    put("goodput", goodput);
    put("ceiling", setup.ceiling());
    put("share", 100.0 * goodput / setup.ceiling());
    put("gap", result.longest_gap_ms);
    let (mut packets, mut dropped) = (0, 0);
    for path in &result.paths {
        put(&format!("on-{}", path.name), megabits(path.bytes));
        packets += path.packets + path.dropped;
        dropped += path.dropped;
    }
    put("dropped", 100.0 * dropped as f64 / packets.max(1) as f64);
    run
}
