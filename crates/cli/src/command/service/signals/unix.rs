//! Unix.

use std::fs::File;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

use super::ServiceSignal;
use crate::command::interruption::is_ignored;

/// Receives signals from its creation on.
pub(in super::super) struct ServiceSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    /// Whether it ends with its terminal.
    has_terminal: bool,
}

impl ServiceSignals {
    pub(in super::super) fn listen() -> io::Result<Self> {
        // nohup ignores the signal so that a program outlives its terminal.
        let outlives = is_ignored(SignalKind::hangup().as_raw_value());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            has_terminal: !outlives && has_terminal(),
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(in super::super) async fn next(&mut self) -> ServiceSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ServiceSignal::Stop,
            _ = self.terminate.recv() => ServiceSignal::Stop,
            _ = self.hang_up.recv() => match self.has_terminal && !has_terminal() {
                true => ServiceSignal::Stop,
                false => ServiceSignal::Reload,
            },
        }
    }
}

/// Returns whether this process has a controlling terminal. The kernel takes it away before it sends
/// SIGHUP because the terminal was closed.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
