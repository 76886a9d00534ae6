//! Runs a command for the user: errors of starting it, its exit code, and signals for it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::failure::{Failure, FailureKind};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use unix::forward;
#[cfg(unix)]
pub(super) use unix::{SignalForwarder, exit_code};
#[cfg(windows)]
pub(super) use windows::{SignalForwarder, exit_code};

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
