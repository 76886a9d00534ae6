//! Counts the system calls of a large body at each door of eyas: the command's clients and servers, and the packages
//! for Python and C.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::calls::{AfterClient, Calls, of_client, of_server, run_into_pipe};
use super::programs::Programs;
use super::speed::{FILE_SERVER, OUTPUTS, Output, VERSIONS, eyas, loopback, serve};
use crate::arena::Arena;
use crate::run::command;
use crate::server::Server;

/// Where a server of `/bytes/N` listens without TLS.
const PLAIN_SERVER: SocketAddr = loopback(7080);
const GATEWAY: SocketAddr = loopback(7444);
const PROXY: SocketAddr = loopback(7081);
const PEER: SocketAddr = loopback(7445);

/// The transports of `eyas pipe` and of the C library.
const TRANSPORTS: [&str; 2] = ["tcp", "quic"];

/// The calls at one door, for each megabyte of the body.
pub(super) struct Door {
    name: String,
    calls: Result<Calls, String>,
    megabytes: f64,
}

/// Counts at all doors.
pub(super) fn measure(programs: &Programs, arena: &Arena, bytes: u64) -> Result<Vec<Door>, String> {
    let doors = Doors { programs, directory: arena.directory(), bytes };
    let mut all = Vec::new();
    let mut add = |name: String, calls: Result<Calls, String>| {
        println!("{name}: {calls:?}");
        all.push(Door { name, calls, megabytes: bytes as f64 / 1e6 });
    };
    doors.http(&mut add)?;
    doors.relays(&mut add)?;
    doors.pipe(&mut add)?;
    Ok(all)
}

/// Takes the count of a door.
type Add<'a> = dyn FnMut(String, Result<Calls, String>) + 'a;

struct Doors<'a> {
    programs: &'a Programs,
    directory: &'a Path,
    bytes: u64,
}

impl Doors<'_> {
    fn url(&self, at: SocketAddr) -> String {
        format!("https://localhost:{}/bytes/{}", at.port(), self.bytes)
    }

    /// Counts at both ends of HTTP.
    fn http(&self, add: &mut Add<'_>) -> Result<(), String> {
        let ca = self.directory.join("ca.pem").to_string_lossy().into_owned();
        let server = serve(self.programs, self.directory, FILE_SERVER, &["--save-cert", &ca])?;
        let url = self.url(FILE_SERVER);
        for version in VERSIONS {
            for to in OUTPUTS {
                let client = eyas(self.programs, version, to, self.directory, &url);
                let name = format!("`eyas get`, {}, to {}", version.name, to.name());
                add(name, of_client(&client, self.directory));
            }
        }
        for version in VERSIONS {
            add(
                format!("`eyas serve`, {}", version.name),
                self.of_server(&server, || self.get(version, FILE_SERVER)),
            );
        }
        for version in VERSIONS {
            for (name, client) in [("Client", "client"), ("AsyncClient", "async-client")] {
                let version_option = version.eyas.trim_start_matches('-');
                let python = self.programs.python(&[client, version_option, &ca, &url]);
                let name = format!("Python, `{name}`, {}", version.name);
                add(name, of_client(&python, self.directory));
            }
        }
        Ok(())
    }

    fn get(&self, version: super::speed::Version, at: SocketAddr) -> Result<(), String> {
        let url = self.url(at);
        run_into_pipe(&eyas(self.programs, version, Output::Null, self.directory, &url))
    }

    /// Counts at a server that serves other clients later.
    fn of_server(
        &self,
        server: &Server,
        client: impl FnOnce() -> Result<(), String>,
    ) -> Result<Calls, String> {
        of_server(server, AfterClient::KeepsRunning, self.directory, client)
    }

    /// Counts at the gateway and the proxy.
    fn relays(&self, add: &mut Add<'_>) -> Result<(), String> {
        let _upstream = serve(self.programs, self.directory, PLAIN_SERVER, &["--plain"])?;
        let upstream = format!("http://{PLAIN_SERVER}");
        let gateway = serve(self.programs, self.directory, GATEWAY, &["--upstream", &upstream])?;
        for version in VERSIONS {
            add(
                format!("`eyas serve --upstream`, {}", version.name),
                self.of_server(&gateway, || self.get(version, GATEWAY)),
            );
        }
        let mut proxy = self.programs.eyas(&["proxy", "--memory", "none", "--listen"]);
        proxy.arg(PROXY.to_string());
        let proxy = Server::start("proxy", &proxy, PROXY, self.directory)?;
        let url = format!("http://{PLAIN_SERVER}/bytes/{}", self.bytes);
        for (name, scheme) in [("SOCKS", "socks5"), ("HTTP", "http")] {
            let through = format!("{scheme}://{PROXY}");
            let args = ["-s", "-f", "-o", "/dev/null", "-x", &through, &url];
            add(
                format!("`eyas proxy`, {name}"),
                self.of_server(&proxy, || run_into_pipe(&command("curl", &args))),
            );
        }
        Ok(())
    }

    /// Counts at both ends of `eyas pipe`, and at the C library, which reads what a pipe sends.
    fn pipe(&self, add: &mut Add<'_>) -> Result<(), String> {
        let body = self.directory.join("zeros");
        let made = fs::File::create(&body).and_then(|file| file.set_len(self.bytes));
        made.map_err(|error| format!("{body:?}: {error}"))?;
        for transport in TRANSPORTS {
            let target = format!("{transport}://localhost:{}", PEER.port());
            let mut receiving = self.programs.eyas(&["pipe", "-k", "--memory", "none", &target]);
            receiving.stdin(Stdio::null());
            let received = self.with_sender(&body, |_| of_client(&receiving, self.directory));
            add(format!("`eyas pipe`, receiving, {transport}"), received);
            let sent = self.with_sender(&body, |sender| {
                let then = AfterClient::Ends;
                of_server(sender, then, self.directory, || run_into_pipe(&receiving))
            });
            add(format!("`eyas pipe`, sending, {transport}"), sent);
            let mut c = Command::new(&self.programs.c);
            c.args([transport, &PEER.port().to_string()]).arg(self.certificate());
            let received = self.with_sender(&body, |_| of_client(&c, self.directory));
            add(format!("C, {transport}"), received);
        }
        Ok(())
    }

    fn certificate(&self) -> PathBuf {
        self.directory.join("pipe.pem")
    }

    /// Runs something while `eyas pipe` waits for a peer to send the file to.
    fn with_sender(
        &self,
        body: &Path,
        run: impl FnOnce(&Server) -> Result<Calls, String>,
    ) -> Result<Calls, String> {
        let mut sender = self.programs.eyas(&[""; 0]);
        let program = sender.get_program().to_string_lossy().into_owned();
        let line = format!(
            "exec '{program}' pipe --listen {PEER} --save-cert '{}' < '{}'",
            self.certificate().display(),
            body.display()
        );
        sender = command("sh", &["-c", &line]);
        let sender =
            Server::start_until("pipe", &sender, self.directory, || is_listening(PEER.port()))?;
        run(&sender)
    }
}

/// Returns whether a program listens at a TCP port, without connecting to it.
fn is_listening(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let at = format!(":{port:04X}");
    sockets.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).is_some_and(|it| it.ends_with(&at)) && words.get(3) == Some(&LISTEN)
    })
}

/// Returns a table with a row for each door.
pub(super) fn table(doors: &[Door]) -> String {
    let mut text = String::from(
        "| calls for each MB | all | futex | reading | writing |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for door in doors {
        let cells = match &door.calls {
            Ok(calls) => [calls.all, calls.futex, calls.reading, calls.writing]
                .map(|count| format!("{:.0}", count as f64 / door.megabytes)),
            Err(_) => [const { String::new() }; 4].map(|_| "–".to_owned()),
        };
        text.push_str(&format!("| {} | {} |\n", door.name, cells.join(" | ")));
    }
    text
}

/// Returns the doors at which nothing was counted, with the reasons; `None` if there are none.
pub(super) fn not_measured(doors: &[Door]) -> Option<String> {
    let reasons: String = doors
        .iter()
        .filter_map(|door| Some((&door.name, door.calls.as_ref().err()?)))
        .map(|(name, why)| format!("- {name}: {}\n", why.lines().next().unwrap_or_default()))
        .collect();
    (!reasons.is_empty()).then(|| format!("Not measured:\n\n{reasons}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_shown_for_each_megabyte() {
        let door = |name: &str, calls| Door { name: name.into(), calls, megabytes: 10.0 };
        let calls = Calls { all: 1000, futex: 26, reading: 700, writing: 4 };
        let doors = [door("get", Ok(calls)), door("C", Err("no\nsuch thing".into()))];
        let text = table(&doors);
        assert!(text.ends_with("| get | 100 | 3 | 70 | 0 |\n| C | – | – | – | – |\n"), "{text}");
        assert_eq!(not_measured(&doors).as_deref(), Some("Not measured:\n\n- C: no\n"));
        assert_eq!(not_measured(&doors[..1]), None);
    }

    #[test]
    fn a_listening_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(port));
        drop(listener);
        // A process that another test starts at this moment has it until it executes its program.
        while is_listening(port) {
            std::thread::yield_now();
        }
    }
}
