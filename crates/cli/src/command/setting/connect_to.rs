//! `--connect-to`: another host and port in the place of the target's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas::Resolver;
use eyas::race::dns::{DnsFailure, DnsQuery, DnsRecords, QueryId, RecordType};
use eyas::race::target::{Target, TargetHost};
use eyas::zone::parse_host;

use crate::failure::{Failure, FailureKind};
use crate::flags::{ConnectTo, ReachFlags};

/// Returns the rule of `--connect-to` for this target.
pub(crate) fn rule_for<'a>(reach: &'a ReachFlags, target: &Target) -> Option<&'a ConnectTo> {
    reach.connect_to.iter().find(|rule| applies(rule, target))
}

/// Returns whether a rule of `--connect-to` applies to this target.
fn applies(rule: &ConnectTo, target: &Target) -> bool {
    let host = rule.host.as_deref().map(parse_host);
    host.is_none_or(|host| host.as_ref() == Ok(&target.host))
        && rule.port.is_none_or(|port| port == target.port)
}

/// Resolves the host to connect to instead, as all other names are. Returns the interfaces of link-local addresses, too.
pub(super) async fn addresses(
    resolver: &Resolver,
    host: &str,
    port: u16,
) -> Result<Vec<(IpAddr, u32)>, Failure> {
    let mut name = match parse_host(host) {
        Ok(TargetHost::Literal(ip, zone)) => return Ok(vec![(ip, zone)]),
        Ok(local) if local.is_localhost() => {
            return Ok(vec![(Ipv6Addr::LOCALHOST.into(), 0), (Ipv4Addr::LOCALHOST.into(), 0)]);
        }
        Ok(TargetHost::Name(name)) => name,
        Err(cause) => {
            return Err(Failure::new(FailureKind::Usage, format!("--connect-to {host}: {cause}")));
        }
    };
    if host.ends_with('.') {
        name.push('.');
    }
    let query = |record_type| DnsQuery { id: QueryId(0), name: name.clone(), record_type };
    let (aaaa, a) = (query(RecordType::Aaaa), query(RecordType::A));
    let (aaaa, a) = tokio::join!(resolver.query(&aaaa, port), resolver.query(&a, port));
    let (mut found, mut why) = (Vec::new(), String::new());
    for answer in [aaaa, a] {
        match answer.records {
            Ok(DnsRecords::Aaaa(v6)) => found.extend(v6.into_iter().map(|ip| (ip.into(), 0))),
            Ok(DnsRecords::A(v4)) => found.extend(v4.into_iter().map(|ip| (ip.into(), 0))),
            Ok(DnsRecords::Https(_)) => {}
            Err(DnsFailure::Local(text)) => why = text,
            Err(failure) => failure.name().clone_into(&mut why),
        }
    }
    if found.is_empty() {
        let text = format!("--connect-to: DNS has no address for {host}: {why}");
        return Err(
            Failure::new(FailureKind::Dns, text).hint("--connect-to also accepts an address")
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use eyas::race::candidate::{Security, Transport};

    use super::*;

    #[tokio::test]
    async fn the_host_to_connect_to_may_have_a_zone() {
        let v6 = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (host, expected) in [
            ("fe80::1%lo", vec![(v6("fe80::1"), 1)]),
            ("fe80::1%25lo", vec![(v6("fe80::1"), 1)]),
            ("fe80::1%1", vec![(v6("fe80::1"), 1)]),
            ("2001:db8::1", vec![(v6("2001:db8::1"), 0)]),
            ("192.0.2.1", vec![(v6("192.0.2.1"), 0)]),
        ] {
            let found = addresses(&Resolver::system(), host, 443).await;
            assert_eq!(found.map_err(|failure| failure.to_string()), Ok(expected), "{host}");
        }
        let failure = addresses(&Resolver::system(), "fe80::1%nosuch0", 443).await;
        let failure = failure.expect_err("there is none");
        assert!(failure.to_string().contains("no interface nosuch0"), "{failure}");
    }

    #[test]
    fn a_rule_is_for_a_host_however_it_is_spelled() {
        let rule = |host: &str| ConnectTo {
            host: Some(host.to_owned()),
            port: None,
            to_host: None,
            to_port: None,
        };
        let target = |text: &str| {
            let host = parse_host(text).expect("a host");
            Target::plain(host, 443, vec![Transport::Tcp], Security::Tls)
        };
        for (of_rule, of_target) in [
            ("a.test", "a.test"),
            ("a.test.", "A.test"),
            ("a.test", "a.test."),
            ("fe80::1%lo", "fe80::1%1"),
            ("fe80::1%25lo", "[fe80::1%lo]"),
        ] {
            assert!(applies(&rule(of_rule), &target(of_target)), "{of_rule} {of_target}");
        }
        assert!(!applies(&rule("fe80::1"), &target("fe80::1%lo")));
    }
}
