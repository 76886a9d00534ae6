//! usrsctp, in a separate program: `interop/peers/rfc6458/peer.c`.

use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use eyas_emulator::HostRole;

use super::network::EmulatedNetwork;
use super::sctp::PORT;
use super::shared::{HostProgram, PairState, RunningPair};
use crate::live::LiveError;
use crate::situation::live::MultipathSetup;

/// The environment variable that names the program.
pub(super) const VARIABLE: &str = "EYAS_USRSCTP_PEER";
/// The buffer size in bytes if the plan does not specify one for the association.
const BUFFER: usize = 4 << 20;

/// Starts a receiver on the server's host, which listens when this returns.
pub(super) fn receive(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    pair: &mut RunningPair,
) -> Result<(), LiveError> {
    let local = list(&network.addresses_of(HostRole::Server));
    let args = ["listen", "--local", &local, "--arrivals"];
    let mut child = start(network, setup, HostRole::Server, &args, &["wait"])?;
    let stdout = child.stdout.take();
    pair.programs.push(HostProgram(child));
    let Some(stdout) = stdout else { return Ok(()) };
    let shared = pair.shared.clone();
    let (sender, listening) = sync_channel(1);
    pair.threads.push(network.thread(HostRole::Server, move || {
        read_output(&shared, BufReader::new(stdout), |_| {
            let _ = sender.send(());
        });
    })?);
    let _ = listening.recv();
    Ok(())
}

/// Parses the output of the receiver: first that it is ready, then how many bytes have arrived.
fn read_output(shared: &Arc<PairState>, stdout: impl std::io::BufRead, ready: impl Fn(())) {
    let mut total = 0;
    for line in stdout.lines() {
        let Ok(line) = line else { break };
        match line.parse::<u64>() {
            Ok(now) => {
                shared.arrived((now.saturating_sub(total)) as usize);
                total = now;
            }
            Err(_) if line == "ready" => ready(()),
            Err(_) => return shared.fail("the receiver", &line),
        }
    }
    shared.fail("the receiver", &"it has ended");
}

/// Starts a sender on the client's host.
pub(super) fn send(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    pair: &mut RunningPair,
) -> Result<(), LiveError> {
    let (local, remote) = (
        list(&network.addresses_of(HostRole::Client)),
        list(&network.addresses_of(HostRole::Server)),
    );
    let args = ["connect", "--local", &local, "--remote", &remote];
    let pour = format!("pour:{}:{}", setup.message(), setup.application.streams);
    let mut child = start(network, setup, HostRole::Client, &args, &[&pour])?;
    let stdout = child.stdout.take();
    pair.programs.push(HostProgram(child));
    let shared = pair.shared.clone();
    pair.threads.push(network.thread(HostRole::Client, move || {
        // It writes something only if it cannot continue.
        let line = stdout.and_then(|stdout| BufReader::new(stdout).lines().next());
        match line {
            Some(Ok(line)) => shared.fail("the sender", &line),
            _ => shared.fail("the sender", &"it has ended"),
        }
    })?);
    Ok(())
}

fn start(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    host: HostRole,
    args: &[&str],
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
    network
        .namespace(host)
        .command(program)
        .args(args)
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
