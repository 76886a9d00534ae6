//! Tests of `eyas proxy`, alone and with unmodified programs.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stage::{Eyas, Served, leave_descriptors, validate};

/// The limit for everything here; what takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Parses the printed objects, one per line.
fn objects(out: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {out}"));
    let objects: Vec<Value> = out.lines().map(read).collect();
    for object in &objects {
        validate("proxy-connection", object);
    }
    objects
}

/// Returns whether a program exists; reports if not.
fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: there is no {program} here");
    }
    found
}

/// A proxy in a separate process, killed when dropped.
struct Proxy {
    child: Child,
    address: SocketAddr,
    object: Value,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Proxy {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.next().expect("it prints its address").expect("reads");
        let object: Value = serde_json::from_str(&line).expect("an object");
        validate("proxy", &object);
        let address = object["address"].as_str().expect("an address").parse().expect("parses");
        Self { child, address, object, lines }
    }

    fn with(flags: &str) -> Self {
        Self::start(Eyas::new(&format!("proxy --json -l 127.0.0.1:0 {flags}")).command())
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("a line").expect("reads");
        objects(&line).remove(0)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(HANGS)).expect("a time");
        stream
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}

#[test]
fn a_command_has_its_own_proxy() {
    if !is_installed("curl") {
        return;
    }
    let served = Served::start(Eyas::new("serve --no-files"));
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let fetch = |url: &str, won_by: &str, protocol: &str| {
        let run = Eyas::new("proxy run --json -- curl -sSk").arg(url).run().exits(0);
        assert_eq!(run.err.len(), 5, "{}", run.err);
        let [line] = &objects(&run.out)[..] else { panic!("{}", run.out) };
        assert_eq!((&line["protocol"], &line["won_by"]), (&protocol.into(), &won_by.into()));
        assert_eq!(line["connection"]["transport"], "tcp");
    };
    fetch(&format!("https://{}/bytes/5", served.address), "first-byte", "connect");
    fetch(&format!("http://{}/bytes/5", plain.address), "transport", "http");
}

#[test]
fn python_finds_the_proxy() {
    if !is_installed("python3") {
        return;
    }
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let url = format!("http://{}/bytes/5", plain.address);
    let program = format!("import urllib.request as r; print(len(r.urlopen('{url}').read()))");
    let run = Eyas::new("proxy run --explain python3 -c").arg(program).run().exits(0);
    assert_eq!(run.out, "5\n");
    assert!(run.err.contains(&format!("{}  tcp", plain.address)), "{}", run.err);
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
}

/// A stand-in for Node that prints this version, and connects to nothing.
fn node(folder: &Path, version: &str) {
    program(&folder.join("node"), &format!("#!/bin/sh\necho {version}\n"));
}

#[test]
fn a_program_that_connects_past_the_proxy_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = || format!("{}:/usr/bin:/bin", folder.path().display());
    node(folder.path(), "v20.20.2");
    let run = Eyas::new("proxy run -- node tool.js").env("PATH", path()).run().exits(0);
    assert!(run.err.contains("Node v20.20.2 reads no proxy variables"), "{}", run.err);
    assert!(run.err.contains("--all-traffic"), "{}", run.err);
    // A script finds its Node as it does without eyas.
    let script = folder.path().join("tool");
    program(&script, "#!/usr/bin/env node\n");
    let run = Eyas::new("proxy run -- tool").env("PATH", path()).run().exits(0);
    assert!(run.err.contains("Node v20.20.2 reads no proxy variables"), "{}", run.err);
    node(folder.path(), "v24.5.0");
    let run = Eyas::new("proxy run -- node tool.js").env("PATH", path()).run().exits(0);
    assert_eq!(run.err, "");
}

#[test]
fn who_wants_to_know_is_told_that_the_proxy_was_not_used() {
    let unused = "sh made no connection through the proxy";
    let run = Eyas::new("proxy run --explain -- sh -c true").run().exits(0);
    assert!(run.err.contains(unused) && run.err.contains("--all-traffic"), "{}", run.err);
    let run = Eyas::new("proxy run -- sh -c").arg("exit 7").run().exits(7);
    assert!(run.err.contains(unused), "{}", run.err);
    let run = Eyas::new("proxy run -- sh -c true").run().exits(0);
    assert_eq!(run.err, "");
}

/// As with `eyas proxy run --explain … 2>&1 | head`.
#[test]
fn a_run_whose_lines_nobody_reads_ends_as_its_program() {
    if !is_installed("python3") {
        return;
    }
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let url = format!("http://{}/bytes/5", plain.address);
    // One connection after another: the first lines are written, and cannot be, before the last.
    let program = format!(
        "import time, urllib.request as r\nfor _ in range(10): r.urlopen('{url}').read(); time.sleep(0.1)"
    );
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Eyas::new("proxy run --explain python3 -c").arg(program).command();
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status();
    assert_eq!(ended.expect("it starts").code(), Some(0));
}

/// ```text
/// ::1        accepts, and stays silent
/// 127.0.0.1  answers
/// ```
#[test]
fn curl_gets_past_a_server_that_accepts_and_stays_silent() {
    if !is_installed("curl") {
        return;
    }
    let served = Served::start(Eyas::new("serve --no-files --no-h3 --no-sctp"));
    let port = served.address.port();
    let _silent = TcpListener::bind(("::1", port)).expect("the port is free");
    let run = Eyas::new("proxy run --json --resolve")
        .arg(format!("name.test:{port}:::1,127.0.0.1"))
        .arg("curl")
        .arg("-sSk")
        .arg(format!("https://name.test:{port}/bytes/5"))
        .run()
        .exits(0);
    let [line] = &objects(&run.out)[..] else { panic!("{}", run.out) };
    assert_eq!(line["connection"]["address"], format!("127.0.0.1:{port}"));
    assert_eq!(line["won_by"], "first-byte");
    let silent = &line["attempts"][0];
    assert_eq!(
        (&silent["address"], &silent["level"]),
        (&format!("[::1]:{port}").into(), &"transport".into())
    );
}

#[test]
fn the_exit_status_is_the_commands() {
    for (command, code) in
        [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("test -n \"$EYAS_PROXY\"", 0)]
    {
        Eyas::new("proxy run -- sh -c").arg(command).run().exits(code);
    }
    Eyas::new("proxy run /no/such/command").run().exits(127);
    Eyas::new("proxy run /").run().exits(126);
    Eyas::new("proxy run").run().exits(2);
}

#[test]
fn signals_go_to_the_command() {
    let running = Eyas::new("proxy run -- sh -c")
        .arg("trap 'exit 5' TERM; echo up >&2; while :; do sleep 0.05; done")
        .start();
    running.wait_for_stderr("up");
    running.signal("TERM");
    running.end().exits(5);
}

#[test]
fn an_open_proxy_is_refused() {
    let refused = Eyas::new("proxy -l 0.0.0.0:0").run().exits(2);
    assert!(refused.err.contains("--users FILE"), "{}", refused.err);
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    std::fs::write(
        &users, "invalid
",
    )
    .expect("writes");
    let refused = Eyas::new("proxy -l 0.0.0.0:0 --users").arg(&users).run().exits(2);
    assert!(refused.err.contains("line 1 is not NAME:PASSWORD"), "{}", refused.err);
    Eyas::new("proxy --users /no/such/file").run().exits(26);
}

#[test]
fn users_must_authenticate() {
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    std::fs::write(&users, "ada:lace\n").expect("writes");
    let mut proxy = Proxy::with(&format!("--users {}", users.display()));
    assert_eq!(proxy.object["users"], true);
    let mut anonymous = proxy.connect();
    anonymous.write_all(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n").expect("writes");
    let mut stderr = String::new();
    anonymous.read_to_string(&mut stderr).expect("reads");
    assert!(stderr.starts_with("HTTP/1.1 407 "), "{stderr}");
    drop(anonymous);
    assert_eq!(proxy.next()["refusal"], "no-user");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut ada = proxy.connect();
    ada.write_all(b"\x05\x01\x02\x01\x03ada\x04lace\x05\x01\x00\x01\x7f\x00\x00\x01")
        .expect("writes");
    ada.write_all(&port.to_be_bytes()).expect("writes");
    let mut reply = [0; 14];
    ada.read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[..6], [5, 2, 1, 0, 5, 0]);
    ada.write_all(b"x").expect("writes");
    let (mut far, _) = listener.accept().expect("it connects");
    far.read_exact(&mut [0]).expect("data from ada");
    drop((ada, far));
    let line = proxy.next();
    assert_eq!((&line["user"], &line["sent"]), (&"ada".into(), &1.into()));
}

#[test]
fn it_stops_on_a_signal() {
    let proxy = Proxy::with("");
    let id = proxy.child.id().to_string();
    Command::new("kill").args(["-s", "TERM", &id]).status().expect("kill is there");
    let mut proxy = proxy;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = proxy.child.try_wait().expect("a child") {
            break status;
        }
        assert!(started.elapsed() < HANGS, "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
}

//= hostile proxy
//# more clients than descriptors
//= bound: `within`
/// Clients are limited to the descriptors that there are, so that each has what its connection takes.
#[test]
fn each_client_finds_the_descriptors_for_its_destination() {
    let eyas = Eyas::new("proxy --json --memory none -l 127.0.0.1:0").descriptors(256);
    let mut proxy = Proxy::start(eyas.command());
    let mut stderr = BufReader::new(proxy.child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("reads");
    assert!(line.contains("allows 56 clients at a time instead of 4096"), "{line}");
    let destination = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = destination.local_addr().expect("an address").port().to_be_bytes();
    let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    request.extend(port);
    let mut clients: Vec<TcpStream> = (0..100).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        // What was too much is closed.
        let _ = client.write_all(&request);
    }
    let is_connected = |client: &mut TcpStream| {
        let mut reply = [0; 12];
        client.read_exact(&mut reply).is_ok() && reply[3] == 0
    };
    let connected: Vec<bool> = clients.iter_mut().map(is_connected).collect();
    assert_eq!(connected.iter().filter(|is_connected| **is_connected).count(), 56);
    drop(clients);
    proxy.child.kill().expect("a child");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("reads");
    assert!(!rest.contains("no descriptors are left"), "{rest}");
}

#[cfg(target_os = "linux")]
#[test]
fn accepting_resumes_after_running_out_of_descriptors() {
    let mut proxy = Proxy::with("--memory none");
    leave_descriptors(proxy.child.id(), 20);
    let connections: Vec<TcpStream> = (0..40).map(|_| proxy.connect()).collect();
    let mut stderr = BufReader::new(proxy.child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("reads");
    assert!(line.contains("no descriptors are left"), "{line}");
    drop(connections);
    let mut client = proxy.connect();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("writes");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("reads");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}
