//! Calls of programs that make system calls of their own, by seccomp user notification: a filter stops
//! what concerns SCTP sockets, and who answers asks the supervisor.
//!
//! | file | job |
//! | --- | --- |
//! | `filter` | which calls stop in the kernel |
//! | `install` | the filter in a program that begins |
//! | `listener` | stopped calls, and the answers to them |
//! | `thread` | the memory and the descriptors of who made a call |
//! | `asked` | a stopped call as a request |
//! | `line` | a connection to the supervisor |
//! | `serving` | one call: request, wait, answer |
//! | `given` | what a program gets of an answer |
//! | `numbers` | numbers of new descriptors |
//! | `disturbance` | signals that a call in the kernel has to make way for |
//!
//! This is the preloaded library from outside: the same requests, and the same descriptors, by which
//! `poll` works and which say in whatever process what they are.
//!
//! A call that was taken from the kernel can be ended by nothing but its answer, or the end of its thread:
//! else an answer could meet a signal and be lost, with the message that it brought, and nobody would
//! know. So signals are looked for here while a call waits, and it is answered such that the kernel does
//! what it always does then.

mod asked;
mod disturbance;
mod filter;
mod given;
mod install;
mod line;
mod listener;
mod numbers;
mod serving;
mod thread;

use std::io;
use std::sync::Arc;

use libc::c_int;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::client::Address;
use install::Installing;
use serving::Serving;

/// What a call failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno(c_int);

/// A command whose calls are to stop once it begins.
#[derive(Debug)]
pub struct Trap(Installing);

impl Trap {
    /// Has the command, and all that it starts, stop at calls that concern SCTP. None of them gets more
    /// rights by set-user-ID or file capabilities from then on (`PR_SET_NO_NEW_PRIVS`).
    ///
    /// # Errors
    /// If the kernel does not know seccomp user notification, or not on this architecture.
    pub fn set(command: &mut Command) -> io::Result<Self> {
        Ok(Self(Installing::into(command)?))
    }

    /// Answers the calls with the sockets of the supervisor at this address, once the command was begun.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// What the kernel said to the filter: `EBUSY` where somebody else's stops calls already. `NotFound`:
    /// the command did not come so far.
    pub fn serve(self, address: Address) -> io::Result<Trapped> {
        let serving = Arc::new(Serving::new(self.0.listener()?, address));
        let (ended, is_ended) = watch::channel(false);
        let runtime = Handle::current();
        // The kernel tells of calls to a thread that waits.
        std::thread::Builder::new().name("trap".into()).spawn(move || {
            take(&serving, &runtime);
            drop(serving);
            ended.send_replace(true);
        })?;
        Ok(Trapped(is_ended))
    }
}

/// The processes whose calls are answered.
#[derive(Debug)]
pub struct Trapped(watch::Receiver<bool>);

impl Trapped {
    /// Waits until none of them is left.
    pub async fn until_ended(&self) {
        // It is told, or the thread that tells it has ended.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }
}

/// Takes calls until no process is left that could make any.
fn take(serving: &Arc<Serving>, runtime: &Handle) {
    loop {
        match serving.listener.next() {
            Ok(Some(call)) => {
                let serving = Arc::clone(serving);
                runtime.spawn(async move { serving.serve(&call).await });
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "calls of programs are not answered any more");
                return;
            }
        }
    }
}
