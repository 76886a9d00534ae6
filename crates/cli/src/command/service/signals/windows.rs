//! Windows: what its console and its end of a session tell programs. Nothing there means to load files again; that they
//! have changed is noticed.

use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use super::ServiceSignal;

/// Receives signals from its creation on.
pub(in super::super) struct ServiceSignals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl ServiceSignals {
    pub(in super::super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(in super::super) async fn next(&mut self) -> ServiceSignal {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
        ServiceSignal::Stop
    }
}
