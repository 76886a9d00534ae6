//! Tests of `eyas pipe` with a peer.

use std::net::UdpSocket;

use serde_json::Value;

use crate::ports::own_port;
use crate::stage::{Eyas, Running, validate};

/// Two addresses of this host.
const BOTH: &str = "--local-address 127.0.0.1,127.0.0.2";

/// Runs both sides with these flags, the client with this scheme, and returns what each side
/// received.
fn exchange(flags: &str, client: &str, scheme: &str) -> (String, String) {
    let (port, udp) = (own_port(), own_port());
    let line = format!("pipe {flags} --listen 127.0.0.1:{port} --sctp-udp-port {udp} --verbose");
    let listening = Eyas::new(&line).stdin("from the listener\n").start();
    listening.wait_for_stderr("listening");
    let line = format!("pipe {flags} {client} --sctp-udp-port {udp} {scheme}://127.0.0.1:{port}");
    let client_output = Eyas::new(&line).stdin("from the client\n").start().end().exits(0);
    (client_output.out, listening.end().exits(0).out)
}

#[test]
fn both_sides_communicate_over_any_transport() {
    for (flags, client, scheme) in [
        ("--plain", "", "tcp"),
        ("--plain", "", "sctp-udp"),
        ("", "-k", "tcp"),
        ("", "-k", "sctp-udp"),
        ("", "-k", "quic"),
        ("--plain --stream 7", "", "sctp-udp"),
        ("--stream 7", "-k", "sctp-udp"),
        ("--plain --messages --stream 3", "", "sctp-udp"),
        ("--plain --messages --unordered --ppid 51", "", "sctp-udp"),
        ("--messages --unordered --ppid 51", "-k", "sctp-udp"),
        ("--messages --stream 3", "-k", "sctp-udp"),
        (&format!("--messages {BOTH}"), "-k", "sctp-udp"),
        (&format!("--messages {BOTH} --stream 3"), "-k", "sctp-udp"),
        (&format!("--plain {BOTH}"), "", "sctp-udp"),
    ] {
        let (client_output, listener_output) = exchange(flags, client, scheme);
        assert_eq!(client_output, "from the listener\n", "{scheme} {flags}");
        assert_eq!(listener_output, "from the client\n", "{scheme} {flags}");
    }
}

/// The listener's generated certificate is trusted only for its name.
#[test]
fn the_other_side_trusts_the_certificate_that_was_saved() {
    let directory = tempfile::tempdir().expect("a directory");
    let within = |line: &str| Eyas::new(line).within(directory.path());
    for scheme in ["tcp", "quic", "sctp-udp"] {
        let (port, udp) = (own_port(), own_port());
        let line = format!(
            "pipe -v --save-cert ca.pem --names peer.test --listen 127.0.0.1:{port} \
             --sctp-udp-port {udp}"
        );
        let listening = within(&line).stdin("from the listener\n").start();
        listening.wait_for_stderr("listening");
        let to = |host: &str| format!("--sctp-udp-port {udp} {scheme}://{host}:{port}");
        let refused = within(&format!("pipe {}", to("127.0.0.1"))).run().exits(60);
        let sentence = "(subject and issuer \"eyas self-signed for localhost\")";
        assert!(refused.err.contains(sentence), "{scheme}: {}", refused.err);
        let named = format!("--cacert ca.pem --resolve peer.test:{port}:127.0.0.1");
        let line = format!("pipe {named} {}", to("peer.test"));
        let client_output = within(&line).stdin("from the client\n").start().end().exits(0);
        assert_eq!(client_output.out, "from the listener\n", "{scheme}");
        listening.end().exits(0);
    }
}

#[test]
fn an_impossible_request_is_reported_with_a_reason() {
    let refused = Eyas::new("pipe https://localhost:1/").run().exits(3);
    assert!(refused.err.contains("eyas get"), "{}", refused.err);
    let port = own_port();
    let refused = Eyas::new(&format!("pipe --plain tcp://127.0.0.1:{port} --json")).run().exits(7);
    assert_eq!(refused.json()["error"]["kind"], "connect");
}

/// Ensures that the default port of SCTP over UDP is in use, by this process or another one.
fn occupy_default_port() -> Option<UdpSocket> {
    UdpSocket::bind(("127.0.0.1", 9_899)).ok()
}

#[test]
fn without_an_sctp_port_the_other_transports_are_served() {
    let _taken = occupy_default_port();
    let port = own_port();
    let line = format!("pipe --plain --listen 127.0.0.1:{port} --verbose");
    let listening = Eyas::new(&line).stdin("from the listener\n").start();
    listening.wait_for_stderr("UDP port 9899 is taken by");
    listening.wait_for_stderr("listening");
    let line = format!("pipe --plain tcp://127.0.0.1:{port}");
    let client_output = Eyas::new(&line).stdin("from the client\n").start().end().exits(0);
    assert_eq!(client_output.out, "from the listener\n");
    assert_eq!(listening.end().exits(0).out, "from the client\n");
}

#[test]
fn an_explicit_sctp_port_must_be_free() {
    let taken = UdpSocket::bind(("127.0.0.1", own_port())).unwrap();
    let (port, udp) = (own_port(), taken.local_addr().unwrap().port());
    let line = format!("pipe --plain --listen 127.0.0.1:{port} --sctp-udp-port {udp}");
    let refused = Eyas::new(&line).run();
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains(&format!("UDP port {udp} is taken by")), "{}", refused.err);
}

/// Starts a listener, and returns the command line of a client for it.
fn ends(flags: &str, listener: &str, client: &str) -> (Running, Eyas) {
    let (port, udp) = (own_port(), own_port());
    let line = format!("pipe {flags} {listener} --listen 127.0.0.1:{port} --sctp-udp-port {udp}");
    let listening = Eyas::new(&line).stdin("from the listener\n").start();
    let line = format!(
        "pipe {flags} {client} --sctp-udp-port {udp} --connect-timeout 20 \
         sctp-udp://127.0.0.1:{port}"
    );
    (listening, Eyas::new(&line).stdin("from the client\n"))
}

#[test]
fn paths_are_reported() {
    let (listening, client) = ends(&format!("--plain {BOTH}"), "--verbose", "--json");
    listening.wait_for_stderr("listening");
    let client_output = client.start().end().exits(0);
    let object: Value =
        serde_json::from_str(&client_output.err).expect("one object on standard error");
    validate("pipe", &object);
    let paths = object["paths"].as_array().expect("paths");
    let remotes: Vec<_> = paths.iter().map(|path| path["remote"].as_str()).collect();
    assert_eq!(remotes, [Some("127.0.0.1"), Some("127.0.0.2")], "{object:#}");
    assert_eq!(paths[0]["state"], "active");
    let listener_output = listening.end().exits(0);
    assert!(listener_output.err.contains("path to 127.0.0.1"), "{}", listener_output.err);
}

#[test]
fn messages_over_tls_cannot_be_unordered() {
    let (listening, client) = ends(&format!("--messages {BOTH}"), "--verbose", "-k --unordered");
    listening.wait_for_stderr("listening");
    let refused = client.run().exits(7);
    assert!(refused.err.contains("--unordered"), "{}", refused.err);
}

/// What the peer has is not everything, so it must not look like that.
#[cfg(unix)]
#[test]
fn the_peer_of_an_interrupted_side_sees_an_error() {
    for (flags, trust, scheme) in [
        ("--plain", "", "tcp"),
        ("--plain", "", "sctp-udp"),
        ("--plain --messages", "", "sctp-udp"),
        ("", "-k", "tcp"),
        ("", "-k", "quic"),
        ("", "-k", "sctp-udp"),
        ("--stream 7", "-k", "sctp-udp"),
        (BOTH, "-k", "sctp-udp"),
    ] {
        for (signal, code) in crate::output::endings() {
            let is_listener = signal == "TERM";
            let (port, udp) = (own_port(), own_port());
            let line =
                format!("pipe {flags} --listen 127.0.0.1:{port} --sctp-udp-port {udp} --verbose");
            let listening = Eyas::new(&line).stdin("listener\n").keep_stdin().start();
            listening.wait_for_stderr("listening");
            let to = format!("{trust} --verbose --sctp-udp-port {udp} {scheme}://127.0.0.1:{port}");
            let client = Eyas::new(&format!("pipe {flags} {to}"));
            let client = client.stdin("client\n").keep_stdin().start();
            // Both sides have what was sent, and wait for more.
            listening.wait_for_stdout("client");
            client.wait_for_stdout("listener");
            let (ended, peer) = if is_listener { (listening, client) } else { (client, listening) };
            ended.signal(signal);
            let peer = peer.end().exits(56);
            assert!(!peer.err.is_empty(), "{scheme} {flags}");
            ended.end().exits(code);
        }
    }
}
