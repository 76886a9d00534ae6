//! A command that begins: with the library preloaded, or with its calls stopped.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;

use eyas_supervisor::{Address, Library, Linkage, Trap, Trapped, local};
use tokio::process::{Child, Command};

use super::super::child::not_run;
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpRunFlags};

/// A command that has begun.
pub(super) struct Begun {
    pub(super) child: Child,
    pub(super) reach: Reach,
}

/// How calls of the command are intercepted.
pub(super) enum Reach {
    /// The library, which exists as long as this.
    Preloaded { _library: Library },
    /// The kernel stops them.
    Trapped(Trapped),
}

/// Starts the command with the address of its supervisor.
pub(super) fn begin(
    flags: &SctpRunFlags,
    address: &Address,
    common: &CommonFlags,
) -> Result<Begun, Failure> {
    let (program, arguments) = flags.command.split_first().ok_or_else(|| {
        Failure::new(Kind::Usage, "there is no command").hint("eyas sctp run -- COMMAND")
    })?;
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true).env(local::ENVIRONMENT, address.value());
    if common.json {
        // Standard output is reserved for the objects.
        command.stdout(Stdio::from(io::stderr()));
    }
    if flags.seccomp || is_out_of_reach(program) {
        let trap = Trap::set(&mut command).map_err(|cause| untrapped(program, &cause))?;
        let spawned = command.spawn();
        let trapped = trap.serve(address.clone());
        return match (spawned, trapped) {
            (Ok(child), Ok(trapped)) => Ok(Begun { child, reach: Reach::Trapped(trapped) }),
            (Err(cause), Ok(_)) => Err(not_run(program, &cause)),
            (Err(cause), Err(why)) if why.kind() == io::ErrorKind::NotFound => {
                Err(not_run(program, &cause))
            }
            (_, Err(why)) => Err(untrapped(program, &why)),
        };
    }
    let library = Library::new().map_err(without_library)?;
    let preload = preload(library.path().as_os_str(), std::env::var_os("LD_PRELOAD"));
    let child = command.env("LD_PRELOAD", preload).spawn();
    let child = child.map_err(|cause| not_run(program, &cause))?;
    Ok(Begun { child, reach: Reach::Preloaded { _library: library } })
}

/// Returns whether a preloaded library cannot intercept the calls of a program.
fn is_out_of_reach(program: &OsStr) -> bool {
    matches!(Linkage::of(program), Some(Linkage::Static | Linkage::Go | Linkage::Musl))
}

/// Returns the value for preloading the library before those that the user preloads already.
fn preload(library: &OsStr, given: Option<OsString>) -> OsString {
    let mut all = library.to_owned();
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        all.push(":");
        all.push(given);
    }
    all
}

fn without_library(cause: io::Error) -> Failure {
    Failure::new(Kind::Listen, format!("no library to preload: {cause}"))
}

/// Returns the failure if the kernel cannot stop calls.
fn untrapped(program: &OsStr, cause: &io::Error) -> Failure {
    let said = format!("cannot intercept the calls of {}: {cause}", program.to_string_lossy());
    let failure = Failure::new(Kind::Listen, said);
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
        let ours = OsStr::new("/proc/1/fd/7");
        assert_eq!(preload(ours, None), "/proc/1/fd/7");
        assert_eq!(preload(ours, Some("".into())), "/proc/1/fd/7");
        assert_eq!(preload(ours, Some("a.so b.so".into())), "/proc/1/fd/7:a.so b.so");
    }
}
