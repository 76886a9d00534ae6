//! One run of one situation in virtual time: a pure function of set-up and seed.
//!
//! ```text
//!            access          bottleneck          access
//!  sender ═══════════ router ═══════════ router ═══════════ receiver      one row for each path
//! ```
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the run |
//! | `network` | hosts, routers and links of a set-up |
//! | `host` | a node around `eyas_sctp::endpoint::Endpoint` |
//! | `application` | the saturated sender, and the sink that measures |
//! | `payload` | the payload of packets, as bytes or values |
//! | `random` | a network drawn from a seed, with all of its lines and with each alone |
//! | `options` | conversion of an association's options to those of `eyas-sctp` |

mod application;
mod host;
mod network;
mod options;
mod payload;
mod random;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::run::{PathResult, RivalResult, RunResult, with_waiting_keystrokes};
use crate::situation::{SimulationSetup, Situation};

use network::SimulatedNetwork;

#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use application::{KEYSTROKE, stamped};
pub use network::ACCESS_QUEUE;
#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use network::bottleneck;
#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use options::config as association_config;

/// Runs a set-up once. The same set-up and seed give the same result on any machine.
#[must_use]
pub fn run(setup: &SimulationSetup, seed: u64) -> RunResult {
    measure(&mut SimulatedNetwork::build(setup, seed), setup)
}

/// Runs a situation once; `None` if it is a live one.
#[must_use]
pub fn run_situation(situation: &Situation, seed: u64) -> Option<RunResult> {
    match situation {
        Situation::Simulated(setup) => Some(run(setup, seed)),
        Situation::Random(setup) => Some(random::run(setup, seed)),
        Situation::Live(_) => None,
    }
}

/// Advances the network through the times of a set-up.
fn measure(network: &mut SimulatedNetwork, setup: &SimulationSetup) -> RunResult {
    let from = setup.time.warm_up.0;
    let until = from + setup.time.duration.0;
    network.world.run_until(from);
    network.begin_measuring();
    let before = network.path_counts();
    network.world.run_until(until);
    let paths = network
        .path_counts()
        .into_iter()
        .zip(before)
        .map(|(now, before)| PathResult {
            packets: now.packets - before.packets,
            bytes: now.bytes - before.bytes,
            dropped: now.dropped - before.dropped,
            back_bytes: now.back_bytes - before.back_bytes,
            name: now.name,
        })
        .collect();
    let sink = network.sink();
    let mut columns = BTreeMap::new();
    if setup.application.both_ways {
        let bits = network.sink_of_sender().bytes() as f64 * 8.0;
        let rate = bits / 1e6 / setup.time.duration.0.as_secs_f64();
        columns.insert("goodput-back".to_owned(), vec![rate]);
    }
    if let Some(every) = setup.application.keystrokes {
        let delays = sink.keystrokes().iter().map(|delay| *delay as f64 / 1e6).collect();
        let waiting = until.saturating_sub(sink.last_keystroke());
        let delays = with_waiting_keystrokes(delays, waiting, every.0);
        columns.insert("keystroke-delay".to_owned(), delays);
    }
    RunResult {
        columns,
        streams: sink.streams(setup.application.all_streams()),
        paths,
        rivals: network
            .rivals()
            .map(|(name, sink)| RivalResult { name: name.to_owned(), bytes: sink.bytes() })
            .collect(),
        longest_gap_ms: milliseconds(sink.longest_gap(until)),
        events: network.world.events(),
        ..RunResult::default()
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
