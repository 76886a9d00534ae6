//! A load on a server whose host is measured: its resources, and what the link carries.
//!
//! The server is a separate process on its own core, and so is the kernel's share of receiving, so
//! that the CPU time of its host can be distinguished from everything else that runs.
//!
//! | file | purpose |
//! | --- | --- |
//! | `server` | the server's process |
//! | `usage` | CPU time and memory of its host |
//! | `middlebox` | entries and time of the middleboxes |
//! | `kernel_memory` | the kernel's memory for networking |
//! | `columns` | the measurements of a run |

mod columns;
pub(super) mod kernel_memory;
mod middlebox;
mod server;
mod usage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eyas_emulator::{HostRole, Topology, pin_thread};
use eyas_load::{Load, LoadOutcome, LoadStop};

use super::testbed::{CLIENT_CORE, LiveTestbed, SERVER_CORE};
use super::{LinkTraffic, LiveError};
use crate::situation::live::LoadTimes;

pub(super) use server::{ServedIdentity, ServerParameters};

use middlebox::MiddleboxUsage;
use server::ServerProcess;
use usage::HostUsage;

/// How soon a run ends after it was asked to stop.
const TIME_TO_STOP: Duration = Duration::from_millis(100);

/// The observations of a load.
pub(super) struct LoadObservation {
    /// The outcome of the load.
    pub(super) outcome: LoadOutcome,
    /// Whether its races ended below TLS.
    below_tls: bool,
    usage: Vec<HostUsage>,
    /// At the times of the usage; none without a middlebox.
    middleboxes: Vec<MiddleboxUsage>,
    traffic: LinkTraffic,
    duration: Duration,
}

/// What was read while a load ran.
struct LoadSamples {
    usage: Vec<HostUsage>,
    middleboxes: Vec<MiddleboxUsage>,
    traffic: LinkTraffic,
}

/// Runs a load on a server and samples its host. `load` is given the client's environment.
pub(super) fn run(
    mut topology: Topology,
    serve: &ServerParameters,
    times: LoadTimes,
    stop: &AtomicBool,
    load: impl FnOnce(&LiveTestbed) -> Result<Load, LiveError>,
) -> Result<LoadObservation, LiveError> {
    if std::thread::available_parallelism().map_or(1, usize::from) <= SERVER_CORE {
        return Err(LiveError::Missing("two cores, one each for client and server".to_owned()));
    }
    // The emulator must not count as part of the server.
    topology.core = Some(CLIENT_CORE);
    topology.server_core = Some(SERVER_CORE);
    // The client needs its core as well.
    topology.busy_wait = false;
    let testbed = LiveTestbed::with_topology(&topology)?;
    let server = ServerProcess::start(testbed.emulator(), serve, SERVER_CORE)?;
    let load = load(&testbed)?;
    kernel_memory::release_unused();
    let ending = LoadStop::default();
    let (outcome, samples) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let watch = || watch(times, &server, &testbed, stop);
            let samples = testbed.emulator().namespace(HostRole::Server).run_in(watch);
            let samples = samples.map_err(LiveError::from).and_then(|samples| samples);
            if samples.is_err() {
                ending.stop();
            }
            samples
        });
        let outcome = testbed.in_client(|| run_load(&load, &ending));
        let samples = match watching.join() {
            Ok(samples) => samples,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (outcome, samples)
    });
    // A requested stop takes precedence over the errors that it causes.
    if stop.load(Ordering::Relaxed) {
        return Err(LiveError::Stopped);
    }
    let LoadSamples { usage, middleboxes, traffic } = samples?;
    let (below_tls, duration) = (load.races_below_tls, times.duration);
    Ok(LoadObservation { outcome: outcome??, below_tls, usage, middleboxes, traffic, duration })
}

/// Runs the load on the client's core.
fn run_load(load: &Load, ending: &LoadStop) -> Result<LoadOutcome, LiveError> {
    pin_thread(None, CLIENT_CORE)?;
    eyas_load::run(load, ending, |_| {}).map_err(|cause| LiveError::Inside(cause.to_string()))
}

/// Reads the server's counters once for each sample, after the warm-up.
fn watch(
    times: LoadTimes,
    server: &ServerProcess,
    testbed: &LiveTestbed,
    stop: &AtomicBool,
) -> Result<LoadSamples, LiveError> {
    let begin = Instant::now();
    let (mut usage, mut middleboxes) = (Vec::new(), Vec::new());
    let mut before = LinkTraffic::default();
    for sample in 0..=times.samples() {
        let at = begin + times.warm_up + times.sample * sample;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            }
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(TIME_TO_STOP));
        }
        usage.push(server.usage()?);
        middleboxes.extend(MiddleboxUsage::now(&testbed.emulator().counters()?));
        if sample == 0 {
            before = testbed.traffic()?;
        }
    }
    Ok(LoadSamples { usage, middleboxes, traffic: testbed.traffic()?.since(before) })
}
