//! Names as this host resolves them: for each configuration, what `getent ahosts` says, eyas says.
//! One resolver is asked all the time, so each configuration is also a change that it has to notice.

#[path = "../namespace/mod.rs"]
mod namespace;

mod configurations;
mod dns;
mod etc;
mod host_errors;
mod odd_configurations;
mod preference;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::Command;

use eyas::race::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, QueryId, RecordType};
use eyas::{NameSource, Resolver};

use crate::configurations::{CONFIGURATIONS, Configuration};
use crate::etc::Etc;
use crate::namespace::ip;
use crate::odd_configurations::ODD_CONFIGURATIONS;

/// Set to the name that a child process asks for.
const ASKED: &str = "EYAS_TEST_ASKED";

/// A network with both families, so that both are looked for.
const NETWORK: [&str; 5] = [
    "link set lo up",
    "link add here type veth peer name there",
    "addr add 192.0.2.2/24 dev here",
    "addr add 2001:db8::2/64 dev here nodad",
    "link set here up",
];

pub(crate) fn in_namespace(test: &str, body: fn(&tokio::runtime::Runtime)) {
    namespace::in_its_own(test, || {
        NETWORK.into_iter().for_each(ip);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        body(&runtime);
    });
}

/// Returns what the host says.
fn getent(name: &str, environment: &[(&str, &str)]) -> BTreeSet<IpAddr> {
    let output = Command::new("getent")
        .args(["ahosts", name])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let addresses = text.lines().filter_map(|line| line.split_whitespace().next());
    // A scope is no part of an answer.
    addresses.map(|address| address.parse::<IpAddr>().unwrap().to_canonical()).collect()
}

pub(crate) async fn query(resolver: &Resolver, name: &str, record_type: RecordType) -> DnsAnswer {
    let query = DnsQuery { id: QueryId(0), name: name.to_owned(), record_type };
    resolver.query(&query, 443).await
}

/// Returns what eyas says.
async fn addresses(resolver: &Resolver, name: &str) -> BTreeSet<IpAddr> {
    let (aaaa, a) =
        tokio::join!(query(resolver, name, RecordType::Aaaa), query(resolver, name, RecordType::A));
    let mut addresses = BTreeSet::new();
    if let Ok(DnsRecords::Aaaa(found)) = aaaa.records {
        addresses.extend(found.into_iter().map(|v6| IpAddr::V6(v6).to_canonical()));
    }
    if let Ok(DnsRecords::A(found)) = a.records {
        addresses.extend(found.into_iter().map(IpAddr::V4));
    }
    addresses
}

#[test]
fn we_say_what_the_host_says() {
    in_namespace("we_say_what_the_host_says", |runtime| {
        let (mut etc, server) = (Etc::new(), dns::Server::start());
        let resolver = Resolver::system();
        let mut wrong = Vec::new();
        let all = CONFIGURATIONS.iter().chain(ODD_CONFIGURATIONS);
        for (at, configuration) in all.enumerate() {
            etc.set(at, configuration);
            let Configuration { what, environment, names, .. } = configuration;
            for name in *names {
                let expected = getent(name, environment);
                server.take_asked();
                let found = match environment {
                    [] => runtime.block_on(addresses(&resolver, name)),
                    _ => asked_by_a_child(name, environment),
                };
                let asked = server.take_asked();
                if found != expected {
                    wrong.push(format!("{what}: {name}: {found:?}, not {expected:?}; {asked:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(CONFIGURATIONS.len() >= 25 && ODD_CONFIGURATIONS.len() >= 25);
    });
}

/// Lists of blocked names have some hundred thousand lines, and some of these are long.
#[test]
fn a_huge_hosts_file_is_read_to_its_end() {
    in_namespace("a_huge_hosts_file_is_read_to_its_end", |runtime| {
        let etc = Etc::new();
        etc.write("nsswitch.conf", "hosts: files\n");
        let mut hosts: String = (0..200_000).map(|n| format!("0.0.0.0 ad{n}.test\n")).collect();
        hosts.push_str("10.0.0.1");
        hosts.extend((0..20_000).map(|n| format!(" alias{n}.test")));
        hosts.push_str("\n10.0.0.2 last.test");
        etc.write("hosts", &hosts);
        let resolver = Resolver::system();
        for name in ["ad0.test", "ad199999.test", "alias0.test", "alias19999.test", "last.test"] {
            let expected = getent(name, &[]);
            assert_eq!(expected.len(), 1, "{name}");
            assert_eq!(runtime.block_on(addresses(&resolver, name)), expected, "{name}");
        }
    });
}

/// Returns what a process with these variables says.
fn asked_by_a_child(name: &str, environment: &[(&str, &str)]) -> BTreeSet<IpAddr> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_asks", "--nocapture"])
        .envs(environment.iter().copied())
        .env(ASKED, name)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text.lines().filter_map(|line| line.strip_prefix("found ")?.parse().ok()).collect()
}

#[tokio::test]
async fn the_child_asks() {
    let Ok(name) = std::env::var(ASKED) else { return };
    println!();
    for address in addresses(&Resolver::system(), &name).await {
        println!("found {address}");
    }
}

/// Returns the HTTPS answer, and which questions led to it.
fn https(
    runtime: &tokio::runtime::Runtime,
    server: &dns::Server,
    resolver: &Resolver,
    name: &str,
) -> (Result<DnsRecords, DnsFailure>, Vec<String>) {
    server.take_asked();
    let answer = runtime.block_on(query(resolver, name, RecordType::Https));
    (answer.records, server.take_asked())
}

#[test]
fn a_name_in_the_hosts_file_is_never_asked_of_dns() {
    in_namespace("a_name_in_the_hosts_file_is_never_asked_of_dns", |runtime| {
        let (etc, server) = (Etc::new(), dns::Server::start());
        let resolver = Resolver::system();
        etc.write("resolv.conf", "nameserver 127.0.0.1\n");
        for (hosts, switch) in [
            ("127.0.0.1 both.test", "hosts: files dns"),
            ("0.0.0.0 both.test", "hosts: files mdns4_minimal [NOTFOUND=return] dns"),
            ("::1 Both.Test", "hosts: files resolve dns"),
            (":: x both.test.", "hosts: files myhostname sss dns"),
        ] {
            etc.write("hosts", hosts);
            etc.write("nsswitch.conf", switch);
            for name in ["both.test", "_8443._https.both.test"] {
                let query = DnsQuery {
                    id: QueryId(0),
                    name: name.to_owned(),
                    record_type: RecordType::Https,
                };
                let answer = runtime.block_on(resolver.query(&query, 8443));
                assert_eq!(answer.records, Err(DnsFailure::NoData), "{hosts} {switch}");
            }
            let found = runtime.block_on(addresses(&resolver, "both.test"));
            assert_eq!(found.len(), 1, "{hosts} {switch}: {found:?}");
            assert_eq!(server.take_asked(), [""; 0], "{hosts} {switch}");
            let named = Resolver::server("127.0.0.1:53".parse().unwrap());
            assert_eq!(runtime.block_on(addresses(&named, "both.test")), found);
            assert_eq!(server.take_asked(), [""; 0], "{hosts} {switch}: a named server");
            let source = resolver.source_of("both.test");
            assert!(matches!(source, NameSource::HostsFile { .. }), "{source}");
        }
    });
}

/// The HTTPS records of a name belong to the name that its addresses are from.
#[test]
fn all_record_types_come_from_the_same_name() {
    in_namespace("all_record_types_come_from_the_same_name", |runtime| {
        let (etc, server) = (Etc::new(), dns::Server::start());
        let resolver = Resolver::system();
        etc.write("hosts", "");
        etc.write("nsswitch.conf", "hosts: files dns\n");
        etc.write(
            "resolv.conf",
            "nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots:2\n",
        );
        // m.one.test has AAAA only, m.two.test has A and HTTPS.
        let found = runtime.block_on(addresses(&resolver, "m"));
        assert_eq!(found, ["2001:db8:1::1".parse().unwrap()].into());
        let (records, asked) = https(runtime, &server, &resolver, "m");
        assert_eq!(records, Err(DnsFailure::NoData));
        assert!(!asked.iter().any(|asked| asked.contains("m.two.test")), "{asked:?}");
        // s.one.test does not exist.
        let found = runtime.block_on(addresses(&resolver, "s"));
        assert_eq!(found, ["10.0.2.2".parse().unwrap()].into());
        let (records, _) = https(runtime, &server, &resolver, "s");
        assert!(matches!(records, Ok(DnsRecords::Https(_))), "{records:?}");
        // The name as it is comes last, and is there.
        let (records, _) = https(runtime, &server, &resolver, "alias.test");
        assert!(matches!(records, Ok(DnsRecords::Https(_))), "{records:?}");
        // What has a dot at the end is never searched.
        let (records, asked) = https(runtime, &server, &resolver, "m.");
        assert_eq!((records, asked), (Err(DnsFailure::NoSuchName), vec!["m 65".to_owned()]));
        assert_eq!(runtime.block_on(addresses(&resolver, "s.")), BTreeSet::new());
        // A question is asked once, whoever waits for it.
        server.take_asked();
        let (_, all) = runtime.block_on(async {
            tokio::join!(
                query(&resolver, "uncached", RecordType::Https),
                addresses(&resolver, "uncached")
            )
        });
        assert_eq!(all, ["10.0.2.3".parse().unwrap()].into());
        let asked = server.take_asked();
        let distinct: BTreeSet<&String> = asked.iter().collect();
        assert_eq!(distinct.len(), asked.len(), "{asked:?}");
    });
}

/// An answer is dropped with the configuration that it came from.
#[test]
fn answers_of_former_servers_are_dropped() {
    in_namespace("answers_of_former_servers_are_dropped", |runtime| {
        let (etc, _server) = (Etc::new(), dns::Server::start());
        let resolver = Resolver::system();
        etc.write("nsswitch.conf", "hosts: files dns\n");
        let found = |name| runtime.block_on(addresses(&resolver, name));
        for round in 0..20 {
            etc.write("resolv.conf", "nameserver 127.0.0.1\n");
            assert_eq!(found("where.test"), ["10.0.0.1".parse().unwrap()].into(), "{round}");
            // As long as the other contents are, and in the same instant.
            etc.write("resolv.conf", "nameserver 127.0.0.2\n");
            assert_eq!(found("where.test"), ["10.0.0.2".parse().unwrap()].into(), "{round}");
        }
    });
}

#[test]
fn the_source_is_named() {
    in_namespace("the_source_is_named", |_| {
        let etc = Etc::new();
        let resolver = Resolver::system();
        let source = |name: &str| resolver.source_of(name).to_string();
        etc.write("resolv.conf", "nameserver 127.0.0.1\nnameserver ::1\nsearch x.test\n");
        etc.write("hosts", "10.0.0.1 here.test\n");
        etc.write("nsswitch.conf", "hosts: files mdns4_minimal [NOTFOUND=return] dns\n");
        assert_eq!(source("here.test"), "/etc/hosts alone");
        assert_eq!(source("a.test"), "queries to 127.0.0.1, ::1 for a.test, then a.test.x.test");
        assert_eq!(source("a.localhost"), "this host: the name is its own");
        let host_resolver = "the host's own resolver (getaddrinfo), because";
        assert_eq!(
            source("a.local"),
            format!("{host_resolver} /etc/nsswitch.conf names mdns4_minimal")
        );
        etc.write("resolv.conf", "nameserver 127.0.0.1\noptions whatever:2\n");
        assert_eq!(
            source("a.test"),
            format!("{host_resolver} /etc/resolv.conf has \"options whatever:2\"")
        );
        let named = Resolver::server("127.0.0.1:5353".parse().unwrap());
        assert_eq!(named.source_of("a.test").to_string(), "queries to 127.0.0.1:5353, as given");
        let overridden = named.overriding("A.test", 443, Vec::new());
        assert_eq!(overridden.source_of("a.test."), NameSource::Override);
    });
}
