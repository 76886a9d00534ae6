//! ServiceMode records: names, ports, hints, and records that are ignored.

use alloc::{format, string::ToString, vec, vec::Vec};

use crate::candidate::AddressOrigin;
use crate::dns::{DnsAnswer, DnsFailure, QueryId, RecordType};
use crate::policy::Policy;
use crate::reason::{PlanReason, ReasonKind, RecordFault};
use crate::resolve::{MAX_ADDRESSES, MAX_ECH, MAX_NAMES, MAX_QUESTIONS, MAX_RECORDS, ServiceKind};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, https, ipv4_only, ms, records};

/// The origins of the addresses of the best service.
fn origins(ladder: &TestedResolution) -> Vec<AddressOrigin> {
    let best = ladder.resolution.services().swap_remove(0);
    best.addresses.into_iter().map(|address| address.origin).collect()
}

//= rfc9460 §2.5.2, §7.2, §9.1
//# "." is the owner; the origin's port; Port Prefix Naming but for 443
/// RFC 9460 §9.1, and "." stands for the owner name, prefixes and all (§2.5.2).
///
/// ```text
/// _8443._https.example.com HTTPS 1 svc.example. alpn=h2 port=9443
/// ```
#[test]
fn other_ports_have_names_of_their_own() {
    let target = https("example.com", 8443);
    let ladder = TestedResolution::new(target, ipv4_only(), Policy::default(), 1)
        .asks(&["_8443._https.example.com HTTPS", "example.com A"])
        .answers(&["_8443._https.example.com HTTPS 1 svc.example. alpn=h2 port=9443"])
        .asks(&["svc.example A"])
        .answers(&["svc.example A 192.0.2.7"])
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["192.0.2.7", "192.0.2.1"]);
    let ports: Vec<u16> =
        ladder.plan().entries.iter().map(|entry| entry.candidate.address.port()).collect();
    assert_eq!(ports, [9443, 8443], "the record's port, and the host's own without a record");
    TestedResolution::new(https("example.com", 8443), ipv4_only(), Policy::default(), 1)
        .asks(&["_8443._https.example.com HTTPS", "example.com A"])
        .answers(&["_8443._https.example.com HTTPS 1 . alpn=h2"])
        .asks(&["_8443._https.example.com A"]);
}

//= hev3 §4.2.1
//# address hints count as answers until those of their family arrive
/// ```text
/// 0 ms   HTTPS with both hints      start with the hints 9 ms   AAAA (another), A (negative): the
/// IPv4 hint remains, as the last
/// ```
#[test]
fn answers_replace_hints_family_by_family() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1 ipv4hint=192.0.2.1"])
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
    assert_eq!(origins(&ladder), [AddressOrigin::Hint, AddressOrigin::Hint]);
    let ladder = ladder
        .wait_milliseconds(9)
        .answers(&["example.com AAAA 2001:db8::2"])
        .starts_with(&["2001:db8::2", "192.0.2.1"]);
    assert_eq!(origins(&ladder), [AddressOrigin::Address, AddressOrigin::Hint]);
    let ladder = ladder
        .fails("example.com A -", DnsFailure::NoData)
        .starts_with(&["2001:db8::2", "192.0.2.1"]);
    assert_eq!(origins(&ladder), [AddressOrigin::Address, AddressOrigin::DeniedHint]);
}

//= rfc9460 §7.3
//# an address hint stays, last, if the answer has no address
/// RFC 9460 §7.3 ignores hints where there are addresses. There are none.
#[test]
fn empty_answers_do_not_remove_the_only_hint() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS 1 svc.example. alpn=h2 ipv4hint=192.0.2.1"])
        .fails("example.com AAAA -", DnsFailure::NoData)
        .fails("example.com A -", DnsFailure::NoData)
        .fails("svc.example A -", DnsFailure::NoSuchName)
        .waits_for(50)
        .fails("svc.example AAAA -", DnsFailure::NoSuchName)
        .starts_with(&["192.0.2.1"]);
    let denied = PlanReason(ReasonKind::DeniedHint { name: "svc.example".into() });
    assert!(ladder.plan().entries[0].reasons.contains(&denied));
}

/// Hints that contradict DNS come after all other addresses, including those of other services; but
/// another service with the same address ranks it at its own position.
///
/// ```text
/// example.com HTTPS 1 svc.example. ipv4hint=192.0.2.7,192.0.2.1
/// svc.example A     (empty)
/// example.com A     192.0.2.1
/// ```
#[test]
fn a_hint_that_contradicts_dns_comes_last_of_all() {
    TestedResolution::for_network(ipv4_only())
        .answers(&["example.com HTTPS 1 svc.example. alpn=h2 ipv4hint=192.0.2.7,192.0.2.1"])
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["svc.example A -"])
        .starts_with(&["192.0.2.1", "192.0.2.7"]);
}

/// ```text
///  0 ms  HTTPS with an IPv6 hint, AAAA (negative)    50 ms timer: A may come
/// 10 ms  A                                           start with IPv4
/// ```
#[test]
fn a_hint_that_contradicts_dns_does_not_start_the_race_at_once() {
    TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1"])
        .fails("example.com AAAA -", DnsFailure::NoData)
        .waits_for(50)
        .wait_milliseconds(10)
        .answers(&["example.com A 192.0.2.1"])
        .starts_with(&["192.0.2.1", "2001:db8::1"]);
}

/// A failed query says nothing about the hint.
#[test]
fn a_server_failure_does_not_remove_the_hint() {
    TestedResolution::for_network(ipv4_only())
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1"])
        .fails("example.com A -", DnsFailure::ServerFailure)
        .starts_with(&["192.0.2.1"]);
}

/// A hint of the other family is an address, but not of the preferred family.
#[test]
fn an_ipv4_hint_alone_waits_for_the_resolution_delay() {
    TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1"])
        .waits_for(50)
        .fails("example.com AAAA -", DnsFailure::NoData)
        .starts_with(&["192.0.2.1"]);
}

/// The address of the host is known, but the record leads elsewhere, so the race waits for it, no
/// longer than the Resolution Delay.
#[test]
fn addresses_without_a_record_do_not_start_the_race_while_records_lead_elsewhere() {
    TestedResolution::for_network(ipv4_only())
        .answers(&["example.com HTTPS 1 cdn.example. alpn=h2"])
        .answers(&["example.com A 192.0.2.1"])
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&["192.0.2.1"])
        .answers(&["cdn.example A 192.0.2.7"])
        .starts_with(&["192.0.2.7", "192.0.2.1"]);
}

//= rfc9460 §8
//# unknown mandatory keys exclude the record
/// ```text
/// example.com HTTPS 1 a.example. alpn=h2 mandatory=alpn,key7 key7
/// example.com HTTPS 2 b.example. alpn=h2 mandatory=alpn      key7
/// ```
#[test]
fn a_record_with_unknown_mandatory_keys_is_ignored() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .answers(&[
            "example.com HTTPS 1 a.example. alpn=h2 mandatory=1,7 key7 ipv4hint=192.0.2.1",
            "example.com HTTPS 2 b.example. alpn=h2 mandatory=1 key7 ipv4hint=192.0.2.2",
        ])
        .starts_with(&["192.0.2.2"]);
    let note =
        PlanReason(ReasonKind::MandatoryUnknown { name: "example.com".into(), keys: vec![7] });
    assert_eq!(ladder.resolution.notes(), core::slice::from_ref(&note));
    assert_eq!(ladder.plan().notes, [note]);
}

//= rfc9460 §2.4.3, §8
//# a record that contradicts itself is rejected, and the reason is reported
#[test]
fn records_that_contradict_themselves_are_ignored() {
    let long_ech = format!("1 . alpn=h2 ech={}", "x".repeat(MAX_ECH + 1));
    let cases = [
        (long_ech.as_str(), RecordFault::Ech),
        ("1 . alpn=h2 mandatory=0", RecordFault::Mandatory),
        ("1 . alpn=h2 mandatory=3", RecordFault::Mandatory),
        ("1 . no-default-alpn", RecordFault::NoAlpn),
        ("1 . alpn=h2 port=0", RecordFault::Port),
        ("1 a..b alpn=h2", RecordFault::Target),
    ];
    for (data, fault) in cases {
        let ladder = TestedResolution::for_network(ipv4_only())
            .answers(&[&format!("example.com HTTPS {data}")])
            .answers(&["example.com A 192.0.2.1"])
            .starts_with(&["192.0.2.1"]);
        let note = PlanReason(ReasonKind::MalformedRecord { name: "example.com".into(), fault });
        assert_eq!(ladder.resolution.notes(), [note], "{data}");
        assert_eq!(ladder.resolution.services()[0].kind, ServiceKind::Origin, "{data}");
    }
}

//= rfc9460 §7.1.1, §9
//# `http/1.1` unless `no-default-alpn` is present
/// Each record's set contains `http/1.1` unless it excludes it (RFC 9460 §7.1.1, §9.2).
#[test]
fn the_default_protocol_belongs_to_the_set() {
    let ladder = TestedResolution::for_network(ipv4_only()).answers(&[
        "example.com HTTPS 1 a.example. alpn=h3",
        "example.com HTTPS 2 b.example. alpn=h3 no-default-alpn",
        "example.com HTTPS 3 c.example.",
    ]);
    let sets: Vec<Vec<_>> =
        ladder.resolution.services().into_iter().map(|service| service.alpn).collect();
    assert_eq!(sets[..3], [vec!["h3", "http/1.1"], vec!["h3"], vec!["http/1.1"]]);
}

/// RFC 9460 §3: the host itself comes last, whatever the records name.
#[test]
fn the_host_itself_comes_last_beside_any_record() {
    let kinds = |line: &str| -> Vec<ServiceKind> {
        let ladder = TestedResolution::for_network(ipv4_only()).answers(&[line]);
        ladder.resolution.services().iter().map(|service| service.kind).collect()
    };
    for record in ["1 . alpn=h2", "1 . alpn=h2 port=8443", "1 svc.example. alpn=h2"] {
        let line = format!("example.com HTTPS {record}");
        assert_eq!(kinds(&line), [ServiceKind::Record(1), ServiceKind::Origin], "{record}");
    }
}

/// ```text
/// example.com AAAA, ten thousand times
/// ```
#[test]
fn ten_thousand_addresses_are_bounded_and_reported() {
    let lines: Vec<_> =
        (0..10_000).map(|at| format!("example.com AAAA 2001:db8::{at:x}:1")).collect();
    let lines: Vec<_> = lines.iter().map(|line| line.as_str()).collect();
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS -"])
        .answers(&lines);
    assert_eq!(addresses(&ladder.plan()).len(), MAX_ADDRESSES);
    let note = PlanReason(ReasonKind::TooManyAddresses {
        name: "example.com".into(),
        record_type: RecordType::Aaaa,
        used: MAX_ADDRESSES,
        ignored: 10_000 - MAX_ADDRESSES,
    });
    assert_eq!(ladder.plan().notes, [note]);
}

/// ```text
/// example.com HTTPS 1000 s0.example. …   and so on, a thousand times, the best one last
/// ```
#[test]
fn a_thousand_records_are_bounded_and_the_best_are_kept() {
    let lines: Vec<_> = (0..1000)
        .map(|at| format!("example.com HTTPS {} s{at}.example. alpn=h2", 1000 - at))
        .collect();
    let lines: Vec<_> = lines.iter().map(|line| line.as_str()).collect();
    let mut ladder = TestedResolution::for_network(dual_stack()).answers(&lines);
    let services = ladder.resolution.services();
    assert_eq!(services.len(), MAX_RECORDS + 1);
    assert_eq!(services[0].name, "s999.example");
    let queries = core::iter::from_fn(|| ladder.resolution.poll_query()).count();
    assert_eq!(queries, 2 * MAX_NAMES, "besides those of the host");
    assert!(queries + 3 <= MAX_QUESTIONS);
    let notes: Vec<_> = ladder.resolution.notes().iter().map(|note| note.to_string()).collect();
    assert_eq!(
        notes,
        [
            "example.com has 1000 HTTPS records: 32 are used",
            "the HTTPS records name 32 hosts: 8 are resolved"
        ]
    );
}

#[test]
fn addresses_that_are_not_unicast_are_not_tried() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS -"])
        .answers(&[
            "example.com AAAA ::",
            "example.com AAAA ff02::1",
            "example.com AAAA ::ffff:192.0.2.1",
            "example.com AAAA 2001:db8::1",
        ])
        .answers(&["example.com A 0.0.0.0", "example.com A 224.0.0.1", "example.com A 192.0.2.1"])
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
    assert_eq!(ladder.resolution.notes().len(), 2);
}

/// Answers that were not requested, have the wrong type or arrive twice do no harm.
#[test]
fn unexpected_answers_do_no_harm() {
    let mut ladder =
        TestedResolution::for_network(ipv4_only()).asks(&["example.com HTTPS", "example.com A"]);
    let (_, _, unasked) = records(&["example.com A 192.0.2.66"]);
    let unknown = DnsAnswer {
        id: QueryId(99),
        records: Ok(unasked.clone()),
        protected: false,
        expired: false,
    };
    ladder.resolution.handle_answer(ms(1), unknown);
    let of_wrong_type =
        DnsAnswer { id: QueryId(0), records: Ok(unasked), protected: false, expired: false };
    ladder.resolution.handle_answer(ms(1), of_wrong_type);
    assert_eq!(ladder.resolution.failures(), [(RecordType::Https, DnsFailure::Malformed)]);
    ladder
        .answers(&["example.com A 192.0.2.1", "example.com A 192.0.2.1"])
        .answers(&["example.com A 192.0.2.2"])
        .starts_with(&["192.0.2.2"]);
}

#[test]
fn failures_are_reported_by_type() {
    let ladder = TestedResolution::for_network(dual_stack())
        .fails("example.com A -", DnsFailure::NoSuchName)
        .answers(&["example.com AAAA -"])
        .fails("example.com HTTPS -", DnsFailure::Timeout);
    assert!(ladder.resolution.is_complete());
    let expected = [
        (RecordType::Https, DnsFailure::Timeout),
        (RecordType::Aaaa, DnsFailure::NoData),
        (RecordType::A, DnsFailure::NoSuchName),
    ];
    assert_eq!(ladder.resolution.failures(), expected);
    ladder.starts_with(&[]);
}
