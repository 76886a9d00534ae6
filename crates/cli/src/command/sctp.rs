//! `eyas sctp`: SCTP sockets for programs, if the kernel has none.

mod capture;
mod join;
mod run;
mod serve;
mod start;
mod status;

use std::process::ExitCode;
use std::time::Duration;

use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_sctp_tokio::{ENCAPSULATION_PORT, direct_access};
use eyas_supervisor::{SctpEncapsulation, SctpSettings, SctpSockets, Supervisor};
use tokio::time::{Instant, sleep};

use super::interruption::InterruptionSignals;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, SctpAction, SctpCarrierFlags, SctpFlags};

/// How long associations whose programs have ended may take to shut down gracefully.
const GRACE: Duration = Duration::from_secs(5);
/// How often to check whether they have.
const RECHECK_AFTER: Duration = Duration::from_millis(10);

/// Executes the requested subcommand to its end.
pub(super) async fn run(flags: &SctpFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    match &flags.action {
        SctpAction::Run(flags) => match &flags.join {
            Some(socket) => join::run(socket, flags, common).await,
            None => run::run(flags, common).await,
        },
        SctpAction::Serve(flags) => serve::run(flags, common).await.map(|()| ExitCode::SUCCESS),
        SctpAction::Status(flags) => status::run(flags, common).map(|()| ExitCode::SUCCESS),
    }
}

fn settings(flags: &SctpCarrierFlags, serves: String) -> SctpSettings {
    let encapsulation = match flags.udp {
        Some(port) => SctpEncapsulation::Udp(port),
        None if flags.ip || direct_access().is_ok() => SctpEncapsulation::Ip,
        None => SctpEncapsulation::Udp(ENCAPSULATION_PORT),
    };
    let mut association = AssociationConfig::default();
    if let Some(options) = &flags.multipath {
        options.apply(&mut association);
    }
    SctpSettings { encapsulation, addresses: flags.local_address.clone(), association, serves }
}

/// Waits for what continues after the command, unless this process is interrupted.
async fn finish_unless_interrupted(
    interruption: &mut InterruptionSignals,
    rest: impl Future<Output = ()>,
) -> Result<(), Failure> {
    tokio::select! {
        () = rest => Ok(()),
        kind = interruption.next() => Err(Failure::new(kind, "interrupted")),
    }
}

/// Waits until the last associations have ended, but not for ever.
async fn until_associations_end(supervisor: &Supervisor<SctpSockets>) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until && supervisor.with_service(|sockets| sockets.associations() > 0) {
        sleep(RECHECK_AFTER).await;
    }
}

fn wait_failure(cause: std::io::Error) -> Failure {
    Failure::new(FailureKind::Connect, format!("cannot wait for it: {cause}"))
}
