//! Whom a name belongs to. Pure.

use super::way::NameOwner;

/// Names by which a client learns about its network, which its own server has to answer: its encrypted resolver
/// (RFC 9462 §8.2), its NAT64 (RFC 8880 §7).
const OF_PROTOCOL: [&str; 2] = ["resolver.arpa", "ipv4only.arpa"];

/// Domains that are not in the public DNS, and that networks have names in.
const OF_NETWORK: [&str; 16] = [
    // RFC 6762 §3 and Appendix G, RFC 8375, RFC 6761 §6.2.
    "local",
    "intranet",
    "internal",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "test",
    // Reverse names of private addresses (RFC 6303 §4, RFC 6598 §4, RFC 4193).
    "10.in-addr.arpa",
    "168.192.in-addr.arpa",
    "254.169.in-addr.arpa",
    "127.in-addr.arpa",
    "c.f.ip6.arpa",
    "d.f.ip6.arpa",
    "e.f.ip6.arpa",
];

/// The names that belong to a network.
#[derive(Debug)]
pub(super) struct NetworkNames {
    /// Its search domains.
    search: Vec<String>,
}

impl NetworkNames {
    /// The search domains have no dots at their ends.
    pub(super) fn new(search: &[String]) -> Self {
        let search = search.iter().filter(|domain| !domain.is_empty());
        Self { search: search.map(|domain| domain.to_ascii_lowercase()).collect() }
    }

    /// Returns whom this name belongs to, which is in lower case and without a dot at its end.
    pub(super) fn owner(&self, name: &str) -> NameOwner {
        let is_in = |domain: &str| {
            name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if OF_PROTOCOL.into_iter().any(is_in) {
            return NameOwner::Protocol;
        }
        let is_private = !name.contains('.')
            || OF_NETWORK.into_iter().any(is_in)
            || is_reverse_of_middle_private_block(name)
            || self.search.iter().any(|domain| is_in(domain));
        if is_private { NameOwner::Network } else { NameOwner::Public }
    }
}

/// Returns whether a name is that of an address in 172.16.0.0/12 or 100.64.0.0/10, which are no whole labels.
fn is_reverse_of_middle_private_block(name: &str) -> bool {
    let Some(labels) = name.strip_suffix(".in-addr.arpa") else { return false };
    let mut labels = labels.rsplit('.').map(str::parse::<u8>);
    match (labels.next(), labels.next()) {
        (Some(Ok(172)), Some(Ok(second))) => (16..32).contains(&second),
        (Some(Ok(100)), Some(Ok(second))) => (64..128).contains(&second),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_search_domains_and_what_is_not_public() {
        let names = NetworkNames::new(&["Corp.Example".to_owned(), String::new()]);
        for (name, owner) in [
            ("printer", NameOwner::Network),
            ("printer.local", NameOwner::Network),
            ("git.corp.example", NameOwner::Network),
            ("corp.example", NameOwner::Network),
            ("notcorp.example", NameOwner::Public),
            ("example", NameOwner::Network),
            ("www.example", NameOwner::Public),
            ("router.home.arpa", NameOwner::Network),
            ("1.0.0.10.in-addr.arpa", NameOwner::Network),
            ("1.1.16.172.in-addr.arpa", NameOwner::Network),
            ("1.1.32.172.in-addr.arpa", NameOwner::Public),
            ("9.9.100.100.in-addr.arpa", NameOwner::Network),
            ("1.1.1.1.in-addr.arpa", NameOwner::Public),
            ("_dns.resolver.arpa", NameOwner::Protocol),
            ("ipv4only.arpa", NameOwner::Protocol),
        ] {
            assert_eq!(names.owner(name), owner, "{name}");
        }
    }
}
