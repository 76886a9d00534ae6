//! Tests of `eyas doctor`.

use std::net::Ipv4Addr;

use eyas_testserver::ServerPersonality;
use serde_json::Value;

use crate::stage::{DnsStub, Eyas, Peer, Served, validate};

/// The name that all resolvers know, with one of its addresses (RFC 7050 §2.2).
const COMMON: (&str, Ipv4Addr) = ("ipv4only.arpa", Ipv4Addr::new(192, 0, 0, 170));

/// Returns the name server of a network without a fault.
fn name_server() -> DnsStub {
    DnsStub::start(&[COMMON, ("peer.test", Ipv4Addr::LOCALHOST)])
}

/// Returns the command with this name server.
fn doctor(peer: &Peer, dns: &DnsStub) -> Eyas {
    let line = format!("doctor {} --dns-server {}", peer.url("/"), dns.address);
    peer.eyas(&line)
}

#[track_caller]
fn verdict(object: &Value, topic: &str, expected: &str, words: &str) {
    let topics = object["topics"].as_array().expect("topics");
    let found = topics.iter().find(|found| found["topic"] == topic).expect("all are there");
    assert_eq!(found["verdict"], expected, "{object:#}");
    assert!(found["finding"].as_str().is_some_and(|text| text.contains(words)), "{found:#}");
}

#[test]
fn a_healthy_host_has_nothing_broken() {
    let (peer, dns) = (Peer::start(ServerPersonality::Healthy), name_server());
    let object = doctor(&peer, &dns).arg("--json").run().exits(0).json();
    validate("doctor", &object);
    verdict(&object, "ipv4", "good", "127.0.0.1");
    verdict(&object, "tcp", "good", "with TLS is ready in");
    verdict(&object, "quic", "good", "is ready in");
    verdict(&object, "name-servers", "good", "127.0.0.1");
    verdict(&object, "dns-over-tcp", "good", "large answers arrive");
    verdict(&object, "encrypted-dns", "absent", "designates no encrypted resolver");
    verdict(&object, "clock", "good", "within");
    verdict(&object, "memory", "unknown", "--memory none");
    let page = doctor(&peer, &dns).run().exits(0).out;
    assert!(page.contains("The way to peer.test:") && !page.contains("What to do"), "{page}");
}

#[test]
fn dropped_udp_is_broken_where_http3_is_announced() {
    let (peer, dns) = (Peer::start(ServerPersonality::UdpSwallowed), name_server());
    let limited = || doctor(&peer, &dns).arg("--timeout").arg("3s");
    let object = limited().arg("--json").run().exits(116).json();
    validate("doctor", &object);
    assert_eq!(object["error"]["kind"], "broken");
    verdict(&object, "quic", "broken", "blocked: packets to UDP port");
    verdict(&object, "tcp", "good", "is ready in");
    let finished = limited().run().exits(116);
    assert!(finished.out.contains("use TCP on this network"), "{}", finished.out);
    assert!(finished.err.contains("broken: QUIC"), "{}", finished.err);
}

#[test]
fn without_a_host_only_name_servers_are_asked() {
    let dns = name_server();
    let line = format!("doctor --dns-server {}", dns.address);
    let object = Eyas::new(&line).arg("--json").run().json();
    validate("doctor", &object);
    verdict(&object, "name-servers", "good", "127.0.0.1");
    verdict(&object, "tcp", "unknown", "needs a HOST");
    assert!(object["host"].is_null() && object["portal"].is_null(), "{object:#}");
    let page = Eyas::new(&line).run().out;
    assert!(page.contains("Nothing was sent but questions"), "{page}");
}

#[test]
fn a_mask_hides_names_and_addresses_in_both_forms() {
    let (peer, dns) = (Peer::start(ServerPersonality::Healthy), name_server());
    for flag in ["--json", "--mask"] {
        let report = doctor(&peer, &dns).arg("--mask").arg(flag).run().exits(0).out;
        for secret in ["peer.test", "127.0.0.1", "192."] {
            assert!(!report.contains(secret), "{secret}: {report}");
        }
        assert!(report.contains("loopback-ipv4-"), "{report}");
    }
}

#[test]
fn name_servers_that_lie_or_are_silent_are_broken() {
    let portal = DnsStub::start(&[("ipv4only.arpa", Ipv4Addr::new(198, 51, 100, 1))]);
    let (silent, _socket) = DnsStub::silent();
    for (dns, words) in [(portal, "makes up addresses"), (silent, "does not answer")] {
        let line = format!("doctor --json --timeout 2s --dns-server {}", dns.address);
        let object = Eyas::new(&line).run().exits(116).json();
        validate("doctor", &object);
        verdict(&object, "name-servers", "broken", words);
    }
}

#[test]
fn a_portal_is_told_by_a_status_that_has_to_come() {
    let (served, dns) = (Served::start(Eyas::new("serve --plain")), name_server());
    for (status, code, expected) in [(204, 0, "good"), (200, 116, "broken")] {
        let url = format!("http://{}/status/{status}", served.address);
        let line = format!("doctor --json --dns-server {} --portal-url {url}", dns.address);
        let object = Eyas::new(&line).run().json();
        verdict(&object, "captive-portal", expected, &status.to_string());
        assert_eq!(object["error"]["exit_code"].as_i64().unwrap_or_default(), code, "{object:#}");
    }
}

#[test]
fn what_is_outdated_in_the_memory_is_corrected() {
    let (peer, dns) = (Peer::start(ServerPersonality::Healthy), name_server());
    let state = tempfile::tempdir().expect("a directory");
    let examined = || doctor(&peer, &dns).state(state.path()).arg("--json").run().exits(0).json();
    verdict(&examined(), "memory", "good", "no rows about this network, 0 of the host");
    let object = examined();
    let memory = object["topics"].as_array().expect("topics").last().expect("the memory").clone();
    assert!(!memory["finding"].as_str().expect("a text").contains("0 of the host"), "{memory}");
}

#[test]
fn what_cannot_be_examined_is_refused() {
    for (line, code, words) in [
        ("doctor --timeout 1s", 2, "at least 2 s"),
        ("doctor --portal-url https://a.test/", 2, "not an http:// URL"),
        ("doctor ftp://a.test/", 3, "ftp"),
        ("doctor a..b", 3, "a..b"),
    ] {
        let finished = Eyas::new(line).run().exits(code);
        assert!(finished.err.contains(words), "{line}: {}", finished.err);
    }
}
