//! The server: eyas itself as a separate process, in the server's host and on its own core.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use eyas_emulator::{Emulator, EmulatorError, HostRole, pin_thread};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;
use serde_json::Value;

use super::usage::HostUsage;
use crate::live::LiveError;

/// A certificate with a 2,048-bit RSA key, and the key. The key is public, so they prove nothing;
/// what is measured is the cost of RSA.
const CERTIFICATE: &[u8] = include_bytes!("rsa.cert.pem");
const KEY: &[u8] = include_bytes!("rsa.key.pem");

/// How a server authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum ServedIdentity {
    /// Not at all: no TLS.
    None,
    /// With an RSA certificate, as in 2016.
    Rsa,
    /// With an ECDSA certificate, which works with DTLS too.
    Ecdsa,
}

/// What to serve.
#[derive(Clone, Copy, Debug)]
pub(in crate::live) struct ServerParameters {
    /// The address to listen on; the server has its own host, so all ports are free.
    pub(in crate::live) listen: SocketAddr,
    pub(in crate::live) identity: ServedIdentity,
    pub(in crate::live) http3: bool,
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
enum ServerStartError {
    #[error(transparent)]
    Core(#[from] EmulatorError),
    #[error(transparent)]
    Program(#[from] io::Error),
    #[error("it has no output")]
    NoOutput,
    /// It has ended, with this on its standard error.
    #[error("{0}")]
    Ended(String),
}

/// A running server. Dropping it ends it; whatever kills the emulator's guard also kills the
/// server.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    receivers: Vec<Pid>,
    core: usize,
    /// The server reads them through this process.
    _files: Vec<File>,
}

impl ServerProcess {
    /// Starts the server on this core, and waits until it listens.
    pub(super) fn start(
        emulator: &Emulator,
        serve: &ServerParameters,
        core: usize,
    ) -> Result<Self, LiveError> {
        let inside = |cause: &dyn std::fmt::Display| {
            LiveError::Inside(format!("the server does not start: {cause}"))
        };
        let program = program()?;
        let mut command = emulator.namespace(HostRole::Server).command(program);
        command.args(["serve", "--json", "--no-files", "--alt-svc", "none"]);
        command.args(["--listen", &serve.listen.to_string()]);
        if !serve.http3 {
            command.arg("--no-h3");
        }
        let mut files = Vec::new();
        match serve.identity {
            ServedIdentity::None => {
                command.arg("--plain");
            }
            ServedIdentity::Rsa => {
                for (flag, pem) in [("--cert", CERTIFICATE), ("--key", KEY)] {
                    let (path, file) = in_memory(pem).map_err(|cause| inside(&cause))?;
                    command.arg(flag).arg(path);
                    files.push(file);
                }
            }
            // The server generates one.
            ServedIdentity::Ecdsa => {}
        }
        let mut child = spawn(&mut command, core).map_err(|cause| inside(&cause))?;
        if let Err(cause) = wait_until_listening(&mut child) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(inside(&cause));
        }
        let receivers = emulator.receivers().to_vec();
        Ok(Self { child, receivers, core, _files: files })
    }

    /// Returns what its host has used so far.
    pub(super) fn usage(&self) -> Result<HostUsage, LiveError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.and_then(|pid| HostUsage::now(pid, &self.receivers, self.core)).ok_or_else(|| {
            LiveError::Inside("the server has ended, or /proc does not show it".to_owned())
        })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns this program, if it can serve.
fn program() -> Result<PathBuf, LiveError> {
    let executable =
        std::env::current_exe().map_err(|cause| LiveError::Inside(cause.to_string()))?;
    match executable.file_stem().is_some_and(|name| name == "eyas") {
        true => Ok(executable),
        false => Err(LiveError::Inside(format!(
            "the server of this experiment is the program eyas, but this is {}: run it by \
             'eyas lab run'",
            executable.display(),
        ))),
    }
}

/// Creates an unnamed file, and returns the path at which children of this process can read it.
fn in_memory(content: &[u8]) -> io::Result<(PathBuf, File)> {
    let mut file = File::from(memfd_create("eyas-live", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    Ok((PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id())), file))
}

/// Starts a child on a core: it inherits the cores of the thread that starts it.
fn spawn(command: &mut Command, core: usize) -> Result<Child, ServerStartError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let starting = || {
        pin_thread(None, core)?;
        Ok(command.spawn()?)
    };
    std::thread::scope(|scope| match scope.spawn(starting).join() {
        Ok(started) => started,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Waits until the server reports that it is listening.
fn wait_until_listening(child: &mut Child) -> Result<(), ServerStartError> {
    let stdout = child.stdout.take().ok_or(ServerStartError::NoOutput)?;
    let first = serde_json::Deserializer::from_reader(stdout).into_iter::<Value>().next();
    if let Some(Ok(_)) = first {
        return Ok(());
    }
    let mut errors = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut errors);
    }
    Err(ServerStartError::Ended(errors.trim().to_owned()))
}
