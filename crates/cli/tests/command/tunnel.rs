//! Tests of `eyas tunnel`, with both ends on loopback.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::ports::own_port;
use crate::stage::{Eyas, Running, validate};

/// Starts a server that echoes everything at the end of each connection; returns its port.
pub(crate) fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.expect("a client");
                let mut received = Vec::new();
                // Some clients reset the connection.
                if stream.read_to_end(&mut received).is_ok() {
                    stream.write_all(&received).expect("writes");
                }
            });
        }
    });
    port
}

/// A server, and a client's key that it accepts, in one directory.
pub(crate) struct Ends {
    directory: TempDir,
    pub(crate) port: u16,
    pub(crate) sctp: u16,
}

impl Ends {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ends = Self { directory, port: own_port(), sctp: own_port() };
        ends.keygen("key.pem");
        ends
    }

    pub(crate) fn within(&self, line: &str) -> Eyas {
        Eyas::new(line).within(self.directory.path())
    }

    /// Generates a key, and authorizes it if it is the default one.
    fn keygen(&self, name: &str) -> String {
        let public_key = self.within(&format!("tunnel keygen --key {name}")).run().exits(0).out;
        if name == "key.pem" {
            fs::write(self.path("authorized_keys"), &public_key).expect("writes");
        }
        public_key
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn serve(&self) -> Running {
        self.serve_with(|serve| serve)
    }

    fn serve_with(&self, set: impl FnOnce(Eyas) -> Eyas) -> Running {
        let (port, sctp) = (self.port, self.sctp);
        let line = format!(
            "tunnel serve --listen {port} --sctp-udp-port {sctp} --key host.pem --authorized-keys \
             authorized_keys"
        );
        let running = set(self.within(&line)).start();
        running.wait_for_stderr("listening on");
        running
    }

    pub(crate) fn client(&self, flags: &str) -> Eyas {
        self.client_over("", flags)
    }

    /// Returns a client; `over` is the scheme with its transports.
    pub(crate) fn client_over(&self, over: &str, flags: &str) -> Eyas {
        let (port, sctp) = (self.port, self.sctp);
        let line = format!(
            "tunnel {over}127.0.0.1:{port} --sctp-udp-port {sctp} --key key.pem --known-hosts known {flags}"
        );
        self.within(&line)
    }
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("a file").permissions().mode() & 0o077 == 0
}

#[test]
fn standard_input_and_output_go_through() {
    let ends = Ends::new();
    let server = ends.serve();
    let to = format!("--stdio 127.0.0.1:{}", echo());
    let finished = ends.client(&to).stdin("there and back\n").start().end().exits(0);
    assert_eq!(finished.out, "there and back\n");
    assert!(finished.err.contains("is a new server"), "{}", finished.err);
    for file in ["key.pem", "host.pem", "known"] {
        assert!(is_private(&ends.path(file)), "{file}");
    }
    // From now on the server is known.
    let to = format!("--strict --stdio 127.0.0.1:{}", echo());
    let finished = ends.client(&to).stdin("again\n").start().end().exits(0);
    assert_eq!((finished.out.as_str(), finished.err.as_str()), ("again\n", ""));
    let unused = format!("--stdio 127.0.0.1:{}", own_port());
    let refused = ends.client(&unused).run().exits(7);
    assert!(refused.err.contains("through the tunnel"), "{}", refused.err);
    server.signal("TERM");
    server.end().exits(0);
}

#[test]
fn unknown_keys_are_refused() {
    let ends = Ends::new();
    let other = ends.keygen("other.pem");
    let server = ends.serve();
    let to = "--stdio 127.0.0.1:1";
    let refused = ends.client(&format!("{to} --strict")).run().exits(60);
    assert!(refused.err.contains("is unknown"), "{}", refused.err);
    let refused = ends.client(&format!("{to} --host-key {other}")).run().exits(60);
    assert!(refused.err.contains("differs from the known one"), "{}", refused.err);
    fs::write(ends.path("authorized_keys"), other).expect("writes");
    let refused = ends.client(to).run().exits(58);
    assert!(refused.err.contains("authorized_keys must contain this line"), "{}", refused.err);
    assert!(!ends.path("known").exists(), "the key of a server that refuses us is not stored");
    server.signal("TERM");
    server.end().exits(0);
}

#[test]
fn keys_that_cannot_be_parsed_leave_the_former_ones_in_use() {
    let ends = Ends::new();
    let server = ends.serve();
    let to = format!("--stdio 127.0.0.1:{}", echo());
    let echoes = || ends.client(&to).stdin("hello\n").start().end().exits(0);
    echoes();
    fs::write(ends.path("authorized_keys"), "no key\n").expect("writes");
    server.signal("HUP");
    server.wait_for_stderr("the keys from before stay in use");
    echoes();
    // Without the file nobody may connect: that is how a key is withdrawn.
    fs::remove_file(ends.path("authorized_keys")).expect("removes");
    ends.client(&to).run().exits(58);
    server.signal("TERM");
    let finished = server.end().exits(0);
    assert_eq!(finished.err.matches("stay in use").count(), 1, "{}", finished.err);
}

#[test]
fn an_impossible_request_is_reported_with_a_reason() {
    let ends = Ends::new();
    let fails_with = |eyas: Eyas, code: i32, words: &str| {
        let refused = eyas.run().exits(code);
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    };
    fails_with(ends.within("tunnel keygen --key key.pem"), 23, "already exists");
    fails_with(ends.within("tunnel keygen"), 58, "neither XDG_CONFIG_HOME nor HOME is set");
    fails_with(ends.within("tunnel a.test -D 0 --key none"), 58, "eyas tunnel keygen");
    fails_with(ends.client(""), 2, "there is nothing to forward");
    fails_with(ends.client("-L 80:a"), 2, "[BIND:]PORT:HOST:PORT");
    fails_with(ends.client("-D 0"), 7, "cannot connect");
    fs::write(ends.path("authorized_keys"), "nonsense\n").expect("writes");
    let line = "tunnel serve -l 0 --key host.pem --authorized-keys authorized_keys";
    fails_with(ends.within(line), 58, "line 1");
    fs::write(ends.path("authorized_keys"), "").expect("writes");
    let server = ends.serve();
    server.wait_for_stderr("no one may connect yet");
    fails_with(
        ends.within(&format!(
            "tunnel serve -l {} --key host.pem --authorized-keys none",
            ends.port
        )),
        45,
        "",
    );
    server.signal("TERM");
    server.end().exits(0);
}

#[test]
fn status_shows_both_ends_and_their_traffic() {
    let ends = Ends::new();
    let unused = ends.within("tunnel status --json").run().exits(0).json();
    assert_eq!(unused["tunnels"].as_array().map(Vec::len), Some(0));
    let server = ends.serve();
    let (here, there) = (own_port(), echo());
    let client = ends.client(&format!("-L {here}:127.0.0.1:{there}")).start();
    client.wait_for_stderr("leads to");
    let mut open = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, here)).expect("it listens");
    open.write_all(&[7; 1000]).expect("writes");
    let status = || ends.within("tunnel status --json").run().exits(0).json();
    let of = |status: &serde_json::Value, role: &str| {
        let mut all = status["tunnels"].as_array().expect("a list").iter();
        all.find(|one| one["role"] == role).cloned().unwrap_or_default()
    };
    client.until("forwards the bytes, and is shown", || {
        let status = status();
        let (client, server) = (of(&status, "client"), of(&status, "server"));
        client["sessions"][0]["sent"] == 1000 && server["sessions"][0]["received"] == 1000
    });
    let status = status();
    validate("tunnel-status", &status);
    let (one, other) = (of(&status, "client"), of(&status, "server"));
    assert_eq!(one["name"], format!("127.0.0.1:{}", ends.port));
    assert_eq!(one["sessions"][0]["sent"], 1000);
    assert_eq!(one["sessions"][0]["transport"], other["sessions"][0]["transport"]);
    let channel = &one["sessions"][0]["busiest"][0];
    assert_eq!(
        (&channel["place"], &channel["own"]),
        (&format!("127.0.0.1:{there}").into(), &true.into())
    );
    assert_eq!(other["sessions"][0]["busiest"][0]["received"], 1000);
    let page = ends.within("tunnel status").run().exits(0).out;
    assert!(page.contains("LINE TO") && page.contains(&format!("to 127.0.0.1:{there}")), "{page}");
    for running in [client, server] {
        running.signal("TERM");
        running.end().exits(0);
    }
    let left = fs::read_dir(ends.path("eyas")).expect("a folder").count();
    assert_eq!(left, 0, "sockets are removed at the end");
}

/// Silent clients use at most a share of the descriptors, which are few here.
#[test]
fn silent_strangers_do_not_block_authorized_keys() {
    let ends = Ends::new();
    let server = ends.serve_with(|serve| serve.descriptors(48));
    let connect_silently =
        |_| TcpStream::connect((Ipv4Addr::LOCALHOST, ends.port)).expect("it listens");
    let silent_clients: Vec<TcpStream> = (0..100).map(connect_silently).collect();
    for over in ["tcp://", "quic://", "sctp-udp://"] {
        let to = format!("--stdio 127.0.0.1:{}", echo());
        let client = ends.client_over(over, &to).stdin("there and back\n");
        assert_eq!(client.start().end().exits(0).out, "there and back\n", "{over}");
    }
    drop(silent_clients);
    server.signal("TERM");
    server.end().exits(0);
}

#[test]
fn a_client_resumes_after_running_out_of_descriptors() {
    let ends = Ends::new();
    let server = ends.serve();
    let port = own_port();
    let flags = format!("-L {port}:127.0.0.1:{}", echo());
    let client = ends.client(&flags).descriptors(40).start();
    client.wait_for_stderr("leads to");
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    let connections: Vec<TcpStream> = (0..60).map(|_| connect()).collect();
    client.wait_for_stderr("no descriptors are left");
    drop(connections);
    let mut program = connect();
    program.write_all(b"there and back").expect("writes");
    program.shutdown(Shutdown::Write).expect("ends");
    let mut finished = String::new();
    program.read_to_string(&mut finished).expect("reads");
    assert_eq!(finished, "there and back");
    for end in [client, server] {
        end.signal("TERM");
        end.end().exits(0);
    }
}

/// Starts a server that sends "hello" to each client, and keeps the connection; returns its port.
fn greeting() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.expect("a client");
                stream.write_all(b"hello\n").expect("writes");
                let _ = stream.read_to_end(&mut Vec::new());
                // Also after the client is done.
                std::thread::park();
            });
        }
    });
    port
}

/// ssh ends its ProxyCommand with SIGHUP, or by closing both ends.
#[test]
fn a_session_with_standard_streams_ends_when_it_is_interrupted() {
    let ends = Ends::new();
    let port = greeting();
    let to = format!("--stdio 127.0.0.1:{port}");
    let is_told = |server: Running| {
        server.signal("TERM");
        let printed = server.end().exits(0).err;
        assert!(!printed.contains("nothing was received"), "{printed}");
    };
    for over in ["tcp://", "quic://", "sctp-udp://"] {
        for (signal, code) in crate::output::endings() {
            let server = ends.serve();
            let client = ends.client_over(over, &to).stdin("anyone?").keep_stdin().start();
            client.wait_for_stdout("hello");
            client.signal(signal);
            server.wait_for_stderr("disconnected");
            client.end().exits(code);
            is_told(server);
        }
        let server = ends.serve();
        let mut command = ends.client_over(over, &to).command();
        let mut client = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut output = client.stdout.take().expect("a pipe");
        output.read_exact(&mut [0; 6]).expect("a greeting");
        drop(output);
        server.wait_for_stderr("disconnected");
        client.wait().expect("it ends");
        is_told(server);
    }
}
