//! The rules of the diagnosis, one case for each.

mod path;
mod properties;

use std::net::IpAddr;
use std::time::Duration;

use eyas::race::candidate::{AddressFamily, Security, Transport};
use eyas::race::dns::DnsFailure;
use eyas::race::evidence::{EvidenceLevel, FailureCause};
use eyas::{CertificateFault, ServerEncryption, UnencryptedReason};

use super::diagnosis::diagnose;
use super::findings::*;
use super::topic::{Topic, TopicVerdict, VerdictKind};

const V4: &str = "192.0.2.7:443";
const V6: &str = "[2001:db8::7]:443";
const TOOK: Duration = Duration::from_millis(20);

fn attempt(transport: Transport, address: &str, outcome: AttemptResult) -> AttemptFinding {
    let address = address.parse().expect("an address");
    AttemptFinding { transport, security: Security::Tls, address, outcome, short_hello: false }
}

const fn failed(cause: FailureCause, reached: EvidenceLevel) -> AttemptResult {
    AttemptResult::Failed { cause, reached, certificate: None }
}

const SILENT: AttemptResult = failed(FailureCause::Silent, EvidenceLevel::Started);
const REFUSED: AttemptResult = failed(FailureCause::Refused, EvidenceLevel::Started);

fn answers(records: Result<usize, DnsFailure>) -> AnswerFindings {
    let answer = |records| AnswerFinding { records, took: TOOK };
    AnswerFindings {
        datagram: answer(records.clone()),
        stream: answer(records),
        https: answer(Err(DnsFailure::NoData)),
    }
}

fn name_server(address: &str) -> NameServerFinding {
    NameServerFinding {
        server: address.parse().expect("an address"),
        common: answers(Ok(2)),
        host: Some(answers(Ok(1))),
        is_truthful: Some(true),
        nat64: Vec::new(),
        encryption: None,
    }
}

fn own(address: &str) -> OwnAddressFinding {
    OwnAddressFinding { address: address.parse().expect("an address"), routed: true }
}

/// A machine with both families on a network without a fault, and a host with everything but SCTP.
fn healthy() -> DoctorFindings {
    let addresses = ["192.0.2.7", "2001:db8::7"];
    let addresses: Vec<IpAddr> =
        addresses.iter().map(|address| address.parse().expect("an address")).collect();
    let https = vec![HttpsFinding { alpn: vec!["h3".into(), "h2".into()], has_ech: true }];
    let name = NameFinding {
        source: "queries to 192.0.2.53".to_owned(),
        is_from_dns: true,
        addresses,
        failure: None,
        https,
    };
    let ready = AttemptResult::Ready(TOOK);
    let mut attempts: Vec<AttemptFinding> = [Transport::Tcp, Transport::Mptcp, Transport::Quic]
        .into_iter()
        .flat_map(|transport| [V4, V6].map(|address| attempt(transport, address, ready)))
        .collect();
    attempts.extend(
        [Transport::Sctp, Transport::SctpUdp].map(|transport| attempt(transport, V4, SILENT)),
    );
    DoctorFindings {
        machine: MachineFindings {
            network: "eth0 via 192.168.1.1".to_owned(),
            addresses: vec![own("192.168.1.2"), own("2001:db8::2")],
            nat64: Vec::new(),
            no_mptcp: None,
            no_sctp: None,
        },
        name_servers: vec![name_server("192.0.2.53:53")],
        host: Some(HostFindings {
            host: "example.org".to_owned(),
            port: 443,
            name: Some(name),
            named_transports: Vec::new(),
            announces_http3: true,
            attempts: Some(attempts),
            packets: Some(PacketFinding {
                datagram: Some(1452),
                lost_probes: 0,
                segment: None,
                family: AddressFamily::V6,
            }),
            clock_ahead: Some(-1),
        }),
        portal: Some(PortalFinding {
            host: "example.org".to_owned(),
            is_named: false,
            answer: PortalAnswer::Response {
                status: 301,
                redirects_to: Some("www.example.org".to_owned()),
            },
        }),
        memory: MemoryFinding::Known(MemoryRows::default()),
    }
}

fn host(findings: &mut DoctorFindings) -> &mut HostFindings {
    findings.host.as_mut().expect("there is one")
}

fn name(findings: &mut DoctorFindings) -> &mut NameFinding {
    host(findings).name.as_mut().expect("there is one")
}

/// Sets the outcome of all attempts that satisfy a condition.
fn set(
    findings: &mut DoctorFindings,
    is_meant: impl Fn(&AttemptFinding) -> bool,
    outcome: AttemptResult,
) {
    let attempts = host(findings).attempts.iter_mut().flatten();
    attempts.filter(|attempt| is_meant(attempt)).for_each(|attempt| attempt.outcome = outcome);
}

fn is_over_tcp(attempt: &AttemptFinding) -> bool {
    matches!(attempt.transport, Transport::Tcp | Transport::Mptcp)
}

fn verdict_about(topic: Topic, findings: &DoctorFindings) -> TopicVerdict {
    let verdicts = diagnose(findings);
    verdicts.into_iter().find(|(of, _)| *of == topic).map(|(_, verdict)| verdict).expect("all")
}

/// Checks one topic after a change of the healthy findings: its verdict, and words of its finding.
#[track_caller]
fn check(topic: Topic, change: impl FnOnce(&mut DoctorFindings), kind: VerdictKind, words: &str) {
    let mut findings = healthy();
    change(&mut findings);
    let verdict = verdict_about(topic, &findings);
    assert_eq!(verdict.kind, kind, "{verdict:?}");
    assert!(verdict.finding.contains(words), "{verdict:?}");
}

use VerdictKind::{Absent, Broken, Good, Unknown};

#[test]
fn nothing_is_broken_where_nothing_is_wrong() {
    for (topic, verdict) in diagnose(&healthy()) {
        let expected = match topic {
            Topic::Sctp | Topic::SctpUdp | Topic::Nat64 | Topic::EncryptedDns => Absent,
            _ => Good,
        };
        assert_eq!(verdict.kind, expected, "{topic:?} {verdict:?}");
    }
}

#[test]
fn an_encrypted_resolver_is_broken_only_where_one_is_designated() {
    let judge = |encryption: Option<ServerEncryption>, kind, words| {
        let change =
            |findings: &mut DoctorFindings| findings.name_servers[0].encryption = encryption;
        check(Topic::EncryptedDns, change, kind, words);
    };
    let absent = |why| Some(ServerEncryption::Absent(why));
    judge(None, Absent, "does not say");
    judge(absent(UnencryptedReason::NotDesignated), Absent, "designates no encrypted resolver");
    judge(absent(UnencryptedReason::NotAnswered), Absent, "does not say");
    judge(absent(UnencryptedReason::NotReachable), Broken, "cannot be reached");
    judge(absent(UnencryptedReason::NotVerified), Broken, "has not proved");
}

#[test]
fn families_are_judged_by_tcp() {
    let v6 = |attempt: &AttemptFinding| attempt.family() == AddressFamily::V6;
    let blackhole = |findings: &mut DoctorFindings| set(findings, v6, SILENT);
    check(Topic::Ipv6, blackhole, Broken, "2001:db8::7 is silent over TCP; over IPv4");
    check(Topic::Ipv4, blackhole, Good, "192.0.2.7:443 is ready");
    check(Topic::Ipv6, |it| set(it, v6, REFUSED), Good, "answers over TCP");
    check(Topic::Ipv4, |it| set(it, |_| true, SILENT), Broken, "192.0.2.7 is silent");
    let local = failed(FailureCause::Local, EvidenceLevel::Started);
    check(Topic::Ipv6, |it| set(it, v6, local), Broken, "this machine cannot send");
    let only_v4 = |it: &mut DoctorFindings| {
        it.machine.addresses.pop();
        host(it).attempts.iter_mut().for_each(|attempts| attempts.retain(|attempt| !v6(attempt)));
    };
    check(Topic::Ipv6, only_v4, Absent, "no address");
    let untried = |it: &mut DoctorFindings| {
        host(it).attempts.iter_mut().for_each(|attempts| attempts.retain(|attempt| !v6(attempt)));
    };
    check(Topic::Ipv6, untried, Unknown, "example.org has no IPv6 address");
    check(
        Topic::Ipv6,
        |it| it.host = None,
        Unknown,
        "2001:db8::2 with a route; whether it carries TCP needs a HOST",
    );
    let offline = |it: &mut DoctorFindings| {
        it.machine.addresses.clear();
        it.host = None;
    };
    check(Topic::Ipv4, offline, Broken, "no address with a route");
    check(Topic::Ipv6, offline, Broken, "no address with a route");
}

#[test]
fn nat_and_nat64_are_told_from_addresses_and_prefixes() {
    for (address, words) in [
        ("192.168.1.2", "is private"),
        ("100.64.0.1", "the provider's NAT"),
        ("100.128.0.1", "none to be seen"),
        ("192.0.0.4", "464XLAT"),
        ("192.0.0.8", "none to be seen"),
    ] {
        check(Topic::Nat, |it| it.machine.addresses = vec![own(address)], Good, words);
    }
    let only_v6 = |it: &mut DoctorFindings| it.machine.addresses = vec![own("2001:db8::2")];
    check(Topic::Nat, only_v6, Absent, "no IPv4 address");
    check(Topic::Nat64, only_v6, Broken, "hosts that have only IPv4 cannot be reached");
    let prefix = ("64:ff9b::".parse().expect("an address"), 96);
    let with_dns64 = |it: &mut DoctorFindings| {
        only_v6(it);
        it.name_servers[0].nat64 = vec![prefix];
        it.machine.nat64 = vec![prefix];
    };
    check(Topic::Nat64, with_dns64, Good, "below 64:ff9b::/96");
    let without_servers = |it: &mut DoctorFindings| {
        only_v6(it);
        it.name_servers.clear();
    };
    check(Topic::Nat64, without_servers, Unknown, "no name server");
}

#[test]
fn name_servers_are_judged_one_by_one() {
    let second = |change: fn(&mut NameServerFinding)| {
        move |it: &mut DoctorFindings| {
            let mut server = name_server("[2001:db8::53]:5353");
            change(&mut server);
            it.name_servers.push(server);
        }
    };
    let all = |server: &mut NameServerFinding, failure: DnsFailure| {
        server.common = answers(Err(failure));
        server.host = None;
    };
    let good = second(|_| ());
    check(Topic::NameServers, good, Good, "192.0.2.53 in 20 ms, [2001:db8::53]:5353 in 20 ms");
    for (failure, words) in [
        (DnsFailure::Timeout, "does not answer, 192.0.2.53 in 20 ms"),
        (DnsFailure::Unreachable, "cannot be reached"),
        (DnsFailure::ServerFailure, "resolves nothing"),
        (DnsFailure::Malformed, "cannot be read"),
        (DnsFailure::Local("no route".into()), "by this machine"),
    ] {
        let change = |it: &mut DoctorFindings| {
            let mut server = name_server("[2001:db8::53]:5353");
            all(&mut server, failure);
            it.name_servers.push(server);
        };
        check(Topic::NameServers, change, Broken, words);
    }
    let only_tcp = second(|server| {
        server.host = None;
        server.common.datagram.records = Err(DnsFailure::Timeout);
    });
    check(Topic::NameServers, only_tcp, Broken, "answers over TCP only");
    let liar = second(|server| server.is_truthful = Some(false));
    check(Topic::NameServers, liar, Broken, "makes up addresses");
    check(Topic::NameServers, |it| it.name_servers.clear(), Unknown, "none");
    // That a server knows the host is enough: some resolve nothing else.
    let narrow = second(|server| server.common = answers(Err(DnsFailure::ServerFailure)));
    check(Topic::NameServers, narrow, Good, "5353 in 20 ms");
}

#[test]
fn large_answers_need_tcp() {
    let no_tcp = |it: &mut DoctorFindings| {
        let server = &mut it.name_servers[0];
        server.common.stream.records = Err(DnsFailure::Timeout);
        server.host = None;
    };
    check(Topic::DnsOverTcp, no_tcp, Broken, "192.0.2.53: no answer over TCP");
    let silent = |it: &mut DoctorFindings| {
        it.name_servers[0].common = answers(Err(DnsFailure::Timeout));
        it.name_servers[0].host = None;
    };
    check(Topic::DnsOverTcp, silent, Unknown, "no name server answers");
}

#[test]
fn https_records_may_be_withheld() {
    for (failure, words) in [
        (DnsFailure::Timeout, "192.0.2.53 swallows"),
        (DnsFailure::ServerFailure, "refuses"),
        (DnsFailure::Malformed, "cannot be read"),
    ] {
        let withheld = |it: &mut DoctorFindings| {
            it.name_servers[0].common.https.records = Err(failure);
            name(it).https.clear();
        };
        check(Topic::HttpsRecords, withheld.clone(), Broken, words);
        check(Topic::Ech, withheld, Unknown, "do not arrive");
    }
    check(Topic::HttpsRecords, |_| (), Good, "1 record of example.org: h3, h2");
    check(Topic::HttpsRecords, |it| name(it).https.clear(), Absent, "has none");
    check(Topic::HttpsRecords, |it| it.host = None, Good, "answer questions");
    check(Topic::HttpsRecords, |it| host(it).name = None, Absent, "an address");
    check(Topic::HttpsRecords, |it| name(it).is_from_dns = false, Absent, "comes from");
    check(Topic::Ech, |it| name(it).https.clear(), Absent, "none without");
    check(Topic::Ech, |it| name(it).https[0].has_ech = false, Absent, "offers none");
    let over_quic = |of: &AttemptFinding| of.transport == Transport::Quic;
    for (cause, finding) in [(FailureCause::Ech, "accepted"), (FailureCause::EchBroken, "broken")] {
        let outcome = failed(cause, EvidenceLevel::Answered);
        check(Topic::Ech, |it| set(it, over_quic, outcome), Broken, finding);
    }
    check(Topic::Ech, |it| it.host = None, Unknown, "needs a HOST");
    // Nothing was sent: DTLS has no ECH, or no record has the configurations that are required.
    let unsent = failed(FailureCause::Ech, EvidenceLevel::Started);
    let in_dtls = |it: &mut DoctorFindings| {
        let unsent = attempt(Transport::SctpUdp, V4, unsent);
        let unsent = AttemptFinding { security: Security::Dtls, ..unsent };
        host(it).attempts.iter_mut().for_each(|attempts| attempts.push(unsent.clone()));
    };
    check(Topic::Ech, in_dtls, Good, "arrives");
    check(Topic::Ech, |it| set(it, over_quic, unsent), Good, "arrives");
    check(Topic::Ech, |it| set(it, |_| true, unsent), Broken, "not accepted");
    let without_record = |it: &mut DoctorFindings| {
        set(it, |_| true, unsent);
        name(it).https.clear();
    };
    check(Topic::Ech, without_record, Absent, "none without");
    check(Topic::Tcp, without_record, Broken, "cannot be encrypted");
    check(Topic::Quic, without_record, Unknown, "nothing was sent");
    let sctp = |it: &mut DoctorFindings| {
        without_record(it);
        in_dtls(it);
    };
    check(Topic::SctpUdp, sctp, Unknown, "nothing was sent");
}

#[test]
fn a_name_has_addresses_or_a_reason() {
    let without = |failure: Option<DnsFailure>| {
        move |it: &mut DoctorFindings| {
            name(it).addresses.clear();
            name(it).failure = failure;
        }
    };
    check(Topic::Name, |_| (), Good, "2 addresses from queries to");
    check(Topic::Name, without(None), Unknown, "no time");
    check(Topic::Name, without(Some(DnsFailure::NoSuchName)), Broken, "does not exist");
    check(Topic::Name, without(Some(DnsFailure::NoData)), Broken, "has no address");
    check(Topic::Name, without(Some(DnsFailure::Timeout)), Broken, "no address (timeout)");
    check(Topic::Name, |it| host(it).name = None, Absent, "an address needs none");
}

#[test]
fn tcp_is_judged_by_the_attempt_that_came_furthest() {
    let after_connect = failed(FailureCause::Silent, EvidenceLevel::Transport);
    for (outcome, words) in [
        (REFUSED, "refuses TCP"),
        (SILENT, "is silent over TCP"),
        (failed(FailureCause::Unreachable, EvidenceLevel::Started), "is unreachable"),
        (failed(FailureCause::Tls, EvidenceLevel::Transport), "TLS handshake fails"),
        (failed(FailureCause::Reset, EvidenceLevel::Transport), "closing the connection"),
        (after_connect, "and is then silent"),
        (failed(FailureCause::Local, EvidenceLevel::Started), "this machine cannot send"),
    ] {
        check(Topic::Tcp, |it| set(it, is_over_tcp, outcome), Broken, words);
    }
    let expired = AttemptResult::Failed {
        cause: FailureCause::Certificate,
        reached: EvidenceLevel::Transport,
        certificate: Some(CertificateFault::Expired),
    };
    check(Topic::Tcp, |it| set(it, is_over_tcp, expired), Broken, "has expired");
    check(Topic::PathMtu, |it| set(it, is_over_tcp, after_connect), Broken, "larger packets");
    check(Topic::Tcp, |it| host(it).attempts = None, Unknown, "no time");
    check(Topic::Tcp, |it| host(it).attempts = Some(Vec::new()), Absent, "not among");
}

#[test]
fn quic_is_broken_only_where_it_is_expected() {
    let is_quic = |attempt: &AttemptFinding| attempt.transport == Transport::Quic;
    let unannounced = |it: &mut DoctorFindings| {
        host(it).announces_http3 = false;
        name(it).https.clear();
    };
    check(Topic::Quic, |it| set(it, is_quic, SILENT), Broken, "blocked: packets to UDP port 443");
    check(Topic::Quic, |it| set(it, is_quic, REFUSED), Broken, "nothing listens");
    for (outcome, words) in [(SILENT, "no answer from UDP"), (REFUSED, "nothing listens")] {
        let change = |it: &mut DoctorFindings| {
            unannounced(it);
            set(it, is_quic, outcome);
        };
        check(Topic::Quic, change, Absent, words);
    }
    let named = |it: &mut DoctorFindings| {
        unannounced(it);
        host(it).named_transports = vec![Transport::Quic];
        set(it, is_quic, SILENT);
    };
    check(Topic::Quic, named, Broken, "QUIC was asked for");
    let halfway = failed(FailureCause::Silent, EvidenceLevel::Answered);
    check(Topic::Quic, |it| set(it, is_quic, halfway), Broken, "does not complete");
    let local = failed(FailureCause::Local, EvidenceLevel::Started);
    check(Topic::Quic, |it| set(it, is_quic, local), Broken, "cannot send UDP");
    check(Topic::Quic, |it| it.host = None, Unknown, "needs a HOST");
}

#[test]
fn a_fallback_is_no_mptcp() {
    let is_mptcp = |attempt: &AttemptFinding| attempt.transport == Transport::Mptcp;
    let fallback = |it: &mut DoctorFindings| set(it, is_mptcp, AttemptResult::FellBack);
    check(Topic::Mptcp, fallback, Absent, "falls back to TCP");
    let named = |it: &mut DoctorFindings| {
        fallback(it);
        host(it).named_transports = vec![Transport::Mptcp];
    };
    check(Topic::Mptcp, named, Broken, "falls back to TCP");
    check(Topic::Mptcp, |it| set(it, is_mptcp, SILENT), Broken, "where TCP works");
    check(Topic::Mptcp, |it| set(it, is_over_tcp, SILENT), Unknown, "either");
    let without = |it: &mut DoctorFindings| it.machine.no_mptcp = Some("no such protocol".into());
    check(Topic::Mptcp, without, Absent, "no such protocol");
    check(Topic::Mptcp, |it| it.host = None, Unknown, "this kernel has it");
}

#[test]
fn one_way_of_sctp_is_enough() {
    let only = |transport: Transport| move |of: &AttemptFinding| of.transport == transport;
    let name_both = |it: &mut DoctorFindings| {
        host(it).named_transports = vec![Transport::Sctp, Transport::SctpUdp];
    };
    check(Topic::Sctp, name_both, Broken, "no answer");
    let inside_udp = |it: &mut DoctorFindings| {
        name_both(it);
        set(it, only(Transport::SctpUdp), AttemptResult::Ready(TOOK));
    };
    check(Topic::Sctp, inside_udp, Absent, "no answer");
    check(Topic::SctpUdp, inside_udp, Good, "ready in 20 ms");
    check(Topic::Sctp, |it| set(it, only(Transport::Sctp), REFUSED), Absent, "has none");
    let halfway = failed(FailureCause::Tls, EvidenceLevel::Answered);
    check(Topic::Sctp, |it| set(it, only(Transport::Sctp), halfway), Good, "answers, though");
    check(Topic::Sctp, |it| it.machine.no_sctp = Some("needs root".into()), Absent, "needs root");
    check(Topic::Sctp, |it| it.host = None, Unknown, "this machine has it");
    check(Topic::SctpUdp, |it| it.host = None, Unknown, "needs a HOST");
}
