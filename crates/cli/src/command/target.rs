//! Parses the user's target of a race: a URL, `host:port` or a host.

use eyas::race::candidate::{Security, Transport};
use eyas::race::target::{Target, TargetError, TargetService, parse_port};
use eyas::zone::parse_host;
use eyas_http::{host_of, parse_url, text_without_password as shown};
use url::Url;

use crate::failure::{Failure, FailureKind};
use crate::flags::{ServiceFlags, VersionFlags};

/// The port of a host without one, which is raced as https.
const HTTPS_PORT: u16 = 443;
/// The port of a tunnel server without one.
const TUNNEL_PORT: u16 = 4433;
/// The port of a server of `eyas perf` without one.
const PERF_PORT: u16 = 7117;
/// The hints if a URL is required, without and with the option of naming transports.
const SCHEMES: &str = "use https:// or http://";
const SCHEMES_AND_TRANSPORTS: &str =
    "use https://, http://, or transports such as sctp+tcp://host:port";

/// Reads a target.
pub(crate) fn parse(
    text: &str,
    service: &ServiceFlags,
    versions: VersionFlags,
) -> Result<Target, Failure> {
    if let Some(transports) =
        text.split_once("://").and_then(|(scheme, _)| Transport::from_scheme(scheme))
    {
        return from_transports(text, transports, service);
    }
    if text.contains("://") {
        let url = url(text).map_err(|failure| match failure.hint.as_deref() {
            Some(SCHEMES) => failure.hint(SCHEMES_AND_TRANSPORTS),
            _ => failure,
        })?;
        return from_url(&url, versions);
    }
    let (name, port) = host_and_port(text)?;
    let host = parse_host(name).map_err(|cause| malformed(text, &cause))?;
    let port = port.unwrap_or(HTTPS_PORT);
    let mut target = match (service.plain, service.alpn.is_empty()) {
        (true, _) => Target::plain(host, port, vec![Transport::Tcp], Security::None),
        (false, true) => Target::https(host, port),
        (false, false) => {
            let transports = vec![Transport::Quic, Transport::Tcp];
            Target::plain(host, port, transports, Security::Tls)
        }
    };
    if let TargetService::Plain { alpn, .. } = &mut target.service {
        alpn.clone_from(&service.alpn);
    }
    restricted(target.named_as(name), versions)
}

/// Returns the target of a pipe: never HTTP.
pub(crate) fn for_pipe(text: &str, service: &ServiceFlags) -> Result<Target, Failure> {
    match text.contains("://") {
        true => {
            parse(text, service, VersionFlags::default()).and_then(|target| match target.service {
                TargetService::Plain { .. } => Ok(target),
                _ => Err(Failure::new(
                    FailureKind::Url,
                    format!("{:?} is HTTP, which has its own", shown(text)),
                )
                .hint("eyas get fetches it; a pipe goes to quic+tcp://host:port")),
            })
        }
        false if service.plain => from_transports(text, vec![Transport::Tcp], service),
        false => from_transports(text, vec![Transport::Quic, Transport::Tcp], service),
    }
}

/// Returns the server of a tunnel, over all suitable transports unless some are named.
pub(crate) fn for_tunnel(text: &str) -> Result<Target, Failure> {
    let suitable = vec![Transport::SctpUdp, Transport::Quic, Transport::Tcp];
    let target = for_own_server(text, TUNNEL_PORT, suitable, Security::Tls)?;
    Ok(target.with_alpn([eyas_tunnel::ALPN]))
}

/// Parses `HOST`, `HOST:PORT` or `sctp+tcp://HOST:PORT`, the server of a protocol of eyas itself.
fn for_own_server(
    text: &str,
    port: u16,
    suitable: Vec<Transport>,
    security: Security,
) -> Result<Target, Failure> {
    let (named, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest.trim_end_matches('/')),
        None => (None, text),
    };
    let transports = match named.map(Transport::from_scheme) {
        None => suitable,
        Some(Some(transports)) => transports,
        Some(None) => {
            let text = format!("{:?} does not name transports", shown(text));
            return Err(Failure::new(FailureKind::Url, text)
                .hint("write HOST:PORT, or sctp+tcp://HOST:PORT"));
        }
    };
    let (name, given) = host_and_port(rest)?;
    let host = parse_host(name).map_err(|cause| malformed(text, &cause))?;
    Ok(Target::plain(host, given.unwrap_or(port), transports, security).named_as(name))
}

/// Returns the server of `eyas perf`, with the transports that it names; none if it names none.
pub(crate) fn for_perf(text: &str, plain: bool) -> Result<Target, Failure> {
    let security = if plain { Security::None } else { Security::Tls };
    for_own_server(text, PERF_PORT, Vec::new(), security)
}

/// Parses the target `sctp+tcp://host:port`.
fn from_transports(
    text: &str,
    transports: Vec<Transport>,
    service: &ServiceFlags,
) -> Result<Target, Failure> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
    let (name, port) = host_and_port(rest)?;
    let host = parse_host(name).map_err(|cause| malformed(text, &cause))?;
    let Some(port) = port else {
        return Err(Failure::new(
            FailureKind::Url,
            format!("there is no port in {:?}", shown(text)),
        )
        .hint("add one, as in sctp+tcp://example.org:5000"));
    };
    let security = if service.plain { Security::None } else { Security::Tls };
    let mut target = Target::plain(host, port, transports, security).named_as(name);
    if let TargetService::Plain { alpn, .. } = &mut target.service {
        alpn.clone_from(&service.alpn);
    }
    Ok(target)
}

/// Returns the target of a URL.
pub(crate) fn from_url(url: &Url, versions: VersionFlags) -> Result<Target, Failure> {
    let host = host_of(url).map_err(|cause| malformed(url.as_str(), &cause))?;
    let port = url.port_or_known_default().unwrap_or(HTTPS_PORT);
    let target = match url.scheme() {
        "http" => Target::http(host, port),
        _ => Target::https(host, port),
    };
    restricted(target.named_as(url.host_str().unwrap_or_default()), versions)
}

/// Parses a URL; the default scheme is https.
pub(crate) fn url(text: &str) -> Result<Url, Failure> {
    let with_scheme =
        if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = parse_url(&with_scheme).map_err(|cause| {
        Failure::new(FailureKind::Url, format!("{:?} is not a URL: {cause}", shown(text)))
            .hint("write it as https://example.org/path")
    })?;
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => {
            host_of(&url).map_err(|cause| malformed(text, &cause))?;
            Ok(url)
        }
        ("http" | "https", None) => {
            Err(Failure::new(FailureKind::Url, format!("there is no host in {:?}", shown(text))))
        }
        (scheme, _) if Transport::from_scheme(scheme).is_some() => Err(Failure::new(
            FailureKind::Url,
            format!("{scheme}:// names transports and is not an HTTP URL"),
        )
        .hint("'eyas race' and 'eyas pipe' accept it; a URL begins with https:// or http://")),
        (scheme, _) => {
            Err(Failure::new(FailureKind::Url, format!("{scheme}:// is not supported"))
                .hint(SCHEMES))
        }
    }
}

fn malformed(text: &str, cause: &TargetError) -> Failure {
    let shown = shown(text);
    let message = match shown == text {
        true => format!("{text:?} is not a host: {cause}"),
        // The cause would quote the password.
        false => format!("{shown:?} is not a host: it must not contain a user or a password"),
    };
    Failure::new(FailureKind::Url, message)
        .hint("give a URL, host:port or a host, such as example.org or [2001:db8::1]:443")
}

/// Splits `host:port`; an IPv6 address needs brackets only if a port follows.
fn host_and_port(text: &str) -> Result<(&str, Option<u16>), Failure> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => return Ok((text, None)),
    };
    match parse_port(port) {
        Some(port @ 1..) => Ok((host, Some(port))),
        _ => {
            let shown = shown(text);
            let message = match shown == text {
                true => format!("{port:?} in {text:?} is not a port"),
                false => format!("there is no port in {shown:?}"),
            };
            Err(Failure::new(FailureKind::Url, message).hint("ports go from 1 to 65535"))
        }
    }
}

/// Restricts the target to the requested versions of HTTP.
fn restricted(mut target: Target, versions: VersionFlags) -> Result<Target, Failure> {
    if versions.http3_only && target.security == Security::None {
        let text = format!("HTTP/3 requires TLS, but {target} was requested without");
        return Err(
            Failure::new(FailureKind::Usage, text).hint("use https://, or omit --http3-only")
        );
    }
    if let TargetService::Http { stream_alpn, quic_alpn } = &mut target.service {
        if versions.http1_1 {
            stream_alpn.retain(|alpn| alpn == "http/1.1");
        }
        if versions.http1_1 || versions.http2 {
            quic_alpn.clear();
        }
        if versions.http3_only {
            stream_alpn.clear();
        }
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Target, Failure> {
        parse(text, &ServiceFlags::default(), VersionFlags::default())
    }

    #[test]
    fn targets_are_parsed_as_people_write_them() {
        let cases = [
            ("https://Example.org/path", "example.org:443"),
            ("https://example.org:8443/", "example.org:8443"),
            ("http://example.org/", "example.org:80"),
            ("example.org", "example.org:443"),
            ("example.org.:853", "example.org:853"),
            ("192.0.2.1", "192.0.2.1:443"),
            ("192.0.2.1:8443", "192.0.2.1:8443"),
            ("2001:db8::1", "[2001:db8::1]:443"),
            ("[2001:db8::1]", "[2001:db8::1]:443"),
            ("[2001:db8::1]:8443", "[2001:db8::1]:8443"),
            ("https://[2001:db8::1]/", "[2001:db8::1]:443"),
        ];
        for (text, target) in cases {
            assert_eq!(read(text).expect(text).to_string(), target);
        }
    }

    /// The loopback interface exists in every network namespace, as the first one.
    #[test]
    fn zones_are_names_or_numbers_of_interfaces() {
        for zone in ["lo", "25lo", "1", "251"] {
            for (before, after, port) in [
                ("fe80::1%", "", 443),
                ("[fe80::1%", "]", 443),
                ("[fe80::1%", "]:8443", 8443),
                ("https://[fe80::1%", "]/x", 443),
                ("http://[fe80::1%", "]:8080/", 8080),
                ("sctp+tcp://[fe80::1%", "]:5000", 5000),
            ] {
                let text = format!("{before}{zone}{after}");
                let target = read(&text).expect(&text);
                assert_eq!(target.to_string(), format!("[fe80::1%1]:{port}"), "{text}");
            }
        }
        for text in ["fe80::1%nosuch0", "http://[fe80::1%25nosuch0]/", "tcp://[fe80::1%nosuch0]:1"]
        {
            let refused = read(text).expect_err(text);
            assert_eq!(refused.kind, FailureKind::Url);
            assert!(refused.message.contains("no interface nosuch0"), "{}", refused.message);
        }
    }

    #[test]
    fn a_dot_at_the_end_keeps_a_name_from_being_searched() {
        for (text, absolute) in [
            ("https://example.org./path", true),
            ("http://example.org/", false),
            ("example.org.:853", true),
            ("example.org", false),
            ("sctp+tcp://example.org.:5000", true),
            ("sctp+tcp://example.org:5000", false),
        ] {
            assert_eq!(read(text).expect(text).absolute, absolute, "{text}");
        }
    }

    #[test]
    fn transports_can_be_named() {
        let target = read("sctp+tcp://Example.org:5000/").expect("parses");
        assert_eq!(target.to_string(), "example.org:5000");
        assert_eq!(target.security, Security::Tls);
        let TargetService::Plain { transports, .. } = target.service else { panic!("not HTTP") };
        assert_eq!(transports, [Transport::Sctp, Transport::SctpUdp, Transport::Tcp]);
        let target = read("sctp-udp://[::1]:5000").expect("parses");
        assert!(matches!(target.service, TargetService::Plain { transports, .. }
            if transports == [Transport::SctpUdp]));
        for text in ["sctp://example.org", "sctp+ftp://example.org:1", "sctp://:5"] {
            assert_eq!(read(text).expect_err(text).kind, FailureKind::Url, "{text}");
        }
    }

    #[test]
    fn an_invalid_target_is_explained() {
        for text in ["", "exa mple.org", "example.org:0", "example.org:99999", "example.org:x"] {
            assert_eq!(read(text).expect_err(text).kind, FailureKind::Url, "{text}");
        }
        for text in ["ftp://example.org/", "https://", "https://[::1", "https://a b/", "x://"] {
            let refused = url(text).expect_err(text);
            assert_eq!(refused.kind, FailureKind::Url, "{text}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for text in [
            "ada:secret@example.org",
            "ada:secret@example.org:99999",
            "https://ada:secret@exa mple.org/",
            "https://ada:secret@example.org:99999/",
            "ftp://ada:secret@example.org/",
            "sctp+tcp://ada:secret@example.org",
            "sctp+tcp://ada:secret@example.org:1",
        ] {
            let refused = read(text).expect_err(text);
            assert!(!refused.message.contains("secret"), "{}", refused.message);
        }
    }

    #[test]
    fn versions_restrict_candidates() {
        let alpn = |versions: VersionFlags| {
            let target = parse("a.example", &ServiceFlags::default(), versions).expect("parses");
            match target.service {
                TargetService::Http { stream_alpn, quic_alpn } => (stream_alpn, quic_alpn),
                other => panic!("not HTTP: {other:?}"),
            }
        };
        let all = VersionFlags::default();
        assert_eq!(alpn(all), (vec!["h2".into(), "http/1.1".into()], vec!["h3".into()]));
        let one = VersionFlags { http1_1: true, ..all };
        assert_eq!(alpn(one), (vec!["http/1.1".into()], vec![]));
        let two = VersionFlags { http2: true, ..all };
        assert_eq!(alpn(two), (vec!["h2".into(), "http/1.1".into()], vec![]));
        let three = VersionFlags { http3_only: true, ..all };
        assert_eq!(alpn(three), (vec![], vec!["h3".into()]));
    }

    #[test]
    fn http_3_never_falls_back_to_a_version_without_tls() {
        let versions = VersionFlags { http3_only: true, ..VersionFlags::default() };
        let plain = ServiceFlags { plain: true, alpn: Vec::new() };
        let none = ServiceFlags::default();
        for (text, service) in [("http://a.example/", &none), ("a.example:80", &plain)] {
            let refused = parse(text, service, versions).expect_err(text);
            assert_eq!(refused.kind, FailureKind::Usage, "{refused}");
        }
    }

    #[test]
    fn a_url_of_transports_is_not_an_http_url() {
        let hint = |refused: Failure| refused.hint.unwrap_or_default();
        assert!(hint(url("sctp+tcp://a.example:1").expect_err("no HTTP")).contains("eyas pipe"));
        assert_eq!(hint(url("ftp://a.example/").expect_err("no HTTP")), SCHEMES);
        assert_eq!(hint(read("ftp://a.example/").expect_err("no HTTP")), SCHEMES_AND_TRANSPORTS);
    }

    #[test]
    fn other_services_offer_the_given_alpn() {
        let service = ServiceFlags { plain: false, alpn: vec!["imap".to_owned()] };
        let target = parse("a.example:993", &service, VersionFlags::default()).expect("parses");
        assert_eq!(target.security, Security::Tls);
        assert!(matches!(target.service, TargetService::Plain { alpn, .. } if alpn == ["imap"]));
        let service = ServiceFlags { plain: true, alpn: Vec::new() };
        let target = parse("a.example:80", &service, VersionFlags::default()).expect("parses");
        assert_eq!(target.security, Security::None);
    }
}
