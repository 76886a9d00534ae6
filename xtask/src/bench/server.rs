//! A program that listens while others are measured against it, or while it is measured itself.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The program, running; ended with this.
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts it, and waits until something listens at that TCP address. What it says goes to
    /// `NAME.log` in the directory, and into the error if it does not listen.
    pub(super) fn start(
        name: &str,
        program: &Command,
        listens: SocketAddr,
        directory: &Path,
    ) -> Result<Self, String> {
        Self::start_until(name, program, directory, || TcpStream::connect(listens).is_ok())
    }

    /// The same for a program of which something else says that it listens.
    pub(super) fn start_until(
        name: &str,
        program: &Command,
        directory: &Path,
        is_ready: impl Fn() -> bool,
    ) -> Result<Self, String> {
        let said = directory.join(format!("{name}.log"));
        let log = fs::File::create(&said).map_err(|error| format!("{said:?}: {error}"))?;
        let spawned =
            mortal(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = spawned.map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut server = Self { child };
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline && server.lives() {
            if is_ready() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let said = fs::read_to_string(&said).unwrap_or_default();
        Err(format!("{name} does not listen; it said: {}", said.trim()))
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What cannot be ended has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same command, which does not outlive this program, not even when that is killed.
fn mortal(program: &Command) -> Command {
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
        let place = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let script = "import os, socket; s = socket.socket(); \
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
            s.bind(('127.0.0.1', int(os.environ['PORT']))); s.listen(); [s.accept() for _ in '123']; \
            input()";
        let mut python = Command::new("python3");
        python.args(["-c", script]).env("PORT", at.port().to_string());
        let server = Server::start("python", &python, at, place.path()).unwrap();
        assert!(TcpStream::connect(at).is_ok());
        drop(server);
        assert!(TcpStream::connect(at).is_err());
    }

    #[test]
    fn a_server_that_exits_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo no such thing >&2"]);
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let error = Server::start("sh", &shell, nowhere, place.path()).err().unwrap();
        assert_eq!(error, "sh does not listen; it said: no such thing");
    }
}
