//! DNS messages in HTTP (RFC 8484), whichever version of it.

use std::net::Ipv6Addr;
use std::time::Duration;

pub(super) const MEDIA_TYPE: &str = "application/dns-message";

/// The default port of `https`.
const PORT: u16 = 443;

/// The maximum length of a DNS message (RFC 8484 §6), in octets.
pub(super) const MAX_MESSAGE: usize = 65_535;

/// Returns whether the body is a DNS message, by this `Content-Type`; a server that does not state the type sends nothing
/// else.
pub(super) fn is_dns_message(content_type: Option<&[u8]>) -> bool {
    content_type.is_none_or(|media_type| {
        let without_parameters = media_type.split(|octet| *octet == b';').next();
        without_parameters
            .unwrap_or_default()
            .trim_ascii()
            .eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
    })
}

/// Returns for how long caches have had the response, by this `Age`, which counts against the times to live in it (RFC
/// 8484 §5.1).
pub(super) fn age(age: Option<&[u8]>) -> Duration {
    let seconds = age.and_then(|age| std::str::from_utf8(age).ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or_default())
}

/// Returns the authority of a URL with this host and port.
pub(super) fn authority(name: &str, port: u16) -> String {
    let host = match name.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => name.to_owned(),
    };
    if port == PORT { host } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_may_have_parameters() {
        let accepts = |value: Option<&'static str>| is_dns_message(value.map(str::as_bytes));
        assert!(accepts(None));
        assert!(accepts(Some("Application/DNS-Message; charset=x")));
        assert!(!accepts(Some("text/html")));
    }
}
