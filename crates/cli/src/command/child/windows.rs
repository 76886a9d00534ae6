//! Windows, whose console tells all its programs of Ctrl-C: the command decides for itself what that means.

use std::io;
use std::process::ExitStatus;

use tokio::process::Child;
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// Returns the exit code, as far as it is one of this program's.
pub(in super::super) fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Keeps Ctrl-C from ending this program before the command.
pub(in super::super) struct SignalForwarder {
    _ctrl_c: CtrlC,
    _ctrl_break: CtrlBreak,
}

impl SignalForwarder {
    /// Starts listening.
    pub(in super::super) fn listen() -> io::Result<Self> {
        Ok(Self { _ctrl_c: ctrl_c()?, _ctrl_break: ctrl_break()? })
    }

    /// Waits for the end of the command.
    pub(in super::super) async fn wait(self, child: &mut Child) -> io::Result<ExitStatus> {
        child.wait().await
    }
}
