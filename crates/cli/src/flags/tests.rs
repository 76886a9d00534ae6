//! Flags: values and their errors, conflicts, and help that fits the screen.

mod help;

use std::time::Duration;

use clap::CommandFactory;

use super::values;
use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::read(line.split_whitespace().map(OsString::from), 80)
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn get_alone_is_parsed_as_with_all_subcommands() {
    let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    for line in [
        "eyas get a",
        "eyas get -s -v --no-silent -o b https://a/ --json --color never",
        "eyas https://a/ -L -d x=y -H b:c --http2 --url d -O --max-time 2s",
        "eyas example.org --connect-timeout 1 --connect-timeout 3 --memory none -4",
        "eyas get -- -a",
        "eyas get help",
    ] {
        let alone = Cli::read_get(&words(line)).expect("parses");
        let whole = Cli::read_any(words(line), 80).expect("parses");
        assert_eq!(format!("{alone:?}"), format!("{whole:?}"), "{line}");
    }
    for line in [
        "eyas",
        "eyas get",
        "eyas get a --help",
        "eyas get a --version",
        "eyas get a --nosuch",
        "eyas get a --max-time soon",
        "eyas -v https://a/",
        "eyas gte a",
        "eyas race get",
        "eyas help get",
    ] {
        assert!(Cli::read_get(&words(line)).is_none(), "{line}");
    }
}

#[test]
fn durations_are_parsed_as_people_write_them() {
    let cases = [
        ("2s", 2_000),
        ("500ms", 500),
        ("1m30s", 90_000),
        ("1m 30s", 90_000),
        ("2.5", 2_500),
        ("1.5s", 1_500),
        ("0", 0),
        (" 3 ", 3_000),
    ];
    for (text, millis) in cases {
        assert_eq!(values::duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    for text in ["", "-1", "soon", "nan", "inf", "1e300", "200000years", "2x"] {
        assert!(values::duration(text).is_err(), "{text}");
    }
}

#[test]
fn resolve_accepts_what_curl_accepts() {
    let parsed = values::resolve("example.org:443:127.0.0.1,[::1],::2").expect("parses");
    assert_eq!((parsed.host.as_str(), parsed.port), ("example.org", 443));
    assert_eq!(parsed.addresses.len(), 3);
    assert_eq!(values::resolve("[::1]:443:127.0.0.1").expect("parses").host, "::1");
    assert_eq!(values::resolve("+a:1:127.0.0.1").expect("parses").host, "a");
    let zoned = values::resolve("a:1:fe80::1%lo,[fe80::2%25lo],::3").expect("parses").addresses;
    assert_eq!(zoned.iter().map(|(_, scope)| *scope).collect::<Vec<_>>(), [1, 1, 0]);
    let refused = values::resolve("a:1:fe80::1%nosuch0").expect_err("no such interface");
    assert!(refused.to_string().contains("no interface nosuch0"), "{refused}");
    for text in ["", "a", "a:1", "a:1:", ":1:127.0.0.1", "a:b:127.0.0.1", "a:1:localhost"] {
        assert!(values::resolve(text).is_err(), "{text}");
    }
}

#[test]
fn groups_have_their_names_in_tls_and_openssl() {
    use eyas::rustls::NamedGroup::{X25519, X25519MLKEM768, secp256r1};
    let line = "eyas get --curves x25519mlkem768:X25519:prime256v1 a";
    let Command::Get(get) = parse(line).expect("parses").command else {
        panic!("another command");
    };
    assert_eq!(get.trust.curves, [X25519MLKEM768, X25519, secp256r1]);
    let refused = parse("eyas get --curves X25519:P-521 a").expect_err("unknown").to_string();
    assert!(refused.contains("no such group; the groups are X25519MLKEM768"), "{refused}");
}

#[test]
fn connect_to_allows_empty_parts() {
    let all = values::connect_to("a:1:b:2").expect("parses");
    assert_eq!((all.host.as_deref(), all.port), (Some("a"), Some(1)));
    assert_eq!((all.to_host.as_deref(), all.to_port), (Some("b"), Some(2)));
    let any = values::connect_to("::127.0.0.1:").expect("parses");
    assert_eq!((any.host, any.port, any.to_port), (None, None, None));
    assert_eq!(any.to_host.as_deref(), Some("127.0.0.1"));
    let six = values::connect_to("[::1]:443:[::2]:8443").expect("parses");
    assert_eq!(six.to_host.as_deref(), Some("::2"));
    for text in ["", "a:1", "a:1:b", "a:x:b:2"] {
        assert!(values::connect_to(text).is_err(), "{text}");
    }
}

#[test]
fn dns_servers_have_usual_ports() {
    let plain = |text: &str| DnsServer::Plain(text.parse().expect("an address"));
    assert_eq!(values::dns_server("9.9.9.9"), Ok(plain("9.9.9.9:53")));
    assert_eq!(values::dns_server("::1"), Ok(plain("[::1]:53")));
    assert_eq!(values::dns_server("[::1]"), Ok(plain("[::1]:53")));
    assert_eq!(values::dns_server("[::1]:5353"), Ok(plain("[::1]:5353")));
    for text in ["fe80::1%lo", "[fe80::1%lo]", "[fe80::1%lo]:53", "fe80::1%1", "[fe80::1%251]:53"] {
        assert_eq!(values::dns_server(text), Ok(plain("[fe80::1%1]:53")), "{text}");
    }
    for text in ["fe80::1%nosuch0", "[fe80::1%nosuch0]:53", "tls://fe80::1%nosuch0#a.test"] {
        let refused = values::dns_server(text).expect_err(text);
        assert!(refused.to_string().contains("no interface nosuch0"), "{refused}");
    }
    let tls = DnsServer::Tls("9.9.9.9:853".parse().expect("an address"), "dns.example".into());
    assert_eq!(values::dns_server("tls://9.9.9.9#dns.example"), Ok(tls));
    let quic = DnsServer::Quic("[::1]:8853".parse().expect("an address"), "dns.example".into());
    assert_eq!(values::dns_server("quic://[::1]:8853#dns.example"), Ok(quic));
    for text in ["", "dns.example", "tls://9.9.9.9", "tls://9.9.9.9#", "quic://9.9.9.9"] {
        assert!(values::dns_server(text).is_err(), "{text}");
    }
}

#[test]
fn names_of_a_certificate_are_hosts() {
    for text in ["localhost", "::1", "192.0.2.1", "*.example.org"] {
        assert_eq!(values::certificate_name(text).as_deref(), Ok(text));
    }
    for text in ["", "a b", "https://example.org/"] {
        assert!(values::certificate_name(text).is_err(), "{text}");
    }
}

#[test]
fn headers_can_be_set_emptied_and_omitted() {
    let value = |text: &str| values::header(text).expect("parses").value;
    assert_eq!(value("Accept: text/html").expect("set"), "text/html");
    assert_eq!(value("Accept;").expect("set"), "");
    assert_eq!(value("Accept:"), None);
    for text in ["", "Accept", "Ac cept: x", "X: a\u{7f}"] {
        assert!(values::header(text).is_err(), "{text}");
    }
}

#[test]
fn listen_accepts_a_port_alone() {
    assert_eq!(values::listen("8443").expect("parses").to_string(), "127.0.0.1:8443");
    assert_eq!(values::listen(":0").expect("parses").to_string(), "127.0.0.1:0");
    assert_eq!(values::listen("[::]:443").expect("parses").to_string(), "[::]:443");
    assert!(values::listen("localhost").is_err());
    for text in ["[fe80::1%lo]:443", "[fe80::1%25lo]:443", "[fe80::1%1]:443"] {
        assert_eq!(values::listen(text).expect("parses").to_string(), "[fe80::1%1]:443", "{text}");
    }
    let refused = values::listen("[fe80::1%nosuch0]:443").expect_err("no such interface");
    assert!(refused.to_string().contains("no interface nosuch0"), "{refused}");
}

#[test]
fn conflicting_flags_are_refused() {
    for line in [
        "eyas get -I -d x https://a/",
        "eyas get -C - -r 0-1 https://a/",
        "eyas get --cert a https://a/",
        "eyas serve --plain --cert a --key b",
        "eyas race --plain --alpn imap a:1",
        "eyas get",
        "eyas sctp run --multipath=mapping=modulo,buffer=65536 -- a",
        "eyas sctp run --multipath=scheduler=fcfs -- a",
        "eyas sctp run --multipath=interleaving=no -- a",
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

/// An alias such as `e='eyas get -L'` must not forbid a flag, and a later flag corrects an earlier one.
#[test]
fn a_flag_given_twice_counts_once_and_its_last_value_wins() {
    let line = "eyas get -L -L -vv -m 5 -m 7 --max-redirs 1 --max-redirs 2 -fsSL https://a/";
    let Command::Get(flags) = parse(line).expect("parses").command else {
        panic!("the get command");
    };
    assert!(flags.request.location && flags.output.verbose && flags.output.fail);
    assert!(flags.output.silent && !flags.output.hides_errors());
    assert_eq!(flags.reach.max_time(), Some(Duration::from_secs(7)));
    assert_eq!(flags.request.max_redirs, 2);
    let line =
        "eyas get -4 -6 -4 --http2-prior-knowledge --http3 --http1.1 -L --no-location https://a/";
    let Command::Get(flags) = parse(line).expect("parses").command else {
        panic!("the get command");
    };
    assert!(flags.reach.ipv4 && !flags.reach.ipv6 && !flags.request.location);
    assert!(flags.versions.http1_1 && !flags.versions.http3 && !flags.http2_prior_knowledge);
    let Command::Get(flags) = parse("eyas get -H A:1 -H B:2 https://a/").expect("parses").command
    else {
        panic!("the get command");
    };
    assert_eq!(flags.request.header.len(), 2, "what may be given several times still adds up");
}

#[test]
fn output_and_data_keep_the_order_in_which_they_are_given() {
    let line = "eyas get -O -o x -O --url a.test b.test --url c.test -d 1 --data-raw @2 -d 3 --data-binary 4";
    let Command::Get(flags) = parse(line).expect("parses").command else {
        panic!("the get command");
    };
    assert_eq!(flags.urls.0, ["a.test", "b.test", "c.test"]);
    let file = OutputTarget::File("x".into());
    let targets = [OutputTarget::RemoteName, file, OutputTarget::RemoteName];
    assert_eq!(flags.output.targets.0, targets);
    let pieces: Vec<_> = flags.request.data.0.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(pieces, ["1", "@2", "3", "4"]);
}

#[test]
fn rates_are_parsed_as_curl_does() {
    for (text, bytes) in
        [("0", 0), ("500", 500), ("20k", 20_480), ("1M", 1 << 20), ("0.5K", 512), ("1KiB", 1024)]
    {
        assert_eq!(values::rate(text), Ok(bytes), "{text}");
    }
    for text in ["", "k", "-1k", "x"] {
        assert!(values::rate(text).is_err(), "{text}");
    }
}

/// Every flag of every command, twice: it is refused, if at all, for its value or for others missing.
#[test]
fn every_flag_of_every_command_can_be_repeated() {
    let mut root = Cli::command();
    root.build();
    let mut commands = vec![(vec!["eyas".to_owned()], root)];
    let mut count = 0;
    while let Some((names, command)) = commands.pop() {
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            commands.push(([&names[..], &[sub.get_name().to_owned()]].concat(), sub.clone()));
        }
        for flag in command.get_arguments().filter(|flag| !flag.is_positional()) {
            let Some(long) = flag.get_long() else { continue };
            let value = flag.get_action().takes_values().then(|| format!("--{long}=1"));
            let word = value.unwrap_or_else(|| format!("--{long}"));
            let line = names.iter().chain([&word, &word]).map(OsString::from);
            if let Err(error) = Cli::read(line, 80) {
                let said = error.to_string();
                assert!(!said.contains("multiple times"), "{names:?} {word}: {said}");
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn options_of_several_paths_are_taken_by_all_who_use_them() {
    for line in [
        "eyas pipe --multipath=mapping=modulo,buffer=65536 sctp://a:1",
        "eyas tunnel --multipath=scheduler=fcfs -D 1080 a",
        "eyas tunnel serve --multipath=sack-path=last-arrival --key b",
        "eyas sctp run --multipath=mapping=modulo,nr-sack=no -- a",
        "eyas sctp serve --multipath=rtx-policy=cwnd",
        "eyas sctp run --multipath a",
    ] {
        let parsed = parse(line);
        assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
    }
}

#[test]
fn the_memory_can_be_none_or_a_file() {
    let Command::Get(flags) = parse("eyas get --memory none https://a/").expect("parses").command
    else {
        panic!("the get command");
    };
    assert_eq!(flags.choice.memory, Some(MemoryChoice::None));
    assert_eq!(MemoryChoice::from(OsString::from("x")), MemoryChoice::File("x".into()));
}

#[test]
fn help_reads_well_on_eighty_columns() {
    let mut command = Cli::command().term_width(80);
    insta::assert_snapshot!("eyas", command.render_help());
    command.build();
    let names = [
        "demo",
        "get",
        "race",
        "pipe",
        "plan",
        "memory",
        "serve",
        "proxy",
        "load",
        "perf",
        "doctor",
        "lab",
        "netem",
        "replay",
        "completions",
        "man",
    ];
    for name in names {
        let sub = command.find_subcommand_mut(name).expect(name);
        let help = sub.clone().term_width(80).render_long_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        insta::assert_snapshot!(name, help);
    }
}

#[test]
fn sizes_shares_and_ranges_are_parsed_as_people_write_them() {
    for (text, bytes) in [("1024", 1_024), ("35KiB", 35_840), ("1 MiB", 1 << 20), ("2kB", 2_000)] {
        assert_eq!(values::size(text), Ok(bytes), "{text}");
    }
    for text in ["", "KiB", "-1", "1.5KiB", "99999999999999999999", "1GB?"] {
        assert!(values::size(text).is_err(), "{text}");
    }
    for (text, share) in [("80%", 0.8), ("0.8", 0.8), ("100 %", 1.0), ("0", 0.0)] {
        assert_eq!(values::share(text), Ok(share), "{text}");
    }
    for text in ["", "80", "101%", "-1%", "nan"] {
        assert!(values::share(text).is_err(), "{text}");
    }
    let count = |text: &str| values::addresses(text).map(|range| range.0.len());
    assert_eq!(count("127.0.0.1-127.0.1.0"), Ok(256));
    assert_eq!(count("::1"), Ok(1));
    for text in ["", "localhost", "127.0.0.2-127.0.0.1", "::1-::2", "10.0.0.0-11.0.0.0"] {
        assert!(count(text).is_err(), "{text}");
    }
}

#[test]
fn a_rate_may_rise_to_a_second_one() {
    let rate = |text: &str| {
        let line = format!("eyas load -r {text} http://a/");
        let Command::Load(flags) = parse(&line).expect("parses").command else {
            panic!("the load command");
        };
        flags.arrivals.rate.into_rate(Duration::from_secs(5))
    };
    use eyas_load::ArrivalRate;
    assert_eq!(rate("0.5"), ArrivalRate::Fixed(0.5));
    let over = Duration::from_secs(5);
    assert_eq!(rate("0..200"), ArrivalRate::Ramp { from: 0.0, to: 200.0, over });
    for text in ["0", "0..0", "-1", "x", "1..", "inf"] {
        let line = format!("eyas load --rate={text} http://a/");
        assert!(parse(&line).is_err(), "{text}");
    }
}

#[test]
fn factors_of_attempt_delays_are_from_1_to_4() {
    for (text, percent) in [("1", 100), ("2", 200), ("1.5", 150), ("1.25", 125), ("4.0", 400)] {
        assert_eq!(values::attempt_delay_factor(text), Ok(percent), "{text}");
    }
    for text in ["", "0", "0.9", "4.01", "5", "1.", ".5", "-2", "2x", "1e0", "1.125", "+1"] {
        assert!(values::attempt_delay_factor(text).is_err(), "{text}");
    }
}
