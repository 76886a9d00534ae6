//! What keeps this host from asking says nothing of the server or the name.

use std::process::Command;

use eyas::Resolver;
use eyas::race::dns::{DnsFailure, RecordType};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::etc::Etc;
use crate::namespace::ip;
use crate::{dns, in_namespace, query};

/// A rule of the host's firewall against everything to these addresses.
const FIREWALL: &str = "table inet t { chain c { type filter hook output priority 0; \
                        ip daddr 192.0.2.60 drop; ip6 daddr 2001:db8::60 drop; } }";

/// Returns why there is no answer, which must be the fault of this host.
async fn local(resolver: &Resolver, what: &str) -> String {
    match query(resolver, "both.test", RecordType::A).await.records {
        Err(DnsFailure::Local(why)) => why,
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn errors_of_this_host_are_named() {
    in_namespace("host_errors::errors_of_this_host_are_named", |runtime| {
        let (etc, _server) = (Etc::new(), dns::Server::start());
        let has_firewall =
            Command::new("nft").arg(FIREWALL).output().is_ok_and(|output| output.status.success());
        for route in [
            "route add prohibit 203.0.113.1",
            "route add unreachable 203.0.113.2",
            "route add blackhole 203.0.113.3",
            "-6 route add prohibit 2001:db8:1::1",
            "-6 route add unreachable 2001:db8:1::2",
        ] {
            ip(route);
        }
        etc.write("nsswitch.conf", "hosts: dns\n");
        let mut cases = vec![
            ("198.51.100.1", "no route to the name server 198.51.100.1:53"),
            ("2001:db8:2::1", "no route to the name server [2001:db8:2::1]:53"),
            ("203.0.113.1", "does not let the packets out"),
            ("203.0.113.2", "no route"),
            ("203.0.113.3", "does not send to the address"),
            ("2001:db8:1::1", "does not let the packets out"),
            ("2001:db8:1::2", "no route"),
            ("fe80::1", "interface of a link-local address"),
        ];
        if has_firewall {
            cases.push(("192.0.2.60", "does not let the packets out"));
            cases.push(("2001:db8::60", "does not let the packets out"));
        }
        for (server, words) in cases {
            for options in ["", "options use-vc\n"] {
                // A dropped packet of TCP is not reported to the program.
                if server.ends_with("60") && !options.is_empty() {
                    continue;
                }
                etc.write("resolv.conf", &format!("nameserver {server}\n{options}"));
                let why = runtime.block_on(local(&Resolver::system(), server));
                assert!(why.contains(words), "{server} {options}: {why}");
            }
        }
        // What another server says counts more.
        etc.write("resolv.conf", "nameserver 198.51.100.1\nnameserver 127.0.0.1\n");
        let resolver = Resolver::system();
        let found = runtime.block_on(query(&resolver, "both.test", RecordType::A));
        assert!(found.records.is_ok(), "{found:?}");
        let absent = runtime.block_on(query(&resolver, "absent.test", RecordType::A));
        assert_eq!(absent.records, Err(DnsFailure::NoSuchName));
    });
}

#[test]
fn a_lack_of_descriptors_is_named_and_passes() {
    in_namespace("host_errors::a_lack_of_descriptors_is_named_and_passes", |runtime| {
        let (etc, _server) = (Etc::new(), dns::Server::start());
        etc.write("nsswitch.conf", "hosts: dns\n");
        etc.write("resolv.conf", "nameserver 127.0.0.1\nnameserver 127.0.0.2\n");
        let resolver = Resolver::system();
        // The files are read before.
        let before = runtime.block_on(query(&resolver, "v4.test", RecordType::A));
        assert!(before.records.is_ok(), "{before:?}");
        std::thread::sleep(std::time::Duration::from_millis(200));
        let again = runtime.block_on(query(&resolver, "v4.test", RecordType::A));
        assert!(again.records.is_ok(), "{again:?}");
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
        let why = runtime.block_on(local(&resolver, "no descriptors"));
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        assert!(why.contains("ulimit -n"), "{why}");
        let found = runtime.block_on(query(&resolver, "both.test", RecordType::A));
        assert!(found.records.is_ok(), "it is not remembered: {found:?}");
    });
}
