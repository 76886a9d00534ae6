//! A server that runs during a measurement of clients, or of the server itself.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The running program, which is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts it, and waits until something listens at that TCP address. Its standard error is written
    /// to `NAME.log` in the directory, and is part of the error if it does not listen.
    pub(crate) fn start(
        name: &str,
        program: &Command,
        listens: SocketAddr,
        directory: &Path,
    ) -> Result<Self, String> {
        Self::start_until(name, program, directory, || TcpStream::connect(listens).is_ok())
    }

    /// The same for a program whose readiness is determined otherwise.
    pub(crate) fn start_until(
        name: &str,
        program: &Command,
        directory: &Path,
        is_ready: impl Fn() -> bool,
    ) -> Result<Self, String> {
        let log_file = directory.join(format!("{name}.log"));
        let log = fs::File::create(&log_file).map_err(|error| format!("{log_file:?}:  {error}"))?;
        let spawned = with_parent_death_signal(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = spawned.map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut server = Self { child };
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline && server.is_running() {
            if is_ready() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = fs::read_to_string(&log_file).unwrap_or_default();
        Err(format!("{name} does not listen; its log: {}", log.trim()))
    }

    /// Returns its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it cannot be killed, it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the same command, killed when this program ends for any reason.
fn with_parent_death_signal(program: &Command) -> Command {
    let mut command = crate::run::command("setpriv", &["--pdeathsig", "KILL"]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_waited_for_and_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let script = "import os, socket; s = socket.socket(); \
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
            s.bind(('127.0.0.1', int(os.environ['PORT']))); s.listen(); [s.accept() for _ in '123']; \
            input()";
        let mut python = Command::new("python3");
        python.args(["-c", script]).env("PORT", at.port().to_string());
        let server = Server::start("python", &python, at, directory.path()).unwrap();
        assert!(TcpStream::connect(at).is_ok());
        drop(server);
        assert!(TcpStream::connect(at).is_err());
    }

    #[test]
    fn a_server_that_exits_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo no such thing >&2"]);
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let error = Server::start("sh", &shell, nowhere, directory.path()).err().unwrap();
        assert_eq!(error, "sh does not listen; its log: no such thing");
    }
}
