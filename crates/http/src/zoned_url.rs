//! URLs with the zone of a link-local address: `http://[fe80::1%25eth0]/` (RFC 6874), and
//! `%eth0` as people write it.
//!
//! [`Url`] has no place for a zone. It is kept in the address itself, where a link-local address
//! has 54 bits that are zero (RFC 4291 §2.5.6): the index of the interface becomes its second and
//! third group, as in the kernels of KAME, which keep it in the second. So a zone belongs to the
//! URL wherever that goes: to redirects, cookies and pools of connections, which must not confuse
//! hosts on different links. [`host_of`] returns it, and nothing that is sent contains it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use eyas::race::target::{TargetError, TargetHost};
use eyas::zone::{in_url, interface_name, parse_host};
use url::Url;

/// Why a text is no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Its syntax.
    #[error(transparent)]
    Syntax(#[from] url::ParseError),
    /// The zone of its address.
    #[error(transparent)]
    Zone(#[from] TargetError),
}

/// Parses a URL whose host may have a zone.
///
/// # Errors
/// If it is no URL, or this host has no such interface.
pub fn parse_url(text: &str) -> Result<Url, UrlError> {
    Ok(Url::parse(&without_zone(text)?)?)
}

/// Parses a reference relative to this URL. A link-local address without a zone is on the same link
/// as that of the base: its server cannot know how the client names the link.
pub(crate) fn join(base: &Url, reference: &str) -> Result<Url, UrlError> {
    let mut to = base.join(&without_zone(reference)?)?;
    if let (Some((_, scope)), Some(ip)) = (address(base).and_then(scoped), address(&to))
        && ip.is_unicast_link_local()
        && scoped(ip).is_none()
    {
        // It only fails for URLs without a host.
        let _ = to.set_ip_host(IpAddr::V6(with_scope(ip, scope)));
    }
    Ok(to)
}

/// Returns the host of a URL, with its zone.
///
/// # Errors
/// If it has none, or the host is not valid.
pub fn host_of(url: &Url) -> Result<TargetHost, TargetError> {
    match address(url).and_then(scoped) {
        Some((ip, scope)) => Ok(TargetHost::Literal(ip.into(), scope)),
        None => TargetHost::parse(url.host_str().ok_or(TargetError::Empty)?),
    }
}

/// Returns the host of a URL as it is sent to its server: without the zone.
pub(crate) fn sent_host(url: &Url) -> Cow<'_, str> {
    match address(url).and_then(scoped) {
        Some((ip, _)) => format!("[{ip}]").into(),
        None => url.host_str().unwrap_or_default().into(),
    }
}

/// Returns a URL as text for people, with its zone as they would write it.
pub(crate) fn shown(url: &Url) -> String {
    let Some((ip, scope)) = address(url).and_then(scoped) else { return url.to_string() };
    let zone = interface_name(scope).unwrap_or_else(|| scope.to_string());
    let kept = url.host_str().unwrap_or_default();
    url.as_str().replacen(kept, &format!("[{ip}%25{zone}]"), 1)
}

/// Replaces a zone in the authority of a URL, or of a reference that has one, by bits of the
/// address.
fn without_zone(text: &str) -> Result<Cow<'_, str>, TargetError> {
    let Some(start) = text.find("//").map(|at| at + 2) else { return Ok(text.into()) };
    // A reference such as `/a?b=//c` has no authority.
    let is_authority = text[..start - 2].strip_suffix(':').is_none_or(is_scheme);
    if !is_authority || !(start == 2 || text[..start - 2].ends_with(':')) {
        return Ok(text.into());
    }
    let Some(at) = in_url(text, start) else { return Ok(text.into()) };
    let literal = &text[at.clone()];
    let TargetHost::Literal(IpAddr::V6(ip), scope) = parse_host(literal)? else {
        return Err(TargetError::Address(literal.to_owned()));
    };
    Ok(format!("{}[{}]{}", &text[..at.start], with_scope(ip, scope), &text[at.end..]).into())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn address(url: &Url) -> Option<Ipv6Addr> {
    match url.host()? {
        url::Host::Ipv6(ip) => Some(ip),
        _ => None,
    }
}

/// Keeps a scope in a link-local address.
fn with_scope(ip: Ipv6Addr, scope: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(ip.to_bits() | u128::from(scope) << 80)
}

/// Returns a link-local address and the scope that is kept in it, if there is one.
fn scoped(ip: Ipv6Addr) -> Option<(Ipv6Addr, u32)> {
    let scope = u32::try_from((ip.to_bits() >> 80) & u128::from(u32::MAX)).ok()?;
    let is_scoped = ip.is_unicast_link_local() && scope != 0;
    is_scoped.then(|| (Ipv6Addr::from_bits(ip.to_bits() & !(u128::from(u32::MAX) << 80)), scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> u32 {
        match parse_host("fe80::1%lo").expect("lo") {
            TargetHost::Literal(_, scope) => scope,
            TargetHost::Name(name) => panic!("{name}"),
        }
    }

    #[test]
    fn a_zone_is_part_of_the_host_and_is_not_sent() {
        let index = loopback();
        let ip = "fe80::1".parse().expect("an address");
        for zone in ["%lo", "%25lo", "%25l%6f", &format!("%{index}"), &format!("%25{index}")] {
            for (before, after) in [
                ("http://[fe80::1", "]/"),
                ("https://[fe80::1", "]:8443/x?y=[%25z]#f"),
                ("http://u:p@[fe80::1", "]"),
                ("HTTP://[FE80::1", "]:80"),
                ("http://[fe80:0:0::1", "]?q=@[::1%25x]"),
            ] {
                let text = format!("{before}{zone}{after}");
                let url = parse_url(&text).expect(&text);
                assert_eq!(host_of(&url), Ok(TargetHost::Literal(ip, index)), "{text}");
                assert_eq!(sent_host(&url), "[fe80::1]", "{text}");
                assert!(shown(&url).contains("[fe80::1%25lo]"), "{}", shown(&url));
            }
        }
    }

    #[test]
    fn an_unknown_interface_is_named() {
        for text in ["http://[fe80::1%25nosuch0]/", "http://[fe80::1%nosuch0]:80"] {
            let error = parse_url(text).expect_err(text);
            assert_eq!(error, UrlError::Zone(TargetError::Interface("nosuch0".into())));
        }
        for text in ["http://[2001:db8::1%25lo]/", "http://[::1%lo]/", "http://[fe80::1%25]/"] {
            assert!(matches!(parse_url(text), Err(UrlError::Zone(_))), "{text}");
        }
    }

    #[test]
    fn other_urls_are_parsed_as_before() {
        for text in [
            "http://a.test/%25lo",
            "http://a.test/?x=http://[fe80::1%25lo]/",
            "https://[2001:db8::1]:8443/",
            "https://[fe80::1]/",
            "http://ada:se%25cret@a.test/",
            "http://[::1",
            "",
            "//",
            "x",
        ] {
            let (ours, theirs) = (parse_url(text), Url::parse(text).map_err(UrlError::Syntax));
            assert_eq!(ours, theirs, "{text}");
        }
    }

    #[test]
    fn a_redirect_stays_on_the_link() {
        let base = parse_url("http://[fe80::1%25lo]:8080/a/b").expect("a URL");
        let scope = loopback();
        for (reference, host, path) in [
            ("c", "fe80::1", "/a/c"),
            ("/d?e=//[fe80::9%25nosuch0]/", "fe80::1", "/d"),
            ("http://[fe80::1]:8080/f", "fe80::1", "/f"),
            ("//[fe80::2]/g", "fe80::2", "/g"),
            ("//[fe80::2%25lo]/h", "fe80::2", "/h"),
            ("https://[fe80::2%lo]/i", "fe80::2", "/i"),
        ] {
            let to = join(&base, reference).expect(reference);
            let ip = host.parse().expect("an address");
            assert_eq!(host_of(&to), Ok(TargetHost::Literal(ip, scope)), "{reference}");
            assert_eq!(to.path(), path, "{reference}");
        }
        let to = join(&base, "http://[2001:db8::1]/").expect("a URL");
        let global = TargetHost::Literal("2001:db8::1".parse().expect("an address"), 0);
        assert_eq!(host_of(&to), Ok(global));
        assert!(join(&base, "//[fe80::2%25nosuch0]/").is_err());
        let elsewhere = parse_url("http://a.test/").expect("a URL");
        let to = join(&elsewhere, "http://[fe80::1]/").expect("a URL");
        let plain = TargetHost::Literal("fe80::1".parse().expect("an address"), 0);
        assert_eq!(host_of(&to), Ok(plain), "there is no link to stay on");
    }
}
