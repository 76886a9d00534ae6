//! `eyas sctp run --join`: a command with the sockets of a supervisor for the machine or pod.

use std::path::Path;
use std::process::ExitCode;

use eyas_supervisor::{AskError, SupervisorAddress, is_in_shared_folder};
use rustix::io::Errno;
use rustix::process::{WaitOptions, geteuid, getpid, set_child_subreaper, wait};

use super::super::child::{SignalForwarder, exit_code};
use super::start::{CallInterception, start};
use super::{finish_unless_interrupted, wait_failure};
use crate::failure::{Failure, FailureKind};
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
    let address = SupervisorAddress::from_path(&socket);
    let server = address.server_user().map_err(|cause| join_failure(&socket, &cause))?;
    check_server(server, geteuid().as_raw(), &socket)?;
    // Check this first, because the command would only see a kernel without SCTP.
    address.status().map_err(|cause| join_failure(&socket, &cause))?;
    // Processes that the command leaves behind need the library for programs that they start, so
    // this process stays until they have ended.
    set_child_subreaper(Some(getpid())).map_err(|cause| wait_failure(cause.into()))?;
    let mut started = start(flags, &address, common)?;
    let status = signals.wait(&mut started.child).await.map_err(wait_failure)?;
    let rest = async {
        if let CallInterception::Trapped(trapped) = &started.interception {
            trapped.until_ended().await;
        }
        until_no_children().await;
    };
    finish_unless_interrupted(&mut super::super::listen()?, rest).await?;
    Ok(ExitCode::from(exit_code(status)))
}

/// Checks that the command does not trust somebody with its data who just took the name: a third
/// user, in a folder that anybody may write to.
fn check_server(server: u32, own: u32, socket: &Path) -> Result<(), Failure> {
    if server == 0 || server == own || !is_in_shared_folder(socket) {
        return Ok(());
    }
    let text = format!(
        "{}: user {server} serves there, in a folder that anybody may write to",
        socket.display()
    );
    Err(Failure::new(FailureKind::Connect, text)
        .hint("serve in a folder that only root or that user can write to, such as below /run"))
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
    let failure = Failure::new(FailureKind::Connect, format!("{}: {cause}", socket.display()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_user_is_trusted_only_in_a_folder_that_is_not_shared() {
        let shared = Path::new("/tmp/eyas/sctp");
        assert!(check_server(7, 7, shared).is_ok());
        assert!(check_server(0, 7, shared).is_ok());
        let failure = check_server(7, 0, shared).expect_err("anybody may have taken the name");
        assert_eq!(failure.kind, FailureKind::Connect);
        assert!(check_server(7, 0, Path::new("/usr/sctp")).is_ok());
    }
}
