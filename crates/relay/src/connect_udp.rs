//! Requests for UDP over HTTP, CONNECT-UDP: their path (RFC 9298 §2, §3.1) and their fields.

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use eyas::race::target::{TargetHost, parse_port};

use crate::destination::{Destination, RequestRefusal};

/// The protocol that is requested by Upgrade or extended CONNECT.
pub const PROTOCOL: &str = "connect-udp";

/// The field that announces capsules (RFC 9297 §3.4), and its value.
pub const CAPSULE_PROTOCOL: (HeaderName, HeaderValue) =
    (HeaderName::from_static("capsule-protocol"), HeaderValue::from_static("?1"));

/// The beginning of the default URI template (RFC 9298 §3).
const PREFIX: &str = "/.well-known/masque/udp/";

/// All characters that RFC 3986 §2.3 does not list as unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the path for a destination, by the template `/.well-known/masque/udp/{target_host}/{target_port}/`.
pub fn path(to: &Destination) -> String {
    let host = match &to.host {
        TargetHost::Name(_) => to.given_host(),
        TargetHost::Literal(ip, _) => ip.to_string(),
    };
    format!("{PREFIX}{}/{}/", utf8_percent_encode(&host, RESERVED), to.port)
}

/// Returns the destination that a path names.
///
/// # Errors
/// If it names none.
pub fn destination(path: &str) -> Result<Destination, RequestRefusal> {
    let malformed = || {
        let expected = "/.well-known/masque/udp/HOST/PORT/";
        RequestRefusal::Malformed(format!("CONNECT-UDP requires {expected}, not {path:?}"))
    };
    let rest = path.strip_prefix(PREFIX).ok_or_else(malformed)?;
    let mut parts = rest.split('/');
    let (Some(host), Some(port), Some(""), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    let host = percent_decode_str(host).decode_utf8().map_err(|_| malformed())?;
    let port = parse_port(port).ok_or_else(malformed)?;
    Destination::parse(&host, port)
}

/// Returns whether the fields of an HTTP/1.1 message name CONNECT-UDP as its upgrade (RFC 9298 §3.2).
pub fn asks_for_udp(fields: &HeaderMap) -> bool {
    let mut named = fields.get_all(http::header::UPGRADE).iter();
    let only = named.next().filter(|_| named.next().is_none());
    only.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    //= rfc9298 §2
    //# the default template alone is used: `/.well-known/masque/udp/{target_host}/{target_port}/`
    #[test]
    fn a_path_names_a_destination() {
        for (path, destination_) in [
            ("/.well-known/masque/udp/192.0.2.6/443/", "192.0.2.6:443"),
            ("/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/", "[2001:db8::42]:443"),
            ("/.well-known/masque/udp/a.example/53/", "a.example:53"),
        ] {
            let to = destination(path).expect(path);
            assert_eq!(to.to_string(), destination_);
            assert_eq!(super::path(&to), path);
        }
    }

    //= rfc9298 §2
    //# the path has a port from 1 to 65535
    #[test]
    fn a_path_without_a_destination_is_refused() {
        for path in [
            "",
            "/",
            "/.well-known/masque/udp/a.example/53",
            "/.well-known/masque/udp/a.example/53//",
            "/.well-known/masque/udp/a.example/53/x",
            "/.well-known/masque/udp//53/",
            "/.well-known/masque/udp/a.example/0/",
            "/.well-known/masque/udp/a.example/+53/",
            "/.well-known/masque/udp/a.example/65536/",
            "/.well-known/masque/udp/a%2fexample/53/",
            "/.well-known/masque/udp/%ff/53/",
            "/.well-known/masque/ip/a.example/53/",
        ] {
            assert!(matches!(destination(path), Err(RequestRefusal::Malformed(_))), "{path}");
        }
    }

    proptest! {
        //= rfc9298 §2
        //# IPv6 addresses are percent-encoded in the path
        #[test]
        fn an_address_is_parsed_back(v6: bool, ip: u128, port in 1_u16..) {
            let ip: std::net::IpAddr = match v6 {
                true => std::net::Ipv6Addr::from_bits(ip).into(),
                false => std::net::Ipv4Addr::from_bits(ip as u32).into(),
            };
            let to = Destination::new(TargetHost::Literal(ip, 0), port);
            let path = path(&to);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{}", path);
            prop_assert_eq!(destination(&path), Ok(to));
        }

        #[test]
        fn arbitrary_paths_never_panic(path: String, host: String) {
            let _ = destination(&path);
            let _ = destination(&format!("{PREFIX}{host}/1/"));
        }
    }
}
