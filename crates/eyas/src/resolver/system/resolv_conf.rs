//! The configuration of the host's own DNS queries (resolv.conf(5)), as glibc reads it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;
use std::time::Duration;

use super::super::name_servers::ServerOptions;
use super::hosts::is_on;

/// Where it is.
pub(super) const PATH: &str = "/etc/resolv.conf";

const DNS_PORT: u16 = 53;
/// The maximum number of name servers, as in glibc (MAXNS).
const MAX_SERVERS: usize = 3;
/// The maximum number of search domains that are searched here; glibc has none.
const MAX_DOMAINS: usize = 256;
/// The bounds that glibc puts on the options.
const MAX_NDOTS: u32 = 15;
const MAX_TIMEOUT: u32 = 30;
const MAX_ATTEMPTS: u32 = 5;

/// Options that change nothing here: queries have an OPT record anyway, unless a server takes none,
/// and a socket each; the rest concerns other calls, or the reading of the file.
const WITHOUT_EFFECT: [&str; 10] = [
    "debug",
    "edns0",
    "inet6",
    "ip6-bytestring",
    "ip6-dotint",
    "no-ip6-dotint",
    "no-check-names",
    "single-request-reopen",
    "reload",
    "no-reload",
];

/// What the process's surroundings say about name resolution.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessSurroundings {
    /// `LOCALDOMAIN`, in place of the search list.
    pub(super) local_domain: Option<String>,
    /// `RES_OPTIONS`, after the options of the file.
    pub(super) options: Option<String>,
    /// `RESOLV_HOST_CONF`, in place of `/etc/host.conf` (host.conf(5)).
    pub(super) host_conf: Option<PathBuf>,
    /// `RESOLV_MULTI`: whether every line of the hosts file with a name counts.
    pub(super) takes_every_line: Option<bool>,
    /// Whether `HOSTALIASES` names a file.
    pub(super) has_aliases: bool,
    /// The host's own name.
    pub(super) host_name: String,
}

impl ProcessSurroundings {
    pub(super) fn read() -> Self {
        let variable = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into());
        Self {
            local_domain: variable("LOCALDOMAIN"),
            options: variable("RES_OPTIONS"),
            host_conf: std::env::var_os("RESOLV_HOST_CONF").map(PathBuf::from),
            takes_every_line: variable("RESOLV_MULTI").and_then(|value: String| is_on(&value)),
            has_aliases: std::env::var_os("HOSTALIASES").is_some(),
            host_name: own_host_name(),
        }
    }
}

/// Returns the host's own name, or nothing if the kernel does not say it.
pub(super) fn own_host_name() -> String {
    dns_lookup::get_hostname().unwrap_or_default()
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvConf {
    pub(super) servers: Vec<SocketAddr>,
    /// The domains that are searched, without dots at either end; empty for the root.
    pub(super) search: Vec<String>,
    /// A name with so many dots is tried as it is before it is searched.
    pub(super) ndots: u32,
    /// How the servers are asked.
    pub(super) options: ServerOptions,
    /// Whether AAAA is not queried.
    pub(super) no_aaaa: bool,
    /// Whether a name without dots is only searched.
    pub(super) no_tld_query: bool,
    /// A setting that is not understood.
    pub(super) unknown: Option<String>,
}

impl Default for ResolvConf {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            search: Vec::new(),
            ndots: 1,
            options: ServerOptions::default(),
            no_aaaa: false,
            no_tld_query: false,
            unknown: None,
        }
    }
}

impl ResolvConf {
    /// Reads the file's contents; a file that is missing is an empty one.
    pub(super) fn parse(
        contents: &[u8],
        surroundings: &ProcessSurroundings,
        index_of: impl Fn(&str) -> Option<u32>,
    ) -> Self {
        let mut conf = Self::default();
        let mut search = None;
        for line in String::from_utf8_lossy(contents).split('\n') {
            // A comment begins in the first column.
            if line.starts_with(['#', ';']) {
                continue;
            }
            let Some((keyword, value)) = line.split_once([' ', '\t']) else {
                conf.note_unknown(line.trim());
                continue;
            };
            match keyword {
                "nameserver" => conf.add_server(value, &index_of),
                // To glibc the end of a line of MS-DOS is a part of the last domain.
                "search" | "domain" if value.contains('\r') => conf.note_unknown(line.trim()),
                "search" | "domain" if value.trim().is_empty() => {}
                "search" => search = Some(value.to_owned()),
                "domain" => {
                    search = value.split_ascii_whitespace().next().map(ToOwned::to_owned);
                }
                "options" => conf.set_options(value),
                _ => conf.note_unknown(line.trim()),
            }
        }
        if conf.servers.is_empty() {
            // The name server on this host, as resolv.conf(5) has it.
            let local: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            conf.servers = local.map(|address| SocketAddr::new(address, DNS_PORT)).into();
        }
        let local_domain = surroundings.local_domain.as_deref();
        let search = match local_domain.or(search.as_deref()) {
            Some(search) => search,
            None => surroundings.host_name.split_once('.').map_or("", |(_, domain)| domain),
        };
        if search.split_ascii_whitespace().count() > MAX_DOMAINS {
            conf.note_unknown(&format!("search with more than {MAX_DOMAINS} domains"));
        }
        conf.search = domains(search);
        if let Some(options) = &surroundings.options {
            conf.set_options(options);
        }
        conf
    }

    fn add_server(&mut self, value: &str, index_of: impl Fn(&str) -> Option<u32>) {
        let end =
            value.trim_start().split(|c: char| c == ';' || c == '#' || c.is_ascii_whitespace());
        let text = end.into_iter().next().unwrap_or_default();
        if self.servers.len() < MAX_SERVERS
            && let Some(server) = server(text, index_of)
        {
            self.servers.push(server);
        }
    }

    fn set_options(&mut self, options: &str) {
        for option in options.split_ascii_whitespace() {
            let (name, value) = option.split_once(':').unwrap_or((option, ""));
            match name {
                "ndots" | "timeout" | "attempts" if value.starts_with('-') => {
                    self.note_unknown(&format!("options {option}"));
                }
                "ndots" => self.ndots = number(value).min(MAX_NDOTS),
                "timeout" => {
                    let seconds = number(value).clamp(1, MAX_TIMEOUT);
                    self.options.timeout = Duration::from_secs(seconds.into());
                }
                "attempts" => {
                    let attempts = number(value).clamp(1, MAX_ATTEMPTS);
                    self.options.attempts = usize::try_from(attempts).unwrap_or(1);
                }
                "rotate" => self.options.rotate = true,
                "use-vc" | "usevc" | "tcp" => self.options.use_tcp = true,
                "single-request" => self.options.single_request = true,
                "trust-ad" => self.options.trust_ad = true,
                "no-aaaa" => self.no_aaaa = true,
                "no-tld-query" => self.no_tld_query = true,
                _ if WITHOUT_EFFECT.contains(&name) => {}
                _ => self.note_unknown(&format!("options {option}")),
            }
        }
    }

    /// Notes the first setting that is not understood.
    fn note_unknown(&mut self, setting: &str) {
        if !setting.is_empty() {
            self.unknown.get_or_insert_with(|| setting.to_owned());
        }
    }
}

/// Returns the domains of a search list. A dot alone is the root.
fn domains(list: &str) -> Vec<String> {
    let mut domains: Vec<String> = Vec::new();
    for domain in list.split_ascii_whitespace() {
        let domain = domain.strip_prefix('.').unwrap_or(domain);
        let domain = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
        if domains.len() < MAX_DOMAINS && !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    domains
}

/// Parses a name server's address: IPv4 in any form of inet_aton(3), or IPv6 with or without a zone.
fn server(text: &str, index_of: impl Fn(&str) -> Option<u32>) -> Option<SocketAddr> {
    if !text.contains(':') {
        return Some(SocketAddr::new(inet_aton(text)?.into(), DNS_PORT));
    }
    let (address, zone) = text.split_once('%').unwrap_or((text, ""));
    let address: Ipv6Addr = address.parse().ok()?;
    let is_scoped = address.is_unicast_link_local() || address.segments()[0] & 0xff0f == 0xff02;
    let scope = match zone {
        "" => 0,
        // As in glibc, the name of an interface counts only for an address that needs one.
        zone => index_of(zone).filter(|_| is_scoped).or_else(|| zone.parse().ok())?,
    };
    Some(SocketAddrV6::new(address, DNS_PORT, 0, scope).into())
}

/// Parses `a`, `a.b`, `a.b.c` or `a.b.c.d`, in decimal, octal or hexadecimal: the last number fills
/// the octets that are left.
fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(c_number).collect::<Option<_>>()?;
    let (last, octets) = parts.split_last()?;
    let room = 32 - 8 * u32::try_from(octets.len()).ok().filter(|len| *len < 4)?;
    if u64::from(*last) >= 1 << room || octets.iter().any(|octet| *octet > 255) {
        return None;
    }
    let high = octets.iter().fold(0_u64, |bits, octet| bits << 8 | u64::from(*octet));
    u32::try_from(high << room | u64::from(*last)).ok().map(Ipv4Addr::from_bits)
}

/// Parses a number as C writes it.
fn c_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // The parser of the library would take a sign.
    digits.chars().all(|c| c.is_digit(radix)).then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Reads leading digits as atoi(3) does; what is none counts as zero.
fn number(text: &str) -> u32 {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |sum: u32, digit| sum.saturating_mul(10).saturating_add((digit - b'0').into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_on(contents: &str, surroundings: &ProcessSurroundings) -> ResolvConf {
        let index_of = |zone: &str| (zone == "eth0").then_some(7);
        ResolvConf::parse(contents.as_bytes(), surroundings, index_of)
    }

    fn read(contents: &str) -> ResolvConf {
        read_on(contents, &ProcessSurroundings::default())
    }

    fn servers(contents: &str) -> Vec<String> {
        read(contents).servers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn servers_are_read() {
        let local = ["127.0.0.1:53", "[::1]:53"];
        let cases: &[(&str, &[&str])] = &[
            ("", &local),
            ("nameserver", &local),
            ("nameserver \n", &local),
            ("nameserver name.test", &local),
            (" nameserver 192.0.2.1", &local),
            ("Nameserver 192.0.2.1", &local),
            ("#nameserver 192.0.2.1", &local),
            (";nameserver 192.0.2.1", &local),
            ("nameserver 192.0.2.1", &["192.0.2.1:53"]),
            ("nameserver\t192.0.2.1 ", &["192.0.2.1:53"]),
            ("nameserver 192.0.2.1\r\n", &["192.0.2.1:53"]),
            ("nameserver 192.0.2.1#5353", &["192.0.2.1:53"]),
            ("nameserver 192.0.2.1 # comment", &["192.0.2.1:53"]),
            ("nameserver 10.1", &["10.0.0.1:53"]),
            ("nameserver 0x7f.1", &["127.0.0.1:53"]),
            ("nameserver 010.0.0.1", &["8.0.0.1:53"]),
            ("nameserver 192.0.2.256", &local),
            ("nameserver 1.2.3.4.5", &local),
            ("nameserver +1.2.3.4", &local),
            ("nameserver 2001:db8::1", &["[2001:db8::1]:53"]),
            ("nameserver fe80::1%eth0", &["[fe80::1%7]:53"]),
            ("nameserver fe80::1%3", &["[fe80::1%3]:53"]),
            ("nameserver fe80::1%none", &local),
            ("nameserver 192.0.2.1\nnameserver 192.0.2.1", &["192.0.2.1:53"; 2]),
            (
                "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver ::1\nnameserver 192.0.2.4",
                &["192.0.2.1:53", "192.0.2.2:53", "[::1]:53"],
            ),
        ];
        for (contents, expected) in cases {
            assert_eq!(servers(contents), *expected, "{contents:?}");
        }
    }

    #[test]
    fn the_last_search_list_counts() {
        let cases: &[(&str, &[&str])] = &[
            ("search a.test b.test", &["a.test", "b.test"]),
            ("search\ta.test\tB.Test.", &["a.test", "b.test"]),
            ("search a.test\nsearch b.test", &["b.test"]),
            ("domain a.test b.test", &["a.test"]),
            ("domain a.test\nsearch b.test", &["b.test"]),
            ("search b.test\ndomain a.test", &["a.test"]),
            ("search a.test a.test", &["a.test"]),
            ("search .", &[""]),
            ("search . a.test", &["", "a.test"]),
            ("search ", &["own.test"]),
            ("search a.test\nsearch \ndomain \t", &["a.test"]),
            ("search a.test\r\n", &["own.test"]),
            ("", &["own.test"]),
        ];
        let own = ProcessSurroundings {
            host_name: "box.own.test".into(),
            ..ProcessSurroundings::default()
        };
        for (contents, expected) in cases {
            assert_eq!(read_on(contents, &own).search, *expected, "{contents:?}");
        }
        let of = |local_domain: &str| {
            let local_domain = Some(local_domain.to_owned());
            read_on("search a.test", &ProcessSurroundings { local_domain, ..own.clone() }).search
        };
        assert_eq!(of("x.test y.test"), ["x.test", "y.test"]);
        assert_eq!(of(""), [""; 0]);
        assert_eq!(read("").search, [""; 0]);
    }

    #[test]
    fn options_are_read_with_the_bounds_of_glibc() {
        let conf =
            read("options ndots:5 timeout:1\toptions attempts:3 rotate use-vc\noptions no-aaaa");
        assert_eq!(conf.unknown.as_deref(), Some("options options"));
        let conf = read("options ndots:5 timeout:1 attempts:3 rotate use-vc\noptions no-aaaa");
        assert_eq!((conf.ndots, conf.options.timeout.as_secs(), conf.options.attempts), (5, 1, 3));
        assert!(conf.options.rotate && conf.options.use_tcp && conf.no_aaaa);
        assert_eq!(conf.unknown, None);
        let conf = read("options single-request trust-ad");
        assert!(conf.options.single_request && conf.options.trust_ad);
        let conf = read("options ndots:99 timeout:0 attempts:99999999999");
        assert_eq!((conf.ndots, conf.options.timeout.as_secs(), conf.options.attempts), (15, 1, 5));
        assert_eq!(read("options ndots:0").ndots, 0);
        assert_eq!(read("options ndots:x").ndots, 0);
        assert_eq!(read("").ndots, 1);
        let options = Some("ndots:3 no-tld-query".to_owned());
        let conf = read_on(
            "options ndots:5",
            &ProcessSurroundings { options, ..ProcessSurroundings::default() },
        );
        assert_eq!((conf.ndots, conf.no_tld_query), (3, true));
    }

    #[test]
    fn what_is_not_understood_is_noted() {
        let known = "options edns0 trust-ad single-request no-reload debug";
        assert_eq!(read(known).unknown, None);
        for (contents, expected) in [
            ("options inet7", "options inet7"),
            ("sortlist 192.0.2.0/24", "sortlist 192.0.2.0/24"),
            ("lookup file bind", "lookup file bind"),
            ("nonsense", "nonsense"),
            ("search a.test b.test\r\n", "search a.test b.test"),
            ("domain a.test\r\n", "domain a.test"),
            ("options ndots:-1", "options ndots:-1"),
        ] {
            assert_eq!(read(contents).unknown.as_deref(), Some(expected), "{contents:?}");
        }
        assert_eq!(read("\n \n\t\n").unknown, None);
    }
}
