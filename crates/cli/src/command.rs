//! One file for each subcommand, and shared parts: targets, settings, Ctrl-C.

#[cfg(not(target_os = "linux"))]
mod absent;
mod child;
mod completions;
mod core_runtimes;
mod demo;
mod descriptors;
mod doctor;
mod get;
mod identity;
mod interruption;
mod lab;
mod linger;
mod load;
mod man;
mod memory;
#[cfg(target_os = "linux")]
mod netem;
mod ownership;
mod paths;
mod perf;
mod pipe;
mod plan;
mod proxy;
mod race;
mod replay;
#[cfg(target_os = "linux")]
mod sctp;
mod serve;
mod service;
mod setting;
mod target;
mod tunnel;

use std::future::Future;
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::failure::{Failure, FailureKind};
use crate::flags::{Cli, Command};
use interruption::InterruptionSignals;

/// Runs the given command line, and returns the exit code of a successful run.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let common = cli.common;
    let result = match cli.command {
        #[cfg(target_os = "linux")]
        Command::Netem(flags) => return netem::run(flags, &common),
        #[cfg(not(target_os = "linux"))]
        Command::Netem(_) => Err(absent::failure("eyas netem", absent::NAMESPACES)),
        Command::Proxy(flags) => return proxy::run(&flags, &common),
        #[cfg(target_os = "linux")]
        Command::Sctp(flags) => return on_one_thread(sctp::run(&flags, &common)),
        #[cfg(not(target_os = "linux"))]
        Command::Sctp(_) => Err(absent::failure("eyas sctp", absent::SUPERVISOR)),
        Command::Tunnel(flags) => on_runtime(tunnel::run(&flags, &common)),
        Command::Completions { shell } => completions::run(shell),
        Command::Man(flags) => man::run(&flags),
        Command::Memory(flags) => memory::run(&flags, &common),
        Command::Serve(flags) => on_runtime(serve::run(&flags, &common)),
        Command::Lab(flags) => lab::run(flags, common),
        Command::Load(flags) => on_runtime(load::run(*flags, common)),
        Command::Replay(flags) => replay::run(&flags, &common),
        Command::Demo(flags) => on_runtime(until_interrupted(demo::run(&flags, &common))),
        Command::Doctor(flags) => on_runtime(until_interrupted(doctor::run(&flags, &common))),
        Command::Get(flags) => on_one_thread(get::run(&flags, &common)),
        Command::Race(flags) => match flags.count {
            Some(count) => on_runtime(race::run_series(&flags, count, &common)),
            None => on_runtime(until_interrupted(race::run(&flags, &common))),
        },
        Command::Perf(flags) => on_runtime(perf::run(&flags, &common)),
        Command::Pipe(flags) => on_runtime(pipe::run(&flags, &common)),
        Command::Plan(flags) => on_runtime(until_interrupted(plan::run(&flags, &common))),
    };
    result.map(|()| ExitCode::SUCCESS)
}

/// Runs a future on a new runtime. Blocking operations that remain when it is done, such as a read
/// from a terminal, do not keep the process alive.
fn on_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(Builder::new_multi_thread(), work)
}

/// Runs a future and the tasks that it starts on this thread only: for work behind a single lock, where other threads
/// would only wait, and for a single transfer, each piece of which would wake another thread.
fn on_one_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(Builder::new_current_thread(), work)
}

fn run_on<T>(
    mut runtime: Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|cause| Failure::new(FailureKind::Connect, format!("cannot start: {cause}")))?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// Runs a future until it is done or Ctrl-C drops it with everything that it holds.
async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut interruption = listen()?;
    interruption::exit_if_stuck(listen()?);
    tokio::select! {
        result = work => result,
        kind = interruption.next() => Err(Failure::new(kind, "interrupted")),
    }
}

fn listen() -> Result<InterruptionSignals, Failure> {
    InterruptionSignals::listen().map_err(|cause| {
        Failure::new(FailureKind::Interrupted, format!("cannot handle Ctrl-C: {cause}"))
    })
}
