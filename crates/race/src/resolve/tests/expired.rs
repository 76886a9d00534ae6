//! Expired answers, until the new ones arrive (optimistic DNS).

use crate::candidate::Security;
use crate::dns::{DnsFailure, RecordType};
use crate::policy::Policy;
use crate::target::{Target, TargetHost};
use crate::vocabulary::{TestedResolution, addresses, dual_stack, https, ipv4_only};

const AAAA: [&str; 2] = ["example.com AAAA 2001:db8::1", "example.com AAAA 2001:db8::2"];
const NEW_AAAA: [&str; 2] = ["example.com AAAA 2001:db8::2", "example.com AAAA 2001:db8::3"];
const HTTPS: [&str; 1] = ["example.com HTTPS 1 . alpn=h3,h2"];
const ALL_THREE: [&str; 3] = ["example.com HTTPS", "example.com AAAA", "example.com A"];

fn texts(tested: &TestedResolution) -> Vec<String> {
    tested.resolution.notes().iter().map(ToString::to_string).collect()
}

/// Whether the first entry of the plan says that its address has expired.
fn is_marked(tested: &TestedResolution) -> bool {
    let plan = tested.plan();
    let marked = "from an answer for example.com whose time to live is over";
    plan.entries[0].reasons.iter().any(|reason| reason.to_string() == marked)
}

//= hev3 §4.4
//# expired answers are used while the new ones are awaited
#[test]
fn a_race_begins_with_expired_answers() {
    let tested = TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .answers_expired(&HTTPS)
        .answers_expired(&AAAA)
        .starts_with(&["2001:db8::1", "2001:db8::2"]);
    assert!(is_marked(&tested));
    assert!(texts(&tested).contains(
        &"AAAA answer for example.com: its time to live is over, and it is used until the new one \
          arrives"
            .to_owned()
    ));
    let tested = tested.fails("example.com A -", DnsFailure::NoData);
    assert!(!tested.resolution.is_complete(), "two answers are still awaited");
    let tested = tested.answers(&HTTPS).answers(&AAAA);
    assert!(tested.resolution.is_complete());
    assert!(!is_marked(&tested));
    assert_eq!(texts(&tested), Vec::<String>::new());
}

//= hev3 §4.4
//# endpoints that are not in the new answer are removed
#[test]
fn the_new_answer_replaces_the_expired_one() {
    let tested = TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .answers_expired(&HTTPS)
        .answers_expired(&AAAA)
        .answers(&NEW_AAAA)
        .starts_with(&["2001:db8::2", "2001:db8::3"]);
    for failure in [DnsFailure::NoSuchName, DnsFailure::NoData] {
        let gone = TestedResolution::for_network(dual_stack())
            .asks(&ALL_THREE)
            .answers_expired(&AAAA)
            .fails("example.com AAAA -", failure.clone());
        assert_eq!(addresses(&gone.plan()), Vec::<String>::new());
        assert_eq!(gone.resolution.failures(), [(RecordType::Aaaa, failure)]);
    }
    let late = tested.answers_expired(&AAAA);
    assert_eq!(addresses(&late.plan()), ["2001:db8::2", "2001:db8::3"], "it comes too late");
}

/// RFC 8767: stale data is better than none. In either order.
#[test]
fn an_expired_answer_stays_if_no_server_answers() {
    let failures = [
        DnsFailure::Timeout,
        DnsFailure::ServerFailure,
        DnsFailure::Unreachable,
        DnsFailure::Malformed,
        DnsFailure::Local("no port".into()),
    ];
    for (failure, comes_first) in failures.iter().flat_map(|why| [(why, false), (why, true)]) {
        let tested = TestedResolution::for_network(ipv4_only());
        let tested = tested.asks(&["example.com HTTPS", "example.com A"]);
        let expired = ["example.com A 192.0.2.1"];
        let tested = match comes_first {
            true => tested.fails("example.com A -", failure.clone()).answers_expired(&expired),
            false => tested.answers_expired(&expired).fails("example.com A -", failure.clone()),
        };
        let tested = tested.fails("example.com HTTPS -", DnsFailure::NoData);
        assert!(tested.resolution.is_complete(), "nothing more is awaited");
        assert_eq!(addresses(&tested.plan()), ["192.0.2.1"]);
        let note = format!(
            "A answer for example.com: its time to live is over, and it is used because there is no \
             new one ({})",
            failure.name()
        );
        assert_eq!(texts(&tested), [note]);
    }
}

#[test]
fn an_expired_absence_of_records_is_not_used() {
    let tested = TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .answers_expired(&["example.com HTTPS -"])
        .fails_expired("example.com A -", DnsFailure::NoSuchName)
        .answers_expired(&AAAA)
        .waits_for(50);
    assert_eq!(texts(&tested).len(), 1);
    tested.fails("example.com HTTPS -", DnsFailure::NoData).starts_with(&AAAA.map(last_word));
}

fn last_word(line: &str) -> &str {
    line.rsplit(' ').next().unwrap()
}

/// An ECH configuration that is too old is mended by the server; that there was none proves
/// nothing.
#[test]
fn expired_records_without_ech_are_not_relied_on() {
    let relying = || {
        let policy = Policy { rely_on_ech: true, ..Policy::default() };
        TestedResolution::new(https("example.com", 443), dual_stack(), policy, 7)
            .protected()
            .asks(&ALL_THREE)
            .answers_expired(&AAAA)
    };
    let without = relying().answers_expired(&["example.com HTTPS 1 . alpn=h2"]).waits();
    without.answers(&["example.com HTTPS 1 . alpn=h2 ech=new"]).starts_with(&AAAA.map(last_word));
    let with = relying()
        .answers_expired(&["example.com HTTPS 1 . alpn=h2 ech=old"])
        .starts_with(&AAAA.map(last_word));
    assert_eq!(with.plan().entries[0].candidate.ech.as_deref(), Some(&b"old"[..]));
    let with = with.answers(&["example.com HTTPS 1 . alpn=h2 ech=new"]);
    assert_eq!(with.plan().entries[0].candidate.ech.as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_peer_that_proves_nothing_gets_no_expired_answer() {
    let host = TargetHost::parse("example.com").unwrap();
    for security in [Security::None, Security::Tls] {
        let target = Target {
            security,
            ..Target::plain(host.clone(), 443, Policy::default().transports, security)
        };
        let tested = TestedResolution::new(target, dual_stack(), Policy::default(), 7)
            .asks(&["example.com AAAA", "example.com A"])
            .answers_expired(&AAAA);
        assert_eq!(tested.resolution.may_move_on(tested.now), security == Security::Tls);
    }
}
