//! Forwardings in the syntax of ssh: `[BIND:]PORT:HOST:PORT`, where either end may be the path of a Unix socket.
//! Pure.

use std::fmt;
use std::str::FromStr;

use eyas::race::target::parse_port;
use eyas_relay::destination::Destination;

use crate::frame::{ChannelPurpose, UnixPath};

/// An address to listen at. If it is empty, that is loopback; `*` is every address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenPlace {
    /// An address, `localhost`, `*`, or empty.
    pub bind: String,
    /// The port; 0 is any free one.
    pub port: u16,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAt {
    /// At this address and port.
    Tcp(ListenPlace),
    /// At a Unix socket with this path, which is created.
    Unix(UnixPath),
}

/// Where accepted connections lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardTo {
    /// To this host and port.
    Tcp(Destination),
    /// To the Unix socket with this path.
    Unix(UnixPath),
}

/// Where to listen, and where the connections lead that are accepted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortForward {
    /// Where to listen.
    pub at: ListenAt,
    /// Where connections lead.
    pub to: ForwardTo,
}

/// The error of parsing a [`PortForward`] or a [`ListenPlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}, with IPv6 addresses in brackets and paths from the root")]
pub struct ForwardError(&'static str);

/// Splits a text at its colons, except those within brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_bracketed) = (Vec::new(), 0, false);
    for (place, letter) in text.char_indices() {
        match letter {
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            ':' if !is_bracketed => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn listen_place(bind: Option<&str>, port: &str) -> Option<ListenPlace> {
    let bind = match bind {
        None => String::new(),
        // As with ssh, a colon with nothing before it means all addresses.
        Some("" | "*") => "*".to_owned(),
        Some(bind) => {
            let bind = bind.trim_start_matches('[').trim_end_matches(']');
            // The names of interfaces are case-sensitive.
            if bind.contains('%') { bind.to_owned() } else { bind.to_ascii_lowercase() }
        }
    };
    let address = bind.split_once('%').map_or(&*bind, |(address, _)| address);
    let is_address = address.parse::<std::net::IpAddr>().is_ok();
    let is_known = bind.is_empty() || bind == "*" || bind == "localhost" || is_address;
    is_known.then_some(())?;
    Some(ListenPlace { bind, port: parse_port(port)? })
}

/// Parses `HOST:PORT`.
pub fn destination(text: &str) -> Result<Destination, ForwardError> {
    const ERROR: ForwardError = ForwardError("HOST:PORT");
    match parts(text)[..] {
        [host, port] => parse_destination(host, port).ok_or(ERROR),
        _ => Err(ERROR),
    }
}

fn parse_destination(host: &str, port: &str) -> Option<Destination> {
    let port = parse_port(port).filter(|port| *port > 0)?;
    Destination::parse(host, port).ok()
}

impl FromStr for PortForward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let tcp = |bind, port| listen_place(bind, port).map(ListenAt::Tcp);
        let listen_unix = |path| UnixPath::parse(path).map(ListenAt::Unix);
        let to_tcp = |host, port| parse_destination(host, port).map(ForwardTo::Tcp);
        let to_unix = |path| UnixPath::parse(path).map(ForwardTo::Unix);
        let is_path = |text: &str| text.starts_with('/');
        let (at, to) = match parts(text)[..] {
            [at, path] if is_path(at) => (listen_unix(at), to_unix(path)),
            [port, path] => (tcp(None, port), to_unix(path)),
            [path, host, port] if is_path(path) => (listen_unix(path), to_tcp(host, port)),
            [bind, port, path] if is_path(path) => (tcp(Some(bind), port), to_unix(path)),
            [port, host, to_port] => (tcp(None, port), to_tcp(host, to_port)),
            [bind, port, host, to_port] => (tcp(Some(bind), port), to_tcp(host, to_port)),
            _ => (None, None),
        };
        match (at, to) {
            (Some(at), Some(to)) => Ok(Self { at, to }),
            _ => Err(ForwardError("[BIND:]PORT:HOST:PORT, or a path at either end")),
        }
    }
}

impl FromStr for ListenPlace {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let place = match parts(text)[..] {
            [port] => listen_place(None, port),
            [bind, port] => listen_place(Some(bind), port),
            _ => None,
        };
        place.ok_or(ForwardError("[BIND:]PORT"))
    }
}

impl fmt::Display for ListenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bind.as_str() {
            "" => write!(f, "localhost:{}", self.port),
            bind if bind.contains(':') => write!(f, "[{bind}]:{}", self.port),
            bind => write!(f, "{bind}:{}", self.port),
        }
    }
}

impl ListenAt {
    /// Sets the port that was chosen, if this has one.
    pub(crate) fn set_port(&mut self, port: u16) {
        if let Self::Tcp(place) = self {
            place.port = port;
        }
    }

    /// Returns the request to listen there.
    pub(crate) fn purpose(&self) -> ChannelPurpose {
        match self {
            Self::Tcp(ListenPlace { bind, port }) => {
                ChannelPurpose::Listen { bind: bind.clone(), port: *port }
            }
            Self::Unix(path) => ChannelPurpose::ListenUnix(path.clone()),
        }
    }
}

impl ForwardTo {
    /// Returns the request to connect there.
    pub(crate) fn purpose(&self) -> ChannelPurpose {
        match self {
            Self::Tcp(to) => ChannelPurpose::Connect(to.clone()),
            Self::Unix(path) => ChannelPurpose::ConnectUnix(path.clone()),
        }
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => place.fmt(f),
            Self::Unix(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for ForwardTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(to) => to.fmt(f),
            Self::Unix(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for PortForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.at, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwardings_are_parsed_as_ssh_does() {
        let cases = [
            ("8080:localhost:80", "localhost:8080 to localhost:80"),
            ("127.0.0.1:8080:a.test:80", "127.0.0.1:8080 to a.test:80"),
            ("[::1]:8080:[2001:db8::1]:80", "[::1]:8080 to [2001:db8::1]:80"),
            ("*:8080:10.0.0.1:80", "*:8080 to 10.0.0.1:80"),
            (":8080:10.0.0.1:80", "*:8080 to 10.0.0.1:80"),
            ("8080:[fe80::1%eth0]:80", "localhost:8080 to [fe80::1%eth0]:80"),
            ("[fe80::1%Eth0]:8080:a.test:80", "[fe80::1%Eth0]:8080 to a.test:80"),
            ("8080:[fe80::1%3]:80", "localhost:8080 to [fe80::1%3]:80"),
            ("localhost:0:h:1", "localhost:0 to h:1"),
            ("/run/a.sock:db.test:5432", "/run/a.sock to db.test:5432"),
            ("/run/a.sock:[::1]:22", "/run/a.sock to [::1]:22"),
            ("2375:/var/run/docker.sock", "localhost:2375 to /var/run/docker.sock"),
            ("[::1]:2375:/run/b", "[::1]:2375 to /run/b"),
            ("/run/a:/run/b", "/run/a to /run/b"),
        ];
        for (text, parsed) in cases {
            assert_eq!(text.parse::<PortForward>().expect(text).to_string(), parsed);
        }
        for text in [
            "",
            "80",
            "80:a",
            "80:a:b",
            "a:80:b",
            "80:a:0",
            "1:2:3:4:5",
            "::1:80:a:80",
            "x:1:a:2",
            "a:/b",
            "80:b",
            "/a:80",
            "/a:b:c:d",
            "80:a:/b",
            "x:80:/b",
        ] {
            assert!(text.parse::<PortForward>().is_err(), "{text}");
        }
        let place = |text: &str| text.parse::<ListenPlace>().map(|place| place.to_string());
        assert_eq!(place("1080").as_deref(), Ok("localhost:1080"));
        assert_eq!(place("[::1]:1080").as_deref(), Ok("[::1]:1080"));
        assert!(place("::1:1080").is_err() && place("example.org:1").is_err());
        assert_eq!(destination("[::1]:22").map(|to| to.to_string()).as_deref(), Ok("[::1]:22"));
        assert!(destination("a").is_err() && destination("a:0").is_err());
    }
}
