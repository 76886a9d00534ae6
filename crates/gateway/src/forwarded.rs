//! The client, the requested host and the protocol: `Forwarded` (RFC 7239), and the older `X-Forwarded-*` fields.
//!
//! What a client sends in these fields is only a claim, so they are removed, unless the client is a trusted proxy:
//! then they are kept, and the proxy itself is appended.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use thiserror::Error;

use crate::peer::RequestPeer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A network of trusted proxies: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedNetwork {
    address: IpAddr,
    bits: u8,
}

/// The error of parsing a [`TrustedNetwork`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected an address, or a network such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NetworkError;

impl FromStr for TrustedNetwork {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| NetworkError))?;
        if bits <= most { Ok(Self { address, bits }) } else { Err(NetworkError) }
    }
}

impl TrustedNetwork {
    /// Returns whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = u32::from(self.bits);
        match (address.to_canonical(), self.address) {
            (IpAddr::V4(one), IpAddr::V4(net)) => {
                (one.to_bits() ^ net.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(one), IpAddr::V6(net)) => {
                (one.to_bits() ^ net.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Returns whether a field identifies the client, in a form that applications trust.
pub(crate) fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "forwarded" || name.starts_with("x-forwarded-") || name == "x-real-ip"
}

/// Adds the client and the requested host. Existing values come from a trusted proxy.
pub(crate) fn add(headers: &mut HeaderMap, peer: &RequestPeer, host: &HeaderValue) {
    let proto = if peer.secure { "https" } else { "http" };
    let host_text = host.to_str().unwrap_or_default();
    let client = peer.ip().map_or_else(|| "unknown".to_owned(), |ip| ip.to_string());
    let (open, close) = if peer.ip().is_some_and(|ip| ip.is_ipv6()) { BRACKETS } else { ("", "") };
    let element =
        ["for=", open, &client, close, ";host=\"", host_text, "\";proto=", proto].concat();
    if let Some(before) = from_older_fields(headers) {
        headers.insert(header::FORWARDED, before);
    }
    append(headers, header::FORWARDED, element);
    append(headers, X_FORWARDED_FOR, client);
    // These have a single value: that of the first trusted proxy.
    keep_last(headers, X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    keep_last(headers, X_FORWARDED_HOST, host.clone());
}

/// What is around an address of IPv6 in `Forwarded` (RFC 7239 §6).
const BRACKETS: (&str, &str) = ("\"[", "]\"");

/// Returns an address as a node of `Forwarded` (RFC 7239 §6).
fn node(ip: Option<IpAddr>) -> String {
    match ip {
        None => "unknown".to_owned(),
        Some(IpAddr::V4(ip)) => ip.to_string(),
        Some(IpAddr::V6(ip)) => format!("{}{ip}{}", BRACKETS.0, BRACKETS.1),
    }
}

/// Returns `Forwarded` with what a trusted proxy has stated in `X-Forwarded-*` alone, so that both tell applications the
/// same: "it is encouraged to convert these" (RFC 7239 §7.4). The single protocol and host go with the last address,
/// since the nearest proxy has stated all three.
fn from_older_fields(headers: &HeaderMap) -> Option<HeaderValue> {
    if headers.contains_key(header::FORWARDED) {
        return None;
    }
    let lines = headers.get_all(X_FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
    let clients = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|it| !it.is_empty());
    let elements: Vec<String> =
        clients.map(|client| format!("for={}", node(parse_client(client)))).collect();
    if elements.is_empty() {
        return None;
    }
    let mut text = elements.join(", ");
    let last = |name| headers.get_all(name).iter().next_back().and_then(|it| it.to_str().ok());
    if let Some(host) = last(X_FORWARDED_HOST).filter(|host| !host.contains(['"', '\\'])) {
        let _ = write!(text, ";host=\"{host}\"");
    }
    // Anything else is no scheme of HTTP, and could end the parameter.
    let is_scheme = |proto: &&str| proto.bytes().all(|it| it.is_ascii_alphanumeric());
    if let Some(proto) = last(X_FORWARDED_PROTO).filter(is_scheme).filter(|it| !it.is_empty()) {
        let _ = write!(text, ";proto={proto}");
    }
    HeaderValue::try_from(text).ok()
}

/// Parses a client of `X-Forwarded-For`, to which some proxies add the port.
fn parse_client(text: &str) -> Option<IpAddr> {
    let ip: Option<IpAddr> = text.trim_matches(['[', ']']).parse().ok();
    let ip = ip.or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()));
    ip.map(|ip| ip.to_canonical())
}

/// Keeps the last of several lines, which the nearest proxy has added, so that applications get the same value
/// whether they read the first line or the last one. Without any line, the field is set to `default`.
fn keep_last(headers: &mut HeaderMap, name: HeaderName, default: HeaderValue) {
    let last = headers.get_all(&name).iter().next_back().cloned();
    headers.insert(name, last.unwrap_or(default));
}

/// Joins all lines to a single one, for applications that read only the first or the last one.
fn append(headers: &mut HeaderMap, name: HeaderName, mut element: String) {
    if headers.contains_key(&name) {
        let before = headers.get_all(&name).iter().filter_map(|value| value.to_str().ok());
        let list: Vec<&str> = before.chain([element.as_str()]).collect();
        element = list.join(", ");
    }
    if let Ok(value) = HeaderValue::try_from(element) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(before: &[(&'static str, &'static str)], client: &str, secure: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let peer = RequestPeer { remote: client.parse().ok(), secure, ..RequestPeer::default() };
        add(&mut headers, &peer, &HeaderValue::from_static("a.example:8443"));
        headers
    }

    #[test]
    fn a_client_is_added() {
        let headers = added(&[], "192.0.2.1:5000", true);
        assert_eq!(headers["forwarded"], "for=192.0.2.1;host=\"a.example:8443\";proto=https");
        assert_eq!(headers["x-forwarded-for"], "192.0.2.1");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "a.example:8443");
        let headers = added(&[], "[2001:db8::1]:5000", false);
        let expected = "for=\"[2001:db8::1]\";host=\"a.example:8443\";proto=http";
        assert_eq!(headers["forwarded"], expected);
        assert_eq!(headers["x-forwarded-for"], "2001:db8::1");
        assert_eq!(added(&[], "", false)["x-forwarded-for"], "unknown");
    }

    #[test]
    fn the_entry_of_a_trusted_proxy_stays_in_front() {
        let before = [
            ("forwarded", "for=198.51.100.1"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "198.51.100.2"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-proto", "https"),
        ];
        let headers = added(&before, "10.0.0.1:1", false);
        assert_eq!(headers["x-forwarded-for"], "198.51.100.1, 198.51.100.2, 10.0.0.1");
        assert_eq!(headers.get_all("x-forwarded-for").iter().count(), 1);
        assert!(headers["forwarded"].to_str().unwrap().starts_with("for=198.51.100.1, for=10.0."));
        assert_eq!(headers.get_all("x-forwarded-proto").iter().collect::<Vec<_>>(), ["https"]);
    }

    #[test]
    fn older_fields_of_a_trusted_proxy_are_converted() {
        let own = "for=10.0.0.1;host=\"a.example:8443\";proto=http";
        let cases: [(&[_], _); 7] = [
            (
                &[
                    ("x-forwarded-for", "198.51.100.1"),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "b.example"),
                ],
                "for=198.51.100.1;host=\"b.example\";proto=https, ",
            ),
            (
                &[
                    ("x-forwarded-for", "2001:db8::1,198.51.100.1:50"),
                    ("x-forwarded-for", "[2001:db8::2]:50"),
                    ("x-forwarded-proto", "https"),
                ],
                "for=\"[2001:db8::1]\", for=198.51.100.1, for=\"[2001:db8::2]\";proto=https, ",
            ),
            (
                &[("x-forwarded-for", "unknown, , nobody;proto=ftp, ::ffff:10.9.9.9")],
                "for=unknown, for=unknown, for=10.9.9.9, ",
            ),
            (
                &[("x-forwarded-for", "[2001:db8::1]"), ("x-forwarded-proto", "a;b=c")],
                "for=\"[2001:db8::1]\", ",
            ),
            (
                &[("x-forwarded-for", "10.9.9.9"), ("x-forwarded-host", "a\";for=b")],
                "for=10.9.9.9, ",
            ),
            (&[("x-forwarded-for", "10.9.9.9"), ("forwarded", "for=10.8.8.8")], "for=10.8.8.8, "),
            (&[("x-forwarded-proto", "https")], ""),
        ];
        for (before, expected) in cases {
            let headers = added(before, "10.0.0.1:1", false);
            assert_eq!(headers["forwarded"], format!("{expected}{own}"));
        }
    }

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("0.0.0.0/0", "255.0.0.1", "::1"),
        ] {
            let network: TrustedNetwork = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network:?}");
            assert!(!network.contains(outside.parse().unwrap()), "{network:?}");
        }
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert!("10.0.0.0/8".parse::<TrustedNetwork>().unwrap().contains(mapped));
        for text in ["", "a", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(text.parse::<TrustedNetwork>().is_err(), "{text}");
        }
    }
}
