//! `eyas sctp`: SCTP sockets for programs, where the kernel has none.

mod capture;
mod join;
mod run;
mod serve;
mod status;

use std::ffi::{OsStr, OsString};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use eyas::sctp::protocol::config::{AssociationConfig, Multipath};
use eyas::sctp::{ENCAPSULATION_PORT, direct_access};
use eyas_supervisor::{Carrier, Settings, Sockets, Supervisor, local};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::child::not_run;
use super::interruption::Interruption;
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpAction, SctpCarrierFlags, SctpFlags};

/// What associations whose programs have gone get to end in order.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Does what is asked for, to its end.
pub(super) async fn run(flags: &SctpFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    match &flags.action {
        SctpAction::Run(flags) => match &flags.join {
            Some(socket) => join::run(socket, &flags.command, common).await,
            None => run::run(flags, common).await,
        },
        SctpAction::Serve(flags) => serve::run(flags, common).await.map(|()| ExitCode::SUCCESS),
        SctpAction::Status(flags) => status::run(flags, common).map(|()| ExitCode::SUCCESS),
    }
}

fn settings(flags: &SctpCarrierFlags, serves: String) -> Settings {
    let carrier = match flags.udp {
        Some(port) => Carrier::Udp(port),
        None if flags.ip || direct_access().is_ok() => Carrier::Ip,
        None => Carrier::Udp(ENCAPSULATION_PORT),
    };
    let mut association = AssociationConfig::default();
    association.multipath = flags.multipath.then(Multipath::default);
    Settings { carrier, addresses: flags.local_address.clone(), association, serves }
}

/// Starts a command under the library, told where its supervisor is.
fn spawn(
    command: &[OsString],
    library: &OsStr,
    address: &OsStr,
    common: &CommonFlags,
) -> Result<Child, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| {
        Failure::new(Kind::Usage, "there is no command").hint("eyas sctp run -- COMMAND")
    })?;
    let preload = preload(library, std::env::var_os("LD_PRELOAD"));
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command.env("LD_PRELOAD", preload).env(local::ENVIRONMENT, address);
    if common.json {
        // Standard output is for the objects alone.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    command.spawn().map_err(|cause| not_run(program, &cause))
}

/// The library, before those that the user has preloaded already.
fn preload(library: &OsStr, given: Option<OsString>) -> OsString {
    let mut all = library.to_owned();
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        all.push(":");
        all.push(given);
    }
    all
}

/// Waits for what goes on after the command, which an interruption of this process ends.
async fn afterwards(
    interruption: &mut Interruption,
    rest: impl Future<Output = ()>,
) -> Result<(), Failure> {
    tokio::select! {
        () = rest => Ok(()),
        kind = interruption.next() => Err(Failure::new(kind, "interrupted")),
    }
}

/// Waits until the last associations have ended, but not for ever.
async fn ended(supervisor: &Supervisor<Sockets>) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until && supervisor.with(|sockets| sockets.associations() > 0) {
        sleep(LOOK_AGAIN_AFTER).await;
    }
}

fn unwaited(cause: std::io::Error) -> Failure {
    Failure::new(Kind::Connect, format!("cannot wait for it: {cause}"))
}

fn without_library(cause: std::io::Error) -> Failure {
    Failure::new(Kind::Listen, format!("no library to preload: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_already_stays() {
        let ours = OsStr::new("/proc/1/fd/7");
        assert_eq!(preload(ours, None), "/proc/1/fd/7");
        assert_eq!(preload(ours, Some("".into())), "/proc/1/fd/7");
        assert_eq!(preload(ours, Some("a.so b.so".into())), "/proc/1/fd/7:a.so b.so");
    }
}
