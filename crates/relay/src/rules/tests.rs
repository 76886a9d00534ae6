use eyas::race::evidence::NetworkId;
use eyas::race::io::SourceAddress;

use super::*;

const REMOTE_CLIENT: &str = "198.51.100.7";
const DENIED: RuleVerdict = RuleVerdict::Denied(DenialReason::Rule);

fn rules(allow: &[&str], deny: &[&str]) -> DestinationRules {
    let read = |texts: &[&str]| texts.iter().map(|text| text.parse().expect(text)).collect();
    DestinationRules { allow: read(allow), deny: read(deny), resolved_elsewhere: false }
}

/// Returns the rules for a client at an address, with a port or without, of a proxy without addresses.
fn client_rules(rules: DestinationRules, client: &str) -> ClientRules {
    on_network(rules, client, &[], &[])
}

/// Returns the same on a network with these addresses and NAT64 prefixes.
fn on_network(
    rules: DestinationRules,
    client: &str,
    sources: &[(&str, u8)],
    pref64: &[(&str, u8)],
) -> ClientRules {
    let ip = |text: &str| text.parse::<IpAddr>().expect(text);
    let source = |(address, prefix_len): &(&str, u8)| SourceAddress {
        address: ip(address),
        prefix_len: *prefix_len,
        deprecated: false,
        routed: true,
    };
    let network = NetworkView {
        id: NetworkId("test".into()),
        sources: sources.iter().map(source).collect(),
        pref64: pref64.iter().map(|(prefix, len)| (prefix.parse().expect(prefix), *len)).collect(),
        lacking: Vec::new(),
    };
    let client = match client.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip(),
        Err(_) => ip(client),
    };
    ClientRules::new(&Arc::new(rules), client, Arc::new(network))
}

fn permits(rules: &ClientRules, address: &str) -> bool {
    rules.of_address(address.parse().expect("an address"), 443).is_ok()
}

fn may(rules: &DestinationRules, address: &str, client: &str) -> bool {
    permits(&client_rules(rules.clone(), client), address)
}

//= rfc9298 §7
//# the proxy is for users, or loopback alone; others reach no target of its machine
#[test]
fn remote_clients_cannot_reach_private_addresses() {
    let rules = DestinationRules::default();
    for restricted in [
        "127.0.0.1",
        "127.9.9.9",
        "10.1.1.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b:1::1",
        "fec0::1",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "100::1",
        "2001:2::1",
        "2001:10::1",
        "2001:1::4",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "ff02::1",
        "64:ff9b::192.0.2.1",
        "2002:c612:1::1",
    ] {
        assert!(!may(&rules, restricted, REMOTE_CLIENT), "{restricted}");
        assert!(
            may(&rules, restricted, "127.0.0.1") && may(&rules, restricted, "::1"),
            "{restricted}"
        );
    }
    for public in [
        "192.33.4.12",
        "100.128.0.1",
        "192.0.0.9",
        "198.20.0.1",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2001:500:2::c",
        "2001:1::1",
        "2001:20::1",
        "2620:fe::fe",
    ] {
        assert!(may(&rules, public, REMOTE_CLIENT), "{public}");
    }
    assert!(may(&rules, "10.0.0.1", "::ffff:127.0.0.1"));
}

//= rfc9298 §7
//# remote users reach no target of the proxy's networks
#[test]
fn remote_clients_cannot_reach_the_proxys_own_networks() {
    let own: [(&str, u8); 3] = [("9.9.7.5", 24), ("2620:fe:7::5", 64), ("2620:fe:8::5", 128)];
    let of = |client| on_network(DestinationRules::default(), client, &own, &[]);
    let remote = of(REMOTE_CLIENT);
    for near in
        ["9.9.7.5", "9.9.7.77", "::ffff:9.9.7.5", "2620:fe:7::5", "2620:fe:7::77", "2620:fe:8::5"]
    {
        assert!(!permits(&remote, near), "{near}");
        // Whoever is on this machine reaches its neighbours anyway, also from its own address.
        assert!(permits(&of("127.0.0.1"), near) && permits(&of("9.9.7.5"), near), "{near}");
        assert!(!permits(&of("9.9.7.77"), near), "{near}: a neighbour is on another machine");
    }
    for far in ["9.9.8.1", "2620:fe:9::5", "2620:fe:8::6"] {
        assert!(permits(&remote, far), "{far}");
    }
    let mut moved = of(REMOTE_CLIENT);
    moved.move_to(Arc::clone(&on_network(DestinationRules::default(), "::1", &[], &[]).network));
    assert!(permits(&moved, "9.9.7.5"));
}

//= hostile proxy
//# a NAT64 spelling of a private address
//= bound: the rules apply to the address
#[test]
fn a_nat64_prefix_of_the_network_is_a_spelling() {
    // The last is one of a site's own (RFC 8215).
    let prefixes: [(&str, u8); 3] =
        [("2620:fe:64::", 96), ("2620:fe:6::", 48), ("64:ff9b:1::", 96)];
    let of = |rules, client| on_network(rules, client, &[], &prefixes);
    let denied = of(rules(&[], &["9.9.9.0/24"]), "::1");
    let allowed = of(rules(&["9.9.9.9"], &["*"]), "::1");
    for spelling in ["2620:fe:64::9.9.9.9", "2620:fe:6:909:9:900::", "64:ff9b:1::9.9.9.9"] {
        assert!(!permits(&denied, spelling) && !permits(&allowed, spelling), "{spelling}");
        let by_spelling = of(rules(&[], &[&format!("[{spelling}]")]), "::1");
        assert!(!permits(&by_spelling, "9.9.9.9"), "{spelling} is where its packets go");
        // It is what its IPv4 address is.
        assert!(permits(&of(DestinationRules::default(), REMOTE_CLIENT), spelling), "{spelling}");
    }
    for private in ["2620:fe:64::10.0.0.1", "2620:fe:64::127.0.0.1", "2620:fe:6:a00:0:100::"] {
        assert!(!permits(&of(DestinationRules::default(), REMOTE_CLIENT), private), "{private}");
    }
    assert!(permits(&of(DestinationRules::default(), REMOTE_CLIENT), "9.9.9.9"));
}

#[test]
fn an_allow_rule_overrides_the_others() {
    let rules = rules(&["10.1.0.0/16", "[fd00::]/8:443", "*.corp.example"], &["*"]);
    assert!(may(&rules, "10.1.2.3", REMOTE_CLIENT) && may(&rules, "fd00::9", REMOTE_CLIENT));
    assert!(!may(&rules, "10.2.0.1", "127.0.0.1") && !may(&rules, "192.0.2.1", "127.0.0.1"));
    let verdict = |host: &str, port| {
        let to = Destination::new(TargetHost::parse(host).expect("a host"), port);
        client_rules(rules.clone(), REMOTE_CLIENT).of_destination(&to)
    };
    assert_eq!(verdict("a.corp.example", 1), RuleVerdict::Allowed);
    assert_eq!(verdict("corp.example", 1), RuleVerdict::ByAddress);
    assert_eq!(verdict("xcorp.example", 1), RuleVerdict::ByAddress);
    assert_eq!(verdict("fd00::9", 80), RuleVerdict::Denied(DenialReason::Rule));
}

#[test]
fn a_name_is_denied_like_its_addresses() {
    // What is allowed and denied, with the verdict on a name that is looked up here, and elsewhere.
    type Row =
        (&'static [&'static str], &'static [&'static str], &'static str, RuleVerdict, RuleVerdict);
    let rows: [Row; 9] = [
        (&["*.ok.test"], &["*"], "other.test", DENIED, DENIED),
        (&["*.ok.test"], &["*"], "a.ok.test", RuleVerdict::Allowed, RuleVerdict::Allowed),
        (&["*.ok.test:80"], &["*"], "a.ok.test", DENIED, DENIED),
        (&["192.0.2.0/24"], &["*"], "other.test", RuleVerdict::ByAddress, DENIED),
        (&["192.0.2.0/24:80"], &["*"], "other.test", DENIED, DENIED),
        (&["192.0.2.0/24"], &["*", "other.test"], "other.test", DENIED, DENIED),
        (&[], &["*:443"], "other.test", DENIED, DENIED),
        (&[], &["*:25"], "other.test", RuleVerdict::ByAddress, RuleVerdict::ByAddress),
        (&["*"], &["*.test"], "other.test", RuleVerdict::Allowed, RuleVerdict::Allowed),
    ];
    for (allow, deny, name, here, elsewhere) in rows {
        let to = Destination::new(TargetHost::parse(name).expect("a host"), 443);
        for (resolved_elsewhere, expected) in [(false, here), (true, elsewhere)] {
            let rules = DestinationRules { resolved_elsewhere, ..rules(allow, deny) };
            let verdict = client_rules(rules, "127.0.0.1").of_destination(&to);
            assert_eq!(verdict, expected, "{allow:?} {deny:?} {name} {resolved_elsewhere}");
        }
    }
}

/// The spellings of an IPv4 address.
const SPELLINGS: [fn([u16; 2]) -> [u16; 8]; 9] = [
    |[a, b]| [0, 0, 0, 0, 0, 0xffff, a, b],
    |[a, b]| [0, 0, 0, 0, 0xffff, 0, a, b],
    |[a, b]| [0, 0, 0, 0, 0, 0, a, b],
    |[a, b]| [0x64, 0xff9b, 0, 0, 0, 0, a, b],
    |[a, b]| [0x2002, a, b, 1, 0, 0, 0, 1],
    |[a, b]| [0x2001, 0, a, b, 0, 0, 0, 0],
    |[a, b]| [0x2001, 0, 0, 1, 0, 0, !a, !b],
    |[a, b]| [0xfe80, 0, 0, 0, 0, 0x5efe, a, b],
    |[a, b]| [0x2001, 0xdb8, 0, 0, 0x200, 0x5efe, a, b],
];

proptest::proptest! {
    #[test]
    fn what_is_denied_in_one_spelling_is_denied_in_all(four: u32, bits in 1_u8..=32, way in 0_usize..9) {
        let ip = Ipv4Addr::from_bits(four);
        let denied = rules(&[], &[&format!("{ip}/{bits}")]);
        let spelling = Ipv6Addr::from(SPELLINGS[way]([(four >> 16) as u16, four as u16]));
        proptest::prop_assume!(four > 0xf);
        proptest::prop_assert!(!may(&denied, &spelling.to_string(), "::1"), "{spelling}");
        // As it is, too.
        let as_it_is = rules(&[], &[&format!("[{spelling}]")]);
        proptest::prop_assert!(!may(&as_it_is, &spelling.to_string(), "::1"), "{spelling}");
        // What is allowed in IPv4 is allowed only where it is mapped.
        let allowed = rules(&[&ip.to_string()], &["*"]);
        proptest::prop_assert_eq!(may(&allowed, &spelling.to_string(), "::1"), way == 0);
    }
}

#[test]
fn unspecified_addresses_lead_to_loopback() {
    for (deny, address) in [
        ("127.0.0.0/8", "0.0.0.0"),
        ("127.0.0.0/8", "::ffff:0.0.0.0"),
        ("127.0.0.0/8", "::"),
        ("::1", "::"),
        ("::1", "0.0.0.0"),
        ("127.0.0.1", "64:ff9b::"),
        ("[::]/0", "2002:c633:6402::1"),
    ] {
        assert!(!may(&rules(&[], &[deny]), address, "127.0.0.1"), "{deny} {address}");
    }
    assert!(may(&rules(&[], &["127.0.0.0/8", "::1"]), "192.0.2.1", "127.0.0.1"));
}

#[test]
fn the_name_of_this_machine_is_treated_like_its_addresses() {
    let verdict = |rules: &DestinationRules, host: &str, client: &str| {
        let to = Destination::new(TargetHost::parse(host).expect("a host"), 80);
        client_rules(rules.clone(), client).of_destination(&to)
    };
    for name in ["localhost", "LOCALHOST.", "app.localhost"] {
        let none = DestinationRules::default();
        assert_eq!(
            verdict(&none, name, REMOTE_CLIENT),
            RuleVerdict::Denied(DenialReason::Local),
            "{name}"
        );
        assert_eq!(verdict(&none, name, "127.0.0.1"), RuleVerdict::Allowed, "{name}");
        let rule = rules(&[], &["127.0.0.0/8"]);
        assert_eq!(verdict(&rule, name, "::1"), RuleVerdict::Denied(DenialReason::Rule), "{name}");
        let named = rules(&["localhost", "*.localhost"], &["*"]);
        assert_eq!(verdict(&named, name, REMOTE_CLIENT), RuleVerdict::Allowed, "{name}");
    }
}

#[test]
fn names_and_ports_are_denied() {
    let rules = rules(&[], &["ads.example", "*:25", "192.0.2.0/24:1-1023"]);
    let to = |host: &str| Destination::new(TargetHost::parse(host).expect("a host"), 443);
    let rules = client_rules(rules, "127.0.0.1");
    assert_eq!(rules.of_destination(&to("ads.example")), RuleVerdict::Denied(DenialReason::Rule));
    assert_eq!(rules.of_destination(&to("x.ads.example")), RuleVerdict::ByAddress);
    assert!(!permits(&rules, "192.0.2.1") && permits(&rules, "192.0.3.1"));
    assert_eq!(rules.of_address("8.8.8.8".parse().unwrap(), 25), Err(DenialReason::Rule));
}

#[test]
fn patterns_are_parsed_as_people_write_them() {
    for text in [
        "*",
        "*:80",
        "a",
        "A.b:1-2",
        "*.a.b",
        "1.2.3.4",
        "1.2.3.4:5",
        "1.0.0.0/8:5",
        "::1",
        "[::1]:5",
        "[fd00::]/8",
        "[fd00::]/8:5",
        "fd00::/8",
    ] {
        assert!(text.parse::<RulePattern>().is_ok(), "{text}");
    }
    for text in [
        "",
        "a:",
        "a:x",
        "a:2-1",
        "a:+1",
        "a:1-+2",
        "1.2.3.4/33",
        "fd00::/129",
        "*.1.2.3.4",
        "a/8",
        "*a",
    ] {
        assert_eq!(text.parse::<RulePattern>(), Err(PatternError), "{text}");
    }
}
