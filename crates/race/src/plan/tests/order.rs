//! Transports, families and delays without memory.

use alloc::{format, string::String, vec, vec::Vec};
use core::time::Duration;

use crate::candidate::{Security, Transport};
use crate::plan::{MAX_CANDIDATES, Plan, PlanReason};
use crate::policy::{Policy, SctpSecurity};
use crate::reason::ReasonKind;
use crate::target::{Target, TargetHost};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, https, ms, timetable};

/// ```text
/// example.com AAAA 2001:db8::1
/// example.com A    192.0.2.1
/// ```
fn two_addresses(policy: Policy) -> Plan {
    TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 2001:db8::1"])
        .answers(&["example.com A 192.0.2.1"])
        .plan()
}

//= hev3 §5.3
//# address families alternate in each lane
#[test]
fn each_transport_is_a_lane_with_alternating_families() {
    assert_eq!(
        timetable(&two_addresses(Policy::of_first_tries())),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "250 quic 192.0.2.1", "300 tcp 192.0.2.1"]
    );
}

#[test]
fn the_order_of_transports_is_the_callers() {
    let policy = Policy {
        transports: vec![Transport::Tcp, Transport::Quic],
        head_start: ms(20),
        ..Policy::of_first_tries()
    };
    assert_eq!(
        timetable(&two_addresses(policy)),
        ["0 tcp 2001:db8::1", "20 quic 2001:db8::1", "250 tcp 192.0.2.1", "270 quic 192.0.2.1"]
    );
}

/// DESIGN: no two attempts within 10 ms, even if lanes would meet.
#[test]
fn merged_lanes_keep_the_minimum_delay() {
    let policy = Policy { head_start: ms(250), ..Policy::of_first_tries() };
    assert_eq!(
        timetable(&two_addresses(policy)),
        ["0 quic 2001:db8::1", "250 quic 192.0.2.1", "260 tcp 2001:db8::1", "500 tcp 192.0.2.1"]
    );
    let together = Policy { head_start: Duration::ZERO, ..Policy::of_first_tries() };
    assert_eq!(
        timetable(&two_addresses(together)),
        ["0 quic 2001:db8::1", "10 tcp 2001:db8::1", "250 quic 192.0.2.1", "260 tcp 192.0.2.1"]
    );
}

/// RFC 9621 §4.1, when the caller asks for it.
#[test]
fn a_simultaneous_race_has_no_delays() {
    let plan = two_addresses(Policy { simultaneous: true, ..Policy::of_first_tries() });
    assert_eq!(plan.entries.len(), 4);
    assert!(plan.entries.iter().all(|entry| entry.delay.is_zero()));
}

/// Firefox's 50 ms, doubled each time: the first fallback is fast, and the maximum still holds.
#[test]
fn attempt_delays_grow_by_a_factor() {
    let policy = Policy {
        transports: vec![Transport::Tcp],
        attempt_delay: Duration::from_millis(50),
        attempt_delay_min: Duration::from_millis(50),
        attempt_delay_max: Duration::from_millis(300),
        attempt_delay_factor: 200,
        ..Policy::of_first_tries()
    };
    let host = TargetHost::parse("example.com").unwrap();
    let target = Target::plain(host, 7, vec![Transport::Tcp], Security::Tls);
    let ladder = TestedResolution::new(target, dual_stack(), policy.clone(), 1)
        .answers(&["example.com AAAA 2001:db8::1", "example.com AAAA 2001:db8::2"])
        .answers(&[
            "example.com A 192.0.2.1",
            "example.com A 192.0.2.2",
            "example.com A 192.0.2.3",
        ]);
    let starts = |plan: &crate::plan::Plan| {
        plan.entries.iter().map(|entry| entry.delay.as_millis()).collect::<Vec<_>>()
    };
    assert_eq!(starts(&ladder.plan()), [0, 50, 100, 200, 300]);
    assert!(Policy { attempt_delay_factor: 99, ..policy.clone() }.validated().is_err());
    assert!(Policy { attempt_delay_factor: 401, ..policy.clone() }.validated().is_err());
    assert!(policy.validated().is_ok());
}

/// The six candidates that the paper of 2016 leaves to future work.
#[test]
fn six_candidates_of_three_transports() {
    let transports = vec![Transport::Sctp, Transport::SctpUdp, Transport::Tcp];
    let policy = Policy { transports: transports.clone(), ..Policy::of_first_tries() };
    let host = TargetHost::parse("example.com").unwrap();
    let target = Target::plain(host, 7, transports, Security::Tls);
    let ladder = TestedResolution::new(target, dual_stack(), policy, 1)
        .answers(&["example.com AAAA 2001:db8::1"])
        .answers(&["example.com A 192.0.2.1"]);
    assert_eq!(
        timetable(&ladder.plan()),
        [
            "0 sctp 2001:db8::1",
            "50 sctp-udp 2001:db8::1",
            "100 tcp 2001:db8::1",
            "250 sctp 192.0.2.1",
            "300 sctp-udp 192.0.2.1",
            "350 tcp 192.0.2.1",
        ]
    );
}

/// HTTP/3 runs over QUIC alone, HTTP/2 over streams; a caller that names only one means it for
/// every transport.
#[test]
fn each_transport_offers_the_protocols_that_it_carries() {
    let transports = vec![Transport::Quic, Transport::Tcp];
    let offers = |protocols: &[&str]| -> Vec<Vec<String>> {
        let host = TargetHost::parse("192.0.2.1").unwrap();
        let target = Target::plain(host, 7, transports.clone(), Security::Tls)
            .with_alpn(protocols.iter().copied());
        let plan = TestedResolution::new(target, dual_stack(), Policy::of_first_tries(), 1).plan();
        let names = |entry: &crate::plan::PlanEntry| {
            entry.candidate.alpn.iter().map(|alpn| String::from(alpn.as_str())).collect()
        };
        plan.entries.iter().map(names).collect()
    };
    assert_eq!(offers(&["h3", "h2", "imap"]), [vec!["h3", "imap"], vec!["h2", "imap"]]);
    assert_eq!(offers(&["h3"]), [vec!["h3"], vec!["h3"]]);
    assert_eq!(offers(&["imap"]), [vec!["imap"], vec!["imap"]]);
}

/// The caller decides about security: transports that cannot provide it are left out, and nothing
/// is weakened.
#[test]
fn each_transport_has_the_requested_security() {
    let all = Transport::ALL.to_vec();
    let policy = Policy { transports: all.clone(), ..Policy::of_first_tries() };
    let plan = |security| {
        let host = TargetHost::parse("192.0.2.1").unwrap();
        let target = Target::plain(host, 7, all.clone(), security);
        TestedResolution::new(target, dual_stack(), policy.clone(), 1).plan()
    };
    let securities = |plan: &Plan| -> Vec<_> {
        let of =
            |entry: &crate::plan::PlanEntry| (entry.candidate.transport, entry.candidate.security);
        plan.entries.iter().map(of).collect()
    };
    let (none, tls, dtls) = (Security::None, Security::Tls, Security::Dtls);
    use Transport::{Mptcp, Quic, Sctp, SctpUdp, Tcp};
    assert_eq!(
        securities(&plan(tls)),
        [(Tcp, tls), (Mptcp, tls), (Quic, tls), (Sctp, tls), (SctpUdp, tls)]
    );
    assert_eq!(
        securities(&plan(dtls)),
        [(Tcp, tls), (Mptcp, tls), (Quic, tls), (Sctp, tls), (SctpUdp, dtls)]
    );
    let clear = plan(none);
    assert_eq!(securities(&clear), [(Tcp, none), (Mptcp, none), (Sctp, none), (SctpUdp, none)]);
    assert_eq!(clear.notes, [PlanReason(ReasonKind::AlwaysSecure { transport: Quic })]);
}

/// RFC 3436 and RFC 8261 are equivalent: the caller chooses one, or tries both, each transport once
/// before one of them gets a second chance.
#[test]
fn sctp_inside_udp_has_tls_or_dtls_or_a_candidate_of_each() {
    let securities = |sctp_security| -> Vec<_> {
        let transports = vec![Transport::SctpUdp, Transport::Sctp];
        let policy =
            Policy { transports: transports.clone(), sctp_security, ..Policy::of_first_tries() };
        let host = TargetHost::parse("192.0.2.1").unwrap();
        let target = Target::plain(host, 7, transports, Security::Tls);
        let plan = TestedResolution::new(target, dual_stack(), policy, 1).plan();
        let of =
            |entry: &crate::plan::PlanEntry| (entry.candidate.transport, entry.candidate.security);
        plan.entries.iter().map(of).collect()
    };
    use Security::{Dtls, Tls};
    use Transport::{Sctp, SctpUdp};
    assert_eq!(securities(SctpSecurity::Tls), [(SctpUdp, Tls), (Sctp, Tls)]);
    assert_eq!(securities(SctpSecurity::Dtls), [(SctpUdp, Dtls), (Sctp, Tls)]);
    assert_eq!(securities(SctpSecurity::Both), [(SctpUdp, Tls), (Sctp, Tls), (SctpUdp, Dtls)]);
}

//= hev3 §5.3
//# MAY start with several addresses of the preferred family: `Policy::preferred_family_count`
/// HEv3 §9: Preferred Address Family Count.
#[test]
fn more_of_the_preferred_family_can_go_first() {
    let policy = Policy {
        transports: vec![Transport::Tcp],
        preferred_family_count: 2,
        ..Policy::of_first_tries()
    };
    let ladder = TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
        .answers(&["example.com HTTPS -"])
        .answers(&[
            "example.com AAAA 2001:db8::1",
            "example.com AAAA 2001:db8::2",
            "example.com AAAA 2001:db8::3",
        ])
        .answers(&["example.com A 192.0.2.1", "example.com A 192.0.2.2"]);
    assert_eq!(
        addresses(&ladder.plan()),
        ["2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::3", "192.0.2.2"]
    );
}

//= hev3 §7
//# late answers give the plan of early ones
/// The example of HEv3 §7: IPv4 that arrives late comes next, not last.
#[test]
fn late_answers_take_their_position_in_the_order() {
    let ladder =
        TestedResolution::for_network(dual_stack()).answers(&["example.com HTTPS -"]).answers(&[
            "example.com AAAA 2001:db8::1",
            "example.com AAAA 2001:db8::2",
            "example.com AAAA 2001:db8::3",
        ]);
    assert_eq!(addresses(&ladder.plan()), ["2001:db8::1", "2001:db8::2", "2001:db8::3"]);
    let ladder = ladder.wait_milliseconds(80).answers(&["example.com A 192.0.2.1"]);
    assert_eq!(
        addresses(&ladder.plan()),
        ["2001:db8::1", "192.0.2.1", "2001:db8::2", "2001:db8::3"]
    );
}

/// With more candidates than the limit, a note says so and no transport is cut off.
#[test]
fn candidates_are_bounded() {
    let lines: Vec<String> = (1..=32)
        .map(|at| {
            let hints: Vec<String> = (0..64).map(|hint| format!("192.0.{at}.{hint}")).collect();
            format!("example.com HTTPS {at} s{at}.example. alpn=h2,h3 ipv4hint={}", hints.join(","))
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let plan = TestedResolution::for_network(dual_stack()).answers(&lines).plan();
    assert_eq!(plan.entries.len(), MAX_CANDIDATES);
    let over = |transport| {
        plan.entries.iter().filter(|entry| entry.candidate.transport == transport).count()
    };
    assert_eq!(over(Transport::Quic), over(Transport::Tcp));
    let ignored = 32 * 64 * 2 - MAX_CANDIDATES;
    assert!(
        plan.notes
            .contains(&PlanReason(ReasonKind::TooManyCandidates { used: MAX_CANDIDATES, ignored }))
    );
}
