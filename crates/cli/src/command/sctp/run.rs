//! `eyas sctp run`: a command with its own SCTP stack.

use std::process::ExitCode;

use eyas_supervisor::{Address, Place, Sockets};

use super::super::child::{PassingOn, code};
use super::super::descriptors;
use super::begin::{Reach, begin};
use super::{afterwards, capture, ended, settings, unwaited};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, SctpRunFlags};

pub(super) async fn run(flags: &SctpRunFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    // Before there is anything to be ended.
    let signals = PassingOn::listen().map_err(unwaited)?;
    let words: Vec<_> = flags.command.iter().map(|word| word.to_string_lossy()).collect();
    let settings = settings(&flags.carrier, words.join(" "));
    let file = flags.carrier.capture.as_deref();
    let capture = capture::begin(file)?;
    let served = Sockets::serve(&settings, &Place::Private, capture.as_ref());
    let supervisor = served.map_err(|cause| {
        Failure::new(Kind::Listen, format!("cannot carry SCTP: {cause}"))
            .hint("--udp needs no privileges; --ip requires root or CAP_NET_RAW")
    })?;
    let address = Address::parse(supervisor.address()).expect("a supervisor's own address");
    let mut begun = begin(flags, &address, common)?;
    // Not before: programs that use `select` rely on the limit that they were given.
    descriptors::raise_limit();
    let status = signals.until_end(&mut begun.child).await.map_err(unwaited)?;
    // What the command has started may continue without it.
    let rest = async {
        if let Reach::Trapped(trapped) = &begun.reach {
            trapped.until_ended().await;
        }
        supervisor.until_unused().await;
    };
    let left = afterwards(&mut super::super::listen()?, rest).await;
    supervisor.end();
    ended(&supervisor).await;
    capture::finish(capture, file, common)?;
    left.map(|()| ExitCode::from(code(status)))
}
