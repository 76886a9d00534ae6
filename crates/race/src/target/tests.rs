//! Parsing hosts.

use alloc::string::ToString;

use proptest::prelude::*;

use super::*;

fn name(text: &str) -> TargetHost {
    TargetHost::Name(text.into())
}

fn literal(text: &str) -> TargetHost {
    TargetHost::Literal(text.parse().unwrap(), 0)
}

#[test]
fn case_and_trailing_dot_do_not_matter() {
    for text in ["example.com", "EXAMPLE.com", "Example.COM.", "example.com."] {
        assert_eq!(TargetHost::parse(text), Ok(name("example.com")), "{text}");
    }
}

#[test]
fn names_of_other_scripts_become_a_labels() {
    assert_eq!(TargetHost::parse("bücher.example"), Ok(name("xn--bcher-kva.example")));
    assert_eq!(TargetHost::parse("BÜCHER.example."), Ok(name("xn--bcher-kva.example")));
    assert_eq!(TargetHost::parse("xn--bcher-kva.example"), Ok(name("xn--bcher-kva.example")));
    assert_eq!(TargetHost::parse("例え。テスト"), Ok(name("xn--r8jz45g.xn--zckzah")));
    assert_eq!(TargetHost::parse("my_host.example"), Ok(name("my_host.example")));
}

#[test]
fn addresses_are_literals() {
    assert_eq!(TargetHost::parse("192.0.2.1"), Ok(literal("192.0.2.1")));
    assert_eq!(TargetHost::parse("192.0.2.1."), Ok(literal("192.0.2.1")));
    assert_eq!(TargetHost::parse("１９２.0.2.1"), Ok(literal("192.0.2.1")));
    assert_eq!(TargetHost::parse("2001:DB8::1"), Ok(literal("2001:db8::1")));
    assert_eq!(TargetHost::parse("[2001:db8::1]"), Ok(literal("2001:db8::1")));
    assert_eq!(TargetHost::parse("[::ffff:192.0.2.1]"), Ok(literal("192.0.2.1")));
}

#[test]
fn scopes_are_numbers_or_names_of_interfaces() {
    let scoped = |index| Ok(TargetHost::Literal("fe80::1".parse().unwrap(), index));
    assert_eq!(TargetHost::parse("[fe80::1%3]"), scoped(3));
    assert_eq!(TargetHost::parse("fe80::1%3"), scoped(3));
    assert_eq!(TargetHost::parse("[fe80::1%253]"), scoped(3));
    let index_of = |zone: &str| (zone == "eth0").then_some(7);
    assert_eq!(TargetHost::parse_with_scopes("[fe80::1%eth0]", index_of), scoped(7));
    assert_eq!(TargetHost::parse_with_scopes("[fe80::1%25eth0]", index_of), scoped(7));
    assert_eq!(
        TargetHost::parse_with_scopes("[fe80::1%eth9]", index_of),
        Err(TargetError::Interface("eth9".into()))
    );
    assert_eq!(TargetHost::parse("[fe80::1%0]"), Err(TargetError::Interface("0".into())));
    assert_eq!(TargetHost::parse("[fe80::1%]"), Err(TargetError::Interface(String::new())));
    assert_eq!(TargetHost::parse("[2001:db8::1%3]"), Err(TargetError::Scope("3".into())));
}

/// The `25` of a URL may also begin the name or number of an interface: what exists is meant.
#[test]
fn a_zone_that_begins_with_25_is_what_exists() {
    let parse = |zone: &str, interfaces: &[(&str, u32)]| {
        let index_of =
            |zone: &str| interfaces.iter().find(|(name, _)| *name == zone).map(|(_, index)| *index);
        match TargetHost::parse_with_scopes(&format!("[fe80::1%{zone}]"), index_of) {
            Ok(TargetHost::Literal(_, index)) => Some(index),
            _ => None,
        }
    };
    assert_eq!(parse("25g0", &[("25g0", 4), ("g0", 5)]), Some(4));
    assert_eq!(parse("25g0", &[("g0", 5)]), Some(5));
    assert_eq!(parse("2525g0", &[("25g0", 4)]), Some(4));
    assert_eq!(parse("25", &[]), Some(25));
    assert_eq!(parse("2525", &[("25", 25)]), Some(25));
    assert_eq!(parse("253", &[("253", 253)]), Some(253));
    assert_eq!(parse("253", &[("3", 3)]), Some(3));
}

#[test]
fn an_invalid_host_is_refused_with_a_cause() {
    assert_eq!(TargetHost::parse(""), Err(TargetError::Empty));
    assert!(matches!(TargetHost::parse("."), Err(TargetError::Empty | TargetError::Name(_))));
    assert!(matches!(TargetHost::parse("a..b"), Err(TargetError::Name(_))));
    assert!(matches!(TargetHost::parse("exa mple.com"), Err(TargetError::Name(_))));
    assert!(matches!(TargetHost::parse("example.com/path"), Err(TargetError::Name(_))));
    assert!(matches!(TargetHost::parse(&"a".repeat(64)), Err(TargetError::Name(_))));
    assert!(matches!(TargetHost::parse(&"a.".repeat(127)), Ok(TargetHost::Name(_))));
    assert!(matches!(TargetHost::parse(&"a.".repeat(128)), Err(TargetError::Name(_))));
    assert!(matches!(TargetHost::parse("[2001:db8::1"), Err(TargetError::Brackets(_))));
    assert!(matches!(TargetHost::parse("[example.com]"), Err(TargetError::Address(_))));
    for number in ["1.2.3", "256.1.1.1", "0x7f.1", "example.1", "1", "0x7f000001", "1.0x"] {
        assert!(matches!(TargetHost::parse(number), Err(TargetError::Address(_))), "{number}");
    }
}

#[test]
fn every_refusal_says_what_to_do() {
    let message = TargetHost::parse("[fe80::1%eth0]").unwrap_err().to_string();
    assert!(message.contains("no interface eth0"), "{message}");
    let message = TargetHost::parse("300.1.1.1").unwrap_err().to_string();
    assert!(message.contains("300.1.1.1") && message.contains("192.0.2.1"), "{message}");
}

#[test]
fn hosts_print_as_in_an_authority() {
    for text in ["example.com", "192.0.2.1", "[2001:db8::1]", "[fe80::1%3]"] {
        assert_eq!(TargetHost::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Target::https(name("example.com"), 8443).to_string(), "example.com:8443");
}

#[test]
fn localhost_and_names_below_it_are_this_machine() {
    assert!(TargetHost::parse("LOCALHOST.").unwrap().is_localhost());
    assert!(TargetHost::parse("app.localhost").unwrap().is_localhost());
    assert!(!TargetHost::parse("notlocalhost").unwrap().is_localhost());
    assert!(!TargetHost::parse("localhost.example").unwrap().is_localhost());
}

//= hev3 §4.1
//# HTTPS records for HTTP over TLS; none for `http` URLs (RFC 9460 §9.5)
#[test]
fn only_https_at_a_dns_name_asks_for_https_records() {
    assert!(Target::https(name("example.com"), 443).asks_https_records());
    assert!(!Target::https(name("localhost"), 443).asks_https_records());
    assert!(!Target::https(literal("192.0.2.1"), 443).asks_https_records());
    assert!(!Target::http(name("example.com"), 80).asks_https_records());
    let plain = Target::plain(name("example.com"), 7, vec![Transport::Tcp], Security::Tls);
    assert!(!plain.asks_https_records());
}

#[test]
fn protocols_go_to_the_transports_that_carry_them() {
    let target = Target::https(name("example.com"), 443).with_alpn(["h3", "h2"]);
    let (stream_alpn, quic_alpn) = (vec!["h2".into()], vec!["h3".into()]);
    assert_eq!(target.service, TargetService::Http { stream_alpn, quic_alpn });
    let transports = vec![Transport::Quic];
    let plain = Target::plain(name("example.com"), 7, transports.clone(), Security::Tls);
    let alpn = vec!["imap".into(), "h3".into()];
    assert_eq!(plain.with_alpn(["imap", "h3"]).service, TargetService::Plain { transports, alpn });
}

proptest! {
    /// Any text: no panic, and one spelling for each host.
    #[test]
    fn parsing_a_printed_host_returns_the_same_host(text in "\\PC{0,40}") {
        if let Ok(host) = TargetHost::parse(&text) {
            prop_assert_eq!(TargetHost::parse(&host.to_string()), Ok(host));
        }
    }

    /// The same for text that looks like hosts and addresses.
    #[test]
    fn parsing_a_printed_host_like_text_returns_the_same_host(
        text in "[\\[]?[0-9a-fA-Fx%:.\u{fc}\u{3002}_-]{0,24}[\\]]?"
    ) {
        if let Ok(host) = TargetHost::parse(&text) {
            prop_assert_eq!(TargetHost::parse(&host.to_string()), Ok(host));
        }
    }
}
