//! The effect of HTTPS records on the order: priorities, protocols, ports.

use alloc::{string::String, vec, vec::Vec};

use crate::candidate::Transport;
use crate::plan::PlanReason;
use crate::policy::Policy;
use crate::reason::ReasonKind;
use crate::target::{Target, TargetService};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, https, ipv4_only, timetable};

fn with_seed(seed: u64) -> TestedResolution {
    TestedResolution::new(https("example.com", 443), ipv4_only(), Policy::of_first_tries(), seed)
}

//= hev3 §5.2
//# services by priority, addresses without a service last
/// ```text
/// example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.2
/// example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1
/// example.com A     192.0.2.9
/// ```
#[test]
fn services_go_by_priority_and_the_host_itself_last() {
    let ladder = with_seed(1)
        .answers(&[
            "example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.2",
            "example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1",
        ])
        .answers(&["example.com A 192.0.2.9"]);
    assert_eq!(
        timetable(&ladder.plan()),
        ["0 tcp 192.0.2.1", "250 tcp 192.0.2.2", "500 tcp 192.0.2.9"]
    );
}

//= hev3 §5.2, §6
//# a priority is a group, whose endpoints start before the next group's; running attempts go on
/// Each priority is raced over all its transports before the next one's turn.
#[test]
fn a_priority_is_a_block() {
    let ladder = with_seed(1).answers(&[
        "example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1",
        "example.com HTTPS 2 b.example. alpn=h2,h3 ipv4hint=192.0.2.2",
    ]);
    assert_eq!(
        timetable(&ladder.plan()),
        ["0 tcp 192.0.2.1", "250 quic 192.0.2.2", "300 tcp 192.0.2.2"]
    );
}

//= hev3 §5.2
//# equal priorities are shuffled, by the seed of the race
/// ```text
/// example.com HTTPS 1 a.example. …    equal priorities: drawn by the seed, and so balanced
/// example.com HTTPS 1 b.example. …
/// example.com HTTPS 1 c.example. …
/// ```
#[test]
fn equal_priorities_are_shuffled_by_the_seed() {
    let lines = [
        "example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1",
        "example.com HTTPS 1 b.example. alpn=h2 ipv4hint=192.0.2.2",
        "example.com HTTPS 1 c.example. alpn=h2 ipv4hint=192.0.2.3",
    ];
    let order = |seed, lines: &[&str]| addresses(&with_seed(seed).answers(lines).plan());
    let mut first = [0; 3];
    for seed in 0..300 {
        let drawn: Vec<String> = order(seed, &lines);
        assert_eq!(drawn.len(), 3);
        let reversed = [lines[2], lines[0], lines[1]];
        assert_eq!(drawn, order(seed, &reversed), "the server's order does not matter");
        for (at, count) in first.iter_mut().enumerate() {
            *count += usize::from(drawn[0] == alloc::format!("192.0.2.{}", at + 1));
        }
    }
    assert!(first.iter().all(|count| (60..140).contains(count)), "{first:?}");
}

/// The paper of 2022: HTTP/3 is raced even if nothing announces it.
#[test]
fn without_records_quic_is_tried_on_the_same_port() {
    let plan = with_seed(1).answers(&["example.com A 192.0.2.1"]).plan();
    assert_eq!(timetable(&plan), ["0 quic 192.0.2.1", "50 tcp 192.0.2.1"]);
    assert!(plan.entries[0].reasons.contains(&PlanReason(ReasonKind::QuicUnannounced)));
    assert_eq!(plan.entries[0].candidate.alpn, ["h3"]);
    assert_eq!(plan.entries[1].candidate.alpn, ["h2", "http/1.1"]);
}

/// If there are records, they decide.
#[test]
fn without_h3_in_any_record_quic_is_dropped() {
    let plan = with_seed(1)
        .answers(&["example.com HTTPS 1 . alpn=h2"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 tcp 192.0.2.1"]);
    assert_eq!(plan.dropped.len(), 1);
    let expected = PlanReason(ReasonKind::NotInAnyRecord {
        transport: Transport::Quic,
        wanted: vec!["h3".into()],
    });
    assert_eq!(plan.dropped[0].reasons, [expected]);
    assert_eq!(plan.dropped[0].candidate.transport, Transport::Quic);
}

//= hev3 §5.1
//# transports are lanes of a group
/// ```text
/// example.com HTTPS 1 a.example. alpn=h3 no-default-alpn
/// example.com HTTPS 2 b.example. alpn=h2
/// ```
#[test]
fn each_record_decides_for_its_own_service() {
    let plan = with_seed(1)
        .answers(&[
            "example.com HTTPS 1 a.example. alpn=h3 no-default-alpn ipv4hint=192.0.2.1",
            "example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.2",
        ])
        .plan();
    assert_eq!(timetable(&plan), ["0 quic 192.0.2.1", "250 tcp 192.0.2.2"]);
    let dropped: Vec<_> = plan.dropped.iter().map(|dropped| dropped.candidate.transport).collect();
    assert_eq!(dropped, [Transport::Tcp, Transport::Quic]);
    for dropped in &plan.dropped {
        assert!(matches!(dropped.reasons[..], [PlanReason(ReasonKind::NotInRecord { .. })]));
    }
}

//= hev3 §6.2
//# transports by RFC 9460 §7.1.2
/// RFC 9460 §7.1.2: a record allows or excludes a transport, but does not restrict what TLS
/// negotiates, so that an attacker who can change DNS cannot choose an older protocol.
#[test]
fn a_record_does_not_narrow_what_is_offered() {
    let plan = with_seed(1).answers(&["example.com HTTPS 1 . ipv4hint=192.0.2.1"]).plan();
    assert_eq!(plan.entries[0].candidate.alpn, ["h2", "http/1.1"]);
}

//= hev3 §6.2
//# no candidate for a service without a common protocol
/// The draft's §6.2 example: a caller without HTTP/3 and a service with nothing else.
#[test]
fn a_service_without_a_common_protocol_is_not_tried() {
    let target = Target {
        absolute: false,
        service: TargetService::Http {
            stream_alpn: vec!["h2".into(), "http/1.1".into()],
            quic_alpn: vec![],
        },
        ..https("example.com", 443)
    };
    let plan = TestedResolution::new(target, dual_stack(), Policy::of_first_tries(), 1)
        .answers(&[
            "example.com HTTPS 1 svc1.example. alpn=h3 no-default-alpn ipv6hint=2001:db8::2",
        ])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 tcp 192.0.2.1"], "the host itself, to which no record leads");
    assert_eq!(plan.dropped.len(), 1);
    assert_eq!(plan.notes, [PlanReason(ReasonKind::NotSpoken { transport: Transport::Quic })]);
}

/// A record that arrives late replaces what was assumed without it.
#[test]
fn a_late_record_is_applied() {
    let ladder = with_seed(1).answers(&["example.com A 192.0.2.1"]).wait_milliseconds(60);
    assert_eq!(timetable(&ladder.plan()), ["0 quic 192.0.2.1", "50 tcp 192.0.2.1"]);
    let ladder = ladder.answers(&["example.com HTTPS 1 . alpn=h2 port=8443"]);
    let plan = ladder.plan();
    let sockets: Vec<_> =
        plan.entries.iter().map(|entry| entry.candidate.address.to_string()).collect();
    assert_eq!(sockets, ["192.0.2.1:8443", "192.0.2.1:443"]);
}

/// The same address under two names is the same attempt on the wire.
#[test]
fn what_is_the_same_on_the_wire_is_tried_once() {
    let plan = with_seed(1)
        .answers(&[
            "example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1",
            "example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.1",
        ])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 tcp 192.0.2.1"]);
    assert_eq!(plan.entries[0].candidate.priority, Some(1));
}

fn beside_records() -> PlanReason {
    PlanReason(ReasonKind::BesideRecords { name: "example.com".into() })
}

//= rfc9460 §3
//# an SVCB-optional client: the host itself is tried last, unless ECH is relied on (RFC 9848 §5.1)
/// RFC 9460 §3: when what the records lead to has failed, the client connects as if there were
/// none.
///
/// ```text
/// example.com HTTPS 1 . alpn=h3 no-default-alpn
/// example.com A     192.0.2.1
/// ```
#[test]
fn candidates_without_records_follow_those_of_records() {
    let plan = with_seed(1)
        .answers(&["example.com HTTPS 1 . alpn=h3 no-default-alpn"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 quic 192.0.2.1", "250 tcp 192.0.2.1"]);
    assert!(plan.entries[1].reasons.contains(&beside_records()));
    assert_eq!(plan.entries[1].candidate.priority, None);
    assert_eq!(plan.dropped, [], "what is tried is not dropped as well");
}

//= hev3 §6.2
//# the host itself is tried as if there were no record (RFC 9460 §3), last
/// RFC 9460 §8: a record without a supported protocol is not compatible, as if there were none.
#[test]
fn a_client_without_quic_still_reaches_a_host_whose_records_list_only_h3() {
    let target = Target {
        absolute: false,
        service: TargetService::Http { stream_alpn: vec!["http/1.1".into()], quic_alpn: vec![] },
        ..https("example.com", 443)
    };
    let plan = TestedResolution::new(target, ipv4_only(), Policy::of_first_tries(), 1)
        .answers(&["example.com HTTPS 1 . alpn=h3 no-default-alpn"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 tcp 192.0.2.1"]);
    assert!(plan.entries[0].reasons.contains(&beside_records()));
}

//= rfc9460 §3
//# the host itself is tried with the transports that would be tried without records
/// The reverse: the caller supports only QUIC, and no record lists it.
#[test]
fn a_quic_only_client_still_tries_a_host_whose_records_list_only_h2() {
    let policy = Policy { transports: vec![Transport::Quic], ..Policy::of_first_tries() };
    let plan = TestedResolution::new(https("example.com", 443), ipv4_only(), policy, 1)
        .answers(&["example.com HTTPS 1 . alpn=h2"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 quic 192.0.2.1"]);
    let reasons = &plan.entries[0].reasons;
    assert!(
        reasons.contains(&beside_records())
            && reasons.contains(&PlanReason(ReasonKind::QuicUnannounced))
    );
}

//= rfc9460 §3
//# the final target of an alias, with the origin's port and no parameters, before the host
/// RFC 9460 §3: after an alias its target without parameters, and only then the host itself.
///
/// ```text
/// example.com HTTPS 0 cdn.example.
/// cdn.example HTTPS 1 . alpn=h3 no-default-alpn port=8443
/// cdn.example A     192.0.2.7
/// example.com A     192.0.2.1
/// ```
#[test]
fn the_target_of_an_alias_without_parameters_goes_before_the_host() {
    let plan = with_seed(1)
        .answers(&["example.com HTTPS 0 cdn.example."])
        .answers(&["cdn.example HTTPS 1 . alpn=h3 no-default-alpn port=8443"])
        .answers(&["cdn.example A 192.0.2.7"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    let tried: Vec<String> = plan
        .entries
        .iter()
        .map(|entry| alloc::format!("{} {}", entry.candidate.transport, entry.candidate.address))
        .collect();
    let expected = [
        "quic 192.0.2.7:8443",
        "quic 192.0.2.7:443",
        "tcp 192.0.2.7:443",
        "quic 192.0.2.1:443",
        "tcp 192.0.2.1:443",
    ];
    assert_eq!(tried, expected);
}

//= rfc9848 §5.1
//# a client without ECH falls back, but not to a record's endpoint without its configuration
/// A caller that does not rely on ECH falls back, but not to the same endpoint without its ECH.
#[test]
fn a_service_of_a_record_is_not_tried_again_without_its_ech() {
    let plan = with_seed(1)
        .answers(&["example.com HTTPS 1 . alpn=h3 no-default-alpn ech=keys"])
        .answers(&["example.com A 192.0.2.1"])
        .plan();
    assert_eq!(timetable(&plan), ["0 quic 192.0.2.1", "250 tcp 192.0.2.1"]);
    assert_eq!(plan.entries[0].candidate.ech, Some(b"keys".to_vec()));
}

/// A candidate beyond the limit is not counted twice because a record leads to it.
#[test]
fn what_is_covered_by_a_record_is_not_counted_as_left_out() {
    let lines: Vec<_> =
        (0..64).map(|at| alloc::format!("example.com AAAA 2001:db8::{at:x}:1")).collect();
    let aaaa: Vec<_> = lines.iter().map(String::as_str).collect();
    let lines: Vec<_> = (0..64).map(|at| alloc::format!("example.com A 192.0.2.{at}")).collect();
    let a: Vec<_> = lines.iter().map(String::as_str).collect();
    let plan = TestedResolution::new(https("example.com", 443), dual_stack(), Policy::default(), 1)
        .answers(&["example.com HTTPS 1 . alpn=h3,h2"])
        .answers(&aaaa)
        .answers(&a)
        .plan();
    assert_eq!((plan.entries.len(), plan.notes), (256, vec![]));
}
