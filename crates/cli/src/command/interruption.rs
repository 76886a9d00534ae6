//! Ctrl-C, and what else politely asks a process to end: SIGTERM, which a service manager sends, and
//! SIGHUP, which a terminal sends when it goes.

use std::io;
use std::time::Duration;

use crate::failure::Kind;

/// How long a run that was interrupted may take to end by itself. It may be waiting inside a call
/// that nothing wakes, such as the opening of a pipe that nobody reads.
const TIME_TO_END: Duration = Duration::from_secs(1);

/// Hears of interruptions from the moment that it is made.
pub(super) struct Interruption {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// Nobody listens where nohup has said that the process outlives its terminal.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Interruption {
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

    /// Waits for the next one, and says what failure it is.
    pub(super) async fn next(&mut self) -> Kind {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Kind::Interrupted,
            _ = self.terminate.recv() => Kind::Terminated,
            _ = hang_up => Kind::HungUp,
        }
    }
}

/// Whether this process was started with a signal ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // Where there is no such file nothing else can be asked without unsafe code.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

#[cfg(not(unix))]
impl Interruption {
    /// Starts to listen.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one, and says what failure it is.
    pub(super) async fn next(&mut self) -> Kind {
        // Without a handler the system's own behaviour stands: the process ends.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Kind::Interrupted
    }
}

/// Ends the process some time after an interruption, if it has not ended by itself.
///
/// This runs beside the work, on a thread of the runtime, so it comes to its turn while the work
/// is stuck in a call.
pub(super) fn end_what_is_stuck(mut interruption: Interruption) {
    tokio::spawn(async move {
        let kind = interruption.next().await;
        tokio::time::sleep(TIME_TO_END).await;
        std::process::exit(kind.exit_code().into());
    });
}
