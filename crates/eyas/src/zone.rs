//! Zones of link-local addresses (RFC 4007 §11): `fe80::1%eth0`, by the name or the number of an
//! interface of this host.
//!
//! A zone has a meaning on this host only (RFC 9844 §3): it selects the interface, and is never
//! sent to a peer.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::ops::Range;

use eyas_host::interfaces;
use eyas_race::target::{TargetError, TargetHost, parse_port};

/// Parses a host as [`TargetHost::parse`] does, with zones by the name or number of an interface of this
/// host.
///
/// # Errors
/// If it is not a host, or there is no such interface.
pub fn parse_host(text: &str) -> Result<TargetHost, TargetError> {
    let host = TargetHost::parse_with_scopes(text, index_of)?;
    match &host {
        TargetHost::Literal(_, scope @ 1..) if !exists(*scope) => {
            Err(TargetError::Interface(scope.to_string()))
        }
        _ => Ok(host),
    }
}

/// Parses an address with an optional zone, without a port, with or without brackets.
///
/// # Errors
/// If it is not an address, or there is no such interface.
pub fn parse_address(text: &str, port: u16) -> Result<SocketAddr, TargetError> {
    match parse_host(text)? {
        TargetHost::Literal(ip, scope) => Ok(with_scope(ip, port, scope)),
        TargetHost::Name(_) => Err(TargetError::Address(text.to_owned())),
    }
}

/// Parses an address with a port: `192.0.2.1:443`, `[2001:db8::1]:443`, `[fe80::1%eth0]:443`.
///
/// # Errors
/// If it is not an address with a port, or there is no such interface.
pub fn parse_socket_address(text: &str) -> Result<SocketAddr, TargetError> {
    let malformed = || TargetError::Address(text.to_owned());
    let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
    // Without brackets the last group of an address would be taken for a port.
    if host.contains(':') && !host.ends_with(']') {
        return Err(malformed());
    }
    parse_address(host, parse_port(port).ok_or_else(malformed)?)
}

/// Finds the address with a zone that is the host of a URL, whose authority begins at this place:
/// `[fe80::1%25eth0]` (RFC 6874) or `[fe80::1%eth0]`. Parsers of URLs know no zones.
pub fn in_url(url: &str, authority: usize) -> Option<Range<usize>> {
    let rest = url.get(authority..)?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    let literal = rest[host..end].strip_prefix('[')?.split_once(']')?.0;
    let start = authority + host;
    literal.contains('%').then(|| start..start + literal.len() + 2)
}

/// Returns the address and port, on the interface with this index; 0 is none.
pub fn with_scope(ip: IpAddr, port: u16, scope: u32) -> SocketAddr {
    match ip {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
    }
}

/// Returns the name of the interface with this index, if there is one.
pub fn interface_name(index: u32) -> Option<String> {
    interfaces::name(index)
}

/// Returns the addresses of the interface with this name, without link-local ones, from which few
/// peers are reached. Empty if there is no such interface.
pub fn interface_addresses(name: &str) -> Vec<IpAddr> {
    let mut addresses = interfaces::addresses(name);
    addresses.retain(|ip| !matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    addresses
}

fn exists(index: u32) -> bool {
    interface_name(index).is_some()
}

/// Returns the index of an interface by its name, or else by its number.
fn index_of(zone: &str) -> Option<u32> {
    // A name may be percent-encoded in a URL (RFC 6874 §2), as that of an alias such as `eth0%3A1`.
    let decoded = percent_decoded(zone);
    let by_name = interfaces::index(decoded.as_str());
    by_name.or_else(|| zone.parse().ok().filter(|index| exists(*index)))
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                decoded.push(char::from(byte));
                decoded.push_str(&part[2..]);
            }
            None => {
                decoded.push('%');
                decoded.push_str(part);
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of the loopback interface, which every namespace has.
    fn loopback() -> u32 {
        interfaces::index("lo").expect("lo")
    }

    #[test]
    fn zones_are_names_or_numbers_of_interfaces() {
        let index = loopback();
        let number = [format!("fe80::1%{index}"), format!("[fe80::1%25{index}]")];
        let name =
            ["fe80::1%lo", "[fe80::1%lo]", "fe80::1%25lo", "[fe80::1%25lo]", "fe80::1%25l%6F"];
        let expected = TargetHost::Literal("fe80::1".parse().expect("an address"), index);
        for text in number.iter().map(String::as_str).chain(name) {
            assert_eq!(parse_host(text).as_ref(), Ok(&expected), "{text}");
            let address = parse_address(text, 53).expect(text);
            assert_eq!(address, with_scope("fe80::1".parse().expect("an address"), 53, index));
        }
        for text in [format!("[fe80::1%{index}]:80"), "[fe80::1%lo]:80".into()] {
            let address = parse_socket_address(&text).expect(&text);
            assert_eq!(address, with_scope("fe80::1".parse().expect("an address"), 80, index));
        }
        assert_eq!(interface_name(index).as_deref(), Some("lo"));
    }

    #[test]
    fn the_address_with_a_zone_is_found_in_a_url() {
        for (url, authority, expected) in [
            ("http://[fe80::1%25lo]:80/", 7, Some("[fe80::1%25lo]")),
            ("http://u%40:p@[fe80::1%lo]", 7, Some("[fe80::1%lo]")),
            ("//[fe80::1%1]?x", 2, Some("[fe80::1%1]")),
            ("http://[fe80::1]/%5b", 7, None),
            ("http://a.test/[fe80::1%lo]", 7, None),
            ("http://u%40@a.test", 7, None),
            ("http://[fe80::1%lo", 7, None),
            ("http", 7, None),
        ] {
            assert_eq!(in_url(url, authority).map(|range| &url[range]), expected, "{url}");
        }
    }

    #[test]
    fn an_unknown_interface_is_named() {
        for (text, named) in [
            ("fe80::1%nosuch0", "nosuch0"),
            ("[fe80::1%25nosuch0]", "nosuch0"),
            ("fe80::1%4294967295", "4294967295"),
            ("fe80::1%0", "0"),
            ("fe80::1%", ""),
            ("fe80::1%99999999999", "99999999999"),
        ] {
            assert_eq!(parse_host(text), Err(TargetError::Interface(named.into())), "{text}");
            assert!(parse_address(text, 1).is_err());
        }
        for text in ["2001:db8::1%lo", "::1%lo", "[2001:db8::1%251]"] {
            assert!(matches!(parse_host(text), Err(TargetError::Scope(_))), "{text}");
        }
    }

    #[test]
    fn an_interface_has_its_addresses() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(interface_addresses("lo").contains(&loopback));
        assert!(interface_addresses("nosuch0").is_empty());
    }

    #[test]
    fn addresses_without_a_zone_are_parsed_as_before() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "[::]:0", "[fe80::1]:1", "0.0.0.0:65535"]
        {
            assert_eq!(parse_socket_address(text).expect(text), text.parse().expect("an address"));
        }
        for text in [
            "",
            "80",
            ":80",
            "a.test:80",
            "192.0.2.1",
            "2001:db8::1:80",
            "[::1]",
            "[::1]:x",
            "[::1:80",
        ] {
            assert!(parse_socket_address(text).is_err(), "{text}");
        }
    }
}
