//! `eyas sctp run --join`: a command with the sockets of a supervisor for the machine or pod.

use std::path::Path;
use std::process::ExitCode;

use eyas_supervisor::{Address, AskError};
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::super::child::{PassingOn, code};
use super::begin::{Reach, begin};
use super::{afterwards, unwaited};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpRunFlags};

pub(super) async fn run(
    socket: &Path,
    flags: &SctpRunFlags,
    common: &CommonFlags,
) -> Result<ExitCode, Failure> {
    let signals = PassingOn::listen().map_err(unwaited)?;
    // The command may go to other folders.
    let socket = std::path::absolute(socket)
        .map_err(|cause| Failure::read(&socket.display().to_string(), &cause))?;
    let address = Address::of_path(&socket);
    // Before the command notices, because it would be told of a kernel without SCTP.
    address.status().map_err(|cause| unjoined(&socket, &cause))?;
    // Processes left by the command need the library for what they start, so this process stays as
    // long as any of them runs.
    set_child_subreaper(Some(getpid())).map_err(|cause| unwaited(cause.into()))?;
    let mut begun = begin(flags, &address, common)?;
    let status = signals.until_end(&mut begun.child).await.map_err(unwaited)?;
    let rest = async {
        if let Reach::Trapped(trapped) = &begun.reach {
            trapped.until_ended().await;
        }
        without_children().await;
    };
    afterwards(&mut super::super::listen()?, rest).await?;
    Ok(ExitCode::from(code(status)))
}

/// Waits until no process that the command started is left.
async fn without_children() {
    let waited = tokio::task::spawn_blocking(|| {
        while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
    });
    // It is cancelled only with the runtime.
    let _ = waited.await;
}

/// Returns the failure if the supervisor cannot be used.
pub(super) fn unjoined(socket: &Path, cause: &AskError) -> Failure {
    let failure = Failure::new(Kind::Connect, format!("{}: {cause}", socket.display()));
    match cause {
        AskError::Unreached(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
            failure.hint("eyas sctp serve --mode 660 or 666 allows others")
        }
        AskError::Unreached(_) => failure.hint("eyas sctp serve --socket SOCKET serves there"),
        AskError::Silent(_) => failure.hint("is eyas sctp serve running there?"),
        AskError::OtherVersion => failure.hint("use the same eyas here and for eyas sctp serve"),
    }
}
