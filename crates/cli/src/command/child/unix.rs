//! Signals.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// How long the command may take to end after SIGTERM before it is killed.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);
/// The offset that a shell adds to the number of a signal that ended a command.
const SIGNAL_EXIT_BASE: i32 = 128;

/// Returns the exit code, as a shell does.
pub(in super::super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNAL_EXIT_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

pub(in super::super) fn forward(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may have ended meanwhile.
        let _ = kill_process(id, signal);
    }
}

/// Forwards signals of this process to the command, which decides how to handle them; only SIGTERM
/// is followed by a kill.
pub(in super::super) struct SignalForwarder {
    interrupt: Signals,
    terminate: Signals,
    hang_up: Signals,
    kill_at: Option<Instant>,
}

impl SignalForwarder {
    /// Starts listening for signals.
    pub(in super::super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            kill_at: None,
        })
    }

    /// Waits for the next signal to forward to the command. Cancel-safe.
    pub(in super::super) async fn next(&mut self) -> ForwardedSignal {
        let kill_time = self.kill_at.unwrap_or_else(Instant::now);
        let signal = tokio::select! {
            // A terminal notifies the command itself.
            _ = self.interrupt.recv() => {
                let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
                (!is_terminal).then_some(Signal::INT)
            }
            _ = self.terminate.recv() => {
                self.kill_at.get_or_insert_with(|| Instant::now() + TERMINATION_TIMEOUT);
                Some(Signal::TERM)
            }
            _ = self.hang_up.recv() => Some(Signal::HUP),
            () = sleep_until(kill_time), if self.kill_at.is_some() => {
                self.kill_at = None;
                Some(Signal::KILL)
            }
        };
        ForwardedSignal(signal)
    }

    /// Waits for the end of the command, and forwards signals meanwhile.
    pub(in super::super) async fn wait(mut self, child: &mut Child) -> io::Result<ExitStatus> {
        loop {
            let next = tokio::select! {
                status = child.wait() => return status,
                next = self.next() => next,
            };
            next.forward(child);
        }
    }
}

/// A signal for the command, if one must be sent.
pub(in super::super) struct ForwardedSignal(Option<Signal>);

impl ForwardedSignal {
    /// Sends it.
    pub(in super::super) fn forward(self, child: &Child) {
        if let Some(signal) = self.0 {
            forward(child, signal);
        }
    }
}
