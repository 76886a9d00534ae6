//! Ctrl-C and other signals to terminate: SIGTERM, as sent by a service manager, and SIGHUP, as
//! sent when a terminal closes.

use std::io;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::failure::FailureKind;

/// How long an interrupted run may take to end by itself. It may be blocked in a call that cannot
/// be woken, such as opening a pipe without a reader.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Receives interruptions from its creation on.
pub(super) struct InterruptionSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// `None` if nohup has specified that the process outlives its terminal.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl InterruptionSignals {
    /// Starts to listen.
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hang_up = match is_ignored(SignalKind::hangup().as_raw_value()) {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
        })
    }

    /// Waits for the next interruption, and returns its kind of failure.
    pub(super) async fn next(&mut self) -> FailureKind {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => FailureKind::Interrupted,
            _ = self.terminate.recv() => FailureKind::Terminated,
            _ = hang_up => FailureKind::HungUp,
        }
    }
}

/// Returns whether this process was started with a signal ignored.
#[cfg(unix)]
pub(super) fn is_ignored(signal: i32) -> bool {
    // Without this file, there is no way to find out without unsafe code.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

#[cfg(not(unix))]
impl InterruptionSignals {
    /// Starts to listen.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next interruption, and returns its kind of failure.
    pub(super) async fn next(&mut self) -> FailureKind {
        // Without a handler the default behaviour applies: the process ends.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        FailureKind::Interrupted
    }
}

/// Ends the process some time after an interruption, if it has not ended by itself.
///
/// This runs on a thread of its own, so that it is executed even if the work is blocked in a call.
pub(super) fn exit_if_stuck(mut interruption: InterruptionSignals) {
    std::thread::spawn(move || {
        // Without it, only an interrupted run that is blocked does not end.
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let kind = interruption.next().await;
            tokio::time::sleep(EXIT_TIMEOUT).await;
            std::process::exit(kind.exit_code().into());
        });
    });
}
