//! Whole plans as text, as `eyas plan` prints them.

use alloc::{format, string::String, vec::Vec};

use crate::plan::Plan;
use crate::policy::Policy;
use crate::vocabulary::{TestedResolution, dual_stack, https, ipv6_only, nat64};

fn lines_of(plan: &Plan) -> Vec<String> {
    let because = |reasons: &[crate::plan::PlanReason]| {
        let reasons: Vec<String> = reasons.iter().map(|reason| format!("{reason}")).collect();
        reasons.join("; ")
    };
    let mut lines: Vec<String> = plan
        .entries
        .iter()
        .map(|entry| {
            let delay = entry.delay.as_millis();
            format!("+{delay} {}: {}", entry.candidate, because(&entry.reasons))
        })
        .collect();
    let dropped = plan.dropped.iter();
    lines.extend(
        dropped.map(|dropped| format!("not {}: {}", dropped.candidate, because(&dropped.reasons))),
    );
    lines.extend(plan.notes.iter().map(|note| format!("note: {note}")));
    lines
}

#[test]
fn a_dual_stack_host_without_records() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 2001:db8::1", "example.com AAAA 2001:db8::2"])
        .answers(&["example.com A 192.0.2.1"]);
    let expected = [
        "+0 quic [2001:db8::1]:443: no HTTPS record announces QUIC; it is tried on the same port anyway; quic is the most preferred transport",
        "+30 tcp [2001:db8::1]:443 tls: quic is preferred and gets a head start of 30 ms",
        "+220 quic 192.0.2.1:443: no HTTPS record announces QUIC; it is tried on the same port anyway; IPv4's turn: the families alternate; starts 250 ms after the previous attempt",
        "+30 tcp 192.0.2.1:443 tls: IPv4's turn: the families alternate; starts 250 ms after the previous attempt",
        "+220 quic [2001:db8::2]:443: no HTTPS record announces QUIC; it is tried on the same port anyway; IPv6's turn: the families alternate; starts 250 ms after the previous attempt",
        "+30 tcp [2001:db8::2]:443 tls: IPv6's turn: the families alternate; starts 250 ms after the previous attempt",
    ];
    assert_eq!(lines_of(&ladder.plan()), expected);
}

#[test]
fn records_that_point_elsewhere_and_one_that_is_ignored() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&[
            "example.com HTTPS 1 cdn.example. alpn=h2 ipv4hint=192.0.2.7",
            "example.com HTTPS 2 new.example. alpn=h3 mandatory=9 key9",
        ])
        .answers(&["example.com A 192.0.2.1"]);
    let expected = [
        "+0 tcp 192.0.2.7:443 tls: HTTPS record for cdn.example with priority 1; hint of the HTTPS record, until the address of cdn.example itself is known; tcp is the most preferred transport left",
        "+250 tcp 192.0.2.1:443 tls: address of example.com, which no HTTPS record names: tried after those that one names; starts 250 ms after the previous attempt",
        "not quic 192.0.2.7:443: the host has HTTPS records, but none lists h3: it is not available over quic there",
        "not quic 192.0.2.1:443: the host has HTTPS records, but none lists h3: it is not available over quic there",
        "note: HTTPS record of example.com ignored: it requires key 9, which is not supported",
    ];
    assert_eq!(lines_of(&ladder.plan()), expected);
}

#[test]
fn networks_of_one_family() {
    let policy = Policy {
        transports: [crate::candidate::Transport::Tcp].into(),
        ..Policy::of_first_tries()
    };
    let ladder = |network| {
        TestedResolution::new(https("example.com", 443), network, policy.clone(), 1)
            .answers(&["example.com HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1 ipv4hint=192.0.2.1"])
    };
    let record = "HTTPS record for example.com with priority 1";
    let hint = "hint of the HTTPS record, until the address of example.com itself is known";
    let after = "starts 250 ms after the previous attempt";
    let left = "tcp is the most preferred transport";
    assert_eq!(
        lines_of(&ladder(ipv6_only()).plan()),
        [
            format!("+0 tcp [2001:db8::1]:443 tls: {record}; {hint}; {left}"),
            format!(
                "not tcp 192.0.2.1:443 tls: this network has no IPv4 route; {record}; IPv4's turn: \
                 the families alternate; {hint}"
            ),
        ]
    );
    assert_eq!(
        lines_of(&ladder(nat64()).plan()),
        [
            format!("+0 tcp [2001:db8::1]:443 tls: {record}; {hint}; {left}"),
            format!(
                "+250 tcp [64:ff9b::c000:201]:443 tls: {record}; IPv4's turn: the families \
                 alternate; {hint}; represents 192.0.2.1 through the network's NAT64 prefix \
                 64:ff9b::/96; {after}"
            ),
        ]
    );
}
