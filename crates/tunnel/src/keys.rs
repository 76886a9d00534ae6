//! The files of keys: `authorized_keys` with the permissions of clients' keys, and `known_hosts` with servers'
//! keys. Pure.
//!
//! Both have one line for each key, and comments after `#`. A line of the first begins with options like those of
//! OpenSSH's `authorized_keys`, a line of the second with the server's name:
//!
//! ```text
//! permit-open="db.example:5432",permit-listen="none",permit-tun="10.9.0.2" SHA256:… ada@laptop
//! tunnel.example:4433 SHA256:…
//! ```

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use eyas::race::target::{TargetError, TargetHost, parse_port};
use eyas::{KeyFingerprint, KeyFingerprintError};
use eyas_relay::destination::Destination;
use eyas_relay::rules::{DestinationRules, PatternError, RulePattern};
use ipnet::IpNet;

use crate::frame::UnixPath;

/// The permissions of a key.
#[derive(Clone, Debug)]
pub struct KeyGrant {
    /// The name in the line.
    pub name: String,
    pub(crate) open: Arc<DestinationRules>,
    /// The Unix sockets to which it may connect, if not to any.
    open_unix: Option<Vec<UnixPath>>,
    listen: ListenPermission,
    /// The Unix sockets at which it may listen.
    listen_unix: Vec<UnixPath>,
    /// The networks of its packets. There are none unless the line names some.
    pub(crate) networks: Vec<IpNet>,
}

/// The addresses at which a key may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenPermission {
    /// Any port of loopback, which is the default.
    Loopback,
    /// These addresses and ports, where `None` is any.
    At(Vec<(Option<String>, Option<u16>)>),
}

/// Why a file of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct KeyFileError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: KeyLineError,
}

/// What is wrong with a line of a file of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLineError {
    /// It ends before the key.
    #[error("there is no key")]
    NoKey,
    /// This stands in the place of the key.
    #[error("{0:?} is not a key: {1}")]
    Key(String, KeyFingerprintError),
    /// The name of the server has no port.
    #[error("HOST:PORT is missing")]
    NoServer,
    /// The server's host.
    #[error("{0}")]
    Host(#[from] TargetError),
    /// The server's port.
    #[error("{0:?} is not a port")]
    Port(String),
    /// An option without a value in quotation marks.
    #[error("{0:?} is not an option: write name=\"value\"")]
    Unquoted(String),
    /// An option with this name.
    #[error("there is no option {0:?}")]
    Option(String),
    /// The path of a Unix socket.
    #[error("{0:?} is too long")]
    LongPath(String),
    /// What may be opened.
    #[error("{0:?}: {1}")]
    Pattern(String, PatternError),
    /// The port in where to listen.
    #[error("{0:?}: {1:?} is not a port")]
    ListenPort(String, String),
    /// What should be a network of packets.
    #[error("{0:?} is neither an address nor a network")]
    Network(String),
    /// An address with a prefix length, and its network.
    #[error("{0:?} is an address in a network: write {1}")]
    AddressInNetwork(String, IpNet),
}

/// The keys that may connect, with their permissions.
#[derive(Clone, Debug, Default)]
pub struct AuthorizedKeys {
    keys: Vec<(KeyFingerprint, KeyGrant)>,
}

impl AuthorizedKeys {
    /// Parses a file.
    ///
    /// # Errors
    /// Returns the first invalid line. None is skipped, since it might contain a restriction.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let mut keys = Vec::new();
        for (line, text) in lines(text) {
            keys.push(authorized(text).map_err(|what| KeyFileError { line, what })?);
        }
        Ok(Self { keys })
    }

    /// Returns the permissions of this key, if it may connect.
    pub fn grant(&self, key: &KeyFingerprint) -> Option<&KeyGrant> {
        self.keys.iter().find(|(one, _)| one == key).map(|(_, grant)| grant)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl KeyGrant {
    /// Returns whether packets from this address belong to the key.
    pub(crate) fn may_have(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Returns whether the key may connect to this Unix socket.
    pub(crate) fn may_open_unix(&self, path: &UnixPath) -> bool {
        self.open_unix.as_ref().is_none_or(|paths| paths.contains(path))
    }

    /// Returns whether the key may listen at this Unix socket.
    pub(crate) fn may_listen_unix(&self, path: &UnixPath) -> bool {
        self.listen_unix.contains(path)
    }

    /// Returns whether the key may listen there.
    pub(crate) fn may_listen(&self, bind: &str, port: u16) -> bool {
        let bind = plain(bind);
        match &self.listen {
            ListenPermission::Loopback => is_loopback(&bind),
            ListenPermission::At(places) => places.iter().any(|(address, at)| {
                let is_there = match address {
                    Some(address) => {
                        *address == bind || (is_loopback(address) && is_loopback(&bind))
                    }
                    None => true,
                };
                is_there && at.is_none_or(|at| at == port)
            }),
        }
    }
}

/// Returns the lines that are neither empty nor comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| (index + 1, line))
}

fn authorized(line: &str) -> Result<(KeyFingerprint, KeyGrant), KeyLineError> {
    let (options, rest) = match line.starts_with("SHA256:") {
        true => ("", line),
        false => split_outside_quotes(line, ' ').ok_or(KeyLineError::NoKey)?,
    };
    let (key, name) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let key = parse_key(key)?;
    let (mut open, mut listen, mut networks) =
        (None::<Vec<RulePattern>>, None::<Vec<_>>, Vec::new());
    let (mut open_unix, mut listen_unix) = (Vec::new(), Vec::new());
    let unix =
        |path: &str| UnixPath::parse(path).ok_or_else(|| KeyLineError::LongPath(path.to_owned()));
    let mut left = Some(options).filter(|options| !options.is_empty());
    while let Some(options) = left {
        let (option, more) = match split_outside_quotes(options, ',') {
            Some((option, more)) => (option, Some(more)),
            None => (options, None),
        };
        left = more;
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = value.ok_or_else(|| KeyLineError::Unquoted(option.to_owned()))?;
        match name.to_ascii_lowercase().as_str() {
            "permit-open" => {
                let open = open.get_or_insert_default();
                if value.starts_with('/') {
                    open_unix.push(unix(value)?);
                } else if value != "none" {
                    let value = value.strip_suffix(":*").unwrap_or(value);
                    let pattern = value.parse();
                    open.push(
                        pattern.map_err(|error| KeyLineError::Pattern(value.to_owned(), error))?,
                    );
                }
            }
            "permit-listen" => {
                let listen = listen.get_or_insert_default();
                if value.starts_with('/') {
                    listen_unix.push(unix(value)?);
                } else if value != "none" {
                    listen.push(parse_place(value)?);
                }
            }
            "permit-tun" if value == "none" => {}
            "permit-tun" => networks.push(network(value)?),
            other => return Err(KeyLineError::Option(other.to_owned())),
        }
    }
    let open_unix = open.is_some().then_some(open_unix);
    let open = match open {
        None => DestinationRules::default(),
        Some(allow) => {
            let all = "*".parse();
            let deny = vec![all.map_err(|error| KeyLineError::Pattern("*".to_owned(), error))?];
            DestinationRules { allow, deny, ..DestinationRules::default() }
        }
    };
    let listen = listen.map_or(ListenPermission::Loopback, ListenPermission::At);
    let (name, open) = (name.trim().to_owned(), Arc::new(open));
    Ok((key, KeyGrant { name, open, open_unix, listen, listen_unix, networks }))
}

fn parse_key(text: &str) -> Result<KeyFingerprint, KeyLineError> {
    text.parse().map_err(|error| KeyLineError::Key(text.to_owned(), error))
}

/// Parses `ADDRESS` or `ADDRESS/BITS`. Bits beyond the prefix must be 0, since otherwise it is probably a mistake.
fn network(text: &str) -> Result<IpNet, KeyLineError> {
    let network = match text.contains('/') {
        true => text.parse::<IpNet>().ok(),
        false => text.parse::<IpAddr>().ok().map(IpNet::from),
    };
    let network = network.ok_or_else(|| KeyLineError::Network(text.to_owned()))?;
    match network.trunc() == network {
        true => Ok(network),
        false => Err(KeyLineError::AddressInNetwork(text.to_owned(), network.trunc())),
    }
}

/// Parses `[ADDRESS:]PORT`, with `*` for any.
fn parse_place(text: &str) -> Result<(Option<String>, Option<u16>), KeyLineError> {
    let (address, port) = match text.rsplit_once(':') {
        Some((address, port)) => (Some(address), port),
        None => (Some("localhost"), text),
    };
    let port = match port {
        "*" => None,
        port => {
            let invalid = || KeyLineError::ListenPort(text.to_owned(), port.to_owned());
            Some(parse_port(port).ok_or_else(invalid)?)
        }
    };
    Ok((address.filter(|address| *address != "*").map(plain), port))
}

fn plain(address: &str) -> String {
    address.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn is_loopback(address: &str) -> bool {
    let is_literal = |ip: std::net::IpAddr| ip.to_canonical().is_loopback();
    address.is_empty() || address == "localhost" || address.parse().is_ok_and(is_literal)
}

/// Splits a text at the first such character outside quotation marks.
fn split_outside_quotes(text: &str, at: char) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    for (place, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            letter if letter == at && !is_quoted => {
                return Some((&text[..place], &text[place + letter.len_utf8()..]));
            }
            _ => {}
        }
    }
    None
}

/// The keys of known servers.
#[derive(Clone, Debug, Default)]
pub struct KnownHosts {
    hosts: Vec<(HostName, KeyFingerprint, usize)>,
}

/// The name of a server, which includes its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(pub Destination);

impl HostName {
    /// Returns the name of this server.
    pub fn new(host: TargetHost, port: u16) -> Self {
        Self(Destination::new(host, port))
    }

    /// Returns the line with the key of the server.
    pub fn line(&self, key: &KeyFingerprint) -> String {
        format!("{self} {key}\n")
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl KnownHosts {
    /// Parses a file.
    ///
    /// # Errors
    /// Returns the first invalid line.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let read = |line: &str| {
            let (host, key) = line.split_once(char::is_whitespace).ok_or(KeyLineError::NoKey)?;
            let (host, port) = host.rsplit_once(':').ok_or(KeyLineError::NoServer)?;
            let host = TargetHost::parse(host)?;
            let port = parse_port(port).ok_or_else(|| KeyLineError::Port(port.to_owned()))?;
            let key = parse_key(key.split_whitespace().next().unwrap_or_default())?;
            Ok::<_, KeyLineError>((HostName::new(host, port), key))
        };
        let mut hosts = Vec::new();
        for (line, text) in lines(text) {
            let (host, key) = read(text).map_err(|what| KeyFileError { line, what })?;
            hosts.push((host, key, line));
        }
        Ok(Self { hosts })
    }

    /// Returns the known keys of this server, with the numbers of their lines.
    pub fn keys(&self, host: &HostName) -> Vec<(KeyFingerprint, usize)> {
        let entries = self.hosts.iter().filter(|(one, ..)| one == host);
        entries.map(|(_, key, line)| (*key, *line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
    const OTHER: &str = "SHA256:LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564";

    fn grant(options: &str) -> KeyGrant {
        let keys = AuthorizedKeys::parse(&format!("# x\n\n{options} {KEY} ada@laptop\n"));
        keys.expect(options).grant(&KEY.parse().expect("a key")).expect("it is there").clone()
    }

    #[test]
    fn a_key_has_the_permissions_of_its_line() {
        assert_eq!(grant("").name, "ada@laptop");
        assert!(grant("").may_listen("", 80) && grant("").may_listen("127.0.0.1", 80));
        assert!(!grant("").may_listen("*", 80) && !grant("").may_listen("192.0.2.1", 80));
        let some = grant(r#"permit-open="a.test:22",permit-listen="8080",permit-listen="[::]:*""#);
        assert_eq!(some.open.allow, ["a.test:22".parse().expect("a pattern")]);
        assert!(some.may_listen("localhost", 8080) && some.may_listen("[::]", 1));
        assert!(!some.may_listen("localhost", 8081) && !some.may_listen("*", 8080));
        let none = grant(r#"permit-open="none",permit-listen="none""#);
        assert!(none.open.allow.is_empty() && none.open.deny.len() == 1);
        assert!(!none.may_listen("", 80));
        assert!(grant(r#"permit-listen="*:*""#).may_listen("192.0.2.1", 1));
        let path = |text: &str| UnixPath::parse(text).expect("a path");
        let socket = path("/run/a.sock");
        assert!(grant("").may_open_unix(&socket) && !grant("").may_listen_unix(&socket));
        assert!(!some.may_open_unix(&socket) && !none.may_open_unix(&socket));
        let unix = grant(r#"permit-open="/run/a.sock",permit-listen="/run/a.sock""#);
        assert!(unix.may_open_unix(&socket) && unix.may_listen_unix(&socket));
        assert!(!unix.may_open_unix(&path("/run/a.sock2")) && !unix.may_listen("", 80));
        assert!(unix.open.allow.is_empty() && unix.open.deny.len() == 1);
    }

    #[test]
    fn a_key_has_the_addresses_that_its_line_names_and_no_others() {
        let has = |grant: &KeyGrant, address: &str| grant.may_have(address.parse().expect("one"));
        assert!(!has(&grant(""), "10.9.0.2") && !has(&grant(r#"permit-tun="none""#), "10.9.0.2"));
        let some = grant(r#"permit-tun="10.9.0.2",permit-tun="fd00:9::/64",permit-open="none""#);
        assert!(has(&some, "10.9.0.2") && has(&some, "fd00:9::7"));
        assert!(!has(&some, "10.9.0.3") && !has(&some, "fd00:a::7"));
    }

    #[test]
    fn an_invalid_line_is_reported() {
        for (text, line) in [
            ("nonsense\n".to_owned(), 1),
            (format!("{KEY}\npermit-open=\"a\" nonsense\n"), 2),
            (format!("permit-all=\"a\" {KEY}"), 1),
            (format!("permit-open=a {KEY}"), 1),
            (format!("permit-open=\"a:x\" {KEY}"), 1),
            (format!("permit-listen=\"a:x\" {KEY}"), 1),
            (format!("permit-tun=\"a.test\" {KEY}"), 1),
            (format!("permit-tun=\"10.9.0.2/24\" {KEY}"), 1),
            (format!("permit-tun=\"10.9.0.0/33\" {KEY}"), 1),
        ] {
            let error = AuthorizedKeys::parse(&text).expect_err(&text);
            assert_eq!(error.line, line, "{error}");
        }
        let empty = AuthorizedKeys::parse("# none\n").expect("a file");
        assert!(empty.is_empty() && empty.grant(&KEY.parse().expect("a key")).is_none());
    }

    #[test]
    fn a_server_is_known_by_its_name_and_port() {
        let host = |name: &str, port| HostName::new(TargetHost::parse(name).expect("a host"), port);
        let key = |text: &str| text.parse::<KeyFingerprint>().expect("a key");
        let text = host("A.test", 4433).line(&key(KEY)) + &host("::1", 1).line(&key(OTHER));
        let known = KnownHosts::parse(&text).expect("a file");
        assert_eq!(known.keys(&host("a.test", 4433)), [(key(KEY), 1)]);
        assert_eq!(known.keys(&host("::1", 1)), [(key(OTHER), 2)]);
        assert!(known.keys(&host("a.test", 4434)).is_empty());
        assert!(KnownHosts::parse("a.test SHA256:x").is_err());
    }
}
