//! Experiments on real sockets, in real time.
//!
//! A plan of `kind = "live"` has situations of this kind: two hosts, which are network namespaces
//! of this machine, and between them a link that the emulator of `eyas-emulator` runs. Client and
//! server are the real ones, `eyas-http` over the kernel's TCP and over QUIC, each in its own
//! namespace and thread.
//!
//! | module | purpose |
//! | --- | --- |
//! | `mod` | one run of each [situation](crate::situation::live) |
//! | `testbed`, `traffic` | two hosts and the link between them, and the packets that crossed it |
//! | `awake` | cores that wake up at once, for measurements of times |
//! | `connect` | `h3-delay`, `h3-loss` |
//! | `policies` | `h3-policies` |
//! | `multipath` | `cmt-live` |
//! | `drawn` | `cmt-random-live` |
//! | `cost` | `he-cost`, `he-cache` |
//! | `all_transports` | `he-six` |
//! | `clients` | `he-clients` |
//! | `machine` | what else the machine did meanwhile |
//! | `host` | a load on a server whose host is measured |
//! | `strategy` | the race policies of each client strategy |
//! | `remembered` | what a client remembers at the start of a trial |
//! | `trial` | one trial of a client: a first and a second request |
//! | `dns` | a name server with and without HTTPS records |
//! | `servers`, `server_kind`, `server_thread` | the servers, with and without HTTP/3 |
//!
//! Dropping the testbed removes its namespaces, and the emulator's watchdog does after a kill.
//! All of this requires Linux and the feature `live`.
//!
//! Client and server stay on one core each, because two hosts do not wait for each other's CPU.
//! Where the server's cost is measured (`host`), the server is a process of its own on core 1, with
//! the kernel thread that processes its incoming packets; the emulator stays with the client on
//! core 0. Runs are ordered by scene and place on the axis, so that curves that are compared run
//! close together in time. A result is columns with one number per trial, and statistics are taken
//! over the trials of all runs of a point. Points for which the machine was too slow (`[judged]`)
//! are shown, but count for no claim.
//!
//! `clients` starts third-party programs without any instrumentation: it reads the emulator's
//! capture, `packet` classifies each packet, and `measures`, a pure function, turns the list into
//! numbers.

use std::sync::atomic::AtomicBool;

use crate::run::RunResult;
use crate::situation::live::LiveSetup;

#[cfg(all(target_os = "linux", feature = "live"))]
mod all_transports;
#[cfg(all(target_os = "linux", feature = "live"))]
mod awake;
#[cfg(all(target_os = "linux", feature = "live"))]
mod clients;
#[cfg(all(target_os = "linux", feature = "live"))]
mod connect;
#[cfg(all(target_os = "linux", feature = "live"))]
mod cost;
#[cfg(all(target_os = "linux", feature = "live"))]
mod dns;
#[cfg(all(target_os = "linux", feature = "live"))]
mod drawn;
#[cfg(all(target_os = "linux", feature = "live"))]
mod host;
#[cfg(all(target_os = "linux", feature = "live"))]
mod machine;
#[cfg(all(target_os = "linux", feature = "live"))]
mod multipath;
#[cfg(all(target_os = "linux", feature = "live"))]
mod policies;
#[cfg(all(target_os = "linux", feature = "live"))]
mod remembered;
#[cfg(all(target_os = "linux", feature = "live"))]
mod server_kind;
#[cfg(all(target_os = "linux", feature = "live"))]
mod server_thread;
#[cfg(all(target_os = "linux", feature = "live"))]
mod servers;
#[cfg(all(target_os = "linux", feature = "live"))]
mod strategy;
#[cfg(all(target_os = "linux", feature = "live"))]
mod testbed;
#[cfg(all(target_os = "linux", feature = "live"))]
mod traffic;
#[cfg(all(target_os = "linux", feature = "live"))]
mod trial;

#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use testbed::LiveTestbed;
#[cfg(all(target_os = "linux", feature = "live"))]
pub(crate) use traffic::LinkTraffic;

/// Why a live run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The hosts and the link between them could not be set up.
    #[error("cannot set up the emulated network: {0}")]
    Testbed(String),
    /// A server or client inside failed.
    #[error("inside the emulated network: {0}")]
    Inside(String),
    /// Something is missing on this machine: runs that need it are skipped.
    #[error("not available here: {0}")]
    Missing(String),
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
}

/// A situation that can be run here.
#[cfg(all(target_os = "linux", feature = "live"))]
trait RunLive {
    /// Executes one run. Ends early, without a result, when `stop` is set.
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError>;
}

/// Executes one run of a situation. Ends early, without a result, when `stop` is set.
///
/// # Errors
/// If the network cannot be emulated here, something inside it fails, or the run was stopped.
#[cfg(all(target_os = "linux", feature = "live"))]
pub fn run(setup: &LiveSetup, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
    let before = machine::MachineReading::now();
    let mut run = crate::situation::live::with_experiment!(setup, one => one.run(seed, stop))?;
    run.columns.extend(machine::MachineReading::now().since(&before));
    Ok(run)
}

/// Live runs are not available in this build.
///
/// # Errors
/// Always.
#[cfg(not(all(target_os = "linux", feature = "live")))]
pub fn run(_: &LiveSetup, _: u64, _: &AtomicBool) -> Result<RunResult, LiveError> {
    let needs = "live experiments need Linux, and eyas-lab with its feature live";
    Err(LiveError::Testbed(needs.to_owned()))
}
