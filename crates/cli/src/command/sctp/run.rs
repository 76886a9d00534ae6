//! `eyas sctp run`: a command with a stack of its own.

use std::process::ExitCode;

use eyas_supervisor::{Library, Place, Sockets};

use super::super::child::{PassingOn, code};
use super::{afterwards, capture, ended, settings, spawn, unwaited, without_library};
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
            .hint("--udp needs no rights; --ip takes root or CAP_NET_RAW")
    })?;
    let library = Library::new().map_err(without_library)?;
    let path = library.path();
    let mut child = spawn(&flags.command, path.as_os_str(), supervisor.address(), common)?;
    let status = signals.until_end(&mut child).await.map_err(unwaited)?;
    // What the command has started may go on without it.
    let left = afterwards(&mut super::super::listen()?, supervisor.until_unused()).await;
    supervisor.end();
    ended(&supervisor).await;
    capture::finish(capture, file, common)?;
    left.map(|()| ExitCode::from(code(status)))
}
