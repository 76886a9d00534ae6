//! Forwardings in the syntax of ssh: `[BIND:]PORT:HOST:PORT`. Pure.

use std::fmt;
use std::str::FromStr;

use eyas::race::target::parse_port;

use crate::handshake::Destination;

/// An address to listen at. If it is empty, that is loopback; `*` is every address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// An address, `localhost`, `*`, or empty.
    pub bind: String,
    /// The port; 0 is any free one.
    pub port: u16,
}

/// An address to listen at, and the destination of the connections that are accepted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The address to listen at.
    pub at: Place,
    /// The destination.
    pub to: Destination,
}

/// The error of parsing a [`Forward`] or a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}, with IPv6 addresses in brackets")]
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

fn place(bind: Option<&str>, port: &str) -> Option<Place> {
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
    Some(Place { bind, port: parse_port(port)? })
}

/// Parses `HOST:PORT`.
pub fn destination(text: &str) -> Result<Destination, ForwardError> {
    const ERROR: ForwardError = ForwardError("HOST:PORT");
    match parts(text)[..] {
        [host, port] => to(host, port).ok_or(ERROR),
        _ => Err(ERROR),
    }
}

fn to(host: &str, port: &str) -> Option<Destination> {
    let port = parse_port(port).filter(|port| *port > 0)?;
    Destination::parse(host, port).ok()
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let (at, to) = match parts(text)[..] {
            [port, host, to_port] => (place(None, port), to(host, to_port)),
            [bind, port, host, to_port] => (place(Some(bind), port), to(host, to_port)),
            _ => (None, None),
        };
        match (at, to) {
            (Some(at), Some(to)) => Ok(Self { at, to }),
            _ => Err(ForwardError("[BIND:]PORT:HOST:PORT")),
        }
    }
}

impl FromStr for Place {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let place = match parts(text)[..] {
            [port] => place(None, port),
            [bind, port] => place(Some(bind), port),
            _ => None,
        };
        place.ok_or(ForwardError("[BIND:]PORT"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bind.as_str() {
            "" => write!(f, "localhost:{}", self.port),
            bind if bind.contains(':') => write!(f, "[{bind}]:{}", self.port),
            bind => write!(f, "{bind}:{}", self.port),
        }
    }
}

impl fmt::Display for Forward {
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
        ];
        for (text, parsed) in cases {
            assert_eq!(text.parse::<Forward>().expect(text).to_string(), parsed);
        }
        for text in
            ["", "80", "80:a", "80:a:b", "a:80:b", "80:a:0", "1:2:3:4:5", "::1:80:a:80", "x:1:a:2"]
        {
            assert!(text.parse::<Forward>().is_err(), "{text}");
        }
        let place = |text: &str| text.parse::<Place>().map(|place| place.to_string());
        assert_eq!(place("1080").as_deref(), Ok("localhost:1080"));
        assert_eq!(place("[::1]:1080").as_deref(), Ok("[::1]:1080"));
        assert!(place("::1:1080").is_err() && place("example.org:1").is_err());
        assert_eq!(destination("[::1]:22").map(|to| to.to_string()).as_deref(), Ok("[::1]:22"));
        assert!(destination("a").is_err() && destination("a:0").is_err());
    }
}
