//! Which address comes first: what gai.conf(5) says, as glibc's getaddrinfo reads it.

use std::net::IpAddr;
use std::process::Command;

use eyas::race::candidate::{Security, Transport};
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, MemoryStore, Resolver};

use crate::etc::Etc;
use crate::namespace::ip;
use crate::{dns, in_namespace};

/// Everything is reachable, and the host has an address of each kind.
const NETWORK: [&str; 6] = [
    "link set there up",
    "addr add 2001:db8:a::2/64 dev here nodad",
    "route add default dev here",
    "-6 route add default dev here",
    "addr add 2002:c000:202::2/64 dev here nodad",
    "addr add 198.51.100.2/24 dev here",
];

/// With the table of glibc where the defaults of the two differ.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("nothing", ""),
    ("comments", "# precedence ::ffff:0:0/96 100\nreload yes\n"),
    ("IPv4 first", "precedence ::ffff:0:0/96  100\n"),
    (
        "one network first",
        "precedence 2001:db8:b::/48 60\nprecedence ::/0 40\nprecedence ::ffff:0:0/96 10\n",
    ),
    (
        "one network of IPv4 first",
        "precedence ::ffff:198.51.100.0/120 90\nprecedence ::/0 40\nprecedence ::ffff:0:0/96 10\n",
    ),
    ("a label of its own", "label 2001:db8:a::/48 99\nlabel ::/0 1\nlabel ::ffff:0:0/96 4\n"),
    ("a label without a source", "label 2001:db8:b::/48 98\nlabel ::/0 1\nlabel 2002::/16 1\n"),
    ("one label", "label ::/0 1\n"),
    (
        "labels and precedences",
        "label 2001:db8:b::/48 98\nlabel ::/0 1\nprecedence ::ffff:0:0/96 100\nprecedence ::/0 40\n",
    ),
    ("a narrow scope", "scopev4 ::ffff:10.0.0.0/104 5\nscopev4 ::ffff:0.0.0.0/96 14\n"),
    ("a narrow scope as IPv4", "scopev4 198.51.100.20/32 5\nscopev4 0.0.0.0/0 14\n"),
    ("a scope without the rest", "scopev4 ::ffff:192.0.2.0/120 3\n"),
    (
        "lines that are none",
        "precedence\nprecedence 2001:db8::/129 1\nlabel x 1\nscopev4 2001:db8::/32 1\nscopev4 1.2.3.4/33 1\n",
    ),
];

/// Returns the addresses of the family in the order in which getaddrinfo has them, the first of all first.
fn getent(name: &str) -> Vec<IpAddr> {
    let output = Command::new("getent").args(["ahosts", name]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in text.lines().filter_map(|line| line.split_whitespace().next()) {
        let address = address.parse::<IpAddr>().unwrap().to_canonical();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Returns the addresses in the order in which a race tries them.
async fn planned(endpoint: &Endpoint, name: &str) -> Vec<IpAddr> {
    let host = TargetHost::parse(name).unwrap();
    let target = Target::plain(host, 443, vec![Transport::Tcp], Security::None);
    let plan = endpoint.preconnection(target).plan().await;
    assert!(plan.dropped.is_empty(), "{:?}", plan.dropped);
    plan.entries.iter().map(|entry| entry.candidate.address.ip()).collect()
}

#[test]
fn addresses_are_preferred_as_the_host_prefers_them() {
    in_namespace("preference::addresses_are_preferred_as_the_host_prefers_them", |runtime| {
        NETWORK.into_iter().for_each(ip);
        let (etc, _server) = (Etc::new(), dns::Server::start());
        etc.write("nsswitch.conf", "hosts: files dns\n");
        etc.write("resolv.conf", "nameserver 127.0.0.1\n");
        let resolver = Resolver::system();
        let mut wrong = Vec::new();
        let mut orders = std::collections::BTreeSet::new();
        for (what, contents) in CONFIGURATIONS {
            etc.write("gai.conf", contents);
            let expected = getent("many.test");
            assert_eq!(expected.len(), 7, "{what}: {expected:?}");
            let found = runtime.block_on(async {
                let builder = Endpoint::builder().resolver(resolver.clone());
                let endpoint = builder.memory(MemoryStore::none()).build().unwrap();
                planned(&endpoint, "many.test").await
            });
            // The families alternate in a race (RFC 8305 §4): what comes first, and the order within each, is the
            // host's.
            let of = |list: &[IpAddr], v6: bool| {
                list.iter().filter(|ip| ip.is_ipv6() == v6).copied().collect::<Vec<_>>()
            };
            let is_same = found.first() == expected.first()
                && [true, false].into_iter().all(|v6| of(&found, v6) == of(&expected, v6));
            if !is_same {
                wrong.push(format!("{what}: {found:?}, not {expected:?}"));
            }
            orders.insert(expected);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(orders.len() >= 6, "the configurations make a difference: {orders:?}");
    });
}
