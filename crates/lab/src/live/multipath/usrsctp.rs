//! usrsctp, in a separate program: `interop/peers/rfc6458/peer.c`.

use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use super::course::{Course, Pair, Program};
use super::lines::Lines;
use super::sctp::PORT;
use crate::emulator::Host;
use crate::live::LiveError;
use crate::situation::live::MultipathSetup;

/// The environment variable that names the program.
pub(super) const VARIABLE: &str = "EYAS_USRSCTP_PEER";
/// The buffer size in bytes if the plan does not specify one for the association.
const BUFFER: usize = 4 << 20;

/// Starts a receiver on the server's host, which listens when this returns.
pub(super) fn receive(
    lines: &Lines,
    setup: &MultipathSetup,
    pair: &mut Pair,
) -> Result<(), LiveError> {
    let local = list(&lines.addresses_of(Host::Server));
    let words = ["listen", "--local", &local, "--arrivals"];
    let mut child = begin(lines, setup, Host::Server, &words, &["wait"])?;
    let said = child.stdout.take();
    pair.programs.push(Program(child));
    let Some(said) = said else { return Ok(()) };
    let course = pair.course.clone();
    let (sender, listening) = sync_channel(1);
    pair.threads.push(lines.thread(Host::Server, move || {
        follow(&course, BufReader::new(said), |_| {
            let _ = sender.send(());
        });
    })?);
    let _ = listening.recv();
    Ok(())
}

/// Parses the output of the receiver: first that it is ready, then how many bytes have arrived.
fn follow(course: &Arc<Course>, said: impl std::io::BufRead, ready: impl Fn(())) {
    let mut total = 0;
    for line in said.lines() {
        let Ok(line) = line else { break };
        match line.parse::<u64>() {
            Ok(now) => {
                course.arrived((now.saturating_sub(total)) as usize);
                total = now;
            }
            Err(_) if line == "ready" => ready(()),
            Err(_) => return course.fail("the receiver", &line),
        }
    }
    course.fail("the receiver", &"it has ended");
}

/// Starts a sender on the client's host.
pub(super) fn send(
    lines: &Lines,
    setup: &MultipathSetup,
    pair: &mut Pair,
) -> Result<(), LiveError> {
    let (local, remote) =
        (list(&lines.addresses_of(Host::Client)), list(&lines.addresses_of(Host::Server)));
    let words = ["connect", "--local", &local, "--remote", &remote];
    let pour = format!("pour:{}:{}", setup.message(), setup.application.streams);
    let mut child = begin(lines, setup, Host::Client, &words, &[&pour])?;
    let said = child.stdout.take();
    pair.programs.push(Program(child));
    let course = pair.course.clone();
    pair.threads.push(lines.thread(Host::Client, move || {
        // It writes something only if it cannot continue.
        let line = said.and_then(|said| BufReader::new(said).lines().next());
        match line {
            Some(Ok(line)) => course.fail("the sender", &line),
            _ => course.fail("the sender", &"it has ended"),
        }
    })?);
    Ok(())
}

fn begin(
    lines: &Lines,
    setup: &MultipathSetup,
    host: Host,
    words: &[&str],
    steps: &[&str],
) -> Result<Child, LiveError> {
    let program = std::env::var_os(VARIABLE).map(PathBuf::from);
    let program = program.filter(|program| program.is_file()).ok_or_else(|| {
        LiveError::Missing(format!(
            "{VARIABLE} does not name a program; interop/install builds one"
        ))
    })?;
    let buffer = setup.association.buffer.map_or(BUFFER, |buffer| buffer.0);
    let streams = setup.application.streams.to_string();
    lines
        .namespace(host)
        .command(program)
        .args(words)
        .args(["--port", &PORT.to_string(), "--streams", &streams, "--multipath", "--untuned"])
        .args(["--buffer", &buffer.to_string()])
        .args(steps)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|cause| LiveError::Testbed(format!("usrsctp's peer: {cause}")))
}

/// Returns the addresses separated by commas.
fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}
