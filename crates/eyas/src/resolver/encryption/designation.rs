//! What SVCB records designate (RFC 9461, RFC 9462 §4). Pure.

use std::net::{IpAddr, SocketAddr};

use eyas_race::target::TargetHost;
use hickory_proto::rr::rdata::svcb::{SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::{RData, Record};

use super::DnsProtocol;

/// The name of the question (RFC 9462 §4).
pub(in super::super) const QUESTION: &str = "_dns.resolver.arpa";
/// The maximum number of records, and of addresses of one, that are read.
const MAX_RECORDS: usize = 8;
/// The longest path that is used, in octets: those of resolvers have some ten.
const MAX_PATH: usize = 1024;
/// `dohpath` (RFC 9461 §5).
const DOHPATH: u16 = 7;
/// The keys that may be mandatory: those that are understood here. ECH is not used, so that its key is not among them.
const UNDERSTOOD: [u16; 6] = [1, 2, 3, 4, 6, DOHPATH];

/// A resolver that a record designates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Designation {
    priority: u16,
    /// The name of the resolver, without a dot at its end.
    pub(in super::super) name: String,
    protocols: Vec<DnsProtocol>,
    port: Option<u16>,
    /// The path of DoH requests.
    pub(in super::super) path: String,
    hints: Vec<IpAddr>,
}

/// One way to reach a designated resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct ResolverEndpoint {
    /// Its name, which is sent as server name; nothing if there is none.
    pub(in super::super) name: String,
    pub(in super::super) protocol: DnsProtocol,
    pub(in super::super) address: SocketAddr,
    /// The path of DoH requests.
    pub(in super::super) path: String,
}

impl ResolverEndpoint {
    /// Returns the resolver as a host of the memory.
    pub(in super::super) fn host(&self) -> TargetHost {
        match (self.name.as_str(), self.name.parse()) {
            ("", _) => TargetHost::Literal(self.address.ip(), 0),
            (_, Ok(ip)) => TargetHost::Literal(ip, 0),
            (name, Err(_)) => TargetHost::Name(name.to_owned()),
        }
    }
}

/// What the records of an answer say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum DesignationAnswer {
    /// These resolvers, the preferred ones first.
    Resolvers(Vec<Designation>),
    /// Ask for this name instead (RFC 9460 §2.4.2).
    Alias(String),
    /// Nothing that can be used, with the reason.
    Unusable(&'static str),
}

/// Reads the records of an answer.
pub(in super::super) fn read(records: &[Record]) -> DesignationAnswer {
    let bindings = records.iter().filter_map(|record| match &record.data {
        RData::SVCB(binding) => Some(binding),
        _ => None,
    });
    let mut found = Vec::new();
    let mut why = "its records have no protocol and name that are understood here";
    for binding in bindings.take(MAX_RECORDS) {
        let name = binding.target_name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
        // The name of the question is nobody's, so "." would mean nobody (RFC 9462 §4).
        if name.is_empty() {
            why = "its record has no name";
            continue;
        }
        if binding.svc_priority == 0 {
            return DesignationAnswer::Alias(name);
        }
        found.extend(read_service(binding, name));
    }
    found.sort_by_key(|designation: &Designation| designation.priority);
    if found.is_empty() {
        DesignationAnswer::Unusable(why)
    } else {
        DesignationAnswer::Resolvers(found)
    }
}

/// Reads a record in ServiceMode; `None` if it cannot be used here.
fn read_service(binding: &SVCB, name: String) -> Option<Designation> {
    let (protocols, port, hints) = (Vec::new(), None, Vec::new());
    let priority = binding.svc_priority;
    let mut designation =
        Designation { priority, name, protocols, port, path: String::new(), hints };
    let mut alpn: &[String] = &[];
    for (key, value) in &binding.svc_params {
        match value {
            SvcParamValue::Mandatory(keys)
                if !keys.0.iter().all(|key| UNDERSTOOD.contains(&u16::from(*key))) =>
            {
                return None;
            }
            SvcParamValue::Alpn(identifiers) => alpn = &identifiers.0,
            SvcParamValue::Port(port) => designation.port = Some(*port),
            SvcParamValue::Ipv4Hint(hints) => {
                designation.hints.extend(hints.0.iter().map(|hint| IpAddr::from(hint.0)));
            }
            SvcParamValue::Ipv6Hint(hints) => {
                designation.hints.extend(hints.0.iter().map(|hint| IpAddr::from(hint.0)));
            }
            SvcParamValue::Unknown(template) if *key == SvcParamKey::from(DOHPATH) => {
                designation.path = path(&template.0).unwrap_or_default();
            }
            _ => {}
        }
    }
    designation.hints.truncate(MAX_RECORDS);
    let has_path = !designation.path.is_empty();
    let is_offered = |protocol: &DnsProtocol| {
        let is_named = alpn.iter().any(|offered| offered == identifier(*protocol));
        is_named && (has_path || !has_requests(*protocol))
    };
    designation.protocols.extend(PROTOCOLS.iter().copied().filter(is_offered));
    (!designation.protocols.is_empty()).then_some(designation)
}

/// Returns the path of a URI template without its variables: queries are the content of POST requests (RFC 8484 §4.1).
/// `None` if it has no variable `dns` (RFC 9461 §5), or is no path.
fn path(template: &[u8]) -> Option<String> {
    let mut rest = std::str::from_utf8(template).ok()?;
    let (mut path, mut has_variable) = (String::new(), false);
    while let Some((literal, expression)) = rest.split_once('{') {
        let (expression, after) = expression.split_once('}')?;
        let names = expression.trim_start_matches(['?', '&', '+', '#', '/', '.', ';']);
        has_variable |= names.split(',').any(|name| name == "dns");
        path.push_str(literal);
        rest = after;
    }
    path.push_str(rest);
    (has_variable && is_path(&path)).then_some(path)
}

/// Returns whether a text is the path of requests.
pub(in super::super) fn is_path(text: &str) -> bool {
    let is_short = text.len() <= MAX_PATH;
    is_short && text.starts_with('/') && text.bytes().all(|octet| octet.is_ascii_graphic())
}

impl Designation {
    /// Returns the addresses in the record itself.
    pub(in super::super) fn hints(&self) -> &[IpAddr] {
        &self.hints
    }

    /// Returns each way to reach the resolver at these addresses, the best first: by protocol, and IPv6 before IPv4.
    pub(in super::super) fn endpoints(&self, addresses: &[IpAddr]) -> Vec<ResolverEndpoint> {
        let mut addresses: Vec<IpAddr> = addresses.iter().copied().take(MAX_RECORDS).collect();
        addresses.sort_by_key(IpAddr::is_ipv4);
        let endpoint = |protocol: DnsProtocol, ip: IpAddr| ResolverEndpoint {
            name: self.name.clone(),
            protocol,
            address: SocketAddr::new(ip, self.port.unwrap_or_else(|| port(protocol))),
            path: self.path.clone(),
        };
        let of_protocol = |protocol: &DnsProtocol| {
            let protocol = *protocol;
            addresses.iter().map(move |ip| (protocol, *ip)).collect::<Vec<_>>()
        };
        let all = self.protocols.iter().flat_map(of_protocol);
        all.map(|(protocol, ip)| endpoint(protocol, ip)).collect()
    }
}

/// The protocols that this build knows, the best first: that which needs the fewest round trips.
#[cfg(feature = "quic")]
pub(in super::super) const PROTOCOLS: [DnsProtocol; 4] =
    [DnsProtocol::Quic, DnsProtocol::Http3, DnsProtocol::Tls, DnsProtocol::Https];
#[cfg(not(feature = "quic"))]
pub(in super::super) const PROTOCOLS: [DnsProtocol; 2] = [DnsProtocol::Tls, DnsProtocol::Https];

/// Returns the identifier of a protocol in ALPN.
pub(in super::super) const fn identifier(protocol: DnsProtocol) -> &'static str {
    match protocol {
        DnsProtocol::Quic => "doq",
        DnsProtocol::Tls => "dot",
        DnsProtocol::Https => "h2",
        DnsProtocol::Http3 => "h3",
    }
}

/// Returns whether queries are requests of HTTP, which have a path.
pub(in super::super) const fn has_requests(protocol: DnsProtocol) -> bool {
    matches!(protocol, DnsProtocol::Https | DnsProtocol::Http3)
}

/// Returns the default port (RFC 9461 §4.1).
pub(in super::super) const fn port(protocol: DnsProtocol) -> u16 {
    match protocol {
        DnsProtocol::Quic | DnsProtocol::Tls => 853,
        DnsProtocol::Https | DnsProtocol::Http3 => 443,
    }
}

/// Returns whether a server at this address can be told from nobody else's by a certificate: the address is private or
/// local (RFC 9462 §4.3).
pub(in super::super) fn is_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use hickory_proto::rr::Name;
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::rdata::svcb::{Alpn, IpHint, Mandatory, Unknown};
    use proptest::prelude::*;

    use super::*;

    fn record(priority: u16, target: &str, params: Vec<(SvcParamKey, SvcParamValue)>) -> Record {
        let name = |text| Name::from_str(text).unwrap();
        let binding = SVCB::new(priority, name(target), params);
        Record::from_rdata(name(QUESTION), 60, RData::SVCB(binding))
    }

    fn alpn(identifiers: &[&str]) -> (SvcParamKey, SvcParamValue) {
        let identifiers = identifiers.iter().map(|text| (*text).to_owned()).collect();
        (SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(identifiers)))
    }

    fn dohpath(template: &str) -> (SvcParamKey, SvcParamValue) {
        let value = SvcParamValue::Unknown(Unknown(template.into()));
        (SvcParamKey::from(DOHPATH), value)
    }

    fn resolvers(records: &[Record]) -> Vec<Designation> {
        match read(records) {
            DesignationAnswer::Resolvers(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn protocols_ports_and_addresses_are_read() {
        let hint = SvcParamValue::Ipv4Hint(IpHint(vec![A::new(192, 0, 2, 1)]));
        let first =
            vec![alpn(&["h2", "dot", "h9"]), (SvcParamKey::Ipv4Hint, hint), dohpath("/q{?dns}")];
        let second = vec![alpn(&["doq"]), (SvcParamKey::Port, SvcParamValue::Port(8853))];
        let found = resolvers(&[record(2, "b.example.", second), record(1, "A.example.", first)]);
        let [a, b] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (&*a.name, &*a.path, a.hints()),
            ("a.example", "/q", &["192.0.2.1".parse().unwrap()][..])
        );
        let ips: Vec<IpAddr> = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap()).into();
        let texts = |designation: &Designation| -> Vec<String> {
            let endpoints = designation.endpoints(&ips);
            endpoints.iter().map(|way| format!("{} {}", way.protocol.name(), way.address)).collect()
        };
        assert_eq!(
            texts(a),
            [
                "DoT [2001:db8::1]:853",
                "DoT 192.0.2.1:853",
                "DoH [2001:db8::1]:443",
                "DoH 192.0.2.1:443"
            ]
        );
        if cfg!(feature = "quic") {
            assert_eq!(texts(b), ["DoQ [2001:db8::1]:8853", "DoQ 192.0.2.1:8853"]);
        }
    }

    //= rfc9462 §4
    //# a record MUST NOT have the TargetName "."; such a record is not used
    #[test]
    fn what_is_not_understood_is_not_used() {
        let mandatory = |key| {
            (
                SvcParamKey::Mandatory,
                SvcParamValue::Mandatory(Mandatory(vec![SvcParamKey::from(key)])),
            )
        };
        for records in [
            vec![],
            vec![record(1, ".", vec![alpn(&["dot"])])],
            vec![record(1, "a.example.", vec![alpn(&["h9"])])],
            vec![record(1, "a.example.", vec![])],
            vec![record(1, "a.example.", vec![mandatory(99), alpn(&["dot"])])],
            // HTTP without a path, and with one that is none.
            vec![record(1, "a.example.", vec![alpn(&["h2"])])],
            vec![record(1, "a.example.", vec![alpn(&["h2"]), dohpath("/q")])],
            vec![record(1, "a.example.", vec![alpn(&["h2"]), dohpath("q{?dns}")])],
            vec![record(1, "a.example.", vec![alpn(&["h2"]), dohpath("/q{?dns")])],
        ] {
            assert!(matches!(read(&records), DesignationAnswer::Unusable(_)), "{records:?}");
        }
        let understood = vec![mandatory(DOHPATH), alpn(&["dot"])];
        assert_eq!(resolvers(&[record(1, "a.example.", understood)]).len(), 1);
        let alias = read(&[record(0, "_dns.a.example.", vec![])]);
        assert_eq!(alias, DesignationAnswer::Alias("_dns.a.example".to_owned()));
    }

    #[test]
    fn private_and_local_addresses_have_no_certificates() {
        for (ip, local) in [
            ("192.168.1.1", true),
            ("10.0.0.1", true),
            ("169.254.1.1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("::ffff:10.0.0.1", true),
            ("1.1.1.1", false),
            ("2606:4700::1111", false),
        ] {
            assert_eq!(is_local(ip.parse().unwrap()), local, "{ip}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_template_a_path_is_one(template in "[/a-z{}?&,dns ]{0,30}|\\PC{0,30}") {
            if let Some(path) = path(template.as_bytes()) {
                prop_assert!(path.starts_with('/') && !path.contains('{'), "{template:?} {path:?}");
                prop_assert!(template.contains("dns") && path.len() < template.len());
            }
        }
    }
}
