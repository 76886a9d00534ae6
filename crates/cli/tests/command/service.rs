//! Tests of servers that run for long: files that are loaded again, logs that are rotated, and service managers.

mod balancer;
mod log;
mod manager;
mod reload;
mod units;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use eyas::ServerIdentity;

use crate::ports::own_port;
use crate::stage::{Eyas, Running};

/// What the server says when a file cannot be loaded.
const STAYS: &str = "the former one stays in use";

/// A server in a directory, at a port of its own.
struct Server {
    directory: tempfile::TempDir,
    port: u16,
    running: Running,
}

impl Server {
    /// Starts it with these flags; `prepare` creates its files.
    fn start(flags: &str, prepare: impl FnOnce(&Path)) -> Self {
        Self::start_with(flags, prepare, |eyas| eyas)
    }

    fn start_with(
        flags: &str,
        prepare: impl FnOnce(&Path),
        set: impl FnOnce(Eyas) -> Eyas,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        prepare(directory.path());
        let port = own_port();
        // A gateway has no files.
        let files = if flags.contains("--upstream") { "" } else { "--no-files" };
        let line = format!("serve {files} --no-sctp -l 127.0.0.1:{port} {flags}");
        let running = set(Eyas::new(&line).within(directory.path())).start();
        running.wait_for_stdout("listening");
        Self { directory, port, running }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Returns a command line that gets a few bytes.
    fn get(&self, flags: &str) -> Eyas {
        let line = format!("get {flags} https://localhost:{}/bytes/5", self.port);
        Eyas::new(&line).within(self.directory.path())
    }

    /// Sends a request without TLS, and returns the response.
    fn ask(&self, text: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens");
        stream.write_all(text.as_bytes()).expect("sends");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn stop(self) {
        self.running.signal("TERM");
        self.running.end().exits(0);
    }
}

/// Writes a certificate for these names and its key, `NAME.pem` and `NAME.key`.
fn certificate(directory: &Path, name: &str, names: &[&str]) -> ServerIdentity {
    let identity = ServerIdentity::self_signed(names.to_vec()).expect("an identity");
    let pem = identity.certificate_pem().expect("PEM");
    fs::write(directory.join(format!("{name}.pem")), pem).expect("writes");
    let key = identity.key_pem().expect("PEM");
    fs::write(directory.join(format!("{name}.key")), key).expect("writes");
    identity
}

const GET: &str = "GET /bytes/5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
