//! What a service manager sees, and the sockets that it passes.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::tunnel::{Ends, echo};

/// The socket of a service manager, and the messages that are left.
struct Manager(UnixDatagram);

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        Self(socket)
    }

    /// Returns the next message with this assignment.
    fn wait_for(&self, assignment: &str) -> String {
        loop {
            let mut message = [0; 1024];
            let length = self.0.recv(&mut message).expect("a message in time");
            let text = String::from_utf8_lossy(&message[..length]).into_owned();
            if text.lines().any(|line| line == assignment) {
                return text;
            }
        }
    }
}

#[test]
fn it_is_told_what_the_server_does() {
    let sockets = tempfile::tempdir().expect("a directory");
    let path = sockets.path().join("notify");
    let manager = Manager::listen(&path);
    let set = |eyas: Eyas| eyas.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let server = Server::start_with("--plain", |_| {}, set);
    let ready = manager.wait_for("READY=1");
    assert!(ready.contains(&format!("STATUS=serving on 127.0.0.1:{}", server.port)), "{ready}");
    manager.wait_for("WATCHDOG=1");
    server.running.signal("HUP");
    let reloading = manager.wait_for("RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(since.is_some_and(|micros| micros.parse::<u64>().is_ok()), "{reloading}");
    manager.wait_for("READY=1");
    server.running.signal("TERM");
    manager.wait_for("STOPPING=1");
    server.running.end().exits(0);
}

/// A manager that hangs must not keep the server from stopping: the queue of its socket is full after a few messages.
#[test]
fn a_server_stops_beside_a_service_manager_that_reads_nothing() {
    let sockets = tempfile::tempdir().expect("a directory");
    let path = sockets.path().join("notify");
    let manager = Manager::listen(&path);
    let filling = UnixDatagram::unbound().expect("a socket");
    filling.set_nonblocking(true).expect("a socket");
    while filling.send_to(b"STATUS=", &path).is_ok() {}
    let set = |eyas: Eyas| eyas.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "20000");
    let server = Server::start_with("--plain", |_| {}, set);
    server.running.signal("TERM");
    server.running.end().exits(0);
    drop(manager);
}

/// Runs the server with the first sockets as the service manager would pass them, and then does `work`.
fn with_sockets(flags: &str, tcp: OwnedFd, udp: Option<OwnedFd>, work: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a directory");
    let eyas = Eyas::new(flags);
    let of_server = eyas.command();
    let count = 1 + usize::from(udp.is_some());
    // The shell keeps its process id, which the server compares.
    let line = format!(
        "exec 3<&0 4<&1 </dev/null >out; LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES=web:quic \
         EYAS_MEMORY=none exec \"$0\" \"$@\""
    );
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).arg(of_server.get_program()).args(of_server.get_args());
    shell.stdin(Stdio::from(tcp)).stdout(udp.map_or_else(Stdio::null, Stdio::from));
    let mut child = shell.current_dir(directory.path()).spawn().expect("a shell");
    work(directory.path());
    let id = child.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed().as_secs() > 120 {
            child.kill().expect("a child");
            panic!("it does not stop");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Binds both sockets at one port.
fn bind() -> (TcpListener, UdpSocket, u16) {
    loop {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = tcp.local_addr().expect("bound").port();
        if let Ok(udp) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) {
            return (tcp, udp, port);
        }
    }
}

#[test]
fn its_sockets_are_served() {
    let (tcp, udp, port) = bind();
    let flags = "serve --no-files --no-sctp";
    with_sockets(flags, tcp.into(), Some(udp.into()), |directory| {
        for version in ["--http1.1", "--http2", "--http3-only"] {
            let line = format!("get -k {version} https://127.0.0.1:{port}/bytes/5");
            Eyas::new(&line).run().exits(0);
        }
        let out = fs::read_to_string(directory.join("out")).expect("written");
        assert!(out.contains("HTTP/1.1, HTTP/2, HTTP/3"), "{out}");
    });
}

#[test]
fn its_sockets_are_served_by_a_tunnel() {
    let mut ends = Ends::new();
    let (tcp, udp, port) = bind();
    ends.port = port;
    let path = |name: &str| ends.path(name).display().to_string();
    let flags = format!(
        "tunnel serve --sctp-udp-port {} --key {} --authorized-keys {}",
        ends.sctp,
        path("host.pem"),
        path("authorized_keys")
    );
    with_sockets(&flags, tcp.into(), Some(udp.into()), |_| {
        for over in ["tcp://", "quic://", "sctp-udp://"] {
            let to = format!("--stdio 127.0.0.1:{}", echo());
            let client = ends.client_over(over, &to).stdin("there and back\n");
            assert_eq!(client.start().end().exits(0).out, "there and back\n", "{over}");
        }
    });
    // Without a socket for datagrams there is no QUIC.
    let (tcp, _, port) = bind();
    ends.port = port;
    with_sockets(&flags, tcp.into(), None, |_| {
        let to = format!("--stdio 127.0.0.1:{}", echo());
        let client = ends.client_over("tcp://", &to).stdin("there and back\n");
        assert_eq!(client.start().end().exits(0).out, "there and back\n");
        ends.client_over("quic://", &to).run().exits(7);
    });
}

/// Runs it with one socket that it refuses, and returns what it says.
fn refused(flags: &str, socket: impl Into<OwnedFd>) -> String {
    refused_of(1, flags, socket)
}

/// The same, with a number of sockets that may be wrong.
fn refused_of(count: u8, flags: &str, socket: impl Into<OwnedFd>) -> String {
    let eyas = Eyas::new(flags).command();
    let line = format!(
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS={count} EYAS_MEMORY=none exec \"$0\" \"$@\""
    );
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).arg(eyas.get_program()).args(eyas.get_args());
    let output = shell.stdin(Stdio::from(socket.into())).output().expect("a shell");
    // It says why, and is not ended by a signal.
    assert!(output.status.code().is_some_and(|code| code > 0), "{:?}", output.status);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The numbers after it are closed, or descriptors of the process itself.
#[test]
fn a_number_of_sockets_that_is_too_large_is_refused() {
    for count in [2, 3, 4, 5, 8, 20, 64] {
        let (tcp, ..) = bind();
        let text = refused_of(count, "serve --no-files --plain --no-sctp", tcp);
        assert!(text.contains("LISTEN_FDS is too large"), "{count}: {text}");
    }
}

#[test]
fn a_socket_for_which_no_protocol_is_left_is_refused() {
    let (_, udp, _) = bind();
    let text = refused("serve --no-files --plain --no-sctp", udp);
    assert!(text.contains("none of them is for a protocol that the options leave"), "{text}");
}

#[test]
fn a_tunnel_explains_sockets_that_it_does_not_use() {
    let ends = Ends::new();
    let path = |name: &str| ends.path(name).display().to_string();
    let (tcp, udp, port) = bind();
    let flags = |more: &str| {
        let (key, keys) = (path("host.pem"), path("authorized_keys"));
        format!("tunnel serve {more} --key {key} --authorized-keys {keys}")
    };
    let text = refused(&flags("--listen 0"), tcp);
    assert!(text.contains("omit --listen"), "{text}");
    let text = refused(&flags(&format!("--sctp-udp-port {port}")), udp);
    assert!(text.contains("which is that of SCTP"), "{text}");
}

#[test]
fn without_a_socket_for_datagrams_there_is_no_http3() {
    let (tcp, _, port) = bind();
    with_sockets("serve --no-files --no-sctp", tcp.into(), None, |directory| {
        let line = format!("get -k --json https://127.0.0.1:{port}/bytes/5");
        assert_eq!(Eyas::new(&line).run().exits(0).json()["version"], "HTTP/2");
        let out = fs::read_to_string(directory.join("out")).expect("written");
        assert!(out.contains("HTTP/1.1, HTTP/2") && !out.contains("HTTP/3"), "{out}");
    });
    let (tcp, _, port) = bind();
    with_sockets("proxy", tcp.into(), None, |_| {
        let upstream = crate::stage::Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
        let url = format!("http://{}/bytes/5", upstream.address);
        Eyas::new(&format!("get --proxy http://127.0.0.1:{port} {url}")).run().exits(0);
    });
}
