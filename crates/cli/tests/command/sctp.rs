//! Tests of SCTP in `eyas race`, `get` and `serve`.

use std::net::UdpSocket;

use serde_json::Value;

use crate::ports::own_port;
use crate::stage::{Eyas, Served};

/// Returns whether a transport works according to `race --all`; `None` if it was not tried.
fn works(object: &Value, transport: &str) -> Option<bool> {
    let attempts = object["attempts"].as_array().expect("attempts");
    let one = attempts.iter().find(|one| one["transport"] == transport)?;
    let outcome = one["outcome"].as_str().expect("an outcome");
    Some(["won", "upgraded", "lost"].contains(&outcome))
}

#[test]
fn every_transport_works_or_has_a_reason() {
    let port = own_port();
    let line = format!("serve --no-files --sctp-udp-port {port}");
    let served = Served::start(Eyas::new(&line));
    let line = format!("race --all -k --json --explain --sctp-udp-port {port} {}", served.url("/"));
    let object = Eyas::new(&line).run().exits(0).json();
    for transport in ["quic", "tcp", "mptcp", "sctp-udp"] {
        assert_eq!(works(&object, transport), Some(true), "{transport}: {object:#}");
    }
    match works(&object, "sctp") {
        Some(works) => assert!(works, "{object:#}"),
        None => {
            println!("SKIPPED: protocol 132 needs privileges");
            let message = object["plan"]["dropped"].to_string();
            assert!(
                message.contains("CAP_NET_RAW") || message.contains("protocol 132"),
                "{message}"
            );
        }
    }
}

#[test]
fn the_preferred_transport_wins_and_carries_http() {
    let port = own_port();
    let line = format!("serve --no-files --sctp-udp-port {port}");
    let served = Served::start(Eyas::new(&line));
    let line = format!(
        "race sctp-udp+tcp://{} -k --json --prefer sctp-udp --head-start 2s --alpn http/1.1 \
         --sctp-udp-port {port}",
        served.address
    );
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["winner"]["transport"], "sctp-udp", "{object:#}");
    assert_eq!(object["winner"]["security"], "tls");
    let line = format!(
        "get -k --json --prefer sctp-udp --head-start 2s --http1.1 --sctp-udp-port {port} {}",
        served.url("/bytes/100000")
    );
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["connection"]["transport"], "sctp-udp", "{object:#}");
    assert_eq!((&object["version"], &object["bytes"]), (&"HTTP/1.1".into(), &100_000.into()));
}

#[test]
fn where_sctp_is_not_served_tcp_wins() {
    let served = Served::start(Eyas::new("serve --no-files --no-sctp"));
    let line = format!(
        "race sctp+tcp://{} -k --json --alpn http/1.1 --sctp-udp-port {}",
        served.address,
        own_port()
    );
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["winner"]["transport"], "tcp", "{object:#}");
}

#[test]
fn a_server_reports_the_process_with_its_port_for_sctp() {
    // The port is in use, by this process or another one.
    let taken = UdpSocket::bind(("127.0.0.1", 9_899));
    let served = Served::start(Eyas::new("serve --no-files"));
    assert_eq!(served.object["sctp_udp_port"], Value::Null);
    let missing = served.object["sctp_missing"].as_str().expect("a reason");
    assert!(missing.starts_with("UDP port 9899 is taken by "), "{missing}");
    if taken.is_ok() {
        assert!(missing.contains(&format!("(process {})", std::process::id())), "{missing}");
    }
    if served.object["sctp_directly"] == false {
        assert!(missing.contains("; directly over IP: "), "{missing}");
    }
    let other = Served::start(Eyas::new("serve --no-files --sctp-udp-port 0"));
    assert_eq!(other.object["sctp_missing"], Value::Null);
    let port = &other.object["sctp_udp_port"];
    let announced = other.object["alt_svc"].as_str().expect("a field");
    assert!(announced.contains(&format!("x-eyas-sctp-udp=\":{port}\"")), "{announced}");
    let line = format!("race sctp-udp://{} -k --json --sctp-udp-port {port}", other.address);
    assert_eq!(Eyas::new(&line).run().exits(0).json()["winner"]["transport"], "sctp-udp");
}

/// Another server of the host has the UDP port, but the SCTP port is unused.
#[test]
fn a_connection_to_the_wrong_server_is_explained() {
    let port = own_port();
    let served = Served::start(Eyas::new(&format!("serve --no-files --sctp-udp-port {port}")));
    let (host, wrong) = (served.address.ip(), own_port());
    let line = format!("race sctp-udp://{host}:{wrong} -k --sctp-udp-port {port}");
    let refused = Eyas::new(&line).run();
    let message = [refused.out, refused.err].concat();
    assert!(message.contains("nothing is listening on this SCTP port"), "{message}");
    assert!(!message.contains("causes"), "{message}");
}
