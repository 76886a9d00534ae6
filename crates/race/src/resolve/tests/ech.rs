//! ECH over protected DNS: nothing begins without the records.

use crate::dns::DnsFailure;
use crate::policy::Policy;
use crate::reason::{PlanReason, ReasonKind};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, https};

fn relying() -> TestedResolution {
    let policy = Policy { rely_on_ech: true, ..Policy::default() };
    TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
}

const AAAA: [&str; 1] = ["example.com AAAA 2001:db8::1"];
const A: [&str; 1] = ["example.com A 192.0.2.1"];

//= hev3 §6.1, §6.3
//# MUST wait for records over protected DNS, if ECH is relied on
/// ```text
///   0 ms  AAAA, A (protected)      wait, whatever the Resolution Delay
/// 500 ms  HTTPS with ech           start
/// ```
#[test]
fn protected_dns_is_waited_for() {
    let ladder = relying()
        .protected()
        .answers(&AAAA)
        .answers(&A)
        .waits()
        .wait_milliseconds(500)
        .waits()
        .answers(&["example.com HTTPS 1 . alpn=h2 ech=keys"])
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
    let plan = ladder.plan();
    assert!(plan.entries.iter().all(|entry| entry.candidate.ech == Some(b"keys".to_vec())));
}

//= hev3 §6.3
//# records are not waited for over plain DNS
/// Records that any attacker can withhold are not worth waiting for.
#[test]
fn unprotected_dns_is_not_waited_for() {
    relying()
        .answers(&AAAA)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
}

/// A caller that cannot use ECH has nothing to wait for.
#[test]
fn without_reliance_protection_changes_nothing() {
    TestedResolution::for_network(dual_stack())
        .protected()
        .answers(&AAAA)
        .answers(&A)
        .waits_for(50);
}

//= hev3 §6.3
//# if the records cannot be fetched over protected DNS, a race that relies on ECH ends
/// RFC 9460 §3.1: SERVFAIL or no answer over protected DNS may be an attack.
#[test]
fn records_that_cannot_be_fetched_end_the_race() {
    let ladder = relying()
        .protected()
        .answers(&AAAA)
        .answers(&A)
        .fails("example.com HTTPS -", DnsFailure::ServerFailure)
        .starts_with(&[]);
    assert!(ladder.resolution.is_complete());
    assert!(ladder.plan().entries.is_empty());
    let note = ladder.plan().notes.pop().unwrap().to_string();
    assert!(note.contains("protected") && note.contains("example.com"), "{note}");
    let failures = ladder.resolution.failures();
    assert_eq!(failures, [(crate::dns::RecordType::Https, DnsFailure::ServerFailure)]);
}

//= rfc9460 §2.2
//# a set with a malformed record counts as none, even if the caller relies on records
/// RFC 9460 §2.2: malformed records are rejected as a whole, as if there were none.
#[test]
fn malformed_protected_records_count_as_none() {
    relying()
        .protected()
        .answers(&AAAA)
        .fails("example.com HTTPS -", DnsFailure::Malformed)
        .starts_with(&["2001:db8::1"]);
}

/// The absence of records is an answer, too.
#[test]
fn a_protected_denial_lets_the_race_begin() {
    relying()
        .protected()
        .answers(&AAAA)
        .fails("example.com HTTPS -", DnsFailure::NoData)
        .starts_with(&["2001:db8::1"]);
}

//= hev3 §5.1, §5.1.1
//# if ECH is relied on, services with it are a group before the others; otherwise it changes no
//# order
/// ```text
/// example.com HTTPS 1 plain alpn=h2
/// example.com HTTPS 2 .     alpn=h2 ech=keys
/// ```
#[test]
fn services_with_ech_go_first_if_it_is_relied_on() {
    let ladder = |policy| {
        TestedResolution::new(https("example.com", 443), dual_stack(), policy, 1)
            .answers(&[
                "example.com HTTPS 1 plain.example alpn=h2 ipv4hint=192.0.2.7",
                "example.com HTTPS 2 . alpn=h2 ech=keys ipv4hint=192.0.2.8",
            ])
            .plan()
    };
    assert_eq!(addresses(&ladder(Policy::default())), ["192.0.2.7", "192.0.2.8"]);
    let relying = Policy { rely_on_ech: true, ..Policy::default() };
    assert_eq!(addresses(&ladder(relying)), ["192.0.2.8", "192.0.2.7"]);
}

//= rfc9848 §5.1, §6
//# if all endpoints have ECH, MUST be SVCB-reliant, whether or not DNS is protected
/// RFC 9848 §5.1: if every record has ECH, the records are not bypassed, whether or not DNS is
/// protected.
#[test]
fn if_all_records_have_ech_nothing_bypasses_them() {
    const ECH: [&str; 1] = ["example.com HTTPS 1 svc.example alpn=h2 ech=keys ipv4hint=192.0.2.7"];
    for ladder in [relying().protected(), relying()] {
        let ladder = ladder.answers(&ECH).answers(&A);
        let plan = ladder.plan();
        assert_eq!(addresses(&plan), ["192.0.2.7"]);
        assert_eq!(
            plan.notes,
            [PlanReason(ReasonKind::OnlyWithEch { name: "example.com".into() })]
        );
    }
    let ladder = TestedResolution::for_network(dual_stack()).answers(&ECH).answers(&A);
    assert_eq!(addresses(&ladder.plan()), ["192.0.2.7", "192.0.2.1"]);
}

//= rfc9848 §5.1
//# one endpoint without ECH allows fallback
/// If the zone itself offers a service without ECH, the host may be tried as well.
#[test]
fn one_record_without_ech_allows_a_bypass() {
    let ladder = relying()
        .protected()
        .answers(&[
            "example.com HTTPS 1 svc.example alpn=h2 ech=keys ipv4hint=192.0.2.7",
            "example.com HTTPS 2 old.example alpn=h2 ipv4hint=192.0.2.8",
        ])
        .answers(&A);
    assert_eq!(addresses(&ladder.plan()), ["192.0.2.7", "192.0.2.8", "192.0.2.1"]);
}

//= hev3 §6.3
//# one unprotected DNS answer makes the others unprotected
/// ```text
/// 0 ms  A (protected), AAAA (in the clear)    50 ms timer: the records can be withheld
/// ```
#[test]
fn one_protected_answer_does_not_vouch_for_the_others() {
    relying()
        .protected()
        .answers(&A)
        .waits()
        .unprotected()
        .answers(&AAAA)
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
}

//= hev3 §6.3
//# only a protected failure of the records ends a race that relies on ECH
/// A failure that could have been forged does not end the race, whatever else was protected; one
/// that could not have been ends it, whatever else was not.
#[test]
fn only_a_protected_failure_about_the_records_ends_the_race() {
    relying()
        .protected()
        .answers(&AAAA)
        .unprotected()
        .fails("example.com HTTPS -", DnsFailure::ServerFailure)
        .starts_with(&["2001:db8::1"]);
    relying()
        .answers(&AAAA)
        .answers(&A)
        .protected()
        .fails("example.com HTTPS -", DnsFailure::ServerFailure)
        .starts_with(&[]);
}

//= rfc9460 §3.1
//# over protected DNS a failure ends the attempt, if the answer for the records was protected
/// A protected answer does not secure an alias that could have been forged.
#[test]
fn an_unprotected_alias_leads_to_nothing_protected() {
    relying()
        .answers(&["example.com HTTPS 0 cdn.example."])
        .protected()
        .answers(&["cdn.example A 192.0.2.7"])
        .fails("cdn.example HTTPS -", DnsFailure::ServerFailure)
        .fails("cdn.example AAAA -", DnsFailure::NoData)
        .starts_with(&["192.0.2.7"]);
}
