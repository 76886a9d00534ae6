//! Tests of the grammar of RFC 7838 §3, the lifetime of cache entries, and arbitrary octets.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn origin(host: &str) -> Origin {
    Origin { host: host.to_owned(), port: 443 }
}

fn alternatives(field: &str) -> Vec<Alternative> {
    match parse(field.as_bytes()) {
        Ok(AltSvc::Alternatives(list)) => list,
        other => panic!("{field:?} gave {other:?}"),
    }
}

fn alternative(protocol: &str, host: Option<&str>, port: u16) -> Alternative {
    Alternative {
        protocol: protocol.as_bytes().to_vec(),
        host: host.map(str::to_owned),
        port,
        max_age: DEFAULT_MAX_AGE,
        persist: false,
    }
}

fn any_service(_: &Service) -> bool {
    true
}

//= rfc7838 §3
//# percent-encoding of protocols is decoded
#[test]
fn the_examples_of_the_rfc() {
    assert_eq!(alternatives(r#"h2=":8000""#), [alternative("h2", None, 8000)]);
    assert_eq!(
        alternatives(r#"h2="new.example.org:80""#),
        [alternative("h2", Some("new.example.org"), 80)]
    );
    // An ALPN name with characters that are not allowed in a token: "w=x:y#z" and "x%y".
    assert_eq!(
        alternatives(r#"w%3Dx%3Ay#z=":1", x%25y=":2""#),
        [alternative("w=x:y#z", None, 1), alternative("x%y", None, 2)]
    );
    assert_eq!(
        alternatives(r#"h2="alt.example.com:8000", h2=":443""#),
        [alternative("h2", Some("alt.example.com"), 8000), alternative("h2", None, 443)]
    );
    let aged = alternatives(r#"h2=":443"; ma=3600"#);
    assert_eq!(aged[0].max_age, HOUR);
    let kept = alternatives(r#"h2=":443"; ma=2592000; persist=1"#);
    assert_eq!(kept[0].max_age, Duration::from_secs(2_592_000));
    assert!(kept[0].persist);
}

//= rfc7838 §3
//# `clear` is case-sensitive and invalidates all
#[test]
fn clear_is_case_sensitive_and_wins_over_alternatives() {
    assert_eq!(parse(b"clear"), Ok(AltSvc::Clear));
    assert_eq!(parse(b" clear , h3=\":443\""), Ok(AltSvc::Clear));
    assert_eq!(parse(b"h3=\":443\", clear"), Ok(AltSvc::Clear));
    assert_eq!(parse(b"Clear"), Err(Malformed { at: 5 }));
}

//= rfc7838 §3, §3.1
//# quoted strings; unknown parameters and `persist` other than 1 are ignored
#[test]
fn spaces_empty_elements_quoted_and_unknown_parameters() {
    assert_eq!(
        alternatives(",, h3=\":443\" ;\tma=\"60\" ; x=\"a,b\\\";c\",\t,h2=\":443\";v=1 ,"),
        [
            Alternative { max_age: Duration::from_secs(60), ..alternative("h3", None, 443) },
            alternative("h2", None, 443)
        ]
    );
    assert!(!alternatives(r#"h3=":443";persist=2"#)[0].persist);
    assert_eq!(alternatives(r#"h3="[2001:DB8::1]:443""#)[0].host.as_deref(), Some("[2001:db8::1]"));
    let huge = alternatives(r#"h3=":443";ma=99999999999999999999"#);
    assert_eq!(huge[0].max_age, Duration::from_secs(u64::from(u32::MAX)));
}

//= rfc7838 §3
//# a trailing semicolon is ignored (RFC 9110 §5.6.6)
/// RFC 9110 §5.6.6: a parameter may be missing between or after semicolons.
#[test]
fn a_semicolon_without_a_parameter_is_skipped() {
    let hour = |alternative| Alternative { max_age: HOUR, ..alternative };
    let h3 = || alternative("h3", None, 443);
    for field in [r#"h3=":443";"#, r#"h3=":443" ; "#, r#"h3=":443";;"#] {
        assert_eq!(alternatives(field), [h3()], "{field}");
    }
    assert_eq!(alternatives(r#"h3=":443"; ma=3600;"#), [hour(h3())]);
    assert_eq!(alternatives(r#"h3=":443";; ma=3600"#), [hour(h3())]);
    assert_eq!(
        alternatives(r#"h3=":443"; ma=3600; , h2=":1";"#),
        [hour(h3()), alternative("h2", None, 1)]
    );
}

//= rfc7838 §8
//# an alternative whose host is in U-labels is left out
#[test]
fn an_invalid_alternative_is_skipped() {
    for field in [
        r#"h3=":0""#,
        r#"h3=":65536""#,
        r#"h3=":+443""#,
        r#"h3="443""#,
        r#"h3="a b:443""#,
        r#"h3="[::1:443""#,
        r#"h3="user@host:443""#,
        r#"h3="bücher.example:443""#,
        r#"h3=":443";ma=-1"#,
        r#"h3=":443";ma="""#,
    ] {
        assert_eq!(alternatives(&format!(r#"{field}, h2=":1""#)), [alternative("h2", None, 1)]);
    }
}

//= rfc7838 §3
//# invalid percent-encoding rejects the field, as any syntax error does
#[test]
fn a_syntax_error_rejects_the_whole_field() {
    for field in [
        "",
        " ",
        ",",
        "h3",
        "h3=",
        "h3=:443",
        "h3=\":443",
        "h3=\":443\" x",
        "h3=\":443\";ma",
        "h3=\":443\";ma=",
        "=\":443\"",
        "h%3=\":443\"",
        "h%zz=\":443\"",
        "h3 = \":443\"",
        "h3=\":443\\",
        "h3=\"\u{1}:443\"",
        "h2=\":1\" h3=\":2\"",
    ] {
        assert!(parse(field.as_bytes()).is_err(), "{field:?}");
    }
}

//= hostile client
//# `Alt-Svc` with thousands of entries, of thousands of origins
//= bound: `MAX_ALTERNATIVES`, `MAX_ORIGINS`
#[test]
fn a_field_is_bounded() {
    let many = vec![r#"h3=":443""#; 100].join(",");
    assert_eq!(alternatives(&many).len(), MAX_ALTERNATIVES);
    let long = format!("h3=\":443\";x={}", "y".repeat(MAX_FIELD_BYTES));
    assert_eq!(parse(long.as_bytes()), Err(Malformed { at: MAX_FIELD_BYTES }));
}

//= rfc7838 §3.1
//# an alternative is fresh for 24 hours or `ma`, less the `Age`
#[test]
fn an_entry_is_used_until_it_expires() {
    let mut cache = Cache::new();
    let at = origin("a.example");
    cache.learn(&at, b"h3=\":443\"; ma=3600", Duration::from_secs(600), HOUR);
    assert_eq!(cache.best(&origin("b.example"), HOUR, any_service), None);
    let last = HOUR + Duration::from_secs(2999);
    assert_eq!(cache.best(&at, last, any_service).map(|service| service.port), Some(443));
    assert_eq!(cache.best(&at, HOUR + Duration::from_secs(3000), any_service), None);
    assert!(cache.is_empty());
}

//= rfc7838 §3.1
//# a field replaces all alternatives; a malformed one changes nothing
#[test]
fn a_new_field_replaces_clear_forgets_and_malformed_changes_nothing() {
    let mut cache = Cache::new();
    let at = origin("a.example");
    cache.learn(&at, b"h3=\":8001\"", Duration::ZERO, HOUR);
    cache.learn(&at, b"h3=\":8002\"", Duration::ZERO, HOUR);
    cache.learn(&at, b"h3=", Duration::ZERO, HOUR);
    assert_eq!(cache.malformed(), 1);
    assert_eq!(cache.best(&at, HOUR, any_service).map(|service| service.port), Some(8002));
    cache.learn(&at, b"clear", Duration::ZERO, HOUR);
    assert_eq!(cache.best(&at, HOUR, any_service), None);
    cache.learn(&at, b"h3=\":8002\"; ma=0", Duration::ZERO, HOUR);
    assert!(cache.is_empty());
}

//= rfc7838 §3
//# alternatives are in the server's order: the first that is supported, fresh and not broken is
//# used
#[test]
fn the_best_alternative_is_the_first_that_is_wanted_and_works() {
    let mut cache = Cache::new();
    let at = origin("a.example");
    cache.learn(&at, b"spdy=\":8001\", h3=\"b.example:8002\", h3=\":8003\"", Duration::ZERO, HOUR);
    let h3 = |service: &Service| service.protocol == b"h3";
    let first = cache.best(&at, HOUR, h3).expect("an alternative");
    assert_eq!(first.to_string(), "h3=b.example:8002");
    cache.failed(&at, &first, HOUR);
    assert_eq!(cache.best(&at, HOUR, h3).map(|service| service.port), Some(8003));
    assert_eq!(cache.best(&at, HOUR + BROKEN_FIRST, h3), Some(first.clone()));
    cache.misdirected(&at, &first);
    assert_eq!(cache.best(&at, HOUR + BROKEN_FIRST, h3).map(|service| service.port), Some(8003));
}

//= rfc7838 §2.4
//# an alternative that fails repeatedly is avoided for a time that doubles
#[test]
fn failures_in_a_row_double_the_time_up_to_two_days() {
    let mut broken = BrokenAlternatives::default();
    let at = origin("a.example");
    let service = alternative("h3", None, 443).service();
    broken.failed(&at, &service, HOUR);
    broken.failed(&at, &service, HOUR);
    assert!(broken.is_broken(&at, &service, HOUR + BROKEN_FIRST * 2 - Duration::from_nanos(1)));
    assert!(!broken.is_broken(&at, &service, HOUR + BROKEN_FIRST * 2));
    for _ in 0..100 {
        broken.failed(&at, &service, HOUR);
    }
    assert!(!broken.is_broken(&at, &service, HOUR + BROKEN_MAX));
    broken.worked(&at, &service);
    broken.failed(&at, &service, HOUR);
    assert!(!broken.is_broken(&at, &service, HOUR + BROKEN_FIRST));
}

#[test]
fn a_change_of_network_keeps_persistent_entries_and_clears_broken_ones() {
    let mut cache = Cache::new();
    let (stays, goes) = (origin("a.example"), origin("b.example"));
    cache.learn(&stays, b"h3=\":8001\", h3=\":8002\"; persist=1", Duration::ZERO, HOUR);
    cache.learn(&goes, b"h3=\":8001\"", Duration::ZERO, HOUR);
    let lasting = alternative("h3", None, 8002).service();
    cache.failed(&stays, &lasting, HOUR);
    cache.network_changed();
    assert_eq!(cache.best(&stays, HOUR, any_service), Some(lasting));
    assert_eq!(cache.best(&goes, HOUR, any_service), None);
    assert_eq!(cache.len(), 1);
}

#[test]
fn the_stores_are_bounded() {
    let mut cache = Cache::new();
    let mut broken = BrokenAlternatives::default();
    for number in 0..MAX_ORIGINS + 10 {
        let at = origin(&format!("{number}.example"));
        cache.learn(&at, b"h3=\":443\"", Duration::ZERO, HOUR);
        broken.failed(&at, &alternative("h3", None, 443).service(), HOUR);
    }
    assert_eq!(cache.len(), MAX_ORIGINS);
    assert_eq!(broken.len(), MAX_BROKEN);
    assert_eq!(cache.best(&origin("9.example"), HOUR, any_service), None);
    assert!(cache.best(&origin("10.example"), HOUR, any_service).is_some());
}

//= hostile client
//# `Alt-Svc` with another service's port
//= bound: `is_port_allowed`
#[test]
fn ports_of_other_services_are_refused() {
    let leads_to = |from, port: u16| {
        let (origin, mut cache) = (Origin { port: from, ..origin("a.example") }, Cache::new());
        cache.learn(&origin, format!(r#"h3=":{port}""#).as_bytes(), Duration::ZERO, Duration::ZERO);
        cache.best(&origin, Duration::ZERO, any_service).is_some_and(|service| service.port == port)
    };
    for from in [80, 443, 1024, 8443] {
        for port in [1, 25, 53, 853, 1023] {
            assert!(!leads_to(from, port), "from {from} to {port}");
        }
        for port in [80, 443, 1024, 8443] {
            assert!(leads_to(from, port), "from {from} to {port}");
        }
    }
    assert!(leads_to(853, 853) && leads_to(444, 445));
    // A skipped alternative does not hide a usable one after it.
    let (origin, mut cache) = (origin("a.example"), Cache::new());
    cache.learn(&origin, br#"h3=":25", h3=":8443""#, Duration::ZERO, Duration::ZERO);
    assert_eq!(cache.best(&origin, Duration::ZERO, any_service).map(|best| best.port), Some(8443));
}

//= rfc7838 §5
//# `Alt-Used` has the port if it is not the default
#[test]
fn alt_used_names_the_host_and_a_port_that_is_not_the_default() {
    let service = |host, port| alternative("h3", host, port).service();
    assert_eq!(service(None, 443).alt_used("a.example"), "a.example");
    assert_eq!(service(Some("b.example"), 8443).alt_used("a.example"), "b.example:8443");
}

//= rfc7838 §3
//# a protocol is an ALPN name; `x-eyas-sctp-udp` is none ([alt-svc](../alt-svc.md))
//= otherwise: other clients ignore it
#[test]
fn sctp_ports_are_accepted_only_for_the_origin_itself() {
    let announced = |field: &str| {
        let (origin, mut cache) = (origin("a.example"), Cache::new());
        cache.learn(&origin, field.as_bytes(), Duration::ZERO, Duration::ZERO);
        let is_announced = |service: &Service| service.sctp_udp_port("a.example").is_some();
        cache.best(&origin, Duration::ZERO, is_announced)?.sctp_udp_port("a.example")
    };
    assert_eq!(announced(r#"h3=":443", x-eyas-sctp-udp=":9900""#), Some(9900));
    assert_eq!(announced(r#"x-eyas-sctp-udp="a.example:9900""#), Some(9900));
    assert_eq!(announced(r#"x-eyas-sctp-udp="b.example:9900""#), None);
    assert_eq!(announced(r#"x-eyas-sctp-udp=":53""#), None, "a port of another service");
    assert_eq!(announced(r#"x-eyas-sctp-udp=":9900"; ma=0"#), None);
    assert_eq!(announced(r#"h3=":9900""#), None);
}

fn serialised(alternative: &Alternative) -> String {
    let protocol: String = alternative
        .protocol
        .iter()
        .map(|octet| match octet {
            b'a'..=b'z' | b'0'..=b'9' => char::from(*octet).to_string(),
            _ => format!("%{octet:02X}"),
        })
        .collect();
    let host = alternative.host.as_deref().unwrap_or("");
    let persist = if alternative.persist { "; persist=1" } else { "" };
    let (port, age) = (alternative.port, alternative.max_age.as_secs());
    format!("{protocol}=\"{host}:{port}\"; ma={age}{persist}")
}

prop_compose! {
    fn some_alternative()(
        protocol in proptest::collection::vec(any::<u8>(), 1..20),
        host in proptest::option::of("[a-z0-9]{1,10}(\\.[a-z0-9-]{1,10}){0,3}"),
        port in 1u16..,
        age in any::<u32>(),
        persist in any::<bool>(),
    ) -> Alternative {
        let max_age = Duration::from_secs(u64::from(age));
        Alternative { protocol, host, port, max_age, persist }
    }
}

proptest! {
    //= rfc7838 §3
    //# token octets MUST NOT be percent-encoded; they are accepted anyway
    //= otherwise: the meaning is clear
    #[test]
    fn serialised_values_are_parsed_back(list in proptest::collection::vec(some_alternative(), 1..10)) {
        let field = list.iter().map(serialised).collect::<Vec<_>>().join(", ");
        prop_assert_eq!(parse(field.as_bytes()), Ok(AltSvc::Alternatives(list)));
    }

    #[test]
    fn arbitrary_octets_never_panic(field in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(Malformed { at }) = parse(&field) {
            prop_assert!(at <= field.len());
        }
    }

    #[test]
    fn octets_of_the_grammar_never_panic(field in "[h3=\":;,a %\\\\ma0-9\\[\\]]{0,80}") {
        if let Ok(AltSvc::Alternatives(list)) = parse(field.as_bytes()) {
            prop_assert!(list.iter().all(|alternative| alternative.port != 0));
        }
    }
}
