//! Tests of `eyas perf` with `eyas perf serve`.

use serde_json::Value;

use crate::ports::own_port;
use crate::stage::{Eyas, Running, validate};

/// A server, and the target and flags for its clients.
struct PerfServer {
    running: Running,
    flags: String,
}

impl PerfServer {
    fn new(flags: &str) -> Self {
        let (port, udp) = (own_port(), own_port());
        let line = format!("perf serve {flags} -l 127.0.0.1:{port} --sctp-udp-port {udp}");
        let running = Eyas::new(&line).start();
        running.wait_for_stdout("listening");
        Self { running, flags: format!("--sctp-udp-port {udp} 127.0.0.1:{port}") }
    }

    fn client(&self, flags: &str) -> Eyas {
        Eyas::new(&format!("perf {flags} {}", self.flags))
    }
}

/// A test of every transport that needs no rights of its own.
const SHORT: &str = "-t 300ms -i 100ms --idle 100ms";

fn tests(object: &Value) -> &Vec<Value> {
    object["tests"].as_array().expect("tests")
}

#[test]
fn each_transport_is_measured_in_both_directions() {
    let server = PerfServer::new("");
    let line = format!("-k {SHORT} --both --transport tcp,quic,sctp-udp --json");
    let object = server.client(&line).run().exits(0).json();
    validate("perf", &object);
    let rows: Vec<_> = tests(&object)
        .iter()
        .map(|test| (test["transport"].as_str(), test["direction"].as_str()))
        .collect();
    let both = |transport| [(Some(transport), Some("up")), (Some(transport), Some("down"))];
    assert_eq!(rows, ["tcp", "quic", "sctp-udp"].map(both).concat());
    for test in tests(&object) {
        let way = test["direction"].as_str().expect("a direction");
        assert!(test[way]["goodput_bits_per_second"].as_f64() > Some(0.0), "{test:#}");
        assert_eq!(test["ended"], "complete", "{test:#}");
        assert!(test["peer_key"].as_str().is_some_and(|key| key.starts_with("SHA256:")));
    }
}

#[test]
fn the_table_has_a_row_for_each_direction_and_the_causes_of_failures() {
    let server = PerfServer::new("--plain");
    let line = format!("--plain {SHORT} --bidir --transport tcp,sctp-udp -P 2");
    let page = server.client(&line).run().exits(0).out;
    for text in ["tcp up", "tcp down", "sctp-udp up", "Mbit/s", "idle", "2 streams"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // Nothing is there over this transport.
    let line = format!("--plain {SHORT} --transport tcp,sctp-udp --connect-timeout 1s");
    let flags = server.flags.rsplit_once(' ').expect("a target").1.to_owned();
    let line = format!("perf {line} --sctp-udp-port {} {flags}", own_port());
    let page = Eyas::new(&line).run().exits(0).out;
    assert!(page.contains("tcp up"), "{page}");
    assert!(page.lines().any(|line| line.trim_start().starts_with("sctp-udp: ")), "{page}");
}

#[test]
fn without_any_result_the_exit_code_is_that_of_the_cause() {
    let line = format!("perf --plain --transport tcp {SHORT} 127.0.0.1:{}", own_port());
    let refused = Eyas::new(&format!("{line} --json")).run().exits(7).json();
    assert_eq!(refused["error"]["kind"], "connect");
    assert_eq!(refused["failed"][0]["transport"], "tcp");
    assert!(Eyas::new(&line).run().exits(7).err.contains("refused"));
    let refused = Eyas::new("perf --plain --transport quic localhost").run().exits(2);
    assert!(refused.err.contains("--plain"), "{}", refused.err);
    Eyas::new("perf -i 1ms localhost").run().exits(2);
}

#[test]
fn a_client_that_asks_for_days_gets_what_the_server_allows() {
    let server = PerfServer::new("--plain --max-test-time 1s");
    let line = "--plain --transport tcp -t 6days -i 10s --idle 100ms";
    let page = server.client(line).run().exits(0).out;
    assert!(page.contains("the server allows 1.00 s instead of 6 days"), "{page}");
}

#[test]
fn a_server_at_its_limit_says_so() {
    let server = PerfServer::new("--plain --max-tests 1");
    let first = server.client("--plain --transport tcp --idle 30s").start();
    server.running.wait_for_stdout("from the client for");
    let refused = server.client(&format!("--plain --transport tcp {SHORT}")).run().exits(7);
    assert!(refused.err.contains("a test is running"), "{}", refused.err);
    first.signal("INT");
    first.end().exits(130);
}

/// Interrupts a run after some time, until one had begun by then.
#[cfg(unix)]
#[test]
fn ctrl_c_prints_what_was_measured() {
    let server = PerfServer::new("--plain --json");
    let object = (1..20).find_map(|wait| {
        let flags = "--plain -t 1h -i 100ms --idle 0s --transport tcp,sctp-udp --json";
        let client = server.client(flags).start();
        std::thread::sleep(std::time::Duration::from_millis(300 * wait));
        client.signal("INT");
        let finished = client.end();
        (finished.code == Some(0)).then(|| finished.json())
    });
    let object = object.expect("a run that had begun");
    validate("perf", &object);
    assert_eq!(object["interrupted"], true);
    assert_eq!(tests(&object)[0]["ended"], "stopped");
    server.running.wait_for_stdout("\"stopped\"");
    server.running.signal("INT");
    let lines = server.running.end().exits(0).out;
    let mut lines = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    validate("perf-serve", &lines.next().expect("the first line"));
    lines.for_each(|line| validate("perf-test", &line));
}

#[test]
fn sctp_over_udp_is_measured_with_each_security_layer() {
    let server = PerfServer::new("");
    let line = format!("-k {SHORT} --transport sctp-udp --sctp-security both --json");
    let object = server.client(&line).run().exits(0).json();
    let layers: Vec<_> = tests(&object).iter().map(|test| test["security"].as_str()).collect();
    assert_eq!(layers, [Some("tls"), Some("dtls")]);
}
