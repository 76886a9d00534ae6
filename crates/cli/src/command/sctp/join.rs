//! `eyas sctp run --join`: a command with the sockets of a supervisor for the machine or pod.

use std::path::Path;
use std::process::ExitCode;

use eyas_supervisor::{Address, AskError};
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::super::child::{SignalForwarder, exit_code};
use super::start::{Interception, start};
use super::{finish_unless_interrupted, wait_failure};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpRunFlags};

pub(super) async fn run(
    socket: &Path,
    flags: &SctpRunFlags,
    common: &CommonFlags,
) -> Result<ExitCode, Failure> {
    let signals = SignalForwarder::listen().map_err(wait_failure)?;
    // The command may change its working directory.
    let socket = std::path::absolute(socket)
        .map_err(|cause| Failure::read(&socket.display().to_string(), &cause))?;
    let address = Address::of_path(&socket);
    // Check this first, because the command would only see a kernel without SCTP.
    address.status().map_err(|cause| join_failure(&socket, &cause))?;
    // Processes that the command leaves behind need the library for programs that they start, so
    // this process stays until they have ended.
    set_child_subreaper(Some(getpid())).map_err(|cause| wait_failure(cause.into()))?;
    let mut started = start(flags, &address, common)?;
    let status = signals.wait(&mut started.child).await.map_err(wait_failure)?;
    let rest = async {
        if let Interception::Trapped(trapped) = &started.interception {
            trapped.until_ended().await;
        }
        until_no_children().await;
    };
    finish_unless_interrupted(&mut super::super::listen()?, rest).await?;
    Ok(ExitCode::from(exit_code(status)))
}

/// Waits until no process that the command started is left.
async fn until_no_children() {
    let waited = tokio::task::spawn_blocking(|| {
        while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
    });
    // It is cancelled only with the runtime.
    let _ = waited.await;
}

/// Returns the failure if the supervisor cannot be used.
pub(super) fn join_failure(socket: &Path, cause: &AskError) -> Failure {
    let failure = Failure::new(Kind::Connect, format!("{}: {cause}", socket.display()));
    match cause {
        AskError::Unreached(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
            failure.hint("eyas sctp serve --mode 660 or 666 allows others")
        }
        AskError::Unreached(_) => {
            failure.hint("eyas sctp serve --socket SOCKET starts a supervisor")
        }
        AskError::Silent(_) => failure.hint("is eyas sctp serve running at that socket?"),
        AskError::OtherVersion => failure.hint("use the same version of eyas for both commands"),
    }
}
