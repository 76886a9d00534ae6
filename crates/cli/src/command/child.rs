//! Runs a command for the user: errors of starting it, its exit code, and signals for it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::failure::{Failure, FailureKind};

/// How long the command may take to end after SIGTERM before it is killed.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);
/// The offset that a shell adds to the number of a signal that ended a command.
const SIGNAL_EXIT_BASE: i32 = 128;

/// Returns the failure of a command that could not be run, with the exit codes of a shell.
pub(super) fn start_failure(program: &OsStr, cause: &io::Error) -> Failure {
    let name = program.to_string_lossy();
    let is_path = name.contains('/');
    let failure = |kind, why: &str| Failure::new(kind, format!("cannot run {name}: {why}"));
    match cause.kind() {
        // The kernel reports the same for a script whose interpreter does not exist.
        io::ErrorKind::NotFound if is_path && Path::new(program).exists() => {
            failure(FailureKind::NotExecutable, "its interpreter does not exist")
                .hint("its first line, or its ELF header, names a program that is not installed")
        }
        io::ErrorKind::NotFound if is_path => failure(FailureKind::NotFound, "there is no such file")
            .hint("relative paths start at the directory where eyas was started"),
        io::ErrorKind::NotFound => failure(FailureKind::NotFound, "command not found in PATH")
            .hint("the command comes after --, each argument a word; a line for the shell: -- sh -c 'LINE'"),
        io::ErrorKind::PermissionDenied => failure(FailureKind::NotExecutable, "it is not executable")
            .hint("a file needs chmod +x; a directory cannot be run"),
        _ => failure(FailureKind::NotExecutable, &cause.to_string()),
    }
}

/// Returns the exit code, as a shell does.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNAL_EXIT_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

pub(super) fn forward(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may have ended meanwhile.
        let _ = kill_process(id, signal);
    }
}

/// Forwards signals of this process to the command, which decides how to handle them; only SIGTERM
/// is followed by a kill.
pub(super) struct SignalForwarder {
    interrupt: Signals,
    terminate: Signals,
    hang_up: Signals,
    kill_at: Option<Instant>,
}

impl SignalForwarder {
    /// Starts listening for signals.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            kill_at: None,
        })
    }

    /// Waits for the next signal to forward to the command. Cancel-safe.
    pub(super) async fn next(&mut self) -> ForwardedSignal {
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
    pub(super) async fn wait(mut self, child: &mut Child) -> io::Result<ExitStatus> {
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
pub(super) struct ForwardedSignal(Option<Signal>);

impl ForwardedSignal {
    /// Sends it.
    pub(super) fn forward(self, child: &Child) {
        if let Some(signal) = self.0 {
            forward(child, signal);
        }
    }
}
