//! `eyas sctp run --join`: a command with the sockets of who serves a machine or a pod.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use eyas_supervisor::{Address, AskError, Library};
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::super::child::{PassingOn, code};
use super::{afterwards, spawn, unwaited, without_library};
use crate::failure::{Failure, Kind};
use crate::flags::CommonFlags;

pub(super) async fn run(
    socket: &Path,
    command: &[OsString],
    common: &CommonFlags,
) -> Result<ExitCode, Failure> {
    let signals = PassingOn::listen().map_err(unwaited)?;
    // The command may go to other folders.
    let socket = std::path::absolute(socket)
        .map_err(|cause| Failure::read(&socket.display().to_string(), &cause))?;
    let address = Address::of_path(&socket);
    // Before the command finds out: it would be told of a kernel without SCTP.
    address.status().map_err(|cause| unjoined(&socket, &cause))?;
    let library = Library::new().map_err(without_library)?;
    // What the command leaves behind needs the library for what it starts in turn, so this process stays
    // for as long as any of it runs.
    set_child_subreaper(Some(getpid())).map_err(|cause| unwaited(cause.into()))?;
    let mut child = spawn(command, library.path().as_os_str(), &address.value(), common)?;
    let status = signals.until_end(&mut child).await.map_err(unwaited)?;
    afterwards(&mut super::super::listen()?, without_children()).await?;
    Ok(ExitCode::from(code(status)))
}

/// Waits until no process is left that came from the command.
async fn without_children() {
    let waited = tokio::task::spawn_blocking(|| {
        while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
    });
    // It is cancelled only with the runtime.
    let _ = waited.await;
}

/// Why nobody's sockets can be used.
pub(super) fn unjoined(socket: &Path, cause: &AskError) -> Failure {
    let failure = Failure::new(Kind::Connect, format!("{}: {cause}", socket.display()));
    match cause {
        AskError::Unreached(cause) if cause.kind() == std::io::ErrorKind::PermissionDenied => {
            failure.hint("eyas sctp serve --mode 660 or 666 lets others in")
        }
        AskError::Unreached(_) => failure.hint("eyas sctp serve --socket SOCKET serves there"),
        AskError::Silent(_) => failure.hint("does eyas serve there, and is it running?"),
        AskError::OtherVersion => failure.hint("use the same eyas here and for eyas sctp serve"),
    }
}
