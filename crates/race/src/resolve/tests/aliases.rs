//! AliasMode: followed within limits, without endless loops.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::dns::DnsFailure;
use crate::reason::{PlanReason, ReasonKind};
use crate::resolve::{MAX_ALIASES, ServiceKind};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, ipv4_only};

fn kinds(ladder: &TestedResolution) -> Vec<(String, ServiceKind)> {
    ladder.resolution.services().into_iter().map(|service| (service.name, service.kind)).collect()
}

//= hev3 §4.2.1
//# an alias alone does not end the wait
//= rfc9460 §2.4.2, §6
//# an alias has no parameters, and leads to the HTTPS records of its target
/// ```text
/// example.com  HTTPS 0 cdn.example.
/// cdn.example  HTTPS 1 . alpn=h3
/// cdn.example  A     192.0.2.7
/// example.com  A     192.0.2.1
/// ```
#[test]
fn an_alias_leads_to_the_records_of_its_target() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .asks(&["example.com HTTPS", "example.com A"])
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["example.com HTTPS 0 CDN.example."])
        .asks(&["cdn.example HTTPS", "cdn.example A"])
        .waits_for(50)
        .answers(&["cdn.example HTTPS 1 . alpn=h3"])
        .waits_for(50)
        .answers(&["cdn.example A 192.0.2.7"])
        .starts_with(&["192.0.2.7", "192.0.2.1"]);
    let expected = [
        ("cdn.example".to_string(), ServiceKind::Record(1)),
        ("cdn.example".to_string(), ServiceKind::Alias),
        ("example.com".to_string(), ServiceKind::Origin),
    ];
    assert_eq!(kinds(&ladder), expected);
}

//= rfc9460 §3
//# the target of an alias that leads to no records is tried before the host
/// RFC 9460 §3: the target of the last alias is tried even if it has addresses only.
///
/// ```text
/// example.com  HTTPS 0 pool.example.
/// pool.example A     192.0.2.7
/// example.com  A     192.0.2.1
/// ```
#[test]
fn an_alias_to_a_name_without_records_goes_before_the_host() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["example.com HTTPS 0 pool.example."])
        .fails("pool.example HTTPS -", DnsFailure::NoData)
        .answers(&["pool.example A 192.0.2.7"])
        .starts_with(&["192.0.2.7", "192.0.2.1"]);
    let expected = [
        ("pool.example".to_string(), ServiceKind::Alias),
        ("example.com".to_string(), ServiceKind::Origin),
    ];
    assert_eq!(kinds(&ladder), expected);
}

//= rfc9460 §2.4.2
//# a loop of aliases is noticed
/// ```text
/// example.com HTTPS 0 a.example.
/// a.example   HTTPS 0 b.example.
/// b.example   HTTPS 0 a.example.
/// ```
#[test]
fn a_loop_is_noticed_and_the_host_itself_is_used() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["example.com HTTPS 0 a.example."])
        .answers(&["a.example HTTPS 0 b.example."])
        .waits_for(50)
        .answers(&["b.example HTTPS 0 a.example."])
        .starts_with(&["192.0.2.1"]);
    assert_eq!(
        ladder.resolution.notes(),
        [PlanReason(ReasonKind::AliasLoop { name: "a.example".into() })]
    );
}

/// ```text
/// example.com HTTPS 0 example.com.
/// ```
#[test]
fn an_alias_to_itself_is_a_loop() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .asks(&["example.com HTTPS", "example.com A"])
        .answers(&["example.com HTTPS 0 example.com."])
        .asks(&[]);
    assert_eq!(
        ladder.resolution.notes(),
        [PlanReason(ReasonKind::AliasLoop { name: "example.com".into() })]
    );
}

//= rfc9460 §2.4.2, §3.1
//# at most 8 aliases are followed, `MAX_ALIASES`; then as if there were no record
/// ```text
/// example.com HTTPS 0 a0.example.
/// a0.example  HTTPS 0 a1.example.   and so on
/// ```
#[test]
fn an_endless_chain_ends() {
    let mut ladder = TestedResolution::for_network(ipv4_only())
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["example.com HTTPS 0 a0.example."]);
    for at in 0..MAX_ALIASES {
        ladder = ladder.waits_for(50);
        let line = format!("a{at}.example HTTPS 0 a{}.example.", at + 1);
        ladder = ladder.answers(&[&line]);
    }
    let ladder = ladder.starts_with(&["192.0.2.1"]);
    let too_long =
        PlanReason(ReasonKind::AliasTooLong { followed: MAX_ALIASES, name: "a8.example".into() });
    assert_eq!(ladder.resolution.notes(), [too_long]);
}

//= rfc9460 §2.5.1, §12
//# an alias to "." is ignored, and reported
/// RFC 9460 §2.5.1: "." says that the service is not available; a client may try all the same.
#[test]
fn an_alias_to_the_root_is_no_alias() {
    let ladder = TestedResolution::for_network(ipv4_only())
        .answers(&["example.com A 192.0.2.1"])
        .answers(&["example.com HTTPS 0 ."])
        .starts_with(&["192.0.2.1"]);
    assert_eq!(
        ladder.resolution.notes(),
        [PlanReason(ReasonKind::AliasToNothing { name: "example.com".into() })]
    );
}

//= rfc9460 §2.4.1
//# ServiceMode records beside AliasMode MUST be ignored
/// RFC 9460 §2.4.1: beside an alias, ServiceMode records are ignored.
#[test]
fn service_records_beside_an_alias_are_ignored() {
    let ladder = TestedResolution::for_network(dual_stack())
        .answers(&[
            "example.com HTTPS 1 . alpn=h3 ipv4hint=192.0.2.1",
            "example.com HTTPS 0 cdn.example.",
        ])
        .waits();
    assert_eq!(addresses(&ladder.plan()), Vec::<String>::new());
}

//= rfc9460 §2.4.2
//# one of several aliases at random
/// RFC 9460 §2.4.2: of several aliases one is drawn, the same for the same seed.
#[test]
fn one_of_several_aliases_is_drawn_by_the_seed() {
    let next = |seed, lines: &[&str]| {
        let target = crate::vocabulary::https("example.com", 443);
        let mut ladder =
            TestedResolution::new(target, ipv4_only(), Default::default(), seed).answers(lines);
        let query = core::iter::from_fn(|| ladder.resolution.poll_query())
            .find(|query| query.name.ends_with(".example"));
        query.unwrap().name
    };
    let lines = ["example.com HTTPS 0 a.example.", "example.com HTTPS 0 b.example."];
    let reversed = [lines[1], lines[0]];
    let drawn: Vec<String> = (0..32).map(|seed| next(seed, &lines)).collect();
    assert!(drawn.iter().any(|name| name == "a.example"));
    assert!(drawn.iter().any(|name| name == "b.example"));
    let drawn_from_reversed: Vec<String> = (0..32).map(|seed| next(seed, &reversed)).collect();
    assert_eq!(drawn, drawn_from_reversed);
}
