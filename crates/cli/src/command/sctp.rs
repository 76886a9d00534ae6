//! `eyas sctp`: SCTP sockets for programs, where the kernel has none.

use std::ffi::{OsStr, OsString};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use eyas::sctp::protocol::config::{AssociationConfig, Multipath};
use eyas::sctp::{ENCAPSULATION_PORT, direct_access};
use eyas_supervisor::{Carrier, Library, Place, Settings, Sockets, Supervisor, local};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::child::{PassingOn, code, not_run};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpAction, SctpFlags, SctpRunFlags};

/// What associations whose programs have gone get to end in order.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Runs the command to its end.
pub(super) async fn run(flags: &SctpFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    let SctpAction::Run(flags) = &flags.action;
    let failed = |cause| Failure::new(Kind::Connect, format!("cannot wait for it: {cause}"));
    // Before there is anything to be ended.
    let signals = PassingOn::listen().map_err(failed)?;
    let settings = settings(flags);
    let supervisor = Sockets::serve(&settings, &Place::Private).map_err(|cause| {
        Failure::new(Kind::Listen, format!("cannot carry SCTP: {cause}"))
            .hint("--udp needs no rights; --ip takes root or CAP_NET_RAW")
    })?;
    let library = Library::new()
        .map_err(|cause| Failure::new(Kind::Listen, format!("no library to preload: {cause}")))?;
    let (program, arguments) = flags.command.split_first().ok_or_else(|| {
        Failure::new(Kind::Usage, "there is no command").hint("eyas sctp run -- COMMAND")
    })?;
    let preload = preload(library.path().as_os_str(), std::env::var_os("LD_PRELOAD"));
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command.env("LD_PRELOAD", preload).env(local::ENVIRONMENT, supervisor.address());
    if common.json {
        // Standard output is for the objects alone.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let mut child = command.spawn().map_err(|cause| not_run(program, &cause))?;
    let status = signals.until_end(&mut child).await.map_err(failed)?;
    // What the command has started may go on without it.
    supervisor.until_unused().await;
    ended(&supervisor).await;
    Ok(ExitCode::from(code(status)))
}

fn settings(flags: &SctpRunFlags) -> Settings {
    let carrier = match flags.udp {
        Some(port) => Carrier::Udp(port),
        None if flags.ip || direct_access().is_ok() => Carrier::Ip,
        None => Carrier::Udp(ENCAPSULATION_PORT),
    };
    let mut association = AssociationConfig::default();
    association.multipath = flags.multipath.then(Multipath::default);
    Settings { carrier, addresses: flags.local_address.clone(), association }
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

/// Waits until the last associations have ended, but not for ever.
async fn ended(supervisor: &Supervisor<Sockets>) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until
        && supervisor.with(|sockets| !sockets.status().associations.is_empty())
    {
        sleep(LOOK_AGAIN_AFTER).await;
    }
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
