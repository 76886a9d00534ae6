//! Intercepts the calls of programs that make system calls directly, by seccomp user notification: a
//! filter stops calls that concern SCTP sockets, and they are answered by the supervisor.
//!
//! | file | purpose |
//! | --- | --- |
//! | `filter` | which calls stop in the kernel |
//! | `install` | installing the filter in a program that is being started |
//! | `listener` | stopped calls, and the answers to them |
//! | `thread` | the memory and the descriptors of the thread that made a call |
//! | `decode` | converting a stopped call to a request |
//! | `connection` | a connection to the supervisor |
//! | `handler` | handling one call: request, wait, answer |
//! | `write_back` | writing the result of a call to its program |
//! | `numbers` | choosing numbers for new descriptors |
//! | `interruption` | signals that interrupt a call |
//!
//! This does from outside what the preloaded library does from inside: it makes the same requests
//! and provides the same descriptors, which work with `poll` and identify their socket in any
//! process.
//!
//! A call that was received from the kernel can be ended only by its answer, or by the end of its
//! thread: otherwise an answer could coincide with a signal and be lost unnoticed, together with
//! the message that it carried. Signals are therefore checked here while a call waits, and the call
//! is answered in such a way that the kernel then handles the signal as usual.
//!
//! Calls that create SCTP sockets stop, and calls on descriptors from 900 up, the range that the
//! sockets get their numbers from. A call is received with
//! `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`; before Linux 6.17 a message can still be lost if a
//! signal came just before its call was received. If a signal arrives that the thread has not
//! blocked, the request is withdrawn as the library does, and the call is answered with
//! `ERESTARTSYS`: the kernel restarts it after the handler or returns `EINTR`, as the handler was
//! installed.

mod connection;
mod decode;
mod filter;
mod interruption;

mod install;

mod handler;
mod listener;
mod numbers;
mod thread;
mod write_back;

use std::io;
use std::sync::Arc;

use libc::c_int;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::client::SupervisorAddress;
use handler::Handler;
use install::Installation;

/// The errno of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno(c_int);

/// A command whose SCTP calls are intercepted once it has started.
#[derive(Debug)]
pub struct CallTrap(Installation);

impl CallTrap {
    /// Makes the command, and all processes that it starts, stop at calls that concern SCTP. From
    /// then on none of them gains privileges by set-user-ID or file capabilities
    /// (`PR_SET_NO_NEW_PRIVS`).
    ///
    /// # Errors
    /// If the kernel does not support seccomp user notification, or not on this architecture.
    pub fn set(command: &mut Command) -> io::Result<Self> {
        Ok(Self(Installation::install_in(command)?))
    }

    /// Answers the calls with the sockets of the supervisor at this address, once the command has
    /// started. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The error of installing the filter: `EBUSY` if another filter already stops calls;
    /// `NotFound` if the command did not get this far.
    pub fn serve(self, address: SupervisorAddress) -> io::Result<TrappedProgram> {
        let handler = Arc::new(Handler::new(self.0.listener()?, address));
        let (ended, is_ended) = watch::channel(false);
        let runtime = Handle::current();
        // The kernel reports calls to a waiting thread.
        std::thread::Builder::new().name("trap".into()).spawn(move || {
            receive_calls(&handler, &runtime);
            drop(handler);
            ended.send_replace(true);
        })?;
        Ok(TrappedProgram(is_ended))
    }
}

/// The processes whose calls are answered.
#[derive(Debug)]
pub struct TrappedProgram(watch::Receiver<bool>);

impl TrappedProgram {
    /// Waits until none of them is left.
    pub async fn until_ended(&self) {
        // Either this is reported, or the reporting thread has ended.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }
}

/// Receives calls until no process is left that could make any.
fn receive_calls(handler: &Arc<Handler>, runtime: &Handle) {
    loop {
        match handler.listener.next() {
            Ok(Some(call)) => {
                let handler = Arc::clone(handler);
                runtime.spawn(async move { handler.serve(&call).await });
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "calls of programs are no longer answered");
                return;
            }
        }
    }
}
