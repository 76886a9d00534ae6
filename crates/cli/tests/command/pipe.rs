//! `eyas pipe`, one against another.

use crate::stage::{Eyas, free_tcp_port, free_udp_port};

/// What each side got, when both ran with these flags and the client connected over this scheme.
fn talk(flags: &str, client: &str, scheme: &str) -> (String, String) {
    let (port, udp) = (free_tcp_port(), free_udp_port());
    let line = format!("pipe {flags} --listen 127.0.0.1:{port} --sctp-udp-port {udp} --verbose");
    let listening = Eyas::new(&line).saying("from the listener\n").start();
    listening.hears("listening");
    let line = format!("pipe {flags} {client} --sctp-udp-port {udp} {scheme}://127.0.0.1:{port}");
    let there = Eyas::new(&line).saying("from the client\n").start().end().exits(0);
    (there.out, listening.end().exits(0).out)
}

#[test]
fn both_sides_hear_each_other_over_any_transport() {
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
    ] {
        let (there, here) = talk(flags, client, scheme);
        assert_eq!(there, "from the listener\n", "{scheme} {flags}");
        assert_eq!(here, "from the client\n", "{scheme} {flags}");
    }
}

#[test]
fn what_cannot_be_says_why() {
    let refused = Eyas::new("pipe --messages sctp://localhost:1").run().exits(2);
    assert!(refused.err.contains("--messages needs --plain"), "{}", refused.err);
    let refused = Eyas::new("pipe https://localhost:1/").run().exits(3);
    assert!(refused.err.contains("eyas get"), "{}", refused.err);
    let port = free_tcp_port();
    let refused = Eyas::new(&format!("pipe --plain tcp://127.0.0.1:{port} --json")).run().exits(7);
    assert_eq!(refused.json()["error"]["kind"], "connect");
}
