//! Starts a command, with the library preloaded or with its calls intercepted by the kernel.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;

use eyas_supervisor::{
    CallTrap, PreloadedLibrary, ProgramLinkage, SupervisorAddress, TrappedProgram, local,
};
use tokio::process::{Child, Command};

use super::super::child::start_failure;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, SctpRunFlags};

/// A started command.
pub(super) struct StartedProgram {
    pub(super) child: Child,
    pub(super) interception: CallInterception,
}

/// How calls of the command are intercepted.
pub(super) enum CallInterception {
    /// By the preloaded library, which exists as long as this value.
    Preloaded { _library: PreloadedLibrary },
    /// By the kernel, which stops them.
    Trapped(TrappedProgram),
}

/// Starts the command with the address of its supervisor.
pub(super) fn start(
    flags: &SctpRunFlags,
    address: &SupervisorAddress,
    common: &CommonFlags,
) -> Result<StartedProgram, Failure> {
    let (program, arguments) = flags.command.split_first().ok_or_else(|| {
        Failure::new(FailureKind::Usage, "there is no command").hint("eyas sctp run -- COMMAND")
    })?;
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true).env(local::ENVIRONMENT, address.value());
    if common.json {
        // Standard output is reserved for the objects.
        command.stdout(Stdio::from(io::stderr()));
    }
    if flags.seccomp || needs_trap(program) {
        let trap = CallTrap::set(&mut command).map_err(|cause| trap_failure(program, &cause))?;
        let spawned = command.spawn();
        let trapped = trap.serve(address.clone());
        return match (spawned, trapped) {
            (Ok(child), Ok(trapped)) => {
                Ok(StartedProgram { child, interception: CallInterception::Trapped(trapped) })
            }
            (Err(cause), Ok(_)) => Err(start_failure(program, &cause)),
            (Err(cause), Err(why)) if why.kind() == io::ErrorKind::NotFound => {
                Err(start_failure(program, &cause))
            }
            (_, Err(why)) => Err(trap_failure(program, &why)),
        };
    }
    let library = PreloadedLibrary::new().map_err(library_failure)?;
    let preload = preload(library.path().as_os_str(), std::env::var_os("LD_PRELOAD"));
    let child = command.env("LD_PRELOAD", preload).spawn();
    let child = child.map_err(|cause| start_failure(program, &cause))?;
    Ok(StartedProgram { child, interception: CallInterception::Preloaded { _library: library } })
}

/// Returns whether a preloaded library cannot intercept the calls of a program.
fn needs_trap(program: &OsStr) -> bool {
    matches!(
        ProgramLinkage::from_program(program),
        Some(ProgramLinkage::Static | ProgramLinkage::Go | ProgramLinkage::Musl)
    )
}

/// Returns the value for preloading the library before those that the user preloads already.
fn preload(library: &OsStr, existing: Option<OsString>) -> OsString {
    let mut all = library.to_owned();
    if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
        all.push(":");
        all.push(existing);
    }
    all
}

fn library_failure(cause: io::Error) -> Failure {
    Failure::new(FailureKind::Listen, format!("no library to preload: {cause}"))
}

/// Returns the failure if the kernel cannot stop calls.
fn trap_failure(program: &OsStr, cause: &io::Error) -> Failure {
    let text = format!("cannot intercept the calls of {}: {cause}", program.to_string_lossy());
    let failure = Failure::new(FailureKind::Listen, text);
    match cause.kind() {
        io::ErrorKind::ResourceBusy => failure.hint(
            "calls are already intercepted: by another eyas sctp run --seccomp, or by the container",
        ),
        _ => failure
            .hint("it requires seccomp user notification: Linux 5.19, and a container that allows it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_preloads_are_kept() {
        let library = OsStr::new("/proc/1/fd/7");
        assert_eq!(preload(library, None), "/proc/1/fd/7");
        assert_eq!(preload(library, Some("".into())), "/proc/1/fd/7");
        assert_eq!(preload(library, Some("a.so b.so".into())), "/proc/1/fd/7:a.so b.so");
    }
}
