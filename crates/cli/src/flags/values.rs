//! Parsers of flag values. Each error says what was expected.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use eyas::race::candidate::Transport;
use eyas::race::policy::{ATTEMPT_DELAY_FACTOR_MAX, SECOND_TRIES_MAX};
use eyas::race::target::{TargetError, TargetHost, parse_port};
use eyas::rustls::NamedGroup;
use eyas::zone::{parse_address, parse_socket_address};
use eyas::{EchChoice, EchChoiceError, Resolver};
use eyas_sctp_tokio::protocol::config::CongestionControlKind;

use super::error::ValueError;

/// The longest duration of a flag, 10 years, so that sums of times cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Parses a time such as `2s`, `500ms` or `1m 30s`; a bare number is in seconds, as in curl.
pub(super) fn duration(text: &str) -> Result<Duration, ValueError> {
    let text = text.trim();
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    match parsed {
        Some(duration) if duration <= MAX_DURATION => Ok(duration),
        Some(_) => Err(ValueError::LongerThanTenYears),
        None => Err(ValueError::Form("a time such as 2s, 500ms or 1m30s")),
    }
}

/// Parses the name of a transport.
pub(super) fn transport(text: &str) -> Result<Transport, ValueError> {
    Transport::from_name(text).ok_or(ValueError::UnknownTransport)
}

/// Parses the name of a congestion control.
pub(super) fn congestion() -> impl TypedValueParser<Value = CongestionControlKind> {
    let names = CongestionControlKind::ALL
        .map(|kind| PossibleValue::new(kind.name()).help(kind.description()));
    PossibleValuesParser::new(names)
        .try_map(|name| CongestionControlKind::from_name(&name).ok_or("no such congestion control"))
}

/// Parses `--ech`.
pub(super) fn ech(text: &str) -> Result<EchChoice, EchChoiceError> {
    text.parse()
}

/// Parses a group of curl's `--curves`, by the names of TLS and of OpenSSL.
pub(super) fn key_exchange_group(text: &str) -> Result<NamedGroup, ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "x25519mlkem768" => Ok(NamedGroup::X25519MLKEM768),
        "x25519" => Ok(NamedGroup::X25519),
        "p-256" | "secp256r1" | "prime256v1" => Ok(NamedGroup::secp256r1),
        "p-384" | "secp384r1" => Ok(NamedGroup::secp384r1),
        _ => Err(ValueError::UnknownGroup),
    }
}

/// curl's `--resolve`: the addresses to use for a host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolveFlag {
    /// The host, without brackets.
    pub(crate) host: String,
    /// The port that these addresses are for.
    pub(crate) port: u16,
    /// The addresses, in the order given, with the interfaces of link-local ones (0: none).
    pub(crate) addresses: Vec<(IpAddr, u32)>,
}

/// Splits `HOST:` or `[v6]:` off the front.
fn host_before_colon(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            Some((host, rest.strip_prefix(':')?))
        }
        None => text.split_once(':'),
    }
}

/// Parses `HOST:PORT:ADDR[,ADDR]...`; IPv6 addresses with or without brackets.
pub(super) fn resolve(text: &str) -> Result<ResolveFlag, ValueError> {
    let form = "HOST:PORT:ADDR[,ADDR], such as example.org:443:127.0.0.1";
    let text = text.strip_prefix('+').unwrap_or(text);
    let (host, rest) = host_before_colon(text).ok_or(ValueError::Form(form))?;
    let (port, list) = rest.split_once(':').ok_or(ValueError::Form(form))?;
    if host.is_empty() || list.is_empty() {
        return Err(ValueError::Form(form));
    }
    let port = parse_port(port).ok_or_else(|| ValueError::part(port, "a port", form))?;
    let addresses = list
        .split(',')
        .map(|address| {
            let address = address.trim();
            let parsed = parse_address(address, 0).map_err(|cause| {
                ValueError::address(cause, ValueError::part(address, "an IP address", form))
            })?;
            Ok(match parsed {
                SocketAddr::V4(v4) => ((*v4.ip()).into(), 0),
                SocketAddr::V6(v6) => ((*v6.ip()).into(), v6.scope_id()),
            })
        })
        .collect::<Result<_, ValueError>>()?;
    Ok(ResolveFlag { host: host.to_owned(), port, addresses })
}

/// curl's `--connect-to`: where to connect instead. Empty parts match, or keep, anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    /// The requested host; `None` is any.
    pub(crate) host: Option<String>,
    /// The requested port; `None` is any.
    pub(crate) port: Option<u16>,
    /// The host to connect to; `None` keeps it.
    pub(crate) to_host: Option<String>,
    /// The port to connect to; `None` keeps it.
    pub(crate) to_port: Option<u16>,
}

/// Parses `HOST1:PORT1:HOST2:PORT2`.
pub(super) fn connect_to(text: &str) -> Result<ConnectTo, ValueError> {
    let form = "HOST1:PORT1:HOST2:PORT2, such as example.org:443:127.0.0.1:8443";
    let port = |text: &str| match text {
        "" => Ok(None),
        text => {
            let port = parse_port(text).map(Some);
            port.ok_or_else(|| ValueError::part(text, "a port", form))
        }
    };
    let host = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (from_host, rest) = host_before_colon(text).ok_or(ValueError::Form(form))?;
    let (from_port, rest) = rest.split_once(':').ok_or(ValueError::Form(form))?;
    let (to_host, to_port) = host_before_colon(rest).ok_or(ValueError::Form(form))?;
    Ok(ConnectTo {
        host: host(from_host),
        port: port(from_port)?,
        to_host: host(to_host),
        to_port: port(to_port)?,
    })
}

/// Parses `on` and `off`.
pub(super) fn on_or_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|text| text == "on")
}

/// A DNS server named by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsServer {
    /// Plain DNS over UDP and TCP.
    Plain(SocketAddr),
    /// DNS over TLS (RFC 7858), with the name in its certificate.
    Tls(SocketAddr, String),
    /// DNS over QUIC (RFC 9250), likewise.
    Quic(SocketAddr, String),
}

/// Parses `ADDR`, `ADDR:PORT`, `[v6]:PORT`, `tls://ADDR[:PORT]#NAME` or the same with `quic`.
pub(super) fn dns_server(text: &str) -> Result<DnsServer, ValueError> {
    let form =
        "ADDR, ADDR:PORT, tls://ADDR#NAME or quic://ADDR#NAME, such as 9.9.9.9 or [::1]:5353";
    let encrypted = [("tls://", DnsServer::Tls as fn(_, _) -> _), ("quic://", DnsServer::Quic)];
    for (scheme, server) in encrypted {
        let Some(rest) = text.strip_prefix(scheme) else { continue };
        let (address, name) = rest.split_once('#').ok_or(ValueError::Form(form))?;
        let address = address_or_port(address, 853, form)?;
        if name.is_empty() {
            return Err(ValueError::Form(form));
        }
        return Ok(server(address, name.to_owned()));
    }
    Ok(DnsServer::Plain(address_or_port(text, 53, form)?))
}

/// Parses an address with a port, or with the default port.
fn address_or_port(
    text: &str,
    default_port: u16,
    form: &'static str,
) -> Result<SocketAddr, ValueError> {
    let parsed = parse_address(text, default_port).or_else(|cause| match cause {
        TargetError::Scope(_) | TargetError::Interface(_) => Err(cause),
        _ => parse_socket_address(text),
    });
    parsed.map_err(|cause| ValueError::address(cause, ValueError::Form(form)))
}

/// Parses the URL of a DNS over HTTPS server.
pub(super) fn doh_url(text: &str) -> Result<String, ValueError> {
    match Resolver::https(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(eyas::Error::Resolver(reason)) => Err(ValueError::Resolver { reason }),
        Err(other) => Err(ValueError::Resolver { reason: other.to_string() }),
    }
}

/// Parses the number of second tries.
pub(super) fn second_tries() -> impl TypedValueParser<Value = u32> {
    RangedI64ValueParser::new().range(0..=i64::from(SECOND_TRIES_MAX))
}

/// Parses the factor by which attempt delays grow, and returns it in percent.
pub(super) fn attempt_delay_factor(text: &str) -> Result<u32, ValueError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let percent = match format!("{whole}{fraction:0<2}").parse() {
        Ok(percent) if is_number(whole) && is_number(fraction) && !fraction.is_empty() => percent,
        _ => 0,
    };
    match percent {
        100..=ATTEMPT_DELAY_FACTOR_MAX => Ok(percent),
        _ => Err(ValueError::Form("a factor from 1 to 4, such as 2 or 1.5")),
    }
}

/// A header to send or to omit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderLine {
    /// The name.
    pub(crate) name: http::HeaderName,
    /// The value; `None` omits the header.
    pub(crate) value: Option<http::HeaderValue>,
}

/// Parses `Name: value`, `Name;` for an empty value, or `Name:` to omit it.
pub(crate) fn header(text: &str) -> Result<HeaderLine, ValueError> {
    let form = "'Name: value'";
    let (name, value) = match (text.split_once(':'), text.strip_suffix(';')) {
        (Some((name, value)), _) => (name, Some(value.trim()).filter(|value| !value.is_empty())),
        (None, Some(name)) => (name, Some("")),
        (None, None) => return Err(ValueError::Form(form)),
    };
    let not_a_name = |_| ValueError::part(name, "a header name", form);
    let name = name.trim().parse().map_err(not_a_name)?;
    let value = value
        .map(|value| http::HeaderValue::from_bytes(value.as_bytes()))
        .transpose()
        .map_err(|_| ValueError::Senseless { reason: "the value cannot be sent", form })?;
    Ok(HeaderLine { name, value })
}

/// Parses `ADDR:PORT`, `:PORT` or `PORT`; the default address is 127.0.0.1.
pub(super) fn listen(text: &str) -> Result<SocketAddr, ValueError> {
    match parse_port(text.strip_prefix(':').unwrap_or(text)) {
        Some(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => parse_socket_address(text).map_err(|cause| {
            let form = "ADDR:PORT, such as 127.0.0.1:8443 or [::]:443";
            ValueError::address(cause, ValueError::Form(form))
        }),
    }
}

/// The addresses of one `--listen`: one, or those of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddresses(Vec<SocketAddr>);

impl ListenAddresses {
    /// Returns all addresses of the `--listen` given, or this port of 127.0.0.1 without one.
    pub(crate) fn or_loopback(given: &[Self], port: u16) -> Vec<SocketAddr> {
        match given.is_empty() {
            true => vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))],
            false => given.iter().flat_map(|listen| listen.0.iter().copied()).collect(),
        }
    }
}

/// Parses what [`listen`] does, and `NAME:PORT`: the addresses of this host that the name has.
pub(super) fn listen_all(text: &str) -> Result<ListenAddresses, ValueError> {
    let cause = match listen(text) {
        Ok(address) => return Ok(ListenAddresses(vec![address])),
        Err(cause) => cause,
    };
    let name =
        text.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    let is_name = |name: &str| matches!(TargetHost::parse(name), Ok(TargetHost::Name(_)));
    let Some((name, port)) = name.filter(|(name, _)| is_name(name)) else { return Err(cause) };
    let found = (name, port).to_socket_addrs().map_err(|cause| ValueError::Unresolved {
        name: name.to_owned(),
        cause: cause.to_string(),
    })?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        // A hosts file may list ::1 where IPv6 is disabled.
        let is_here = UdpSocket::bind((address.ip(), 0)).is_ok();
        if is_here && !all.contains(&address) {
            all.push(address);
        }
    }
    match all.is_empty() {
        true => Err(ValueError::NotOfThisHost(name.to_owned())),
        false => Ok(ListenAddresses(all)),
    }
}

/// Parses a name for a certificate: a host name, an address, or `*.` before a domain. A name in
/// another script is returned as it is in certificates (RFC 5280 §7.2).
pub(super) fn certificate_name(text: &str) -> Result<String, ValueError> {
    let (wildcard, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    match TargetHost::parse(name) {
        Ok(TargetHost::Name(name)) => Ok(format!("{wildcard}{}", name.trim_end_matches('.'))),
        Ok(_) if wildcard.is_empty() => Ok(text.trim_matches(['[', ']']).to_owned()),
        _ => Err(ValueError::Form("a host or an address, such as example.org or ::1")),
    }
}

/// Parses a size in bytes: `1024`, `1KiB`, `35 KiB`, `1MB`.
pub(super) fn size(text: &str) -> Result<u64, ValueError> {
    let text = text.trim();
    let refused = || ValueError::part(text, "a size", "a size such as 1024, 35KiB or 1MB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        _ => return Err(refused()),
    };
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(refused)
}

/// Parses the number of redirects that may be followed; -1 is no limit, as in curl.
pub(super) fn redirects(text: &str) -> Result<usize, ValueError> {
    match text {
        "-1" => Ok(usize::MAX),
        text => text.parse().map_err(|_| ValueError::Form("a number of redirects, or -1")),
    }
}

/// Parses curl's rate in bytes per second: `500`, `20k`, `1.5M`, or a [`size`]; 0 is no limit.
pub(super) fn rate(text: &str) -> Result<u64, ValueError> {
    let form = "a rate such as 500, 20k, 1M or 35KiB";
    let power = match text.trim().as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => Some(1_u32 << 10),
        Some(b'm') => Some(1 << 20),
        Some(b'g') => Some(1 << 30),
        _ => None,
    };
    let bytes = match power {
        Some(power) => {
            let number = text.trim().get(..text.trim().len() - 1).unwrap_or_default();
            number
                .parse::<f64>()
                .ok()
                .filter(|number| *number >= 0.0)
                .map(|number| (number * f64::from(power)) as u64)
        }
        None => size(text).ok(),
    };
    bytes.ok_or_else(|| ValueError::part(text, "a rate", form))
}

/// Parses a share: `80%` or `0.8`.
pub(super) fn share(text: &str) -> Result<f64, ValueError> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=unit).contains(&number) => Ok(number / unit),
        _ => Err(ValueError::Form("a share from 0% to 100%, such as 80% or 0.8")),
    }
}

/// The maximum number of addresses in a range.
const MAX_RANGE: u32 = 65_536;

/// One address, or all from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressRange(pub(crate) Vec<IpAddr>);

/// Parses `127.0.0.1` or `127.0.0.1-127.0.0.50`.
pub(super) fn addresses(text: &str) -> Result<AddressRange, ValueError> {
    let form = "an address, or a range such as 127.0.0.1-127.0.0.50";
    let address = |text: &str| {
        let parsed = text.trim().parse::<IpAddr>();
        parsed.map_err(|_| ValueError::part(text, "an IP address", form))
    };
    let Some((from, to)) = text.split_once('-') else {
        return Ok(AddressRange(vec![address(text)?]));
    };
    let (IpAddr::V4(from), IpAddr::V4(to)) = (address(from)?, address(to)?) else {
        let reason = "only IPv4 addresses can form ranges";
        return Err(ValueError::Senseless { reason, form });
    };
    let (from, to) = (from.to_bits(), to.to_bits());
    match to.checked_sub(from) {
        None => Err(ValueError::Senseless { reason: "the range ends before it begins", form }),
        Some(difference) if difference >= MAX_RANGE => Err(ValueError::ManyAddresses(MAX_RANGE)),
        Some(_) => {
            Ok(AddressRange((from..=to).map(|bits| Ipv4Addr::from_bits(bits).into()).collect()))
        }
    }
}
