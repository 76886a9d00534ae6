//! Tests of `eyas proxy run --all-traffic`, with programs that ignore the environment. Where this
//! user cannot create namespaces, they are skipped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::netem::{is_possible, signal, until};
use crate::stage::{Eyas, Served, validate};

/// Runs a Python program, which ignores the environment, and returns the lines of the proxy.
fn python(flags: &str, program: &str) -> Vec<Value> {
    let eyas = Eyas::new(&format!("proxy run --all-traffic --json --memory none {flags} --"));
    let run = eyas.arg("python3").arg("-c").arg(program).run().exits(0);
    let read = |line| serde_json::from_str(line).expect("an object");
    let objects: Vec<Value> = run.out.lines().map(read).collect();
    objects.iter().for_each(|object| validate("proxy-connection", object));
    objects
}

/// ```text
/// ::1        no listener
/// 127.0.0.1  answers
/// ```
#[test]
fn a_name_and_an_address_are_reached_without_any_variable() {
    if !is_possible() {
        return;
    }
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let port = plain.address.port();
    let program = format!(
        "import socket, urllib.request as r\n\
         where = {{a[0] for *_, a in socket.getaddrinfo('name.test', {port})}}\n\
         assert where == {{'198.19.1.0', 'fd65:7961:7300:1::'}}, where\n\
         for ip in sorted(where):\n\
         \x20   s = socket.create_connection((ip, {port}))\n\
         \x20   s.sendall(b'GET /bytes/5 HTTP/1.0\\r\\n\\r\\n')\n\
         \x20   assert b' 200 ' in s.makefile('rb').readline(), ip\n\
         assert len(r.urlopen('http://name.test:{port}/bytes/2000000').read()) == 2000000\n"
    );
    let lines = python(&format!("--resolve name.test:{port}:::1,127.0.0.1"), &program);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for line in &lines {
        assert_eq!(line["protocol"], "intercepted");
        assert_eq!(line["destination"], format!("name.test:{port}"));
        assert_eq!(line["connection"]["address"], format!("127.0.0.1:{port}"));
    }
}

/// ```text
/// 127.0.0.1, ::1  the port of a server outside, and one at which nothing listens
/// ```
#[test]
fn a_port_of_this_machine_is_reached_where_it_is_named() {
    if !is_possible() {
        return;
    }
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let (port, other) = (plain.address.port(), crate::ports::own_port());
    let program = format!(
        "import socket, urllib.request as r\n\
         assert len(r.urlopen('http://127.0.0.1:{port}/bytes/3000000').read()) == 3000000\n\
         assert len(r.urlopen('http://localhost:{port}/bytes/5').read()) == 5\n\
         s = socket.create_connection(('127.0.0.1', {other}))\n\
         try: assert False, s.recv(1)\n\
         except ConnectionResetError: pass\n"
    );
    // Rules are for what leaves the namespace by itself.
    let flags = format!("--host-port {port} --host-port {other} --deny 127.0.0.0/8 --deny [::1]");
    let lines = python(&flags, &program);
    // Each line is written when its connection ends, and the last two end together.
    let mut ends: Vec<&str> = lines.iter().filter_map(|line| line["end"].as_str()).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["done", "done", "refused"], "{lines:#?}");
    assert!(lines.iter().all(|line| line["protocol"] == "intercepted"), "{lines:#?}");
    Eyas::new("proxy run --host-port 5432 true").run().exits(2);
}

#[test]
fn a_program_gets_the_cause_of_a_failed_connection() {
    if !is_possible() {
        return;
    }
    let port = crate::ports::own_port();
    let program = format!(
        "import errno, socket\n\
         def error(host, port):\n\
         \x20   try: socket.create_connection((host, port))\n\
         \x20   except OSError as error: return error.errno\n\
         assert error('name.test', {port}) == errno.ECONNREFUSED\n\
         assert error('192.0.2.1', 7) in (errno.EHOSTUNREACH, errno.EACCES)\n\
         udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         udp.connect(('192.0.2.1', 443))\n\
         udp.send(b'quic')\n\
         try: udp.recv(9)\n\
         except ConnectionRefusedError: pass\n\
         local = socket.create_server(('127.0.0.1', 0))\n\
         socket.create_connection(local.getsockname())\n"
    );
    let flags = format!("--resolve name.test:{port}:127.0.0.1 --deny 192.0.2.0/24");
    let lines = python(&flags, &program);
    let ends: Vec<&Value> = lines.iter().map(|line| &line["end"]).collect();
    assert!(ends.len() >= 2 && ends.iter().all(|end| **end == "refused"), "{lines:#?}");
}

#[test]
fn the_command_keeps_its_user_and_its_status_is_passed_on() {
    if !is_possible() {
        return;
    }
    let run =
        Eyas::new("proxy run --all-traffic -- sh -c").arg("id -u; pwd; exit 7").run().exits(7);
    let id = std::process::Command::new("id").arg("-u").output().expect("id is there").stdout;
    let id = String::from_utf8(id).expect("a number");
    let current_directory = std::env::current_dir().expect("a directory");
    assert_eq!(run.out, format!("{id}{}\n", current_directory.display()));
    Eyas::new("proxy run --all-traffic -- no-such-command").run().exits(127);
}

/// Starts a run whose command leaves a process behind, and returns the id of that process.
fn start_with_background_process(rest: &str) -> (Child, u32) {
    let line = format!("sleep 1000 & echo $!; {rest}");
    start(Eyas::new("proxy run --all-traffic -- sh -c").arg(line))
}

/// Starts a run that prints the id of a process, and returns both.
fn start(eyas: Eyas) -> (Child, u32) {
    let mut child = eyas.command().stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut first_line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut first_line).expect("it prints a line");
    (child, first_line.trim().parse().expect("a number"))
}

fn is_gone(id: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // A zombie has ended, too.
    state.is_empty() || state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}

#[test]
fn nothing_remains_however_the_command_ends() {
    if !is_possible() {
        return;
    }
    let (mut ended, background_process) = start_with_background_process("exit 0");
    assert!(ended.wait().expect("a status").success());
    until("the background process has ended", || is_gone(background_process));
    for how in ["-INT", "-TERM", "-KILL"] {
        let (mut run, background_process) = start_with_background_process("wait");
        signal(how, run.id());
        run.wait().expect("a status");
        until("the command has ended", || is_gone(background_process));
    }
    // Only the outer one is ended; the inner one has a namespace and a guard of its own.
    let nested = format!("{} proxy run --all-traffic -- sh -c", env!("CARGO_BIN_EXE_eyas"));
    for how in ["-TERM", "-KILL"] {
        let inner = "sleep 1000 & echo $!; wait";
        let eyas = Eyas::new("proxy run --all-traffic -- sh -c").arg(format!("{nested} '{inner}'"));
        let (mut run, background_process) = start(eyas);
        signal(how, run.id());
        run.wait().expect("a status");
        until("the inner command has ended", || is_gone(background_process));
    }
    let temporary = std::env::temp_dir();
    let mounted = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounted.contains(&format!("{}/.tmp", temporary.display())), "{mounted}");
}
