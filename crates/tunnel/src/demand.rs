//! The programs that wait for a connection through the tunnel: while there are any, attempts to reconnect are frequent.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::liveness::ReconnectAttempts;

/// The programs that wait.
#[derive(Debug)]
pub(crate) struct TunnelDemand {
    programs: AtomicUsize,
    /// Notified when one has come.
    came: Notify,
    began: Instant,
}

/// A program that waits, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitingProgram<'a>(&'a TunnelDemand);

impl Default for TunnelDemand {
    fn default() -> Self {
        Self { programs: AtomicUsize::new(0), came: Notify::new(), began: Instant::now() }
    }
}

impl TunnelDemand {
    /// Adds a program.
    pub(crate) fn enter(&self) -> WaitingProgram<'_> {
        self.programs.fetch_add(1, Relaxed);
        self.came.notify_one();
        WaitingProgram(self)
    }

    /// Returns the time by which the waits of [`ReconnectAttempts`] are measured.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until the next attempt is due.
    pub(crate) async fn until_due(&self, attempts: &ReconnectAttempts) {
        loop {
            let due = attempts.next(self.programs.load(Relaxed) > 0);
            tokio::select! {
                () = sleep_until(self.began + due) => return,
                () = self.came.notified() => {}
            }
        }
    }
}

impl Drop for WaitingProgram<'_> {
    fn drop(&mut self) {
        self.0.programs.fetch_sub(1, Relaxed);
    }
}
