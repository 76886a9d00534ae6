//! `eyas netem`: a command behind a bad network.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | run: the emulator, the server, the command, and their end |
//! | `network` | converting flags to a topology |
//! | `control` | changes and queries from other processes during a run |
//! | `page` | the packet counters as a table and as an object |

mod control;
mod network;
mod page;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use eyas_emulator::{
    Emulator, EmulatorCounters, EmulatorError, HostRole, LinkDirection, LinkSpec, Scenario,
    ScenarioEvent, become_root,
};
use rustix::process::Signal;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::child::{SignalForwarder, exit_code, forward, start_failure};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, NetemAction, NetemFlags, NetemRunFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};
use control::NetemControl;

/// How long to wait for the server to listen before the command is started.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take to end after SIGTERM before it is killed.
const SERVER_END_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a command, changes a run, or shows it.
pub(super) fn run(flags: NetemFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    match flags.action {
        NetemAction::Run(flags) => {
            let scenario = network::scenario(&flags)?;
            // This must happen before the runtime starts threads.
            become_root().map_err(emulator_failure)?;
            super::on_runtime(run_inside(&scenario, &flags, common))
        }
        NetemAction::Change(flags) => control::change(&flags, common).map(|()| ExitCode::SUCCESS),
        NetemAction::Show(flags) => control::show(&flags.which, common).map(|()| ExitCode::SUCCESS),
    }
}

/// Converts an error of the emulator to a failure.
pub(super) fn emulator_failure(cause: EmulatorError) -> Failure {
    Failure::new(kind_of(&cause), cause.to_string())
}

/// Returns whether the user or the emulator is at fault.
fn kind_of(cause: &EmulatorError) -> FailureKind {
    match cause {
        EmulatorError::Topology(_)
        | EmulatorError::Middlebox(_)
        | EmulatorError::NoSuchPath { .. } => FailureKind::Usage,
        _ => FailureKind::Emulator,
    }
}

fn wait_failure(cause: io::Error) -> Failure {
    Failure::new(FailureKind::Emulator, format!("cannot wait for the command: {cause}"))
}

fn capture_failure(file: &Path, cause: EmulatorError) -> Failure {
    match cause {
        EmulatorError::Capture(cause) => Failure::write(&file.display().to_string(), &cause),
        other => emulator_failure(other),
    }
}

/// Runs the command inside the emulated network until it ends.
async fn run_inside(
    scenario: &Scenario,
    flags: &NetemRunFlags,
    common: &CommonFlags,
) -> Result<ExitCode, Failure> {
    let emulator = Emulator::start(&scenario.topology).map_err(emulator_failure)?;
    if let Some(file) = &flags.pcapng {
        emulator.capture(None, file).map_err(|cause| capture_failure(file, cause))?;
    }
    let mut control = NetemControl::listen(&emulator).map_err(|cause| {
        Failure::new(FailureKind::Emulator, format!("cannot accept changes: {cause}"))
    })?;
    let mut server = match &flags.server {
        Some(line) => Some(serve(&emulator, line, common).await?),
        None => None,
    };
    let (program, arguments) = flags.command.split_first().ok_or_else(|| {
        Failure::new(FailureKind::Usage, "there is no command").hint("eyas netem run -- COMMAND")
    })?;
    // Set up before the command starts, so that no signal ends this run and leaves the command
    // behind.
    let mut signals = SignalForwarder::listen().map_err(wait_failure)?;
    let child = spawn(&emulator, HostRole::Client, program, arguments, common);
    let mut child = child.map_err(|cause| start_failure(program, &cause))?;
    let events = &scenario.events;
    let status =
        wait_for_command(&emulator, &mut child, &mut control, &mut signals, events).await?;
    let counters = emulator.counters().map_err(emulator_failure)?;
    if let Some(server) = &mut server {
        end(server).await;
    }
    let ended = emulator.end_capture();
    if let (Some(file), Err(cause)) = (&flags.pcapng, ended) {
        return Err(capture_failure(file, cause));
    }
    drop(emulator);
    print(&counters, status, flags, common)?;
    Ok(ExitCode::from(exit_code(status)))
}

/// Starts a command inside, with the address of its peer in its environment.
fn spawn(
    emulator: &Emulator,
    host: HostRole,
    program: &OsStr,
    arguments: &[impl AsRef<OsStr>],
    common: &CommonFlags,
) -> io::Result<Child> {
    let mut command = emulator.namespace(host).command(program);
    command.args(arguments).env("EYAS_NETEM", std::process::id().to_string());
    for host in HostRole::ALL {
        let path = &emulator.topology().paths[0];
        for address in path.addresses(host) {
            let suffix = if address.is_ipv6() { "6" } else { "" };
            let name = host.to_string().to_uppercase();
            command.env(format!("EYAS_{name}{suffix}"), address.to_string());
        }
    }
    if host == HostRole::Server {
        command.stdin(Stdio::null());
    }
    if common.json {
        // Standard output is reserved for the object.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let mut command = Command::from(command);
    command.kill_on_drop(true).spawn()
}

/// Starts the server, and waits until it listens.
async fn serve(emulator: &Emulator, line: &str, common: &CommonFlags) -> Result<Child, Failure> {
    let server = spawn(emulator, HostRole::Server, "sh".as_ref(), &["-c", line], common);
    let mut server = server.map_err(|cause| {
        Failure::new(FailureKind::Emulator, format!("cannot run sh for --server: {cause}"))
    })?;
    let namespace = emulator.namespace(HostRole::Server);
    let deadline = Instant::now() + SERVER_START_TIMEOUT;
    while Instant::now() < deadline && !namespace.is_listening().map_err(emulator_failure)? {
        if let Ok(Some(status)) = server.try_wait() {
            return Err(Failure::new(
                FailureKind::Emulator,
                format!("the server has ended: {status}"),
            )
            .hint("--server takes one line for sh; its output is on standard error"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(server)
}

/// Waits for the end of the command. Meanwhile the network changes as scheduled and as requested,
/// and signals are forwarded to the command, which decides how to handle them; only SIGTERM is
/// followed by a kill.
async fn wait_for_command(
    emulator: &Emulator,
    child: &mut Child,
    control: &mut NetemControl,
    signals: &mut SignalForwarder,
    events: &[ScenarioEvent],
) -> Result<ExitStatus, Failure> {
    let (started, mut events) = (Instant::now(), events.iter());
    let mut next = events.next();
    loop {
        let due = next.map(|event| started + event.at);
        tokio::select! {
            status = child.wait() => return status.map_err(wait_failure),
            next = signals.next() => next.forward(child),
            () = sleep_until(due.unwrap_or(started)), if due.is_some() => {
                if let Some(event) = next {
                    apply_event(emulator, event)?;
                }
                next = events.next();
            }
            Some(request) = control.next() => request.answer(emulator),
        }
    }
}

fn apply_event(emulator: &Emulator, event: &ScenarioEvent) -> Result<(), Failure> {
    let apply = |direction: &LinkDirection| {
        emulator.apply(&event.path, *direction, &event.spec).map_err(emulator_failure)
    };
    event.directions.iter().try_for_each(apply)
}

async fn end(server: &mut Child) {
    forward(server, Signal::TERM);
    if timeout(SERVER_END_TIMEOUT, server.wait()).await.is_err() {
        // If this fails, it is killed when its namespace ends.
        let _ = server.kill().await;
    }
}

fn print(
    counters: &EmulatorCounters,
    status: ExitStatus,
    flags: &NetemRunFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if common.json {
        let mut object = page::object(counters);
        object["command"] = json!({ "exit_code": exit_code(status) });
        return output::object(&object);
    }
    if !flags.quiet {
        let style = OutputStyle::of_stderr(common.color);
        let mut lines = vec![PaintedLine::new()];
        lines.extend(page::lines(counters, style));
        output::print_to_stderr(&lines, style);
    }
    Ok(())
}

/// Parses a link specification.
fn spec(flag: &str, text: &str) -> Result<LinkSpec, Failure> {
    let mut spec = LinkSpec::default();
    spec.read(text).map_err(|cause| invalid_flag(flag, &cause))?;
    Ok(spec)
}

fn invalid_flag(flag: &str, cause: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Usage, format!("{flag}: {cause}"))
        .hint("'eyas man guide netem' has every key; an example: --rate 10mbit --forward loss=1%")
}

/// Reports that a run was changed.
fn report_done(common: &CommonFlags, text: &str) -> Result<(), Failure> {
    if common.json {
        return output::object(&json!({ "changed": true }));
    }
    output::page(
        &[PaintedLine::new().with_span(Paint::Plain, text)],
        OutputStyle::of_stdout(common.color),
    )
}
