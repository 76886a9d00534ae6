//! `eyas sctp run`: a command with its own SCTP stack.

use std::process::ExitCode;

use eyas_supervisor::{SctpSockets, SupervisorAddress, SupervisorPlace};

use super::super::child::{SignalForwarder, exit_code};
use super::super::descriptors;
use super::start::{CallInterception, start};
use super::{capture, finish_unless_interrupted, settings, until_associations_end, wait_failure};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, SctpRunFlags};

pub(super) async fn run(flags: &SctpRunFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    // Set up before anything is started.
    let signals = SignalForwarder::listen().map_err(wait_failure)?;
    let words: Vec<_> = flags.command.iter().map(|word| word.to_string_lossy()).collect();
    let settings = settings(&flags.carrier, words.join(" "));
    let file = flags.carrier.capture.as_deref();
    let capture = capture::create(file)?;
    let served = SctpSockets::serve(&settings, &SupervisorPlace::Private, capture.as_ref());
    let supervisor = served.map_err(|cause| {
        Failure::new(FailureKind::Listen, format!("cannot carry SCTP: {cause}"))
            .hint("--udp needs no privileges; --ip requires root or CAP_NET_RAW")
    })?;
    let address =
        SupervisorAddress::parse(supervisor.address()).expect("a supervisor's own address");
    let mut started = start(flags, &address, common)?;
    // Only now, because programs that use `select` rely on the limit that they inherit.
    descriptors::raise_limit();
    let status = signals.wait(&mut started.child).await.map_err(wait_failure)?;
    // What the command has started may continue without it.
    let rest = async {
        if let CallInterception::Trapped(trapped) = &started.interception {
            trapped.until_ended().await;
        }
        supervisor.until_unused().await;
    };
    let outcome = finish_unless_interrupted(&mut super::super::listen()?, rest).await;
    supervisor.end();
    until_associations_end(&supervisor).await;
    capture::finish(capture, file, common)?;
    outcome.map(|()| ExitCode::from(exit_code(status)))
}
